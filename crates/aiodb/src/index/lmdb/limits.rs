//! The bounds of LMDB's transactions.

/// The most keys in one transaction: bounds its dirty pages.
pub(super) const KEYS_PER_TRANSACTION: usize = 32 << 10;

/// The fewest keys in one transaction.
pub(super) const MIN_KEYS_PER_TRANSACTION: usize = 16;

/// LMDB's pages are those of the system.
pub(super) const PAGE_BYTES: u64 = 4096;
