//! Summaries of repeated measurements: median, spread, and a confidence interval that decides when to stop.

/// What a series of rounds amounts to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Half the width of the mean's 95 % confidence interval (Student's t); `None` below two values, where there is
    /// no such interval.
    pub ci95_half_width: Option<f64>,
}

impl Summary {
    /// `None` for an empty series.
    pub(crate) fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Summary { median, min, max, ci95_half_width: ci95_half_width(&sorted) })
    }

    /// Whether the confidence interval is within `fraction` of the median on either side.
    pub(crate) fn is_within(&self, fraction: f64) -> bool {
        self.ci95_half_width.is_some_and(|half| half <= fraction * self.median)
    }
}

/// How the rate of a run went over its stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Course {
    pub mean: f64,
    /// Of the first and the last tenth of the stretches, at least one of them.
    pub first: f64,
    pub last: f64,
    /// Of the stretch with the least.
    pub least: f64,
}

impl Course {
    /// Rates, each with the seconds of its stretch, at least one.
    pub(crate) fn of(rates: &[(f64, f64)]) -> Course {
        let tenth = (rates.len() / 10).max(1);
        Course {
            mean: weighed(rates),
            first: weighed(&rates[..tenth]),
            last: weighed(&rates[rates.len() - tenth..]),
            least: rates.iter().map(|(rate, _)| *rate).fold(f64::INFINITY, f64::min),
        }
    }
}

/// The rate over all stretches together.
fn weighed(rates: &[(f64, f64)]) -> f64 {
    let count: f64 = rates.iter().map(|(rate, seconds)| rate * seconds).sum();
    count / rates.iter().map(|(_, seconds)| seconds).sum::<f64>()
}

fn ci95_half_width(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Some(t_quantile_975(values.len() - 1) * (variance / count).sqrt())
}

/// The 97.5 % quantile of Student's t distribution: tabulated to 30 degrees of freedom, above that within 0.001 of
/// the true value.
fn t_quantile_975(degrees_of_freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    match TABLE.get(degrees_of_freedom - 1) {
        Some(quantile) => *quantile,
        None => 1.95996 + 2.3723 / degrees_of_freedom as f64 + 2.8 / (degrees_of_freedom as f64).powi(2),
    }
}

#[cfg(test)]
mod tests;
