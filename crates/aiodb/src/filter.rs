//! Compaction filters: a program's own rules for what may go from a table of kind `lsm`, asked while sorted runs are merged.
//!
//! ```
//! use aiodb::filter::Expiry;
//! use aiodb::{CompactionFilters, Db, IndexKind, Options, TableOptions};
//!
//! # fn main() -> aiodb::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! let compaction_filters = CompactionFilters::default().with(Expiry);
//! let db = Db::open(directory.path(), Options { compaction_filters, ..Options::default() })?;
//! let compaction_filter = Some("expiry".to_string());
//! let options = TableOptions { inline_bytes: 64, compaction_filter, ..IndexKind::Lsm.into() };
//! let carts = db.create_table_with("carts", options)?;
//! // The time with which the value begins is over: upkeep deletes it once it is in a run.
//! carts.put(b"4711", &[&1_700_000_000_000u64.to_le_bytes()[..], b"two apples"].concat())?;
//! # Ok(()) }
//! ```

mod expiry;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub use expiry::Expiry;

use crate::error::message_of;
use crate::sequence::Sequence;
use crate::{Error, Result};

/// Decides which records of a table of kind `lsm` may go. It is asked by merges of sorted runs; what it gives up is deleted soon after,
/// as a delete of the program would delete it, unless its key was written to meanwhile. Gets and scans do not ask it: they see a record
/// until then.
///
/// A table names its filter when it is made ([`crate::TableOptions::compaction_filter`]); the program registers it each time it opens the
/// store ([`crate::Options::compaction_filters`]). Without it merges go on, and nothing is given up.
///
/// A filter is asked about the newest put that a merge has of a key, if it lies below the oldest snapshot: all snapshots see it, and go on
/// seeing it. It is not asked about keys with operands that are not folded yet, nor about keys of more than 479 bytes, of
/// which runs know a part. Where the key was overwritten meanwhile, its verdict is void.
pub trait CompactionFilter: Send + Sync {
    /// The name that tables refer to, which never changes.
    fn name(&self) -> &str;

    /// From when on a record may go. Asked when the record comes into a run, which keeps the answer, and again where
    /// [`FilterPass::judge`] has kept the record. A merge that meets nothing that may go does not call the filter. It is called within a
    /// flush or a merge, and must not use the store. After a panic here the flush or the merge asks it no more.
    fn mark(&self, entry: &FilterEntry<'_>) -> Mark;

    /// Begins a pass through a part of a table.
    fn begin(&self, range: &FilterRange<'_>) -> Box<dyn FilterPass>;
}

/// A filter on its way through a part of a table. What it knows of earlier keys lasts until the end of the merge, unless that has to stop
/// on the way: a crash, a close or a full disk ends a pass at any key, and another one begins there. It is called within a merge, and must not
/// use the store.
pub trait FilterPass: Send {
    /// Says of entries, which come in the order of keys and after those of earlier calls, which of them go. At first all are kept. It must
    /// not use the store: the merge that calls it holds locks. A panic here ends the pass: what it has said of earlier entries counts, and the rest of the table is kept by this merge.
    fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]);
}

/// A record as a filter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterEntry<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value, where the index has it ([`crate::TableOptions::inline_bytes`]): a merge does not read the log.
    pub value: Option<&'a [u8]>,
    /// Bytes that the log has of it: of its value alone where that is long.
    pub stored_bytes: u32,
    /// Its place in the order of all writes.
    pub sequence: Sequence,
}

impl<'a> FilterEntry<'a> {
    /// A record as a filter may see it, for tests of filters.
    pub fn new(key: &'a [u8], value: Option<&'a [u8]>, stored_bytes: u32, sequence: Sequence) -> FilterEntry<'a> {
        FilterEntry { key, value, stored_bytes, sequence }
    }
}

/// The part of a table that a pass goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterRange<'a> {
    /// The first key that the pass is asked about.
    pub first: &'a [u8],
    /// The time of the merge, in milliseconds since 1970: the same for all of its passes, also where it takes hours.
    pub now_ms: u64,
    /// Whether the merge has the oldest run: no record of a key of this range is older than those that it has.
    pub has_oldest: bool,
}

impl<'a> FilterRange<'a> {
    /// A part of a table, for tests of filters.
    pub fn new(first: &'a [u8], now_ms: u64, has_oldest: bool) -> FilterRange<'a> {
        FilterRange { first, now_ms, has_oldest }
    }
}

/// From when on a record may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Never for its own sake. The filter is asked about it all the same by a merge that has asked about a record before it.
    Never,
    /// From this time on, in milliseconds since 1970, by the store's clock. Upkeep has it merged then, with others: once one in eight
    /// records of a file may go, or all that have a time, or a day after the first.
    From(u64),
    /// The filter is asked whenever a merge comes by. No merge is made for it.
    Always,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    #[default]
    Keep,
    /// It goes.
    Drop,
}

/// The filters that a program registers.
#[derive(Clone, Default)]
pub struct CompactionFilters(Vec<Named>);

/// A filter with its name, which is asked for once.
#[derive(Clone)]
struct Named {
    name: String,
    filter: Arc<dyn CompactionFilter>,
}

impl CompactionFilters {
    /// Adds a filter; a later one of the same name takes its place.
    pub fn with(mut self, filter: impl CompactionFilter + 'static) -> CompactionFilters {
        let name = filter.name().to_string();
        self.0.retain(|other| other.name != name);
        self.0.push(Named { name, filter: Arc::new(filter) });
        self
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn find(&self, name: &str) -> Option<TableFilter> {
        let named = self.0.iter().find(|named| named.name == name)?;
        Some(TableFilter::Registered(named.name.clone(), Arc::clone(&named.filter)))
    }
}

/// The filter of a table.
#[derive(Clone)]
pub(crate) enum TableFilter {
    /// The table has none.
    None,
    /// The program has not registered it.
    Unregistered,
    /// It, with its name.
    Registered(String, Arc<dyn CompactionFilter>),
}

/// A pass of a user's filter.
pub(crate) struct GuardedPass {
    filter: String,
    /// Taken out when it ends.
    pass: Option<Box<dyn FilterPass>>,
}

impl GuardedPass {
    pub(crate) fn begin(name: &str, filter: &dyn CompactionFilter, range: &FilterRange<'_>) -> Result<GuardedPass> {
        let pass = Some(guarded(name, || filter.begin(range))?);
        Ok(GuardedPass { filter: name.to_string(), pass })
    }

    pub(crate) fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) -> Result<()> {
        let pass = self.pass.as_mut().expect("it has not ended");
        guarded(&self.filter, || pass.judge(entries, verdicts))
    }
}

impl Drop for GuardedPass {
    fn drop(&mut self) {
        let pass = self.pass.take();
        // Nothing depends on how it ends.
        let _ = guarded(&self.filter, || drop(pass));
    }
}

/// Calls a method of a user's filter, which is given bytes and no state of the engine that could be half changed. A panic there is an
/// error.
pub(crate) fn guarded<T>(filter: &str, call: impl FnOnce() -> T) -> Result<T> {
    let outcome = catch_unwind(AssertUnwindSafe(call));
    outcome.map_err(|panic| {
        let reason = format!("it panicked: {}", message_of(&*panic));
        Error::Filter { filter: filter.to_string(), reason }
    })
}

impl fmt::Debug for CompactionFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|named| &named.name)).finish()
    }
}
