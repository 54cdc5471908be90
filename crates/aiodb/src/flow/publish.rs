//! From the log to the indexes: publication of records. `settle.rs` does the work that a publication leaves to the background.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::Error;
use crate::flow::upkeep::settle::is_fold_due;
use crate::format::batch::{BatchView, Placed};
use crate::format::location::Location;
use crate::format::place::{beside_bytes, footprint};
use crate::format::record::{Chunk, Form, Kind, Origin, Record, decode_chunks, range_end};
use crate::index::accounting::ChunkBytes;
use crate::index::chain::{Entry, NewEntry, Superseded};
use crate::index::codec::hashed_key;
use crate::index::hash::{HashIndex, Published, hash_location};
use crate::index::memtable::LookedUp;
use crate::io::Device;
use crate::log::commit::Over;
use crate::merge::Cover;
use crate::planted::{self, Bug};
use crate::store::append_path::AppendPath;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::settling::Unsettled;

/// A record on its way to an index.
pub(crate) struct Publication<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) hash: u64,
    pub(crate) placed: &'a Placed,
    pub(crate) kind: Kind,
    pub(crate) form: Form,
    /// The record's, as it is stored. During recovery empty if it is separate, unless it is a list of chunks.
    pub(crate) value: &'a [u8],
    /// The batch that the record was read back from, during recovery.
    pub(crate) replayed: Option<BatchView<'a>>,
    /// Whether later records of the key may be published already, as while an index is made again.
    pub(crate) out_of_order: bool,
    /// See [`crate::log::commit::Operation::over`].
    pub(crate) over: Option<Over>,
}

impl<'a> Publication<'a> {
    /// `value` is the record's, wherever it lies.
    pub(crate) fn new(record: &Record<'a>, value: &'a [u8], hash: u64, placed: &'a Placed) -> Publication<'a> {
        let Record { key, kind, form, .. } = *record;
        Publication { key, hash, placed, kind, form, value, replayed: None, out_of_order: false, over: None }
    }

    /// The chunk list of a chunked record, else empty.
    fn chunks(&self) -> &'a [u8] {
        if self.form.chunked { self.value } else { &[] }
    }

    /// The entry of an ordered index, with a value of at most so many bytes.
    pub(crate) fn entry(&self, most: usize) -> Entry {
        let Placed { sequence, location, separate, .. } = *self.placed;
        let has_value = matches!(self.kind, Kind::Put | Kind::Merge) && separate.is_none() && !self.form.chunked;
        let inline = (has_value && most > 0 && self.value.len() <= most).then(|| Arc::from(self.value));
        Entry { kind: self.kind, sequence, location, separate, form: self.form, inline }
    }
}

impl<D: Device> AppendPath<D> {
    /// Makes a record visible.
    pub(crate) fn publish(&self, generation: &Arc<Generation>, publication: &Publication<'_>) {
        self.publish_in_order(generation, publication, |location| self.order(publication, location));
    }

    /// Like [`AppendPath::publish`]; `order` tells the age of places under one tag.
    pub(crate) fn publish_in_order<O: Ord>(
        &self,
        generation: &Arc<Generation>,
        publication: &Publication<'_>,
        order: impl Fn(Location) -> O,
    ) {
        if generation.is_gone() {
            return;
        }
        self.count_appended(generation, publication);
        match &generation.index {
            TableIndex::Ordered if publication.kind == Kind::RangeTombstone => {
                let end = range_end(publication.value);
                self.ordered_of(generation).insert_range(
                    generation.id,
                    publication.key,
                    end,
                    publication.placed.sequence,
                );
            }
            TableIndex::Hash(index) => {
                let location = hash_location(publication.placed.location);
                // No segment begins another life between the look at this one and the step that counts its record as dead.
                let _guard = publication.over.map(|_| self.epochs.pin());
                let over = publication.over.filter(|over| self.is_known_in_life(over));
                if let Some(over) = &over {
                    self.retain_superseded(generation, publication, over);
                }
                match index.publish_over(publication.hash, location, over.map(|over| over.location), order) {
                    Published::Inserted { older, newer, is_over, may_be_below } => {
                        if let Some(over) = over.filter(|_| is_over) {
                            self.remove_live(over.location);
                        }
                        self.segments.add_live(location.segment, footprint(location.length));
                        self.count_chunks(generation.id, location, publication.chunks(), 1);
                        let is_below = may_be_below && self.may_be_below(generation.id, publication.hash);
                        self.queue_inserted(generation, publication, older, newer, is_below);
                    }
                    // The checkpoint that has it may have been made before its tag was queued.
                    Published::AlreadyThere => self.queue_if_shared(generation, index, publication),
                }
            }
            TableIndex::Ordered => {
                let (entry, mut superseded) =
                    (publication.entry(generation.settings.memtable_bytes()), Superseded::new());
                let cover = self.cover(generation, publication);
                let (location, is_delete, bytes) =
                    (entry.location, entry.is_delete(), self.entry_bytes(&entry, publication.key));
                let new = NewEntry { entry, cover, out_of_order: publication.out_of_order };
                let depth = self.ordered_of(generation).insert(generation.id, publication.key, new, &mut superseded);
                if !is_delete {
                    self.segments.add_live(location.segment, bytes);
                    self.count_chunks(generation.id, location, publication.chunks(), 1);
                }
                self.count_superseded(generation.id, publication.key, &superseded);
                if is_fold_due(depth) {
                    self.must_fold_operands(Unsettled::key(generation, publication.key), depth);
                }
            }
        }
    }

    /// Whether a place is in the life of its segment in which it was found.
    fn is_known_in_life(&self, over: &Over) -> bool {
        self.segments.find(over.location.segment).is_some_and(|segment| segment.life() == over.life)
    }

    /// Keeps the put that a publication in a `hash` table supersedes for the snapshots that see it.
    fn retain_superseded(&self, generation: &Generation, publication: &Publication<'_>, over: &Over) {
        let index_key = hashed_key(generation.id, publication.hash, publication.key);
        let Over { location, sequence, .. } = *over;
        let (kind, separate, form, inline) = (Kind::Put, None, Form::default(), None);
        let entry = Entry { kind, sequence, location, separate, form, inline };
        // It may have been moved meanwhile, and the copy retained already.
        self.snapshots.retain_earlier(&index_key, &std::iter::once((entry, publication.placed.sequence)).collect());
    }

    /// Queues the tag of a publication that came to a `hash` index among so many older and newer places, if need be; `is_below` says that
    /// runs may have older ones, too.
    fn queue_inserted(
        &self,
        generation: &Arc<Generation>,
        publication: &Publication<'_>,
        older: usize,
        newer: usize,
        is_below: bool,
    ) {
        match publication.kind {
            // One that was overtaken makes them as many as the one that overtook it would have.
            Kind::Merge if is_fold_due(older + newer + 1) => {
                let operands = older + newer + 1;
                self.must_fold_operands(Unsettled::tag(generation, publication.hash), operands);
            }
            // What is newer may have overwritten this one before it came.
            Kind::Merge if newer == 0 && !is_below => {}
            Kind::Put if older + newer == 0 && !is_below => {}
            Kind::Put if older + newer == 0 => {
                let unsettled = Unsettled::tag(generation, publication.hash);
                self.must_settle(Unsettled { is_put_alone: true, ..unsettled }, older);
            }
            _ => self.must_settle(Unsettled::tag(generation, publication.hash), older),
        }
    }

    /// Queues the tag of a publication if other places are under it, or nothing need be.
    fn queue_if_shared(&self, generation: &Arc<Generation>, index: &HashIndex, publication: &Publication<'_>) {
        let mut run = SmallVec::new();
        let is_open = index.lookup_over(publication.hash, &mut run, || ()).is_some();
        let is_below = is_open && self.may_be_below(generation.id, publication.hash);
        if run.len() > 1 || is_below || publication.kind == Kind::Delete {
            self.must_settle(Unsettled::tag(generation, publication.hash), 0);
        }
    }

    /// The cover of an operand, if its value lies whole in the record and no layer of the index has it yet.
    fn cover(&self, generation: &Generation, publication: &Publication<'_>) -> Option<Cover> {
        let Form { chunked, compressed, .. } = publication.form;
        let is_replayed = publication.replayed.is_some();
        if publication.kind != Kind::Merge || chunked || compressed || is_replayed {
            return None;
        }
        self.cover_of(generation, publication.value)
    }

    /// Counts what a segment is told of a record whether that is current or not.
    pub(crate) fn count_appended(&self, generation: &Generation, publication: &Publication<'_>) {
        self.count_kind(generation, publication);
        let Placed { location, separate, .. } = *publication.placed;
        let beside = beside_bytes(publication.key.len(), &publication.form);
        let growth = self.counting_of(generation).moved_growth(location.length, separate.is_some(), beside);
        self.segments.add_growth(location.segment, growth);
        self.count_uncounted(generation, publication, growth);
        self.count_expiring_chunks(publication);
    }

    /// [`AppendPath::count_appended`] for a later copy of a record.
    pub(crate) fn count_copied(&self, generation: &Generation, publication: &Publication<'_>) {
        self.count_kind(generation, publication);
        self.count_uncounted(generation, publication, 0);
        if publication.replayed.is_some() {
            // A chunk may have been moved, which was counted with the move.
            self.count_expiring_chunks(publication);
        }
    }

    /// Counts what a record of an ordered table takes beyond what its entry counts, and beyond its growth, which is counted already.
    fn count_uncounted(&self, generation: &Generation, publication: &Publication<'_>, growth: u64) {
        if generation.kind().is_ordered() && matches!(publication.kind, Kind::Put | Kind::Merge) {
            let Placed { location, separate, .. } = *publication.placed;
            let beside = beside_bytes(publication.key.len(), &publication.form);
            let bytes = self.catalog.counting().uncounted(location.length, separate.is_some(), beside);
            self.segments.add_uncounted(location.segment, bytes.saturating_sub(growth));
        }
    }

    /// Counts deletes, and records that expire, in their segment.
    fn count_kind(&self, generation: &Generation, publication: &Publication<'_>) {
        let Placed { location, separate, .. } = *publication.placed;
        match (publication.kind, publication.form.expires_ms) {
            (Kind::Delete | Kind::RangeTombstone, _) => self.segments.add_delete(location),
            (_, Some(expires_ms)) => {
                let beside = beside_bytes(publication.key.len(), &publication.form);
                let bytes = self.counting_of(generation).bytes(location.length, separate.is_some(), beside);
                self.segments.add_expiring(location.segment, bytes, expires_ms.get());
            }
            _ => {}
        }
    }

    /// Counts the chunks of a record that expires, which expire with it.
    fn count_expiring_chunks(&self, publication: &Publication<'_>) {
        let Some(expires_ms) = publication.form.expires_ms else { return };
        let Some((_, chunks)) = decode_chunks(publication.chunks()) else { return };
        for chunk in chunks {
            let Location { segment, length, .. } = chunk.location;
            self.segments.add_expiring(segment, footprint(length), expires_ms.get());
        }
    }

    /// The age of a place, compared with that of a publication under the same tag. Places alone tell it only between
    /// batches: within one, packed records and large parts lie apart, and sequences decide.
    fn order(&self, publication: &Publication<'_>, location: Location) -> (u64, u32, u64) {
        match &publication.replayed {
            Some(_) if planted::is_on(Bug::ReplayOrderLost) => (0, 0, 0),
            // The batch being published is still pending, so a record that is not pending is older.
            None if location.same_place(publication.placed.location) => (1, 0, publication.placed.sequence),
            None => self.commit.pending_sequence(location).map_or((0, 0, 0), |sequence| (1, 0, sequence)),
            Some(batch) => {
                let life = self.segments.get(location.segment).life();
                let sequence = batch.sequence_at(location).filter(|_| location.segment == batch.segment);
                sequence.map_or((life, location.offset, 0), |sequence| (life, batch.offset, sequence))
            }
        }
    }

    /// Makes a later copy of a record visible, if the record that it replaces is still current: a moved record, a put that is the
    /// fold of operands, or the delete that stands for an expired record. Where others wait, an ordered index is not read: `looked_up`
    /// is what it has of the key. During recovery the key is looked up.
    pub(crate) fn publish_move(
        &self,
        generation: &Arc<Generation>,
        publication: &Publication<'_>,
        origin: Origin,
        looked_up: Option<&LookedUp>,
    ) {
        if generation.is_gone() {
            return;
        }
        self.count_copied(generation, publication);
        let to = publication.placed.location;
        let from = Location { segment: origin.segment, offset: origin.offset, length: to.length };
        match &generation.index {
            // A range tombstone counts until it is carried out, in whatever place.
            TableIndex::Ordered if publication.kind == Kind::RangeTombstone => {}
            // Nor is there an entry with the place of a delete that is looked for.
            TableIndex::Ordered if looked_up.is_none() && publication.replayed.is_none() => {}
            TableIndex::Hash(index) => {
                let to = hash_location(to);
                if let Some(old) = self.replace_place(generation, index, publication.hash, (from, to)) {
                    self.segments.add_live(to.segment, footprint(to.length));
                    self.remove_live(old);
                    self.count_replaced_chunks(generation.id, old, publication);
                    self.queue_if_shared(generation, index, publication);
                } else if planted::is_on(Bug::MoveBeatsPut) {
                    self.publish(generation, publication);
                }
            }
            TableIndex::Ordered => {
                let (mut entry, mut superseded) =
                    (publication.entry(generation.settings.memtable_bytes()), Superseded::new());
                if planted::is_on(Bug::MovedValueLost) {
                    entry.inline = entry.inline.map(|_| Arc::default());
                }
                let is_delete = entry.is_delete();
                let (ordered, key) = (self.ordered_of(generation), publication.key);
                match ordered.relocate(generation.id, key, from, &entry, looked_up, &mut superseded) {
                    Ok(true) => {
                        if !is_delete {
                            self.segments.add_live(to.segment, self.entry_bytes(&entry, key));
                            self.count_chunks(generation.id, to, publication.chunks(), 1);
                        }
                        self.count_superseded(generation.id, key, &superseded);
                    }
                    Ok(false) => {}
                    // The record stays where it was and its segment is not retired: no record is lost.
                    Err(error) => self.note_unmoved(&error),
                }
            }
        }
    }

    /// Puts `to` where `from` was under a tag, and returns the old place; `None` if that is not there.
    fn replace_place(
        &self,
        generation: &Generation,
        index: &HashIndex,
        hash: u64,
        (from, to): (Location, Location),
    ) -> Option<Location> {
        loop {
            let replaced = index.replace(hash, from, to);
            // Nothing comes to memory any more where the table is gone.
            if replaced.is_some() || !index.has_runs() || generation.is_gone() {
                return replaced;
            }
            // It has come to a run since it was looked up, or was there already when a replay began.
            match self.is_in_hash(generation, hash, from) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.note_unmoved(&error);
                    return None;
                }
            }
        }
    }

    /// Notes that an index could not be asked for a record that is being moved.
    pub(crate) fn note_unmoved(&self, error: &Error) {
        self.note_trouble(error);
        *self.unmoved.lock().expect("no code panics while it holds an error") = Some(error.clone());
    }

    /// Counts the chunks that a later copy of a record of a hash table names, and counts off the chunks of the record at `old`.
    fn count_replaced_chunks(&self, table: u32, old: Location, publication: &Publication<'_>) {
        // A delete may stand for an expired record that named some.
        let is_expiry = publication.kind == Kind::Delete && self.segments.has_chunks();
        if publication.chunks().is_empty() && !is_expiry {
            return;
        }
        let mut named = Vec::new();
        // An unreadable list leaves its chunks counted as alive; reclaim finds out.
        let _ = self.with_record(old, &mut |record| {
            named.extend_from_slice(if record.form.chunked { record.value } else { &[] });
        });
        self.count_chunks(table, publication.placed.location, publication.chunks(), 1);
        self.count_chunks(table, old, &named, -1);
    }

    /// Bytes of its segment that an entry of an ordered index counts.
    pub(crate) fn entry_bytes(&self, entry: &Entry, key: &[u8]) -> i64 {
        self.catalog.counting().bytes_of(entry, key.len())
    }

    fn count_superseded(&self, table: u32, key: &[u8], superseded: &Superseded) {
        superseded.iter().for_each(|(entry, _)| self.count_dead(table, entry, self.entry_bytes(entry, key)));
    }

    /// Counts a superseded entry of an ordered index, which counts so many bytes, and the chunks that it names, as dead. Each entry is
    /// counted for itself, also where another one is a copy of the same record.
    pub(crate) fn count_dead(&self, table: u32, entry: &Entry, bytes: i64) {
        if entry.is_delete() {
            return;
        }
        self.remove_live_bytes(entry.location, bytes);
        if entry.form.chunked {
            // An unreadable list leaves its chunks counted as alive; reclaim finds out.
            let list = self.read_chunk_list(entry).unwrap_or_default();
            self.count_chunks(table, entry.location, &list, -1);
        }
    }

    /// The chunks that a chunked entry names, for the ordered index to count.
    pub(crate) fn chunks_of(&self, entry: &Entry) -> Vec<ChunkBytes> {
        // An unreadable list counts as empty; reclaim finds out.
        let list = self.read_chunk_list(entry).unwrap_or_default();
        let counted = |chunk: Chunk| {
            let Location { segment, length, .. } = chunk.location;
            ChunkBytes { segment, life: self.segments.get(segment).life(), bytes: footprint(length) }
        };
        self.named_chunks(entry.location, &list).map(counted).collect()
    }

    /// Adds the chunks of the list in a record to their segments' live bytes, or takes them off.
    pub(crate) fn count_chunks(&self, table: u32, record: Location, list: &[u8], sign: i64) {
        if !list.is_empty() {
            self.named_chunks(record, list).for_each(|chunk| self.segments.add_live_chunk(table, chunk.location, sign));
        }
    }

    /// The chunks that the list in a record names, but for chunks whose segment has begun another life since the record was
    /// written. A record with such chunks was dead when the index from which a later process recovers became durable.
    fn named_chunks(&self, record: Location, list: &[u8]) -> impl Iterator<Item = Chunk> {
        let life = |segment| self.segments.find(segment).map(|segment| segment.life());
        let written = life(record.segment);
        let chunks = decode_chunks(list).map(|(_, chunks)| chunks).unwrap_or_default();
        chunks.into_iter().filter(move |chunk| life(chunk.location.segment).is_some_and(|life| Some(life) <= written))
    }
}
