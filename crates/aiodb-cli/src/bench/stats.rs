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
