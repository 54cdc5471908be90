//! From the log to the indexes: publication of records, and the settling of tags.
//!
//! A `hash` index cannot tell whether a put overwrites an older record under the same tag or merely shares its tag, so
//! both places are kept, newest first, and the tag is queued. Settling reads the records, keeps the newest of each key
//! and counts the others as dead. Until then counts of live bytes are estimates on the high side.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::Result;
use crate::catalog::{Generation, TableIndex};
use crate::engine::Engine;
use crate::index::Location;
use crate::index::hash::{HashIndex, Published, class_bound};
use crate::index::lmdb::LmdbIndex;
use crate::index::tail::{Entry, Inserted};
use crate::io::Device;
use crate::log::batch::{BatchView, Placed};
use crate::log::record::{Kind, Origin, Record, decode_chunks};
use crate::sync::Mutex;

/// Tags waiting to be settled; a writer that finds the queue full settles its own.
pub(crate) const MAX_UNSETTLED: usize = 64 << 10;

/// A tag under which more older places lie is settled by the writer itself, or a key that is overwritten again and again
/// would make its tag's run long.
const MAX_RUN: usize = 8;

/// What a record says to an index.
pub(crate) struct Publication<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) placed: &'a Placed,
    pub(crate) deleted: bool,
    /// The chunk list of a chunked record, else empty.
    pub(crate) chunks: &'a [u8],
    /// The batch that the record was read back from, during recovery.
    pub(crate) replayed: Option<BatchView<'a>>,
}

/// A tag of a hash index that may hold dead places.
#[derive(Clone)]
pub(crate) struct Unsettled {
    pub(crate) generation: Arc<Generation>,
    pub(crate) hash: u64,
}

/// The queue of tags to be settled.
#[derive(Default)]
pub(crate) struct Settling {
    queue: Mutex<VecDeque<Unsettled>>,
}

impl Settling {
    /// Queues a tag; gives it back if the queue is full.
    pub(crate) fn push(&self, unsettled: Unsettled) -> std::result::Result<(), Unsettled> {
        let mut queue = self.queue.lock().expect("no code panics while it holds the queue");
        if queue.len() >= MAX_UNSETTLED {
            return Err(unsettled);
        }
        queue.push_back(unsettled);
        Ok(())
    }

    /// The tag that waits longest; it stays queued until [`Settling::pop`].
    fn front(&self) -> Option<Unsettled> {
        self.queue.lock().expect("no code panics while it holds the queue").front().cloned()
    }

    fn pop(&self) {
        self.queue.lock().expect("no code panics while it holds the queue").pop_front();
    }

    /// The hashes of a table's queued tags.
    pub(crate) fn hashes(&self, table: u32) -> Vec<u64> {
        let queue = self.queue.lock().expect("no code panics while it holds the queue");
        queue.iter().filter(|unsettled| unsettled.generation.id == table).map(|unsettled| unsettled.hash).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.lock().expect("no code panics while it holds the queue").len()
    }
}

impl<D: Device> Engine<D> {
    /// Makes a put or delete visible.
    pub(crate) fn publish(&self, generation: &Arc<Generation>, publication: &Publication<'_>) {
        generation.count_change();
        if publication.deleted {
            self.segments.add_delete(publication.placed.location);
        }
        match &generation.index {
            TableIndex::Hash(index) => {
                let location = hash_location(publication.placed.location);
                let order = |location: Location| self.order(publication, location);
                if let Published::Inserted { older } = index.publish(publication.hash, location, order) {
                    self.segments.add_live(location);
                    self.count_chunks(generation.id, publication.chunks, 1);
                    if older > 0 || publication.deleted {
                        self.must_settle(generation, publication.hash, older);
                    }
                }
            }
            TableIndex::Lmdb => {
                let entry = entry(publication);
                if let Inserted::Newest { replaced } = self.lmdb().insert(generation.id, publication.key, entry) {
                    if !entry.deleted {
                        self.segments.add_live(entry.location);
                        self.count_chunks(generation.id, publication.chunks, 1);
                    }
                    self.count_dead(generation.id, replaced);
                }
            }
        }
    }

    /// How new a place is, compared with that of a publication under the same tag. Places say it by themselves only
    /// between batches: within one, packed records and large parts go different ways, and sequences decide.
    fn order(&self, publication: &Publication<'_>, location: Location) -> (u64, u32, u64) {
        match &publication.replayed {
            // The batch being published is still pending, so whatever is not pending is older.
            None if location.same_place(publication.placed.location) => (1, 0, publication.placed.sequence),
            None => self.commit.pending_sequence(location).map_or((0, 0, 0), |sequence| (1, 0, sequence)),
            Some(batch) => {
                let life = self.segments.get(location.segment).life();
                let sequence = batch.sequence_at(location).filter(|_| location.segment == batch.segment);
                sequence.map_or((life, location.offset, 0), |sequence| (life, batch.offset, sequence))
            }
        }
    }

    /// Makes a moved record visible if what it replaces is still current.
    pub(crate) fn publish_move(&self, generation: &Arc<Generation>, publication: &Publication<'_>, origin: Origin) {
        generation.count_change();
        let to = publication.placed.location;
        if publication.deleted {
            self.segments.add_delete(to);
        }
        let from = Location { segment: origin.segment, offset: origin.offset, length: to.length };
        match &generation.index {
            TableIndex::Hash(index) => {
                let to = hash_location(to);
                if index.replace(publication.hash, from, to) {
                    self.segments.add_live(to);
                    self.segments.remove_live(hash_location(from));
                }
            }
            TableIndex::Lmdb if publication.deleted => {}
            TableIndex::Lmdb => {
                let relocated = self.lmdb().relocate(generation.id, publication.key, from, entry(publication));
                match relocated {
                    Ok(Some(replaced)) => {
                        self.segments.add_live(to);
                        if let Some(old) = replaced {
                            self.segments.remove_live(old.location);
                        }
                    }
                    Ok(None) => {}
                    // The record stays where it was and its segment is not retired: nothing is lost.
                    Err(error) => self.note_trouble(&error),
                }
            }
        }
    }

    /// Counts a replaced or deleted entry of an ordered index, and its chunks, as dead.
    pub(crate) fn count_dead(&self, table: u32, old: Option<Entry>) {
        let Some(old) = old.filter(|old| !old.deleted) else { return };
        self.segments.remove_live(old.location);
        if old.chunked {
            // An unreadable list leaves its chunks counted as alive; reclaim finds out.
            if let Ok(list) = self.read_chunk_list(&old) {
                self.count_chunks(table, &list, -1);
            }
        }
    }

    /// Adds the chunks of a list to their segments' live bytes, or takes them off.
    pub(crate) fn count_chunks(&self, table: u32, list: &[u8], sign: i64) {
        if list.is_empty() {
            return;
        }
        let (_, chunks) = decode_chunks(list).expect("the list was made here or checked when it was read");
        for chunk in chunks {
            self.segments.add_live_chunk(table, chunk.location, sign);
        }
    }

    fn must_settle(&self, generation: &Arc<Generation>, hash: u64, older: usize) {
        let unsettled = Unsettled { generation: Arc::clone(generation), hash };
        let refused = if older >= MAX_RUN { Err(unsettled) } else { self.settling.push(unsettled) };
        if let Err(unsettled) = refused {
            self.settle(&unsettled);
        }
    }

    /// Settles up to `limit` queued tags. True if any of them is done with.
    pub(crate) fn settle_some(&self, limit: usize) -> bool {
        let mut progress = false;
        for _ in 0..limit {
            let Some(unsettled) = self.settling.front() else { break };
            let before = self.settling.len();
            self.settle(&unsettled);
            self.settling.pop();
            // A tag that could not be settled has been queued again.
            progress |= self.settling.len() < before;
        }
        progress
    }

    /// Reads the records under a tag and retires all but the newest of each key.
    fn settle(&self, unsettled: &Unsettled) {
        let TableIndex::Hash(index) = &unsettled.generation.index else { unreachable!("only tags are settled") };
        let pin = self.pins.pin();
        // A record that cannot be read stays in the index, so that a get of it reports the damage.
        if let Err(error) = self.settle_tag(index, unsettled) {
            self.note_trouble(&error);
        }
        self.pins.unpin(pin);
    }

    fn settle_tag(&self, index: &HashIndex, unsettled: &Unsettled) -> Result<()> {
        let mut run = SmallVec::new();
        index.lookup(unsettled.hash, &mut run);
        let mut newest: Vec<Newest> = Vec::new();
        for &location in &run {
            self.with_record(location, &mut |record: &Record<'_>| {
                match newest.iter_mut().find(|newest| newest.key == record.key) {
                    None => newest.push(Newest {
                        key: record.key.to_vec(),
                        location,
                        deleted: record.kind == Kind::Delete,
                        older_left: false,
                    }),
                    Some(newest) => {
                        let retired = index.remove(unsettled.hash, location);
                        // A move that came in between has put the place elsewhere in the run; another round finds it.
                        newest.older_left |= !retired;
                        if retired {
                            unsettled.generation.count_change();
                            self.segments.remove_live(location);
                            let chunks = if record.chunked { record.value } else { &[] };
                            self.count_chunks(unsettled.generation.id, chunks, -1);
                        }
                    }
                }
            })?;
        }
        let mut again = false;
        for newest in newest {
            let tombstone = newest.deleted && !newest.older_left;
            if tombstone && self.is_published(newest.location) && index.remove(unsettled.hash, newest.location) {
                unsettled.generation.count_change();
                self.segments.remove_live(newest.location);
            } else {
                again |= newest.older_left || newest.deleted;
            }
        }
        if again {
            // A full queue only means that the next write to this tag settles it.
            let _ = self.settling.push(unsettled.clone());
        }
        Ok(())
    }

    /// Whether everything in the log up to this place is published: no older record of the key can appear any more.
    fn is_published(&self, location: Location) -> bool {
        let segment = self.segments.get(location.segment);
        u64::from(location.offset) < segment.published_end.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn lmdb(&self) -> &LmdbIndex {
        self.lmdb.get().expect("an lmdb table opens the environment")
    }
}

struct Newest {
    key: Vec<u8>,
    location: Location,
    deleted: bool,
    older_left: bool,
}

/// A location as a hash index gives it back: its length is the size class's bound.
pub(crate) fn hash_location(location: Location) -> Location {
    Location { length: class_bound(location.length), ..location }
}

fn entry(publication: &Publication<'_>) -> Entry {
    Entry {
        sequence: publication.placed.sequence,
        location: publication.placed.location,
        separate: publication.placed.separate,
        chunked: !publication.chunks.is_empty(),
        deleted: publication.deleted,
    }
}
