//! The facts that conditional writes must know about all other writes: the last append to each part of all keys.

use smallvec::SmallVec;

use crate::format::batch::Placed;
use crate::format::record::Kind;
use crate::log::commit::Operation;
use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Stripes, as a power of two: enough that two keys rarely share one while a conditional write is under way.
const STRIPES_LOG2: u32 = 15;

/// The appends to a part of all keys.
#[derive(Default)]
struct Stripe {
    /// The last sequence appended. Stored under the commit lock with Release, after the record counts as unpublished: a thread that reads
    /// it with Acquire finds that count. Relaxed under that lock, and for the thread that has the log for itself.
    last: AtomicU64,
    /// The last sequence of a record that is no operand. Relaxed: read while no thread appends.
    last_base: AtomicU64,
    /// Records that are appended and not yet published. Raised under the commit lock, under which a conditional write notes the log's
    /// end, so Relaxed; lowered with Release and read with Acquire: a thread that finds none finds the published records.
    unpublished: AtomicU32,
}

/// The appends to all keys, by parts.
pub(crate) struct Stripes {
    /// The last one is that of range tombstones, which concern any key.
    stripes: Box<[Stripe]>,
}

/// The last sequences appended to some stripes.
pub(crate) type Ends = SmallVec<[u64; 4]>;

/// The stripe of range tombstones.
pub(crate) const RANGES: usize = 1 << STRIPES_LOG2;

impl Default for Stripes {
    fn default() -> Self {
        Stripes { stripes: (0..=RANGES).map(|_| Stripe::default()).collect() }
    }
}

impl Stripes {
    pub(crate) fn number(table: u32, hash: u64) -> usize {
        const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (hash ^ u64::from(table).wrapping_mul(MIX)).wrapping_mul(MIX);
        (mixed >> (u64::BITS - STRIPES_LOG2)) as usize
    }

    pub(crate) fn of(table: u32, hash: u64, kind: Kind) -> usize {
        if kind == Kind::RangeTombstone { RANGES } else { Stripes::number(table, hash) }
    }

    /// To be noted under the commit lock, when records are appended that change what a get returns.
    pub(crate) fn appended<T>(&self, operations: &[Operation<'_, T>], placed: &[Placed]) {
        for (operation, placed) in operations.iter().zip(placed) {
            let kind = operation.append.kind;
            if operation.generation.is_none() || !kind.is_indexed() {
                continue;
            }
            let stripe = &self.stripes[Stripes::of(operation.append.table, operation.hash, kind)];
            stripe.unpublished.fetch_add(1, Ordering::Relaxed);
            stripe.last.store(placed.sequence, Ordering::Release);
            if kind != Kind::Merge {
                stripe.last_base.store(placed.sequence, Ordering::Relaxed);
            }
        }
    }

    /// To be noted when one of these records has been published.
    pub(crate) fn published(&self, table: u32, hash: u64, kind: Kind) {
        let before = self.stripes[Stripes::of(table, hash, kind)].unpublished.fetch_sub(1, Ordering::Release);
        assert!(before > 0, "a record that is published was appended");
    }

    /// No put or delete of a key came to the log after this sequence since the store was opened. Asked while no thread appends.
    pub(crate) fn last_base(&self, table: u32, hash: u64) -> u64 {
        self.stripes[Stripes::number(table, hash)].last_base.load(Ordering::Relaxed)
    }

    pub(crate) fn are_published(&self, stripes: &[usize]) -> bool {
        stripes.iter().all(|&stripe| self.stripes[stripe].unpublished.load(Ordering::Acquire) == 0)
    }

    /// The last sequence appended to each of these stripes, if all their records are published: a look-up that begins now finds them, and
    /// all that there are as long as [`Stripes::end_at`] says so.
    pub(crate) fn published_ends(&self, stripes: &[usize]) -> Option<Ends> {
        let ends = stripes.iter().map(|&stripe| self.stripes[stripe].last.load(Ordering::Acquire)).collect();
        (self.are_published(stripes) || planted::is_on(Bug::FoldOverlooksWaiting)).then_some(ends)
    }

    /// Whether these are still the last sequences appended to stripes. Asked under the commit lock.
    pub(crate) fn end_at(&self, stripes: &[usize], ends: &[u64]) -> bool {
        let mut both = stripes.iter().zip(ends);
        both.all(|(&stripe, end)| self.stripes[stripe].last.load(Ordering::Relaxed) == *end)
            || planted::is_on(Bug::FoldOverlooksLater)
    }

    /// Whether nothing was appended to these stripes from a sequence on. Asked under the commit lock.
    pub(crate) fn are_unchanged(&self, stripes: &[usize], since: u64) -> bool {
        stripes.iter().all(|&stripe| self.stripes[stripe].last.load(Ordering::Relaxed) < since)
    }
}
