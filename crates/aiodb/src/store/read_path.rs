//! The layer that a get or a scan needs: the log's segments and its pending bytes, the tables with their indexes, the cache, and the
//! epochs and holds that protect all of that while a reader is there.

use std::ops::Deref;
use std::sync::Arc;

use crate::cache::Cache;
use crate::config::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::format::record::chunk_list_bytes;
use crate::index::ordered::{OrderedIndex, OrderedIndexes};
use crate::index::runs::Runs;
use crate::index::runs::spilled::SpilledTables;
use crate::index::snapshots::Snapshots;
use crate::io::Device;
use crate::log::Segments;
use crate::retention::Retention;
use crate::store::catalog::{Catalog, Generation};
use crate::store::commit::Commit;
use crate::store::epochs::Epochs;
use crate::store::groups::Groups;
use crate::store::host::Host;
use crate::store::sums::Sums;
use crate::{Error, Result};

/// Values up to this length are written whole.
const MAX_WHOLE_VALUE_BYTES: u64 = 1 << 20;

/// The layer of reads.
pub(crate) struct ReadPath<D: Device> {
    pub(crate) segments: Segments<D>,
    /// Reads ask it for the bytes of batches that are not written yet.
    pub(crate) commit: Commit,
    pub(crate) catalog: Catalog,
    pub(crate) ordered: OrderedIndexes<D>,
    /// The runs of `hash` tables.
    pub(crate) spilled: SpilledTables<D>,
    pub(crate) epochs: Epochs,
    pub(crate) cache: Cache,
    /// Of the sorted runs.
    pub(crate) block_cache: Arc<Cache>,
    /// Gets wait for these where they have found one of their keys.
    pub(crate) groups: Groups,
    /// Of keys of `hash` tables that merge.
    pub(crate) sums: Sums,
    pub(crate) retention: Arc<Retention>,
    pub(crate) snapshots: Arc<Snapshots>,
    /// Dropped last: it has the locks on the directories.
    pub(crate) host: Host<D>,
}

impl<D: Device> Deref for ReadPath<D> {
    type Target = Host<D>;

    fn deref(&self) -> &Host<D> {
        &self.host
    }
}

impl<D: Device> ReadPath<D> {
    /// The index of an ordered table.
    pub(crate) fn ordered_of(&self, generation: &Generation) -> &OrderedIndex<D> {
        self.ordered.get(generation.kind()).expect("the first table of an ordered kind opens its index")
    }

    /// The runs of a table of kind `lsm`.
    pub(crate) fn runs_of(&self, generation: &Generation) -> &Runs<D> {
        self.ordered_of(generation).committed.runs().expect("tables of this kind have runs")
    }

    /// Longer values lie in chunks.
    pub(crate) fn whole_value_bytes(&self) -> usize {
        MAX_WHOLE_VALUE_BYTES.min(self.segments.segment_bytes / 4) as usize
    }

    pub(crate) fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES.min(self.segments.segment_bytes as usize / 8)
    }

    pub(crate) fn max_value_bytes(&self) -> usize {
        let chunk_bytes = self.whole_value_bytes();
        // The list of chunks must itself be a whole value.
        let chunks = (chunk_bytes - chunk_list_bytes(0, 1)) / (chunk_list_bytes(1, 1) - chunk_list_bytes(0, 1));
        MAX_VALUE_BYTES.min(chunks * chunk_bytes)
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let max = self.max_key_bytes();
        if key.is_empty() || key.len() > max { Err(Error::KeyLength { length: key.len(), max }) } else { Ok(()) }
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        let max = self.max_value_bytes();
        if value.len() > max { Err(Error::ValueLength { length: value.len(), max }) } else { Ok(()) }
    }
}
