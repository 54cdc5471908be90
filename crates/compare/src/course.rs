//! A whole run in a few rates.

use crate::points::Point;

/// How fast a run went, from its beginning to its end, in puts per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Of all points.
    pub mean: f64,
    /// Of the first tenth of them, at least one.
    pub first_tenth: f64,
    /// Of the last tenth.
    pub last_tenth: f64,
    /// Of the point with the fewest.
    pub worst: f64,
}

impl Course {
    /// None if there are no points.
    pub fn of(points: &[Point]) -> Option<Course> {
        let tenth = (points.len() / 10).max(1).min(points.len());
        let rate = |points: &[Point]| {
            let puts: f64 = points.iter().map(|point| point.puts_per_s * point.seconds).sum();
            puts / points.iter().map(|point| point.seconds).sum::<f64>()
        };
        let worst = points.iter().map(|point| point.puts_per_s).min_by(f64::total_cmp)?;
        Some(Course {
            mean: rate(points),
            first_tenth: rate(&points[..tenth]),
            last_tenth: rate(&points[points.len() - tenth..]),
            worst,
        })
    }
}

#[cfg(test)]
mod tests;
