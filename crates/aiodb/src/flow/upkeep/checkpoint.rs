//! Brings the durable state of the indexes up to the log, so that a restart need not read the log before that, and so that
//! emptied segments can be used again.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::checksum::crc32c;
use crate::error::Error;
use crate::format::manifest::{MANIFEST_NAMES, Manifest, ManifestSegment, ManifestTable};
use crate::format::position::Position;
use crate::format::segment::{FIRST_VERSION, put};
use crate::index::hash::checkpoint::{
    HASH_HEADER_BYTES, HASH_MAGIC, HashTail, SHARD_HEADER_BYTES, SPILLED_VERSION, decode_hash,
};
use crate::index::hash::{HashIndex, SHARDS};
use crate::index::lmdb::LmdbIndex;
use crate::io::small_file::{new_name, read_file, remove_failed, rename_durably, write_new};
use crate::io::{Access, Device, File, InPhase, Phase, WriteSync};
use crate::log::{Segment, State};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::checkpoints::Retired;
use crate::store::settling::Unsettled;
use crate::store::upkeep::Upkeep;
use crate::{IndexKind, Result};

/// How much of a hash index is encoded before it is written.
const WRITE_BYTES: usize = 1 << 20;

impl<D: Device> Upkeep<D> {
    /// Makes a checkpoint of everything published so far. Writers go on meanwhile.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.checkpoint_making_room(false, &mut |_| Ok(()))
    }

    /// Makes a checkpoint and calls `remember` before any other can be made, while all files that it names are there.
    pub(crate) fn checkpoint_and(&self, remember: &mut dyn FnMut(&Manifest) -> Result<()>) -> Result<()> {
        self.checkpoint_making_room(false, remember)
    }

    /// The last checkpoint: refuses writes first, so that nothing comes after it.
    /// Where a full disk has no room for it, the next opening replays the log instead.
    pub(crate) fn close_log(&self) -> Result<()> {
        self.commit.close();
        if !planted::is_on(Bug::CheckpointAheadOfLog) {
            self.flush()?;
        }
        // From here on the last segment is not written, and the following steps may need its descriptor.
        if let Some(segment) = self.segments.find(self.commit.log_end().segment) {
            segment.file.let_go();
        }
        match self.checkpoint_making_room(true, &mut |_| Ok(())) {
            Err(error) if error.is_full() => Ok(()),
            made => made,
        }
    }

    /// On a full disk a checkpoint may find no room for its files, without which no segment can be freed: then a segment
    /// of the reserve makes room for them.
    fn checkpoint_making_room(&self, closed: bool, remember: &mut dyn FnMut(&Manifest) -> Result<()>) -> Result<()> {
        self.timed(&self.meters.checkpoint, || {
            self.making_room(|| {
                let made = self.checkpoint_as(closed, remember);
                self.segments.note_checkpoint(made.as_ref().is_err_and(Error::is_full));
                made
            })
        })
    }

    /// Writes files, a second time with the space of a segment of the reserve if there was too little.
    pub(crate) fn making_room<T>(&self, mut write: impl FnMut() -> Result<T>) -> Result<T> {
        match write() {
            Err(error) if error.is_full() => {
                let _lent = self.segments.lend_one()?.ok_or(error)?;
                let _kept = self.snapshots.lend(self.segments.segment_bytes);
                write()
            }
            written => written,
        }
    }

    fn checkpoint_as(&self, closed: bool, remember: &mut dyn FnMut(&Manifest) -> Result<()>) -> Result<()> {
        let _one_at_a_time =
            self.checkpointing.one_at_a_time.lock().expect("no code panics while it makes a checkpoint");
        // A checkpoint that has waited for the last one must not be made: another process may have opened the store.
        if !closed {
            self.commit.check_open()?;
        }
        let _phase = InPhase::enter(&self.device, Phase::Checkpoint);
        if !planted::is_on(Bug::CheckpointAheadOfLog) {
            self.flush()?;
        }
        let number = {
            let mut checkpoints = self.checkpointing.numbers();
            checkpoints.begun += 1;
            checkpoints.log_bytes = self.commit.counters.log_bytes.load(Ordering::Relaxed);
            checkpoints.begun
        };
        let mut replaced = Vec::new();
        let prepared = self.prepare_checkpoint(number, closed, &mut replaced);
        let (manifest, new, obsolete) = prepared.inspect_err(|_| self.take_back(number, replaced))?;
        // From here on an opening may find the new manifest.
        self.checkpointing.numbers().named = number;
        for (new, name) in new.iter().zip(MANIFEST_NAMES) {
            rename_durably(&self.device, new, &self.root.join(name))?;
        }
        self.checkpointing.numbers().durable = number;
        self.spilled.release(obsolete);
        self.commit.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
        remember(&manifest)?;
        // The checkpoint is made, whatever becomes of the files before it.
        for outcome in [self.remove_old_checkpoints(&manifest), self.release_retired()] {
            let _ = outcome.inspect_err(|error| self.note_trouble(error));
        }
        Ok(())
    }

    /// Writes all files of a checkpoint; the manifests still have the names that they have until they count. Adds to `replaced` what
    /// was the last checkpoint of each index of which there is a new one. Returns also how many obsolete files of runs it does not name.
    fn prepare_checkpoint(
        &self,
        number: u64,
        closed: bool,
        replaced: &mut Vec<(Arc<Generation>, (u64, u64))>,
    ) -> Result<(Manifest, [PathBuf; 2], usize)> {
        // No place comes to a run between the position and the last index: what lies behind the position is in no run then, and a replay
        // from there finds it in memory if at all.
        let mut spilling = self.spilling.lock_for_checkpoint();
        if !planted::is_on(Bug::CheckpointAmidSpill) {
            self.finish_giving_up(&mut spilling.work)?;
        }
        let spilling = (!planted::is_on(Bug::SpillBesideCheckpoint)).then_some(spilling);
        let obsolete = self.spilled.obsolete();
        let (position, next_sequence) = self.commit.completed_end();
        // Tables whose records lie before the position are in the manifest as these say: replay begins after them.
        if !planted::is_on(Bug::TableChangeMissed) {
            self.catalog.changes.wait_for_present();
        }
        self.ordered.open().try_for_each(|ordered| self.commit_memtable(ordered))?;
        for generation in self.catalog.generations() {
            if let TableIndex::Hash(index) = &generation.index
                && let Some(last) = self.checkpoint_hash(&generation, index, number)?
            {
                replaced.push((Arc::clone(&generation), last));
            }
        }
        drop(spilling);
        // An index may lag the durable log, never lead it: records in the shards beyond the position must be durable.
        if !planted::is_on(Bug::CheckpointAheadOfLog) {
            self.flush()?;
        }
        let manifest = Manifest { closed, ..self.manifest(number, position, next_sequence) };
        let bytes = manifest.encode(&self.segments.store);
        let [path, copy_path] = MANIFEST_NAMES.map(|name| self.root.join(name));
        let new = write_new(&self.device, &path, &bytes)?;
        let new_copy = write_new(&self.device, &copy_path, &bytes).inspect_err(|_| {
            // If this fails as well, the next checkpoint writes over it.
            let _ = self.device.remove(&new);
        })?;
        Ok((manifest, [new, new_copy], obsolete))
    }

    /// Removes the files of a checkpoint that will not be: on a full disk the next one needs their space.
    fn take_back(&self, number: u64, replaced: Vec<(Arc<Generation>, (u64, u64))>) {
        for (generation, last) in replaced {
            // If this fails, the next checkpoint or opening removes it.
            let _ = self.device.remove(&self.hash_checkpoint_path(generation.id, number));
            *generation.checkpointed.lock().expect("no code panics while it makes a checkpoint") = last;
        }
    }

    /// Writes the checkpoint of an index, if it has changed since the last one, whose number and changes are returned then.
    fn checkpoint_hash(&self, generation: &Generation, index: &HashIndex, number: u64) -> Result<Option<(u64, u64)>> {
        let mut checkpointed = generation.checkpointed.lock().expect("no code panics while it makes a checkpoint");
        let changes = index.changes();
        if changes == checkpointed.1 {
            return Ok(None);
        }
        let path = self.hash_checkpoint_path(generation.id, number);
        let new_path = new_name(&path);
        let file = self.device.open(&new_path, Access::CREATE).map_err(|e| Error::io("create", &new_path, &e))?;
        let failed = |e: std::io::Error| remove_failed(&self.device, &new_path, &e);
        let mut out = vec![0; HASH_HEADER_BYTES];
        put(&mut out, 0, HASH_MAGIC);
        let runs = index.has_runs().then(|| self.spilled.table(generation.id)).flatten();
        let version = if runs.is_some() { SPILLED_VERSION } else { FIRST_VERSION };
        put(&mut out, 8, &version.to_le_bytes());
        put(&mut out, 16, &self.segments.store);
        put(&mut out, 32, &generation.id.to_le_bytes());
        put(&mut out, 36, &(SHARDS as u32).to_le_bytes());
        put(&mut out, 40, &number.to_le_bytes());
        let checksum = crc32c(&out[16..]);
        put(&mut out, 12, &checksum.to_le_bytes());
        runs.iter().for_each(|runs| runs.begin_checkpoint());
        let mut written = 0;
        for shard in 0..SHARDS {
            let at = out.len();
            out.resize(at + SHARD_HEADER_BYTES, 0);
            index.encode_shard_and(shard, &mut out, || runs.iter().for_each(|runs| runs.note_encoded(shard)));
            let length = out.len() - at - SHARD_HEADER_BYTES;
            let checksum = crc32c(&out[at + SHARD_HEADER_BYTES..]);
            put(&mut out, at, &(length as u64).to_le_bytes());
            put(&mut out, at + 8, &checksum.to_le_bytes());
            if out.len() >= WRITE_BYTES || shard + 1 == SHARDS {
                written += self.write_piece(&file, &mut out, written).map_err(failed)?;
            }
        }
        // Taken after the last shard: every tag with several places there is here.
        let mut unsettled = self.settling.hashes(generation.id);
        if planted::is_on(Bug::UnsettledTagsForgotten) {
            unsettled.clear();
        }
        let spilled = runs.map(|runs| runs.end_checkpoint(self.spilled.next_file()));
        HashTail { unsettled, spilled }.encode(&mut out);
        let checksum = crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        written += self.write_piece(&file, &mut out, written).map_err(failed)?;
        file.sync().map_err(failed)?;
        rename_durably(&self.device, &new_path, &path)?;
        generation.checkpoint_bytes.store(written, Ordering::Relaxed);
        Ok(Some(std::mem::replace(&mut *checkpointed, (number, changes))))
    }

    fn write_piece(&self, file: &D::File, out: &mut Vec<u8>, at: u64) -> std::io::Result<u64> {
        file.write_at(out, at, WriteSync::Later)?;
        let length = out.len() as u64;
        self.meters.checkpoint_bytes.fetch_add(length, Ordering::Relaxed);
        out.clear();
        Ok(length)
    }

    fn manifest(&self, checkpoint: u64, position: Position, next_sequence: u64) -> Manifest {
        let mut tables = Vec::new();
        // A table that was dropped a moment ago is dropped again by replay.
        for (name, generation) in self.catalog.listed() {
            let checkpointed = *generation.checkpointed.lock().expect("no code panics while it makes a checkpoint");
            let settings = generation.settings.clone();
            let (id, checkpoint, modes) = (generation.id, checkpointed.0, generation.modes());
            tables.push(ManifestTable { id, name, settings, checkpoint, modes });
        }
        let in_use = self.in_use_for(checkpoint);
        let next_life = self.commit.next_life();
        // The ordered index counts the chunks of its tables itself.
        let is_hash = |table: &ManifestTable| table.settings.kind == IndexKind::Hash;
        let hash_tables: BTreeSet<u32> = tables.iter().filter(|table| is_hash(table)).map(|table| table.id).collect();
        let chunks_in = |segment: &Segment<D>| {
            let live = segment.live_chunks();
            live.iter()
                .filter(|(table, _)| hash_tables.contains(table))
                .map(|(table, bytes)| (*table, *bytes))
                .collect()
        };
        let listed = in_use.into_iter().map(|segment| ManifestSegment {
            number: segment.number,
            records: segment.records.load(Ordering::Relaxed) as u32,
            deletes: segment.deletes.load(Ordering::Relaxed) as u32,
            life: segment.life(),
            end: segment.written_end.load(Ordering::Acquire),
            live_chunks: chunks_in(segment),
            expiring: segment.expiring().iter().map(|(time_ms, bytes)| (*time_ms, *bytes)).collect(),
            growth_bytes: segment.growth_bytes.load(Ordering::Relaxed),
        });
        // A segment that is activated from now on is found by its header.
        let segments: Vec<_> = listed.filter(|segment| segment.life <= position.life).collect();
        let next_life = next_life.min(position.life + 1);
        Manifest {
            checkpoint,
            closed: false,
            position,
            next_sequence,
            next_life,
            next_table: if planted::is_on(Bug::TableIdsReused) { 0 } else { self.catalog.next_id() },
            taken_out: self.lmdb_taken_out(),
            time_ms: self.certain_ms(),
            features: self.catalog.features(),
            tables,
            segments,
        }
    }

    /// See `LmdbIndex::taken_out`.
    fn lmdb_taken_out(&self) -> u64 {
        let lmdb = self.ordered.get(IndexKind::Lmdb).and_then(|ordered| ordered.committed.lmdb());
        lmdb.map_or(0, LmdbIndex::taken_out)
    }

    /// The segments that a checkpoint may refer to: also retired ones, unless an earlier checkpoint was begun since. No segment can
    /// be retired meanwhile.
    fn in_use_for(&self, checkpoint: u64) -> Vec<&Segment<D>> {
        let checkpoints = self.checkpointing.numbers();
        let recent = checkpoints.retired.iter().filter(|retired| retired.checkpoint >= checkpoint);
        let retired: Vec<u32> = recent.map(|retired| retired.number).collect();
        let in_use = |segment: &&Segment<D>| match segment.state() {
            State::Active | State::Sealed => segment.written_end.load(Ordering::Acquire) > crate::io::UNIT_BYTES as u64,
            State::Retiring => retired.contains(&segment.number),
            State::Free | State::Absent => false,
        };
        self.segments.iter().filter(in_use).collect()
    }

    /// Removes the checkpoints of hash indexes that the manifest does not name.
    fn remove_old_checkpoints(&self, manifest: &Manifest) -> Result<()> {
        let directory = self.root.join("index");
        let named: Vec<_> =
            manifest.tables.iter().map(|table| self.hash_checkpoint_path(table.id, table.checkpoint)).collect();
        for name in self.device.list(&directory).map_err(|e| Error::io("list", &directory, &e))? {
            let path = directory.join(&name);
            if name.ends_with(".ckp") && !named.contains(&path) {
                self.device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
            }
        }
        Ok(())
    }

    /// Takes a segment out of use that no index refers to.
    pub(crate) fn retire(&self, segment: &Segment<D>) {
        // What is dropped or deleted from now on has nothing in it: else a segment would wait for as long as others go on with that.
        let (next_table, next_sequence) = (self.catalog.next_id(), self.commit.next_sequence());
        let mut checkpoints = self.checkpointing.numbers();
        segment.set_state(State::Retiring);
        let (number, checkpoint) = (segment.number, checkpoints.begun);
        let (epoch, hold) = (self.epochs.epoch(), self.retention.stamp());
        checkpoints.retired.push(Retired { number, checkpoint, epoch, hold, next_table, next_sequence });
    }

    /// Frees the retired segments that neither the durable checkpoint nor a reader can need.
    pub(crate) fn release_retired(&self) -> Result<()> {
        self.epochs.try_advance();
        self.epochs.try_advance();
        let epoch = self.epochs.epoch();
        let mut checkpoints = self.checkpointing.numbers();
        let durable = checkpoints.durable;
        let is_free = |retired: &Retired| {
            (retired.checkpoint < durable || planted::is_on(Bug::FreedBeforeCheckpoint))
                && (retired.epoch + 2 <= epoch || planted::is_on(Bug::FreedUnderReader))
                && self.retention.are_over(retired.hold)
                // Asked after the holds: a range tombstone that was not due when the segment was retired waited for one of
                // them, or for the checkpoint, and so did a dropped table. Their entries are counted off here before
                // another life is counted.
                && !self.is_range_awaited(retired.next_sequence)
                && (!self.is_purge_awaited(retired.next_table) || planted::is_on(Bug::ReusedBeforePurge))
        };
        let (free, waiting): (Vec<_>, Vec<_>) = checkpoints.retired.drain(..).partition(is_free);
        checkpoints.retired = waiting;
        drop(checkpoints);
        let _phase = (!free.is_empty()).then(|| InPhase::enter(&self.device, Phase::SegmentReuse));
        let mut refused = Ok(());
        for retired in free {
            if let Err(error) = self.segments.release(self.segments.get(retired.number)) {
                // It waits with those that come later; the others are not to wait for it.
                self.checkpointing.numbers().retired.push(retired);
                refused = refused.and(Err(error));
            }
        }
        refused
    }

    /// Loads the checkpoint of a hash index. `Ok(None)` means that it is not there.
    pub(crate) fn load_hash(&self, generation: &Arc<Generation>, number: u64) -> Result<Option<()>> {
        let TableIndex::Hash(index) = &generation.index else { return Ok(Some(())) };
        if number == 0 {
            return Ok(Some(()));
        }
        let path = self.hash_checkpoint_path(generation.id, number);
        let Some(bytes) = read_file(&self.device, &path)? else { return Ok(None) };
        generation.checkpoint_bytes.store(bytes.len() as u64, Ordering::Relaxed);
        let decoded = decode_hash(index, &bytes, &self.segments.store, generation.id, number);
        let HashTail { unsettled, spilled } = decoded.map_err(|(offset, damage)| {
            let advice = "`aiodb verify --rebuild` makes the index again from the log";
            crate::format::manifest::damage_error(&path, offset as u64, damage, advice)
        })?;
        if let Some(spilled) = spilled {
            self.spilled.open(generation.id, &spilled, self.options.read_only)?;
            index.set_has_runs();
        }
        for hash in unsettled {
            // Of all tables there may be more than the queue usually takes: their checkpoints are of different times.
            self.settling.push_anyway(Unsettled::tag(generation, hash));
        }
        *generation.checkpointed.lock().expect("nobody else has it yet") = (number, index.changes());
        Ok(Some(()))
    }

    pub(crate) fn hash_checkpoint_path(&self, table: u32, number: u64) -> PathBuf {
        self.root.join("index").join(format!("hash-{table:08}-{number:08}.ckp"))
    }

    /// Whether a checkpoint would bring emptied segments nearer to being free.
    pub(crate) fn is_checkpoint_awaited(&self) -> bool {
        let checkpoints = self.checkpointing.numbers();
        checkpoints.retired.iter().any(|retired| retired.checkpoint >= checkpoints.durable)
    }

    /// Whether emptied segments wait for a snapshot or a backup.
    pub(crate) fn is_hold_awaited(&self) -> bool {
        self.held_segments() > 0
    }

    /// How many emptied segments wait for a snapshot or a backup.
    pub(crate) fn held_segments(&self) -> usize {
        let checkpoints = self.checkpointing.numbers();
        checkpoints.retired.iter().filter(|retired| !self.retention.are_over(retired.hold)).count()
    }

    /// Segments waiting for a checkpoint or a reader, bytes of log since the last checkpoint.
    pub(crate) fn checkpoint_state(&self) -> (usize, u64) {
        let checkpoints = self.checkpointing.numbers();
        let written = self.commit.counters.log_bytes.load(Ordering::Relaxed);
        (checkpoints.retired.len(), written - checkpoints.log_bytes)
    }
}
