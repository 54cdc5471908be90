//! Which records are written: all alike, or few of them much more often than others.

use fastrand::Rng;

/// YCSB's exponent of its "zipfian" requests.
pub(crate) const EXPONENT: f64 = 0.99;

/// How writes are spread over records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Uniform,
    Zipf,
}

impl Pattern {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Pattern::Uniform => "uniform",
            Pattern::Zipf => "zipf",
        }
    }
}

pub(crate) fn parse_pattern(name: &str) -> Result<Pattern, String> {
    let all = [Pattern::Uniform, Pattern::Zipf];
    all.into_iter().find(|pattern| pattern.name() == name).ok_or_else(|| "uniform or zipf".to_owned())
}

/// Draws ranks of records, from 0 on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ranks {
    Uniform(u64),
    Zipf(Zipf),
}

impl Ranks {
    /// Below `count`, which is at least 1.
    pub(crate) fn new(pattern: Pattern, count: u64) -> Ranks {
        match pattern {
            Pattern::Uniform => Ranks::Uniform(count),
            Pattern::Zipf => Ranks::Zipf(Zipf::new(count)),
        }
    }

    pub(crate) fn draw(&self, random: &mut Rng) -> u64 {
        match self {
            Ranks::Uniform(count) => random.u64(..count),
            Ranks::Zipf(zipf) => zipf.draw(random),
        }
    }
}

/// Draws rank r, from 1 on, in proportion to h(r), r to the power of minus [`EXPONENT`], and gives r - 1. It needs no table.
///
/// The method is rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
/// distributions", 1996): a place under the curve of h is drawn by the inverse of its integral, and the next whole number is taken
/// if the place lies within h(r) of the right end of its piece. Since h is convex, the piece of the curve around a whole number is never
/// smaller than h there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zipf {
    count: f64,
    /// The ends between which the integral is drawn. The piece of rank 1 begins where it has the size 1, so that 1 is never refused.
    first: f64,
    last: f64,
}

impl Zipf {
    fn new(count: u64) -> Zipf {
        let count = count as f64;
        Zipf { count, first: integral(1.5) - 1.0, last: integral(count + 0.5) }
    }

    fn draw(&self, random: &mut Rng) -> u64 {
        loop {
            let area = self.first + random.f64() * (self.last - self.first);
            let rank = integral_inverse(area).round().clamp(1.0, self.count);
            if area >= integral(rank + 0.5) - rank.powf(-EXPONENT) {
                return rank as u64 - 1;
            }
        }
    }
}

/// The integral of h from 1 on.
fn integral(x: f64) -> f64 {
    ((1.0 - EXPONENT) * x.ln()).exp_m1() / (1.0 - EXPONENT)
}

fn integral_inverse(area: f64) -> f64 {
    (((1.0 - EXPONENT) * area).ln_1p() / (1.0 - EXPONENT)).exp()
}

/// A permutation of the numbers below a count that puts neighbours far apart: those of the highest ranks lie everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scatter {
    count: u64,
    /// About the golden section of the count, without a factor in common with it.
    step: u64,
}

impl Scatter {
    pub(crate) fn new(count: u64) -> Scatter {
        let golden = (count as f64 * 0.618_033_988_749_895) as u64;
        let step = (golden..).find(|step| greatest_common_divisor(*step, count) == 1);
        Scatter { count, step: step.expect("no number has a factor in common with that after it") }
    }

    pub(crate) fn number(&self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.step) % u128::from(self.count)) as u64
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
