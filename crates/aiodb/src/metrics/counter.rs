//! Counters that many threads raise and few read.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads mostly count on different cache lines.
pub(crate) const STRIPES: usize = 8;

#[repr(align(64))]
#[derive(Default)]
struct Stripe(AtomicU64);

/// A count that only grows. Raising it costs about as much as a store to the caller's own memory; reading it sums the
/// stripes. Relaxed: it publishes nothing.
#[derive(Default)]
pub(crate) struct Counter {
    stripes: [Stripe; STRIPES],
}

impl Counter {
    /// Counts one; returns how often the caller's stripe was raised before, for callers that sample.
    pub(crate) fn count(&self) -> u64 {
        self.stripes[stripe()].0.fetch_add(1, Ordering::Relaxed)
    }

    /// The count so far, at least of all threads that have synchronised with the caller.
    pub(crate) fn sum(&self) -> u64 {
        self.stripes.iter().map(|stripe| stripe.0.load(Ordering::Relaxed)).sum()
    }
}

/// The calling thread's stripe.
fn stripe() -> usize {
    /// Relaxed: it only tells threads apart.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = Cell::new(NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES);
    }
    STRIPE.get()
}
