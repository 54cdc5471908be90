//! The traits by which the engine reaches the outside world.

use std::io;
use std::path::{Path, PathBuf};

use super::buffer::Mapping;
use super::notifications::Notifications;

/// Everything in a segment starts on a multiple of this many bytes, whatever the disk's logical block size.
pub const UNIT_BYTES: usize = 4096;

/// The smallest logical block of a disk, and the finest granularity at which records are read.
pub const SECTOR_BYTES: usize = 512;

/// The deepest read queue, see [`Device::queue`].
pub const MAX_QUEUE_DEPTH: usize = 4096;

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Create the file if it is missing; an existing file is opened as it is.
    pub create: bool,
    /// Allow writes.
    pub write: bool,
    /// Bypass the page cache where the file system allows it. Offsets, lengths and addresses of reads and writes must
    /// then be multiples of [`Report::block_bytes`]; the engine keeps to [`UNIT_BYTES`] for writes.
    pub direct: bool,
}

impl Access {
    /// An existing file, read through the page cache.
    pub const READ: Access = Access { create: false, write: false, direct: false };
    /// A file written through the page cache, made if it is missing.
    pub const CREATE: Access = Access { create: true, write: true, direct: false };
    /// An existing segment.
    pub const SEGMENT: Access = Access { create: false, write: true, direct: true };
    /// An existing segment that is only read.
    pub const READ_SEGMENT: Access = Access { create: false, write: false, direct: true };
    /// A new segment.
    pub const NEW_SEGMENT: Access = Access { create: true, write: true, direct: true };
}

/// Whether a write has reached the medium when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteSync {
    /// The write may be lost by a power cut until [`File::sync`] succeeds.
    Later,
    /// The written bytes survive a power cut (`RWF_DSYNC`). Says nothing of earlier writes.
    Now,
}

/// The findings of a device about itself when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The read queue that is used: `uring`, `libaio`, `threads` or `sim`.
    pub backend: &'static str,
    /// Whether segments bypass the page cache (`O_DIRECT`).
    pub direct: bool,
    /// The alignment that reads must have, in bytes: 512 or 4096.
    pub block_bytes: usize,
    /// Why a preferred backend or `O_DIRECT` was not used, in words; empty when nothing was refused.
    pub fallbacks: Vec<String>,
}

/// How many files opened with [`Access::direct`] have a descriptor at the moment, and how many may have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// Descriptors at this moment.
    pub open: usize,
    /// The bound. At most half of the files may be kept open by [`File::keep_open`] or by writes that no [`File::sync`] has
    /// followed; the device leaves the descriptors of such files open, and closes and opens other descriptors as they are used.
    pub most: usize,
}

/// A part of the engine's work in which it matters where a crash falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// A batch is written to its segment.
    Append,
    /// Earlier writes become durable.
    Flush,
    /// Records become visible in their indexes.
    Publish,
    /// An index on disk takes up its memtable.
    IndexCommit,
    /// Sorted runs of an index are merged.
    Merge,
    /// Places of a `hash` table come to a run, or runs of such tables are merged.
    Spill,
    /// The indexes' durable state is brought up to the log.
    Checkpoint,
    /// The log leaves a segment and goes on in another one.
    Cut,
    /// Live records are appended again.
    ReclaimMove,
    /// An emptied segment is freed, or begins its next life.
    SegmentReuse,
    /// A table is made.
    TableCreate,
    /// A table is dropped.
    TableDrop,
    /// A table is emptied.
    TableTruncate,
    /// Tables get other names.
    TableRename,
    /// What memory keeps of a table by preference changes.
    TableModes,
    /// The budget of memory changes.
    Budget,
    /// A store is opened.
    Recovery,
}

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 17] = [
        Phase::Append,
        Phase::Flush,
        Phase::Publish,
        Phase::IndexCommit,
        Phase::Merge,
        Phase::Spill,
        Phase::Checkpoint,
        Phase::Cut,
        Phase::ReclaimMove,
        Phase::SegmentReuse,
        Phase::TableCreate,
        Phase::TableDrop,
        Phase::TableTruncate,
        Phase::TableRename,
        Phase::TableModes,
        Phase::Budget,
        Phase::Recovery,
    ];
}

/// Tells the device that the engine is in a phase, until this is dropped. It costs nothing on a device that ignores phases.
pub(crate) struct InPhase<'a, D: Device> {
    device: &'a D,
    phase: Phase,
}

impl<'a, D: Device> InPhase<'a, D> {
    pub(crate) fn enter(device: &'a D, phase: Phase) -> InPhase<'a, D> {
        device.mark(phase, true);
        InPhase { device, phase }
    }
}

impl<D: Device> Drop for InPhase<'_, D> {
    fn drop(&mut self) {
        self.device.mark(self.phase, false);
    }
}

/// The outside world of one store.
pub trait Device: Clone + Send + Sync + 'static {
    /// An open file; clones share it.
    type File: File;
    /// A queue of asynchronous reads, owned by one thread at a time.
    type Queue: Queue<File = Self::File>;
    /// Holds the exclusive right to a store until dropped.
    type Lock: Send + Sync;

    /// Makes a directory and its parents; no error if it is there.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Opens a file. One opened with [`Access::direct`] is found by its name again whenever it is used: it must not be removed
    /// or replaced before, nor renamed but by [`Device::rename`].
    fn open(&self, path: &Path, access: Access) -> io::Result<Self::File>;
    /// Bytes that are free on the disk of a path; `None` where the system cannot say.
    fn free_bytes(&self, path: &Path) -> Option<u64>;
    /// Renames a file over whatever has the new name; durable after [`Device::sync_dir`].
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; durable after [`Device::sync_dir`].
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory survive a power cut.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Maps a file of exactly `length` bytes (made or resized as needed) as memory that outlives the process: bytes that were
    /// stored there before the process died are there afterwards. A power cut may leave any mixture of its pages.
    fn map(&self, path: &Path, length: usize) -> io::Result<Mapping>;
    /// Takes the exclusive lock on `path`. `Ok(Err(holder))` names the process that holds it.
    fn lock(&self, path: &Path) -> io::Result<Result<Self::Lock, String>>;
    /// Takes a lock on `path` that excludes [`Device::lock`], but not other shared locks, and writes nothing. A device on which
    /// only one process reads takes the exclusive lock.
    fn lock_shared(&self, path: &Path) -> io::Result<Result<Self::Lock, String>> {
        self.lock(path)
    }
    /// A new read queue that can hold `depth` reads (1 to [`MAX_QUEUE_DEPTH`]) in flight.
    fn queue(&self, depth: usize) -> io::Result<Self::Queue>;
    /// Bytes of a read with which long scans come near the device's sequential rate. Simulators have few, so that short scans are long ones.
    #[inline]
    fn stream_bytes(&self) -> usize {
        1 << 20
    }
    /// The findings at opening.
    fn report(&self) -> Report;
    /// Descriptors of segments. On a device that does not run out of them, none and no bound.
    fn open_files(&self) -> OpenFiles {
        OpenFiles { open: 0, most: usize::MAX }
    }
    /// Milliseconds of a clock that never goes back, and goes on while the machine is suspended.
    fn clock_ms(&self) -> u64;
    /// Nanoseconds of the same clock, for measuring how long things take.
    fn clock_ns(&self) -> u64 {
        self.clock_ms() * 1_000_000
    }
    /// Milliseconds since 1970, as the system's clock has them: they may go back.
    fn wall_ms(&self) -> u64;
    /// Memory that this process may have in all, in bytes.
    fn memory_bytes(&self) -> u64;
    /// A random number, for store identities and hash keys.
    fn random(&self) -> u64;
    /// Where in the file system of the kernel a file lies that a library opens by itself: LMDB's.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_path_buf())
    }
    /// Bytes that must be free for a commit of LMDB; for simulators, whose disk its file does not lie on.
    #[inline]
    fn index_needs_bytes(&self) -> u64 {
        0
    }
    /// Whether LMDB finds room for a commit; for simulators, whose disk its file does not lie on.
    #[inline]
    fn has_room_for_index(&self) -> bool {
        true
    }
    /// The engine begins or ends a phase; for simulators, which crash there and count where they did.
    #[inline]
    fn mark(&self, _phase: Phase, _begins: bool) {}
}

/// An open file. All offsets and lengths are in bytes.
pub trait File: Clone + Send + Sync + 'static {
    /// Whether a thread of its own may read ahead while what was read is used. Not in a simulator, in which the order of all calls decides
    /// what happens.
    const READS_AHEAD: bool = true;

    /// Reads until the buffer is full or the file ends; returns the bytes read. `EINTR` and short reads are retried.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`. On an error any part may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64, sync: WriteSync) -> io::Result<()>;
    /// Makes all earlier writes to this file survive a power cut. Never retried: after an error their fate is unknown.
    fn sync(&self) -> io::Result<()>;
    /// Reserves space for the file's first `length` bytes and extends it to that length, or fails with `StorageFull` and
    /// gives back the space that it got. False if the file system cannot reserve: then the file has the length, but no space.
    fn reserve(&self, length: u64) -> io::Result<bool>;
    /// The file's length.
    fn length(&self) -> io::Result<u64>;
    /// Cuts the file to `length` bytes and gives the space behind it back.
    fn truncate(&self, length: u64) -> io::Result<()>;
    /// From now on until [`File::let_go`] no call fails for want of a descriptor. Fails itself if none is to be had.
    fn keep_open(&self) -> io::Result<()> {
        Ok(())
    }
    /// Ends what [`File::keep_open`] has begun, however often that was called.
    fn let_go(&self) {}
}

/// A finished read: the caller's slot and the bytes transferred (possibly fewer than asked for).
#[derive(Debug)]
pub struct Reaped {
    /// The slot given to [`Queue::push`].
    pub slot: u32,
    /// Bytes transferred, 0 at the end of the file, or the device's error.
    pub outcome: io::Result<u32>,
}

/// Asynchronous reads. An implementation moves requests to the device and results back; buffers, batches, short reads
/// and retries are the matter of [`Reads`](super::reads::Reads), which all implementations share.
///
/// Dropping a queue waits until the device owns no buffer any more.
pub trait Queue: Send {
    /// The files that can be read.
    type File: File;

    /// Announces the memory from which most buffers come, for implementations that can register it. The memory stays
    /// valid until the queue is dropped. A refusal by the kernel is not an error: reads go on unregistered.
    ///
    /// # Safety
    /// `start .. start + length` must stay allocated until the queue has been dropped.
    unsafe fn register(&mut self, _start: *mut u8, _length: usize) {}

    /// Queues one read; nothing is handed to the device before [`Queue::enter`]. At most `depth` reads (as given to
    /// [`Device::queue`]) may be pushed and not yet reaped; each has its own `slot`, below `depth`.
    ///
    /// # Safety
    /// `buffer .. buffer + length` must be valid for writes, and untouched by the caller, until the slot was reaped or
    /// the queue has been dropped.
    unsafe fn push(&mut self, slot: u32, file: &Self::File, offset: u64, buffer: *mut u8, length: u32);

    /// Hands the pushed reads to the device and waits until at least `wait_for` results can be reaped (0 or 1).
    /// Retries `EINTR`; `EAGAIN` and `EBUSY` are handled by reaping.
    fn enter(&mut self, wait_for: u32) -> io::Result<()>;

    /// The next result, if one is there. Never blocks and never enters the kernel.
    fn reap(&mut self) -> Option<Reaped>;

    /// Tells of results that come after a [`Queue::enter`] from now on, once at least for all that come before the next one. False if the
    /// queue cannot do that.
    fn notify(&mut self, _notifications: &Notifications) -> io::Result<bool> {
        Ok(false)
    }

    /// How often the calling thread has slept in its life: by it [`Reads`](super::reads::Reads) sees whether the caller waits for
    /// the device. A queue that cannot tell says 0, as if the caller never slept.
    fn sleeps(&self) -> u64 {
        0
    }
}
