//! Scans: all records of a range, or of a table, at one moment.
//!
//! The index is walked in bounded steps ahead of the caller, and the values are read ahead too, side by side
//! (`scan/stretches.rs`); values that lie next to each other in the log come in one read.

mod fetch;
mod ordered;
mod stretches;
mod unordered;

use std::ops::Bound;
use std::sync::Arc;

use crate::flow::lifecycle::Handle;
use crate::flow::snapshot::Moment;
use crate::io::{Device, Disk};
use crate::store::catalog::{Generation, TableIndex};
use crate::{Error, Result};
use fetch::Fetch;
pub(crate) use fetch::Lifetime;
use ordered::Ordered;
use unordered::Unordered;

/// The range of a scan, and its direction. Without further choices: all records, forward, with their values.
#[derive(Clone, Debug)]
pub struct ScanOptions {
    pub(crate) from: Bound<Vec<u8>>,
    pub(crate) to: Bound<Vec<u8>>,
    pub(crate) backward: bool,
    pub(crate) values: bool,
    pub(crate) limit: u64,
}

impl Default for ScanOptions {
    fn default() -> ScanOptions {
        ScanOptions { from: Bound::Unbounded, to: Bound::Unbounded, backward: false, values: true, limit: u64::MAX }
    }
}

impl ScanOptions {
    /// All records of the table.
    pub fn all() -> ScanOptions {
        ScanOptions::default()
    }

    /// The records whose keys begin with these bytes.
    pub fn prefix(prefix: &[u8]) -> ScanOptions {
        let to = after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        ScanOptions { from: Bound::Included(prefix.to_vec()), to, ..ScanOptions::default() }
    }

    /// Leaves out keys before this one.
    pub fn from(self, key: &[u8]) -> ScanOptions {
        ScanOptions { from: Bound::Included(key.to_vec()), ..self }
    }

    /// Leaves out this key and all keys before it.
    pub fn after(self, key: &[u8]) -> ScanOptions {
        ScanOptions { from: Bound::Excluded(key.to_vec()), ..self }
    }

    /// Leaves out this key and all keys after it.
    pub fn before(self, key: &[u8]) -> ScanOptions {
        ScanOptions { to: Bound::Excluded(key.to_vec()), ..self }
    }

    /// Leaves out keys after this one.
    pub fn to(self, key: &[u8]) -> ScanOptions {
        ScanOptions { to: Bound::Included(key.to_vec()), ..self }
    }

    /// From the last key to the first.
    pub fn backward(self) -> ScanOptions {
        ScanOptions { backward: true, ..self }
    }

    /// Keys alone: values come back empty, and are not read where the index has the whole key.
    pub fn keys_only(self) -> ScanOptions {
        ScanOptions { values: false, ..self }
    }

    /// At most this many records.
    pub fn limit(self, limit: u64) -> ScanOptions {
        ScanOptions { limit, ..self }
    }
}

/// The first key after all that begin with a prefix; `None` if there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Records at one moment, made by [`crate::Table::scan`] and [`crate::Table::iterate`]. Writes go on meanwhile and are
/// not seen; the table may even be truncated or dropped.
///
/// Each record comes from [`Scan::next_record`] without being copied, or from the iterator. A scan holds on to its
/// moment as a [`crate::Snapshot`] does, and ends with [`Error::SnapshotEnded`] where the store ends it: see [`crate::Snapshot`].
pub struct Scan<D: Device = Disk> {
    source: Source<D>,
    fetch: Fetch<D>,
    moment: Arc<Moment<D>>,
    left: u64,
    /// The error that ended it early.
    failed: Option<Error>,
}

/// The source of keys.
enum Source<D: Device> {
    Ordered(Ordered<D>),
    Unordered(Unordered),
}

/// A record of a scan: its key and value.
pub type ScanRecord<'a> = (&'a [u8], &'a [u8]);

impl<D: Device> Scan<D> {
    pub(crate) fn new(
        engine: &Arc<Handle<D>>,
        generation: Arc<Generation>,
        moment: Arc<Moment<D>>,
        options: ScanOptions,
    ) -> Result<Scan<D>> {
        if let TableIndex::Hash(_) = generation.index {
            let slots = engine.catalog.slots();
            let is_it =
                |slot: &&Arc<crate::store::catalog::TableSlot>| slot.generation().is_ok_and(|g| g.id == generation.id);
            let name = slots.iter().find(is_it).map(|slot| slot.name.clone()).unwrap_or_default();
            return Err(Error::Unordered { name });
        }
        let left = options.limit;
        let fetch = Fetch::new(engine, generation, Arc::clone(&moment), options.values, left)?;
        let source = Source::Ordered(Ordered::new(fetch.generation.id, options));
        Ok(Scan { source, fetch, moment, left, failed: None })
    }

    pub(crate) fn unordered(
        engine: &Arc<Handle<D>>,
        generation: Arc<Generation>,
        moment: Arc<Moment<D>>,
    ) -> Result<Scan<D>> {
        if let TableIndex::Ordered = generation.index {
            return Scan::new(engine, generation, moment, ScanOptions::all());
        }
        let fetch = Fetch::new(engine, generation, Arc::clone(&moment), true, u64::MAX)?;
        Ok(Scan { source: Source::Unordered(Unordered::default()), fetch, moment, left: u64::MAX, failed: None })
    }

    /// The next record, `None` at the end. It lies in the scan's own memory until the next call. After an error every call
    /// returns the same one.
    pub fn next_record(&mut self) -> Result<Option<ScanRecord<'_>>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        match self.advance() {
            Ok(found) => Ok(found.then(|| self.fetch.current())),
            Err(error) => Err(self.failed.insert(error).clone()),
        }
    }

    /// What is to be known of the record that [`Scan::next_record`] has returned, to write it elsewhere.
    pub(crate) fn lifetime(&self) -> Lifetime {
        self.fetch.lifetime()
    }

    /// Goes to the next record; false at the end.
    fn advance(&mut self) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        loop {
            while self.fetch.wants_more() {
                let more = match &mut self.source {
                    Source::Ordered(ordered) => ordered.add_some(&mut self.fetch),
                    Source::Unordered(unordered) => unordered.add_some(&mut self.fetch),
                };
                // Records that were looked at count only if the moment has not ended.
                self.moment.check()?;
                if !more? {
                    self.fetch.add_no_more();
                }
            }
            match self.fetch.take_next()? {
                None => return self.moment.check().map(|()| false),
                Some(false) => {}
                Some(true) => {
                    self.left -= 1;
                    return Ok(true);
                }
            }
        }
    }
}

impl<D: Device> Iterator for Scan<D> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Result<(Vec<u8>, Vec<u8>)>> {
        let next = self.next_record().map(|record| record.map(|(key, value)| (key.to_vec(), value.to_vec())));
        if next.is_err() {
            // After an error no certain record can come.
            self.left = 0;
        }
        next.transpose()
    }
}
