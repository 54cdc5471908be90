//! The state of reclaim.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::index::memtable::LookedUp;
use crate::log::scan::Scan;
use crate::store::catalog::Generation;

/// The state of reclaim.
#[derive(Default)]
pub(crate) struct Reclaiming {
    pub(crate) victim: Option<Victim>,
    /// The next victim is chosen when the tables with lower ids that are gone are purged.
    pub(crate) purged_before: Option<u32>,
    /// The lives of segments that could not be read, or in which damage was met. They stay as they are, so that others are
    /// emptied, until the store is opened again.
    pub(crate) damaged: BTreeSet<u64>,
    /// There is garbage enough, but none that can be had before emptied segments are free.
    pub(crate) is_stuck: bool,
    pub(crate) waiting: WaitingDeletes,
    /// The last attempt to purge a table that is gone has met what cannot be read: another one is not worth it at once.
    pub(crate) cannot_purge: bool,
}

/// Deletes that stay because runs may hide what they have left, and that have filled segments when they were moved. Until the runs are merged
/// so far, no segment is emptied for the sake of its deletes: they would only be written again.
#[derive(Clone, Copy, Default)]
pub(crate) struct WaitingDeletes {
    /// They lie before this sequence; 0 = there are none.
    pub(crate) until: u64,
    /// Only segments of an earlier life are emptied all the same.
    pub(crate) life: u64,
    /// How many deletes there were in all segments when this was decided.
    pub(crate) deletes: u64,
}

/// A segment that is being emptied.
pub(crate) struct Victim {
    pub(crate) number: u32,
    pub(crate) life: u64,
    /// Records before this are dealt with or among `alive`.
    pub(crate) offset: u64,
    pub(crate) scan: Scan,
    /// The oldest life with dead records when the segment was chosen.
    pub(crate) oldest_dead: u64,
    /// Records that were found alive and are to be moved in one go.
    pub(crate) alive: Vec<Alive>,
    pub(crate) alive_bytes: usize,
    /// Deletes that stay until runs are merged...
    pub(crate) waiting: u64,
    /// ...so far.
    pub(crate) waits_until: u64,
}

/// A live record of a victim, or the delete that stands for an expired one.
pub(crate) struct Alive {
    pub(crate) generation: Option<Arc<Generation>>,
    pub(crate) kind: Kind,
    pub(crate) table: u32,
    pub(crate) hash: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// Whether the value was separate.
    pub(crate) separate: bool,
    pub(crate) form: Form,
    pub(crate) sequence: u64,
    pub(crate) location: Location,
    /// Set in a delete that no index refers to: it is needed only while a segment of this life or an older one holds dead
    /// records.
    pub(crate) tombstone: Option<u64>,
    /// What a look-up has found of the key of a record that has an entry in an ordered index.
    pub(crate) looked_up: Option<LookedUp>,
}

impl Alive {
    /// Whether both are made of one record.
    pub(crate) fn is_copy(&self, other: &Alive) -> bool {
        self.kind == other.kind && self.location.same_place(other.location)
    }
}
