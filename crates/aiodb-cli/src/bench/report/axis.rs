//! Axes: where a value lies, which values get a tick, and how they are written.

/// How values are spread over an axis.
#[derive(Clone, Debug, PartialEq)]
enum Scale {
    Linear {
        min: f64,
        max: f64,
    },
    /// Equal distances are equal factors; all values are above zero.
    Log {
        min: f64,
        max: f64,
    },
    /// The given values at equal distances, whatever lies between them.
    Steps(Vec<f64>),
}

/// An axis of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub label: String,
    scale: Scale,
    ticks: Vec<f64>,
    format: fn(f64) -> String,
}

impl Axis {
    /// Round ticks from at most `min` to at least `max`.
    pub(crate) fn linear(label: &str, min: f64, max: f64, format: fn(f64) -> String) -> Axis {
        let ticks = linear_ticks(min, max);
        let scale = Scale::Linear { min: ticks[0], max: ticks[ticks.len() - 1] };
        Axis { label: label.to_owned(), scale, ticks, format }
    }

    /// Ticks at 1, 2 and 5 times powers of ten, or at the powers alone, from at most `min` to at least `max`.
    pub(crate) fn log(label: &str, min: f64, max: f64, format: fn(f64) -> String) -> Axis {
        let ticks = log_ticks(min, max);
        let scale = Scale::Log { min: ticks[0], max: ticks[ticks.len() - 1] };
        Axis { label: label.to_owned(), scale, ticks, format }
    }

    /// A logarithmic axis with ticks at the measured values themselves.
    pub(crate) fn log_at(label: &str, values: impl Iterator<Item = f64>, format: fn(f64) -> String) -> Axis {
        let ticks = distinct(values);
        let (min, max) = (ticks.first().copied().unwrap_or(1.0), ticks.last().copied().unwrap_or(1.0));
        Axis { label: label.to_owned(), scale: Scale::Log { min, max }, ticks, format }
    }

    /// The measured values at equal distances, for values that include zero.
    pub(crate) fn steps(label: &str, values: impl Iterator<Item = f64>, format: fn(f64) -> String) -> Axis {
        let ticks = distinct(values);
        Axis { label: label.to_owned(), scale: Scale::Steps(ticks.clone()), ticks, format }
    }

    /// The ticks with their positions from 0 to 1 and their texts.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().filter_map(|tick| Some((self.position(*tick)?, (self.format)(*tick))))
    }

    /// Where a value lies, from 0 to 1; `None` outside the axis.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let position = match &self.scale {
            Scale::Linear { min, max } => (value - min) / (max - min),
            Scale::Log { min, max } if min == max && value == *min => 0.5,
            Scale::Log { min, max } => (value / min).ln() / (max / min).ln(),
            Scale::Steps(steps) => {
                let index = steps.iter().position(|step| *step == value)?;
                (index as f64 + 0.5) / steps.len() as f64
            }
        };
        (-1e-9..=1.0 + 1e-9).contains(&position).then_some(position)
    }

    /// The position of a value, or of the end of the axis nearest to it.
    pub(crate) fn clamped(&self, value: f64) -> f64 {
        match &self.scale {
            Scale::Linear { min, max } | Scale::Log { min, max } => {
                self.position(value.clamp(*min, *max)).expect("the value was brought onto the axis")
            }
            Scale::Steps(_) => self.position(value).unwrap_or(0.0),
        }
    }
}

/// The smallest and the largest value; `(1, 1)` if there is none.
pub(crate) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values
        .fold(None, |ends, value| match ends {
            None => Some((value, value)),
            Some((min, max)) => Some((f64::min(min, value), f64::max(max, value))),
        })
        .unwrap_or((1.0, 1.0))
}

fn distinct(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Between four and nine multiples of 1, 2 or 5 times a power of ten that enclose both ends.
fn linear_ticks(min: f64, max: f64) -> Vec<f64> {
    let span = if max > min { max - min } else { max.abs().max(1.0) };
    let power = 10f64.powf((span / 6.0).log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let step = factors.into_iter().map(|factor| factor * power).find(|step| span / step <= 6.0).unwrap_or(10.0 * power);
    let (first, last) = ((min / step + 1e-9).floor() as i64, ((min + span) / step - 1e-9).ceil() as i64);
    (first..=last).map(|index| index as f64 * step).collect()
}

fn log_ticks(min: f64, max: f64) -> Vec<f64> {
    let (min, max) = (min.max(1e-9), max.max(1e-9));
    let powers = (min.log10().floor() as i32)..=(max.log10().ceil() as i32 + 1);
    let all: Vec<f64> = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10f64.powi(power))).collect();
    let first = all.iter().rposition(|tick| *tick <= min * (1.0 + 1e-9)).unwrap_or(0);
    let last = all.iter().position(|tick| *tick >= max * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    let ticks = &all[first..=last.max(first + 1)];
    if ticks.len() <= 9 {
        return ticks.to_vec();
    }
    // Over many powers the ticks between them would only crowd: every third is a power of ten, from the first one on.
    let (first, last) = (first / 3 * 3, (last.div_ceil(3) * 3).min(all.len() - 1));
    all[first..=last].iter().step_by(3).copied().collect()
}

/// A count with K or M: `64`, `1.5K`, `370K`, `2M`.
pub(crate) fn compact(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        magnitude if magnitude >= 999_500.0 => (value / 1e6, "M"),
        magnitude if magnitude >= 999.5 => (value / 1e3, "K"),
        _ => (value, ""),
    };
    let digits = usize::from(scaled.abs() < 10.0 && (scaled - scaled.round()).abs() > 0.05);
    format!("{scaled:.digits$}{unit}")
}

/// A size in bytes with K for KiB: `0`, `64`, `1K`, `4K`.
pub(crate) fn compact_bytes(value: f64) -> String {
    if value >= 1024.0 && value % 1024.0 == 0.0 { format!("{}K", value / 1024.0) } else { format!("{value}") }
}

#[cfg(test)]
mod tests;
