//! Histograms that many threads record in without locks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Each power of two is divided into this many buckets, so a bucket is at most an eighth as wide as its values are large.
const BUCKETS_PER_DOUBLING: usize = 8;

/// Values up to this have a bucket each.
const EXACT: usize = 2 * BUCKETS_PER_DOUBLING;

/// Enough for every 64-bit number.
const BUCKETS: usize = EXACT + (64 - EXACT.ilog2() as usize) * BUCKETS_PER_DOUBLING;

/// How often values of each size were seen. Recording is two additions to shared memory. Relaxed: it publishes nothing.
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: [const { AtomicU64::new(0) }; BUCKETS], sum: AtomicU64::new(0) }
    }
}

impl Histogram {
    /// Counts a value.
    pub(crate) fn record(&self, value: u64) {
        self.buckets[bucket_of(value)].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    /// The values recorded so far. One recorded meanwhile may be in the sum and not yet in a bucket, or the reverse.
    pub(crate) fn snapshot(&self) -> Distribution {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).enumerate();
        let buckets = counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (bound_of(bucket), count)).collect();
        Distribution { buckets, sum: self.sum.load(Ordering::Relaxed) }
    }
}

/// The values that a store has seen of one kind, at one moment.
///
/// A value is known to within an eighth: percentiles are the upper bounds of buckets, at most 12.5 % above the value
/// (exact up to 16; 0 counts as 1). Count and sum are exact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distribution {
    /// Buckets that are not empty: the largest value that falls into each, and how many did.
    buckets: Vec<(u64, u64)>,
    sum: u64,
}

impl Distribution {
    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The mean; 0 if there is none.
    pub fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum as f64 / count as f64 }
    }

    /// A bound below or at which `percent` of the values lie; 0 if there is none.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (self.count() as f64 * percent / 100.0).ceil() as u64;
        let mut seen = 0;
        let reached = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        reached.or(self.buckets.last()).map_or(0, |(bound, _)| *bound)
    }

    /// How many values are at most `bound`; exact where it is the bound of a bucket, as powers of two are.
    pub fn count_up_to(&self, bound: u64) -> u64 {
        self.buckets.iter().take_while(|(upper, _)| *upper <= bound).map(|(_, count)| count).sum()
    }
}

/// Buckets end at powers of two and the eighths between them, inclusive.
fn bucket_of(value: u64) -> usize {
    let below = value.saturating_sub(1);
    if below < EXACT as u64 {
        return below as usize;
    }
    let exponent = below.ilog2();
    let eighth = (below >> (exponent - BUCKETS_PER_DOUBLING.ilog2())) as usize % BUCKETS_PER_DOUBLING;
    EXACT + (exponent - EXACT.ilog2()) as usize * BUCKETS_PER_DOUBLING + eighth
}

/// The largest value of a bucket.
fn bound_of(bucket: usize) -> u64 {
    if bucket < EXACT {
        return bucket as u64 + 1;
    }
    let doublings = ((bucket - EXACT) / BUCKETS_PER_DOUBLING) as u32;
    let eighths = ((bucket - EXACT) % BUCKETS_PER_DOUBLING + BUCKETS_PER_DOUBLING + 1) as u128;
    u64::try_from(eighths << (doublings + 1)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
