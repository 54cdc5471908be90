//! Which records are written: all alike, or few of them much more often than others.

use crate::stream::Random;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// YCSB's exponent of its "zipfian" requests.
pub const EXPONENT: f64 = 0.99;

/// How writes are spread over records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Over all alike.
    Uniform,
    /// To the record of rank r, from 1 on, in proportion to r to the power of -0.99.
    Zipf,
}

/// The name in options, tables and files.
impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Pattern::Uniform => "uniform",
            Pattern::Zipf => "zipf",
        })
    }
}

/// Draws ranks below a count, from 0 on, as `aiodb bench churn` does. It needs no table.
///
/// Those of [`Pattern::Zipf`] by rejection-inversion (W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates
/// from monotone discrete distributions", 1996): a place under the curve of h(r) = r^-[`EXPONENT`] is drawn by the inverse
/// of its integral, and the next whole number is taken if the place lies within h(r) of the right end of its piece. Since h
/// is convex, the piece around a whole number is never smaller than h there.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    pattern: Pattern,
    count: u64,
    /// The ends between which the integral is drawn. The piece of rank 1 begins where it has the size 1, so that 1 is never
    /// refused.
    ends: (f64, f64),
}

impl Ranks {
    /// Below `count`, which is at least 1.
    pub fn new(pattern: Pattern, count: u64) -> Ranks {
        assert!(count > 0, "no rank lies below 0");
        Ranks { pattern, count, ends: (integral(1.5) - 1.0, integral(count as f64 + 0.5)) }
    }

    /// The next one.
    pub fn draw(&self, random: &mut Random) -> u64 {
        if self.pattern == Pattern::Uniform {
            return random.below(self.count);
        }
        let (first, last) = self.ends;
        loop {
            let area = first + random.share() * (last - first);
            let rank = integral_inverse(area).round().clamp(1.0, self.count as f64);
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

/// A permutation of the numbers below a count that puts neighbours far apart: records of the highest ranks lie everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Scatter {
    count: u64,
    /// About the golden section of the count, without a factor in common with it.
    step: u64,
}

impl Scatter {
    /// Of the numbers below `count`.
    pub fn new(count: u64) -> Scatter {
        let golden = (count as f64 * 0.618_033_988_749_895) as u64;
        let step = (golden..).find(|&step| greatest_common_divisor(step, count) == 1);
        Scatter { count, step: step.expect("no number has a factor in common with the one after it") }
    }

    /// The number of a rank.
    pub fn number(&self, rank: u64) -> u64 {
        (u128::from(rank) * u128::from(self.step) % u128::from(self.count)) as u64
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests;
