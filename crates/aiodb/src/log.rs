//! The segments of the log: files, states, and how many of their bytes are alive.
//!
//! The room of the log. It owns segments, their pool, the open batch and the group commit with its stripes for conditional writes.
//! It promises one order of all batches, and that a segment's bytes do not change within a life. It never knows indexes or tables: it
//! carries the generation that a record's publication needs, and does not look at it.

pub(crate) mod commit;
#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
pub(crate) mod open_batch;
mod pool;
pub(crate) mod scan;
pub(crate) mod stripes;
mod supply;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::format::location::Location;
use crate::format::place::footprint;
use crate::format::segment::Seed;
use crate::io::{Access, Device, File, UNIT_BYTES};
use crate::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};
use crate::{Error, Result};
use pool::Pool;
use supply::WAITED_FLUSHES_PER_FILL;

pub(crate) use supply::{Claim, RESERVED_SEGMENTS};

/// Records that expire are counted in steps of this length...
const EXPIRY_STEP_MS: u64 = 60_000;
/// ...and at most this many steps by segment; the earliest is counted with the next.
const MAX_EXPIRY_TIMES: usize = 256;

const GROUP: usize = 1024;
const GROUPS: usize = 1024;

/// The most segments of a store.
pub(crate) const MAX_SEGMENTS: usize = GROUP * GROUPS;

/// The end of a segment whose file was being filled or emptied when the process died: not even a header is there.
pub(crate) const UNFILLED_END: u64 = 0;

/// The longest log that a slot of a hash index can point into.
const MAX_LOG_BYTES: u64 = 16 << 40;

/// The use of a segment at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Written before, ready to be activated.
    Free = 0,
    /// The log's end lies here.
    Active = 1,
    /// Full.
    Sealed = 2,
    /// No record in it is referred to any more; waiting for a checkpoint and for readers.
    Retiring = 3,
    /// The file is empty: its space was given back.
    Absent = 4,
}

/// One segment. Its file and number never change; its life does.
pub(crate) struct Segment<D: Device> {
    pub(crate) number: u32,
    pub(crate) file: D::File,
    /// Release and Acquire, like the life: a thread that sees it finds the seed, the ends and the counts of that life.
    state: AtomicU8,
    life: AtomicU64,
    /// The seed of this life's checksums. Release and Acquire, which is more than it needs: it is stored before the life.
    seed: AtomicU32,
    /// Bytes that are on the device (not necessarily durable); later ones are read from the pending batches. Release and Acquire:
    /// a thread that sees it finds the bytes. A life begins with a Relaxed store, before any index leads there.
    pub(crate) written_end: AtomicU64,
    /// Bytes whose records are all published in their indexes. Release and Acquire: a thread that sees it finds the entries.
    pub(crate) published_end: AtomicU64,
    /// Where the log left this segment; meaningful once it is sealed. Release and Acquire, which is more than it needs: it is stored
    /// before the state.
    pub(crate) end: AtomicU64,
    /// Records appended in this life, chunks and deletes included.
    ///
    /// This and the next six are Relaxed: counts that publish nothing. They choose the segments that reclaim empties. Only whether a
    /// delete must stay depends on them: its index is asked first, which forgets a delete only after the records below it have been
    /// counted as dead.
    pub(crate) records: AtomicU64,
    /// Records that an index refers to.
    pub(crate) live_records: AtomicI64,
    /// Bytes that an index refers to.
    pub(crate) live_bytes: AtomicI64,
    /// Bytes by which its records, dead ones too, grow when they are moved for the first time.
    pub(crate) growth_bytes: AtomicU64,
    /// Bytes that its records, dead ones too, take beyond what they count and grow by, see [`crate::format::place::Counting::uncounted`]. It is not in
    /// checkpoints: of records from before the store was opened nothing is known until they are moved.
    pub(crate) uncounted_bytes: AtomicU64,
    /// Bytes that its records, dead ones too, would not take in one large batch, see [`OpenBatch::padding`](self::open_batch::OpenBatch::padding). It is not in
    /// checkpoints: of batches from before the store was opened nothing is known until their records are moved.
    pub(crate) padding_bytes: AtomicU64,
    /// Deletes appended or moved here: they take space for as long as older segments hold what they delete.
    pub(crate) deletes: AtomicU64,
    /// Bytes of chunks that current records name, by table.
    live_chunks: Mutex<BTreeMap<u32, i64>, { Rank::LiveChunks as u8 }>,
    /// Bytes of records that expire, by the time at which they do: an estimate, overwritten ones are not taken off.
    expiring: Mutex<BTreeMap<u64, i64>, { Rank::Expiring as u8 }>,
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

    /// All bytes that are referred to. An estimate, too high by records whose tags are not settled, never negative.
    pub(crate) fn live(&self) -> u64 {
        let chunks: i64 = self.live_chunks().values().sum();
        u64::try_from(self.live_bytes.load(Ordering::Relaxed) + chunks).unwrap_or(0)
    }

    /// Bytes that the records which are referred to take elsewhere, deletes left out.
    pub(crate) fn bytes_to_move(&self) -> u64 {
        self.taken() + self.growth()
    }

    /// Bytes that the records which are referred to take, deletes left out: what they count, and what they take beyond that as far as it is
    /// known.
    pub(crate) fn taken(&self) -> u64 {
        self.live_but_deletes() + self.of_live(&self.uncounted_bytes)
    }

    /// [`Segment::live`] without the deletes to which a `hash` index refers until their tags are settled: so many live records as
    /// there cannot be puts and operands must be deletes.
    pub(crate) fn live_but_deletes(&self) -> u64 {
        let records = self.records.load(Ordering::Relaxed).saturating_sub(self.deletes.load(Ordering::Relaxed));
        let live_records = u64::try_from(self.live_records.load(Ordering::Relaxed)).unwrap_or(0);
        let live_bytes = u64::try_from(self.live_bytes.load(Ordering::Relaxed)).unwrap_or(0);
        let deletes = live_records.saturating_sub(records);
        let deletes_bytes = u128::from(live_bytes) * u128::from(deletes) / u128::from(live_records.max(1));
        self.live().saturating_sub(deletes_bytes as u64)
    }

    /// By about how many bytes the records which are referred to grow when they are moved.
    pub(crate) fn growth(&self) -> u64 {
        self.of_live(&self.growth_bytes)
    }

    /// About how many bytes of padding lie beside the records which are referred to.
    pub(crate) fn padding(&self) -> u64 {
        self.of_live(&self.padding_bytes)
    }

    /// About how many of these bytes, which are counted for all records, belong to the records which are referred to.
    fn of_live(&self, bytes: &AtomicU64) -> u64 {
        let records = self.records.load(Ordering::Relaxed).saturating_sub(self.deletes.load(Ordering::Relaxed));
        let live = u64::try_from(self.live_records.load(Ordering::Relaxed)).unwrap_or(0).min(records);
        (u128::from(bytes.load(Ordering::Relaxed)) * u128::from(live) / u128::from(records.max(1))) as u64
    }

    /// Bytes of chunks that current records name, by table.
    pub(crate) fn live_chunks(&self) -> MutexGuard<'_, BTreeMap<u32, i64>> {
        self.live_chunks.lock().expect("no code panics while it counts chunks")
    }

    /// Bytes of records that expire, by the time at which they do, in milliseconds since 1970.
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
        self.growth_bytes.store(0, Ordering::Relaxed);
        self.uncounted_bytes.store(0, Ordering::Relaxed);
        self.padding_bytes.store(0, Ordering::Relaxed);
        self.deletes.store(0, Ordering::Relaxed);
        self.live_chunks().clear();
        self.expiring().clear();
        self.life.store(life, Ordering::Release);
        self.set_state(state);
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
    /// How many segments may be unflushed at a time: the file of each is kept open until it is flushed.
    pub(crate) most_unflushed: usize,
    groups: Box<[OnceLock<Group<D>>]>,
    pool: Mutex<Pool, { Rank::Pool as u8 }>,
    /// Held while a segment is made, so that two threads do not make the same one, and while its space is given back. True once the store
    /// is closed: from then on the files may be those of another process.
    making: Mutex<bool, { Rank::Making as u8 }>,
    /// How many segments were asked for: taken, or missed by a writer that had to wait. Relaxed, like the next: it only steers how
    /// many are made ahead.
    asked_for: AtomicUsize,
    /// The most that there may be. Relaxed: only tests change it.
    most: AtomicUsize,
    /// How many are to be there ahead of need.
    ahead: AtomicUsize,
    /// How many segments' space is lent, see [`Segments::lend_one`]. Relaxed: it is raised under `making`, under which it is read; a
    /// thread that sees it lowered late only refuses a segment once more.
    lent: AtomicU32,
    /// See [`Segments::note_checkpoint`]. Relaxed: moves that are about to take a segment may miss it once.
    checkpoint_refused: AtomicBool,
    /// See [`Segments::is_refused`]. Relaxed: a hint.
    refused: AtomicBool,
    /// Bytes of the first directory's disk that no segment takes. Relaxed, like the next: a bound that publishes nothing, and may
    /// be met late.
    reserved_for_indexes: AtomicU64,
    /// Bytes beyond the reserve that ordinary writes leave free.
    reserved_for_emptying: AtomicU64,
    /// See [`Segments::is_reserve_whole`].
    whole: AtomicBool,
    /// Segments given back since the store was opened. Relaxed: a count that publishes nothing.
    released: AtomicU64,
    /// Batches flushed while a writer waited, since a segment was made; many when none was yet. Relaxed: a hint.
    waited_flushes: AtomicU32,
    /// See [`Segments::has_chunks`]. Relaxed: it is set before the publication of a record with chunks ends, and asked about records
    /// whose publication has ended.
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
            most: AtomicUsize::new(MAX_SEGMENTS.min((MAX_LOG_BYTES / segment_bytes) as usize)),
            ahead: AtomicUsize::new(1),
            lent: AtomicU32::new(0),
            checkpoint_refused: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            reserved_for_indexes: AtomicU64::new(0),
            reserved_for_emptying: AtomicU64::new(0),
            whole: AtomicBool::new(false),
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

    /// The directories of the store, by ordinal.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
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

    /// Counts a record that an index now refers to, and that takes so many bytes of its segment.
    pub(crate) fn add_live(&self, segment: u32, bytes: i64) {
        let segment = self.get(segment);
        segment.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        segment.live_records.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts by how much a record that was not moved yet grows when it is.
    pub(crate) fn add_growth(&self, segment: u32, bytes: u64) {
        self.get(segment).growth_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts what a record takes beyond what it counts.
    pub(crate) fn add_uncounted(&self, segment: u32, bytes: u64) {
        if bytes > 0 {
            self.get(segment).uncounted_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts a record that an index no longer refers to.
    pub(crate) fn remove_live(&self, segment: u32, bytes: i64) {
        let segment = self.get(segment);
        segment.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
        segment.live_records.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a delete.
    pub(crate) fn add_delete(&self, location: Location) {
        self.get(location.segment).deletes.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a record that expires, or a chunk of one, and takes so many bytes of its segment.
    pub(crate) fn add_expiring(&self, segment: u32, bytes: i64, expires_ms: u64) {
        let time_ms = expires_ms.checked_next_multiple_of(EXPIRY_STEP_MS).unwrap_or(u64::MAX);
        // A list in a record that is about to be replaced may name a segment that is gone.
        let Some(segment) = self.find(segment) else { return };
        let mut expiring = segment.expiring();
        *expiring.entry(time_ms).or_default() += bytes;
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

    /// Takes over the counts of a segment's chunks.
    pub(crate) fn load_live_chunks(&self, segment: &Segment<D>, chunks: impl Iterator<Item = (u32, i64)>) {
        let mut live = segment.live_chunks();
        live.extend(chunks);
        self.chunked.fetch_or(!live.is_empty(), Ordering::Relaxed);
    }

    /// Whether any record has named chunks, as far as this process knows.
    pub(crate) fn has_chunks(&self) -> bool {
        self.chunked.load(Ordering::Relaxed)
    }

    /// Keeps a segment's file open for later writes to it: no write that was admitted must fail for want of a
    /// descriptor.
    pub(crate) fn keep_open(&self, segment: &Segment<D>) -> Result<()> {
        segment.file.keep_open().map_err(|e| Error::io("open", self.path(segment.number), &e))
    }

    /// Opens an existing segment file at start-up, and returns it with its length. Recovery looks at its contents.
    pub(crate) fn open_existing(&self, number: u32) -> Result<(&Segment<D>, u64)> {
        let path = self.path(number);
        let file = self.device.open(&path, self.access).map_err(|e| Error::io("open", &path, &e))?;
        let length = file.length().map_err(|e| Error::io("look at", &path, &e))?;
        Ok((self.insert(number, file), length))
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
            growth_bytes: AtomicU64::new(0),
            uncounted_bytes: AtomicU64::new(0),
            padding_bytes: AtomicU64::new(0),
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
