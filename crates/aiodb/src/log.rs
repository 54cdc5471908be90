//! The segments of the log: files, states, and how many of their bytes are alive.

pub(crate) mod batch;
pub(crate) mod place;
mod pool;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod segment;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::index::Location;
use crate::io::{Access, AlignedBuffer, Device, File, UNIT_BYTES, WriteSync};
use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::{Error, Result};
use place::footprint;
use pool::Pool;
use segment::{Seed, SegmentHeader};

/// Free segments that ordinary writes may not take: one for deletes, two for reclaim, and one whose space the files of a
/// checkpoint can have, without which nothing that reclaim empties becomes free.
pub(crate) const RESERVED_SEGMENTS: usize = 4;

/// Free segments kept beyond the reserve; more are given back to the file system.
const SPARE_SEGMENTS: usize = 4;

/// Segments that are made ahead of need, at most: what is kept of those that were emptied, too.
const MAX_AHEAD_SEGMENTS: usize = SPARE_SEGMENTS;

/// What expires is counted in steps of this length...
const EXPIRY_STEP_MS: u64 = 60_000;
/// ...and at most this many of them by segment; the earliest are counted with the next.
const MAX_EXPIRY_TIMES: usize = 256;

/// How much of a new segment is written at a time.
const PREWRITE_BYTES: usize = 1 << 20;

/// A new segment is filled if so many batches were flushed while somebody waited since the one before was made: flushes that
/// change the file's layout too take a third longer and more.
const WAITED_FLUSHES_PER_FILL: u32 = 16;

const GROUP: usize = 1024;
const GROUPS: usize = 1024;

/// The most segments of a store.
pub(crate) const MAX_SEGMENTS: usize = GROUP * GROUPS;

/// The end of a segment whose file was being filled or emptied when the process died: not even a header is there.
pub(crate) const UNFILLED_END: u64 = 0;

/// How far down a write may use up the free segments when no more can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Not the reserve.
    Ordinary,
    /// Deletes and dropped tables make room, but only through reclaim: its segment is not for them.
    Deletes,
    /// What reclaim moves makes room, but only after a checkpoint.
    Moves,
    /// What must be written before anything else can be done.
    Recovery,
}

impl Claim {
    /// Free segments that are left to others.
    fn left_free(self) -> usize {
        match self {
            Claim::Ordinary => RESERVED_SEGMENTS,
            Claim::Deletes => RESERVED_SEGMENTS - 1,
            Claim::Moves => 1,
            Claim::Recovery => 0,
        }
    }
}

/// A place between two batches: the last batch before it, and where that one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) batch: u64,
    /// The header checksum of that batch: the next one must name it.
    pub(crate) checksum: u32,
    pub(crate) segment: u32,
    pub(crate) life: u64,
    pub(crate) offset: u64,
}

/// Bytes of an encoded position.
pub(crate) const POSITION_BYTES: usize = 32;

impl Position {
    pub(crate) fn encode(&self, out: &mut [u8]) {
        segment::put(out, 0, &self.batch.to_le_bytes());
        segment::put(out, 8, &self.segment.to_le_bytes());
        segment::put(out, 12, &self.checksum.to_le_bytes());
        segment::put(out, 16, &self.life.to_le_bytes());
        segment::put(out, 24, &self.offset.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Position {
        Position {
            batch: segment::u64_at(bytes, 0),
            segment: segment::u32_at(bytes, 8),
            checksum: segment::u32_at(bytes, 12),
            life: segment::u64_at(bytes, 16),
            offset: segment::u64_at(bytes, 24),
        }
    }
}

/// The longest log that a slot of a hash index can point into.
const MAX_LOG_BYTES: u64 = 16 << 40;

/// What a segment is used for at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Written before, ready to be activated.
    Free = 0,
    /// The log's end lies here.
    Active = 1,
    /// Full.
    Sealed = 2,
    /// Nothing in it is referred to any more; waiting for a checkpoint and for readers.
    Retiring = 3,
    /// The file is empty: its space was given back.
    Absent = 4,
}

/// One segment. Its file and number never change; its life does.
pub(crate) struct Segment<D: Device> {
    pub(crate) number: u32,
    pub(crate) file: D::File,
    state: AtomicU8,
    life: AtomicU64,
    /// The seed of this life's checksums.
    seed: AtomicU32,
    /// Bytes that are on the device (not necessarily durable); later ones are read from the pending batches.
    pub(crate) written_end: AtomicU64,
    /// Bytes whose records are all published in their indexes.
    pub(crate) published_end: AtomicU64,
    /// Where the log left this segment; meaningful once it is sealed.
    pub(crate) end: AtomicU64,
    /// Records appended in this life, chunks and deletes included.
    pub(crate) records: AtomicU64,
    /// Records that an index refers to.
    pub(crate) live_records: AtomicI64,
    /// Bytes that an index refers to.
    pub(crate) live_bytes: AtomicI64,
    /// Deletes appended or moved here: they take space for as long as older segments hold what they delete.
    pub(crate) deletes: AtomicU64,
    /// Bytes of chunks that current records name, by table.
    live_chunks: Mutex<BTreeMap<u32, i64>>,
    /// Bytes of records that expire, by the time at which they have: an estimate, overwritten ones are not taken off.
    expiring: Mutex<BTreeMap<u64, i64>>,
}

impl<D: Device> Segment<D> {
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Free,
            1 => State::Active,
            2 => State::Sealed,
            3 => State::Retiring,
            _ => State::Absent,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Ordering::Release);
    }

    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::Acquire)
    }

    /// All bytes that are referred to. Estimates can be off by what is not yet settled, never negative.
    pub(crate) fn live(&self) -> u64 {
        let chunks: i64 = self.live_chunks().values().sum();
        u64::try_from(self.live_bytes.load(Ordering::Relaxed) + chunks).unwrap_or(0)
    }

    /// Bytes of chunks that current records name, by table.
    pub(crate) fn live_chunks(&self) -> MutexGuard<'_, BTreeMap<u32, i64>> {
        self.live_chunks.lock().expect("no code panics while it counts chunks")
    }

    /// Bytes of records that expire, by the time at which they have, in milliseconds since 1970.
    pub(crate) fn expiring(&self) -> MutexGuard<'_, BTreeMap<u64, i64>> {
        self.expiring.lock().expect("no code panics while it counts what expires")
    }

    /// About how many bytes have expired.
    pub(crate) fn expired(&self, now_ms: u64) -> u64 {
        self.expiring().range(..=now_ms).map(|(_, bytes)| *bytes as u64).sum()
    }

    /// Where checksums of this life start.
    pub(crate) fn seed(&self) -> Seed {
        Seed::from_cached(self.seed.load(Ordering::Acquire))
    }

    /// Begins a life.
    pub(crate) fn begin(&self, store: &[u8; 16], life: u64, state: State, end: u64) {
        self.seed.store(Seed::new(store, self.number, life).to_cached(), Ordering::Release);
        self.written_end.store(end, Ordering::Relaxed);
        self.published_end.store(end, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.records.store(0, Ordering::Relaxed);
        self.live_records.store(0, Ordering::Relaxed);
        self.live_bytes.store(0, Ordering::Relaxed);
        self.deletes.store(0, Ordering::Relaxed);
        self.live_chunks().clear();
        self.expiring().clear();
        self.life.store(life, Ordering::Release);
        self.set_state(state);
    }
}

/// Space of the first directory that is kept from new segments while this lives.
pub(crate) struct Lent<'a>(&'a AtomicU32);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Places for segments that are made together.
type Group<D> = Box<[OnceLock<Segment<D>>]>;

/// All segments of a store, looked up without a lock. They lie in its directories in turn: segment n in directory
/// n % count, see `docs/decisions/0009-stripe-by-segment.md`.
pub(crate) struct Segments<D: Device> {
    device: D,
    /// The directories of the store, by ordinal.
    directories: Vec<PathBuf>,
    /// How segments are opened.
    access: Access,
    pub(crate) store: [u8; 16],
    pub(crate) segment_bytes: u64,
    /// How many segments may be unflushed at a time: each keeps its file open until it is flushed.
    pub(crate) most_unflushed: usize,
    groups: Box<[OnceLock<Group<D>>]>,
    pool: Mutex<Pool>,
    /// Held while a segment is made, so that two threads do not make the same one. Only the pool is locked meanwhile.
    making: Mutex<()>,
    /// How many segments were asked for: taken, or missed by a writer that had to wait.
    asked_for: AtomicUsize,
    /// How many are to be there ahead of need.
    ahead: AtomicUsize,
    /// How many segments' space is lent, see [`Segments::lend_one`].
    lent: AtomicU32,
    refused: AtomicBool,
    /// Bytes of the first directory's disk that no segment takes.
    kept_free: AtomicU64,
    /// Segments given back since the store was opened.
    released: AtomicU64,
    /// Batches flushed while somebody waited, since a segment was made; many when none was yet.
    waited_flushes: AtomicU32,
    /// See [`Segments::has_chunks`].
    chunked: AtomicBool,
}

impl<D: Device> Segments<D> {
    /// No segments yet, in these directories; `access` is how existing ones are opened.
    pub(crate) fn new(
        device: D,
        directories: Vec<PathBuf>,
        access: Access,
        store: [u8; 16],
        segment_bytes: u64,
    ) -> Segments<D> {
        let groups = (0..GROUPS).map(|_| OnceLock::new()).collect();
        let pool = Mutex::new(Pool::new(directories.len()));
        let most_unflushed = device.open_files().most / 2;
        Segments {
            device,
            directories,
            access,
            store,
            segment_bytes,
            most_unflushed,
            groups,
            pool,
            making: Mutex::default(),
            asked_for: AtomicUsize::new(0),
            ahead: AtomicUsize::new(1),
            lent: AtomicU32::new(0),
            refused: AtomicBool::new(false),
            kept_free: AtomicU64::new(0),
            released: AtomicU64::new(0),
            waited_flushes: AtomicU32::new(WAITED_FLUSHES_PER_FILL),
            chunked: AtomicBool::new(false),
        }
    }

    /// A segment that exists.
    pub(crate) fn get(&self, number: u32) -> &Segment<D> {
        self.find(number).expect("a location names an existing segment")
    }

    /// A segment, if it exists.
    pub(crate) fn find(&self, number: u32) -> Option<&Segment<D>> {
        self.groups.get(number as usize / GROUP)?.get()?[number as usize % GROUP].get()
    }

    /// All segments, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Segment<D>> {
        let end = self.pool().end();
        (0..end).filter_map(|number| self.find(number))
    }

    /// The segments that hold data, by life.
    pub(crate) fn in_use(&self) -> Vec<&Segment<D>> {
        let mut segments: Vec<_> =
            self.iter().filter(|segment| matches!(segment.state(), State::Active | State::Sealed)).collect();
        segments.sort_by_key(|segment| segment.life());
        segments
    }

    pub(crate) fn path(&self, number: u32) -> PathBuf {
        self.log_directory(self.ordinal(number)).join(format!("{number:08}.seg"))
    }

    /// The numbers of all segment files, in no order. One in a directory that is not its own is damage.
    pub(crate) fn list(&self) -> Result<Vec<u32>> {
        let mut numbers = Vec::new();
        for ordinal in 0..self.directories.len() {
            let directory = self.log_directory(ordinal);
            let names = self.device.list(&directory).map_err(|e| Error::io("list", &directory, &e))?;
            for number in names.iter().filter_map(|name| name.strip_suffix(".seg")?.parse::<u32>().ok()) {
                if self.ordinal(number) != ordinal || number as usize >= MAX_SEGMENTS {
                    let what = format!("no segment of directory {ordinal}; move the file to where it came from");
                    let path = directory.join(format!("{number:08}.seg"));
                    return Err(Error::Corruption { path, offset: 0, what });
                }
                numbers.push(number);
            }
        }
        Ok(numbers)
    }

    /// The ordinal of the directory that a segment lies in.
    fn ordinal(&self, number: u32) -> usize {
        number as usize % self.directories.len()
    }

    fn log_directory(&self, ordinal: usize) -> PathBuf {
        self.directories[ordinal].join("log")
    }

    /// The number of the store's directories, as headers have it.
    pub(crate) fn directory_count(&self) -> u16 {
        u16::try_from(self.directories.len()).expect("the number of directories is limited")
    }

    /// Counts what an index now refers to.
    pub(crate) fn add_live(&self, location: Location) {
        let segment = self.get(location.segment);
        segment.live_bytes.fetch_add(footprint(location.length), Ordering::Relaxed);
        segment.live_records.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts what an index no longer refers to.
    pub(crate) fn remove_live(&self, location: Location) {
        let segment = self.get(location.segment);
        segment.live_bytes.fetch_sub(footprint(location.length), Ordering::Relaxed);
        segment.live_records.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a delete.
    pub(crate) fn add_delete(&self, location: Location) {
        self.get(location.segment).deletes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a record that expires, or a chunk of one.
    pub(crate) fn add_expiring(&self, location: Location, expires_ms: u64) {
        let time_ms = expires_ms.checked_next_multiple_of(EXPIRY_STEP_MS).unwrap_or(u64::MAX);
        // A list in a record that is about to be replaced may name a segment that is gone.
        let Some(segment) = self.find(location.segment) else { return };
        let mut expiring = segment.expiring();
        *expiring.entry(time_ms).or_default() += footprint(location.length);
        if expiring.len() > MAX_EXPIRY_TIMES {
            let (_, bytes) = expiring.pop_first().expect("there are some");
            *expiring.first_entry().expect("there are more").get_mut() += bytes;
        }
    }

    /// Adds a chunk to its segment's live bytes, or takes it off.
    pub(crate) fn add_live_chunk(&self, table: u32, chunk: Location, sign: i64) {
        // A list in a record that is about to be replaced may name a segment that is gone.
        if let Some(segment) = self.find(chunk.segment) {
            self.chunked.store(true, Ordering::Relaxed);
            *segment.live_chunks().entry(table).or_default() += sign * footprint(chunk.length);
        }
    }

    /// Takes over what was counted of a segment's chunks.
    pub(crate) fn load_live_chunks(&self, segment: &Segment<D>, chunks: impl Iterator<Item = (u32, i64)>) {
        let mut live = segment.live_chunks();
        live.extend(chunks);
        self.chunked.fetch_or(!live.is_empty(), Ordering::Relaxed);
    }

    /// Whether any record has named chunks, as far as this process knows.
    pub(crate) fn has_chunks(&self) -> bool {
        self.chunked.load(Ordering::Relaxed)
    }

    /// Takes a free segment. What must leave the reserve alone makes a new segment or is refused.
    pub(crate) fn take_free(&self, claim: Claim) -> Result<&Segment<D>> {
        while !self.has_free(claim) {
            self.create_below(claim.left_free() + 1)?;
        }
        let number = self.pool().take_free().ok_or_else(|| self.full())?;
        self.asked_for.fetch_add(1, Ordering::Relaxed);
        Ok(self.get(number))
    }

    /// Whether [`Segments::take_free`] need not make a segment, unless another caller is faster.
    pub(crate) fn has_free(&self, claim: Claim) -> bool {
        self.pool().free_count() > claim.left_free()
    }

    /// Makes a segment for a writer that has found none, unless one is there by now: it may just have been made.
    pub(crate) fn make_for(&self, claim: Claim) -> Result<()> {
        self.asked_for.fetch_add(1, Ordering::Relaxed);
        self.create_below(claim.left_free() + 1).map(drop)
    }

    /// Keeps segments from being made until what is returned is dropped.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn hold_making(&self) -> MutexGuard<'_, ()> {
        self.making.lock().expect("no code panics while it makes a segment")
    }

    /// How many segments were taken or missed so far.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn asked_for(&self) -> usize {
        self.asked_for.load(Ordering::Relaxed)
    }

    /// Keeps a segment's file open for what will be written to it: no write that was admitted must fail for want of a
    /// descriptor.
    pub(crate) fn keep_open(&self, segment: &Segment<D>) -> Result<()> {
        segment.file.keep_open().map_err(|e| Error::io("open", self.path(segment.number), &e))
    }

    /// Makes free segments until the reserve and one more are there.
    pub(crate) fn replenish(&self) -> Result<()> {
        while self.create_below(RESERVED_SEGMENTS + 1)? {}
        Ok(())
    }

    /// Makes a segment ahead of need, if fewer are there than are asked for while one is made. True if it made one.
    pub(crate) fn make_ahead(&self) -> Result<bool> {
        let before = self.asked_for.load(Ordering::Relaxed);
        let ahead = self.ahead.load(Ordering::Relaxed);
        if !self.create_below(RESERVED_SEGMENTS + ahead)? {
            return Ok(false);
        }
        let asked_for = self.asked_for.load(Ordering::Relaxed) - before;
        self.ahead.store(wanted_ahead(ahead, asked_for), Ordering::Relaxed);
        Ok(true)
    }

    /// Gives the space of a free segment back to the file system of the first directory, where the files of a
    /// checkpoint need it. No segment is made from it until what is returned is dropped. `None` if there is none.
    pub(crate) fn lend_one(&self) -> Result<Option<Lent<'_>>> {
        let _making = self.making.lock().expect("no code panics while it makes a segment");
        let Some(number) = self.pool().take_free_in(0) else { return Ok(None) };
        self.lent.fetch_add(1, Ordering::Relaxed);
        let lent = Lent(&self.lent);
        let segment = self.get(number);
        self.give_back(segment).inspect_err(|_| self.set_free(segment)).map(|()| Some(lent))
    }

    fn give_back(&self, segment: &Segment<D>) -> Result<()> {
        segment.file.truncate(0).map_err(|e| Error::io("give back the space of", self.path(segment.number), &e))?;
        self.set_absent(segment);
        Ok(())
    }

    /// Gives a retired segment back, or its space to the file system when there are plenty or its file is not whole.
    pub(crate) fn release(&self, segment: &Segment<D>) -> Result<()> {
        let (plenty, wanted) = {
            let pool = self.pool();
            let for_checkpoints = self.ordinal(segment.number) == 0 && pool.free_in(0) == 0;
            (pool.free_count() >= RESERVED_SEGMENTS + SPARE_SEGMENTS, for_checkpoints)
        };
        let unfilled = segment.end.load(Ordering::Relaxed) == UNFILLED_END;
        if unfilled || plenty && !wanted {
            self.give_back(segment)?;
        } else {
            self.set_free(segment);
        }
        self.released.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives free segments beyond the reserve back to the file system of the first directory.
    pub(crate) fn give_back_spare(&self) -> Result<()> {
        let _making = self.making.lock().expect("no code panics while it makes a segment");
        while self.pool().free_count() > RESERVED_SEGMENTS {
            let Some(number) = self.pool().take_free_in(0) else { break };
            let segment = self.get(number);
            self.give_back(segment).inspect_err(|_| self.set_free(segment))?;
        }
        Ok(())
    }

    /// Free segments that ordinary writes may take.
    pub(crate) fn spare(&self) -> u64 {
        self.pool().free_count().saturating_sub(RESERVED_SEGMENTS) as u64
    }

    /// How many segments were given back since the store was opened.
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::Relaxed)
    }

    /// Keeps so many bytes of the first directory's disk free of segments that are made from now on.
    pub(crate) fn keep_free(&self, bytes: u64) {
        self.kept_free.store(bytes, Ordering::Relaxed);
    }

    /// Takes note of a batch that somebody waited for until it was flushed.
    pub(crate) fn note_waited_flush(&self) {
        self.waited_flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the last attempt to make a segment was refused for lack of space.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Opens an existing segment file at start-up, and returns it with its length. Recovery finds out what it holds.
    pub(crate) fn open_existing(&self, number: u32) -> Result<(&Segment<D>, u64)> {
        let path = self.path(number);
        let file = self.device.open(&path, self.access).map_err(|e| Error::io("open", &path, &e))?;
        let length = file.length().map_err(|e| Error::io("look at", &path, &e))?;
        Ok((self.insert(number, file), length))
    }

    /// Declares an opened segment absent: its file was being filled or emptied when the process died. What is there
    /// stays until the segment is filled again.
    pub(crate) fn set_absent(&self, segment: &Segment<D>) {
        segment.set_state(State::Absent);
        self.pool().add_absent(segment.number);
    }

    /// Declares an opened segment free.
    pub(crate) fn set_free(&self, segment: &Segment<D>) {
        segment.set_state(State::Free);
        self.pool().add_free(segment.number);
    }

    /// Makes a free segment in the directory that lacks one most and has room, unless so many are free. True if it made one.
    fn create_below(&self, count: usize) -> Result<bool> {
        let _making = self.making.lock().expect("no code panics while it makes a segment");
        let free = self.pool().free_count();
        if free >= count {
            return Ok(false);
        }
        let made = self.create_where_there_is_room();
        // While there is one for ordinary writes, the disk is not full for anyone.
        let is_refused = made.as_ref().is_err_and(Error::is_full) && free <= RESERVED_SEGMENTS;
        self.refused.store(is_refused, Ordering::Relaxed);
        made.map(|()| true)
    }

    fn create_where_there_is_room(&self) -> Result<()> {
        let mut refusal = None;
        let by_need = self.pool().by_need();
        for ordinal in by_need {
            match self.create_in(ordinal) {
                Err(error @ (Error::DiskFull { .. } | Error::StoreFull { .. })) => {
                    // A full disk can be made empty again, the limit of the store stays.
                    refusal = refusal.filter(Error::is_full).or(Some(error));
                }
                made => return made,
            }
        }
        Err(refusal.expect("a store has a directory"))
    }

    /// Makes a new free segment in a directory, or fills an absent one again. Space is taken before the segment counts, so that
    /// later writes do not fail for lack of it. Where writers wait for flushes every byte is written too, so that those do
    /// not change the file's layout; elsewhere that would be each byte twice, see `docs/decisions/0020-segments-are-filled-for-flushes.md`.
    /// The caller holds `making`.
    fn create_in(&self, ordinal: usize) -> Result<()> {
        // Refused rather than made to wait: the checkpoint may wait for whoever wants the segment.
        if ordinal == 0 && (self.lent.load(Ordering::Relaxed) > 0 || !self.leaves_enough()) {
            return Err(self.full());
        }
        let (number, absent) = self.pool().next_to_make(ordinal);
        let most = MAX_SEGMENTS.min((MAX_LOG_BYTES / self.segment_bytes) as usize);
        if number as usize >= most {
            return Err(Error::StoreFull { path: self.root(), max_bytes: most as u64 * self.segment_bytes });
        }
        let path = self.path(number);
        if absent {
            let segment = self.get(number);
            self.fill(&segment.file, number, &path).inspect_err(|_| {
                // The space was not to be had; the file stays absent, whatever it grew to.
                let _ = segment.file.truncate(0);
            })?;
            self.pool().remove_absent(number);
            self.set_free(segment);
            return Ok(());
        }
        let directory = self.log_directory(ordinal);
        let new_path = directory.join(format!("{number:08}.seg.new"));
        let file = self.device.open(&new_path, Access::NEW_SEGMENT).map_err(|e| Error::io("create", &new_path, &e))?;
        let made = self.fill(&file, number, &new_path).and_then(|()| {
            self.device.rename(&new_path, &path).map_err(|e| Error::io("name", &path, &e))?;
            if planted::is_on(Bug::SegmentNameUnflushed) {
                return Ok(());
            }
            self.device.sync_dir(&directory).map_err(|e| Error::io("flush", &directory, &e))
        });
        if let Err(error) = made {
            // Half a file is of no use; if it cannot be removed either, the next open removes it.
            let _ = self.device.remove(&new_path);
            return Err(error);
        }
        let segment = self.insert(number, file);
        self.set_free(segment);
        Ok(())
    }

    /// Whether another segment in the first directory leaves its disk what the indexes need.
    fn leaves_enough(&self) -> bool {
        let kept = self.kept_free.load(Ordering::Relaxed);
        // Where nobody can say how much is free, a segment is refused when it does not fit.
        kept == 0 || self.device.free_bytes(&self.directories[0]).is_none_or(|free| free >= self.segment_bytes + kept)
    }

    fn fill(&self, file: &D::File, number: u32, path: &Path) -> Result<()> {
        let refused = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => self.full(),
            _ => Error::io("write", path, &e),
        };
        let reserved = file.reserve(self.segment_bytes).map_err(refused)?;
        let filled = !reserved || self.waited_flushes.swap(0, Ordering::Relaxed) >= WAITED_FLUSHES_PER_FILL;
        let mut zeros = AlignedBuffer::new(PREWRITE_BYTES.min(self.segment_bytes as usize));
        let header = SegmentHeader {
            store: self.store,
            segment: number,
            directories: self.directory_count(),
            segment_bytes: self.segment_bytes,
            life: 0,
            first_batch: 0,
            previous_checksum: 0,
            previous_segment: 0,
            previous_end: 0,
            durable_batch: 0,
        };
        let mut at = zeros.len() as u64;
        while filled && at < self.segment_bytes {
            file.write_at(&zeros, at, WriteSync::Later).map_err(refused)?;
            at += zeros.len() as u64;
        }
        segment::put(&mut zeros, 0, &header.encode());
        file.write_at(&zeros, 0, WriteSync::Later).map_err(refused)?;
        file.sync().map_err(refused)
    }

    fn insert(&self, number: u32, file: D::File) -> &Segment<D> {
        let group = self.groups[number as usize / GROUP]
            .get_or_init(|| (0..GROUP).map(|_| OnceLock::new()).collect::<Vec<_>>().into_boxed_slice());
        let slot = &group[number as usize % GROUP];
        let inserted = slot.set(Segment {
            number,
            file,
            state: AtomicU8::new(State::Free as u8),
            life: AtomicU64::new(0),
            seed: AtomicU32::new(Seed::new(&self.store, number, 0).to_cached()),
            written_end: AtomicU64::new(UNIT_BYTES as u64),
            published_end: AtomicU64::new(UNIT_BYTES as u64),
            end: AtomicU64::new(UNIT_BYTES as u64),
            records: AtomicU64::new(0),
            live_records: AtomicI64::new(0),
            live_bytes: AtomicI64::new(0),
            deletes: AtomicU64::new(0),
            live_chunks: Mutex::default(),
            expiring: Mutex::default(),
        });
        assert!(inserted.is_ok(), "a segment number is given once");
        self.pool().add(number);
        slot.get().expect("just set")
    }

    fn full(&self) -> Error {
        Error::DiskFull { path: self.root() }
    }

    fn root(&self) -> PathBuf {
        self.directories[0].clone()
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().expect("no code panics while it holds the pool")
    }
}

/// How many segments are to be there ahead of need, after one was made and `asked_for` were asked for meanwhile: as many and one.
/// More at once, fewer one by one: writes come in bursts.
fn wanted_ahead(ahead: usize, asked_for: usize) -> usize {
    (asked_for + 1).max(ahead - 1).clamp(1, MAX_AHEAD_SEGMENTS)
}
