//! The bytes of one simulated file: as the kernel shows them, and what a power cut may leave of them.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use fastrand::Rng;
use smallvec::{SmallVec, smallvec};

use crate::io::{AlignedBuffer, Mapping, SECTOR_BYTES, UNIT_BYTES, WriteSync};

/// The smallest piece that reaches the medium whole.
type Sector = Arc<[u8; SECTOR_BYTES]>;

/// Sectors that were never written, and those written with zeros, share one allocation.
static ZERO: LazyLock<Sector> = LazyLock::new(|| Arc::new([0; SECTOR_BYTES]));

/// At most this many states of one sector are remembered. Beyond it the oldest that is not on the medium is forgotten,
/// which only takes one possible outcome from a power cut.
const MAX_VERSIONS: usize = 8;

/// The states that a sector, or a file's length, may have after a power cut. The first is on the medium, the last is
/// what the kernel shows, and those between were written in this order without being flushed.
struct Versions<T>(SmallVec<[T; 2]>);

impl<T> Versions<T> {
    fn durable(value: T) -> Versions<T> {
        Versions(smallvec![value])
    }

    fn current(&self) -> &T {
        self.0.last().expect("there is always one version")
    }

    fn push(&mut self, value: T) {
        if self.0.len() == MAX_VERSIONS {
            self.0.remove(1);
        }
        self.0.push(value);
    }

    /// Leaves one version, as current and durable.
    fn leave_one(&mut self, index: usize) {
        self.0.swap(0, index);
        self.0.truncate(1);
    }

    fn flush(&mut self) {
        self.leave_one(self.0.len() - 1);
    }

    fn is_durable(&self) -> bool {
        self.0.len() == 1
    }
}

/// Memory that the simulated process maps. It stays here when the process drops its [`Mapping`] or dies.
struct Memory {
    start: *mut u8,
    length: usize,
    _buffer: AlignedBuffer,
}

// SAFETY: the memory belongs to the buffer, which is not tied to a thread.
unsafe impl Send for Memory {}
// SAFETY: the memory is read by the device only inside device calls, which the simulated process makes from one thread
// and without holding a mutable slice of its mapping; see `SimDevice`.
unsafe impl Sync for Memory {}

/// The bytes of one file.
///
/// While the file is mapped its memory is the truth; [`Content::absorb`] brings the sectors up to it.
pub(super) struct Content {
    /// By number; a missing sector is zero, durably.
    sectors: BTreeMap<u64, Versions<Sector>>,
    /// The sectors that the next flush writes. After a failed flush a sector may differ from the medium and not be
    /// here: like Linux, the simulated kernel does not try it again.
    dirty: BTreeSet<u64>,
    lengths: Versions<u64>,
    memory: Option<Arc<Memory>>,
    /// Whether the file was ever mapped: a power cut then keeps or loses whole pages.
    paged: bool,
}

impl Content {
    pub(super) fn new() -> Content {
        Content {
            sectors: BTreeMap::new(),
            dirty: BTreeSet::new(),
            lengths: Versions::durable(0),
            memory: None,
            paged: false,
        }
    }

    pub(super) fn length(&self) -> u64 {
        *self.lengths.current()
    }

    /// Copies what the kernel shows; returns the bytes copied, fewer than asked for at the end of the file.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let length = self.length().saturating_sub(offset).min(buffer.len() as u64) as usize;
        for piece in pieces(offset, length) {
            let sector = self.sectors.get(&piece.sector).map_or(&*ZERO, Versions::current);
            buffer[piece.source].copy_from_slice(&sector[piece.within]);
        }
        length
    }

    /// Writes all of `bytes`.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64, sync: WriteSync) {
        self.write_some(bytes, offset, sync, |_| true);
    }

    /// Writes the sectors of `bytes` that `choose` picks by their position in the write; returns how many were written,
    /// and how many there are. The file grows to the end of the last one written.
    pub(super) fn write_some(
        &mut self,
        bytes: &[u8],
        offset: u64,
        sync: WriteSync,
        choose: impl Fn(usize) -> bool,
    ) -> (usize, usize) {
        let mut end = 0;
        let (mut written, mut total) = (0, 0);
        for piece in pieces(offset, bytes.len()) {
            if choose(total) {
                end = offset + piece.source.end as u64;
                self.write_piece(piece.sector, piece.within, &bytes[piece.source], sync);
                written += 1;
            }
            total += 1;
        }
        self.grow(end, sync);
        (written, total)
    }

    fn write_piece(&mut self, number: u64, within: Range<usize>, bytes: &[u8], sync: WriteSync) {
        let versions = self.sectors.entry(number).or_insert_with(|| Versions::durable(ZERO.clone()));
        if versions.current()[within.clone()] != *bytes {
            let mut sector = **versions.current();
            sector[within].copy_from_slice(bytes);
            versions.push(if sector == **ZERO { ZERO.clone() } else { Arc::new(sector) });
        }
        match sync {
            WriteSync::Now => {
                versions.flush();
                self.dirty.remove(&number);
            }
            WriteSync::Later if !versions.is_durable() => {
                self.dirty.insert(number);
            }
            WriteSync::Later => {}
        }
        if versions.is_durable() && Arc::ptr_eq(versions.current(), &ZERO) {
            self.sectors.remove(&number);
        }
    }

    /// Extends the file to `end` bytes if it is shorter. A durable write brings the length that it needs with it.
    pub(super) fn grow(&mut self, end: u64, sync: WriteSync) {
        if end > self.length() {
            self.lengths.push(end);
        }
        if sync == WriteSync::Now {
            for length in &mut self.lengths.0 {
                *length = end.max(*length);
            }
        }
    }

    /// Makes everything durable that a flush can still write.
    pub(super) fn flush(&mut self) {
        for number in mem::take(&mut self.dirty) {
            self.sectors.get_mut(&number).expect("dirty sectors are stored").flush();
        }
        self.lengths.flush();
    }

    /// A flush that fails: some sectors reach the medium, and the kernel forgets that the others have not.
    pub(super) fn flush_failing(&mut self, random: &mut Rng) {
        for number in mem::take(&mut self.dirty) {
            if random.bool() {
                self.sectors.get_mut(&number).expect("dirty sectors are stored").flush();
            }
        }
    }

    /// A power cut: each sector (each page of a mapped file) becomes durable in its newest or an older state. Returns
    /// how many sectors lost their newest state.
    pub(super) fn lose_unflushed(&mut self, random: &mut Rng) -> u64 {
        // The odds are drawn for each file, so that "all lost" and "all but one survive" happen for large files too.
        let survive_of_8 = random.u32(0..=8);
        let group_sectors = if self.paged { (UNIT_BYTES / SECTOR_BYTES) as u64 } else { 1 };
        let dirty = mem::take(&mut self.dirty);
        let mut lost = 0;
        let mut group = None;
        let mut group_survives = false;
        for (number, versions) in self.sectors.iter_mut().filter(|(_, versions)| !versions.is_durable()) {
            if group != Some(number / group_sectors) {
                group = Some(number / group_sectors);
                group_survives = random.u32(0..8) < survive_of_8;
            }
            let newest = versions.0.len() - 1;
            let index = match (dirty.contains(number), group_survives) {
                (true, true) => newest,
                (true, false) if !self.paged => random.usize(0..newest),
                _ => 0,
            };
            lost += u64::from(index != newest);
            versions.leave_one(index);
        }
        self.lose_unflushed_length(random, survive_of_8);
        lost
    }

    fn lose_unflushed_length(&mut self, random: &mut Rng, survive_of_8: u32) {
        if !self.lengths.is_durable() {
            let newest = self.lengths.0.len() - 1;
            let survives = random.u32(0..8) < survive_of_8;
            self.lengths.leave_one(if survives { newest } else { random.usize(0..newest) });
        }
        self.cut(self.length());
    }

    /// Forgets the bytes beyond `length`: they read as zeros when the file grows again.
    fn cut(&mut self, length: u64) {
        let sector_bytes = SECTOR_BYTES as u64;
        let first_beyond = length.div_ceil(sector_bytes);
        self.sectors.split_off(&first_beyond);
        self.dirty.split_off(&first_beyond);
        let used = (length % sector_bytes) as usize;
        if used > 0
            && let Some(versions) = self.sectors.get_mut(&(length / sector_bytes))
        {
            for sector in &mut versions.0 {
                Arc::make_mut(sector)[used..].fill(0);
            }
        }
    }

    /// Cuts the file to `length` bytes. A power cut may bring back the old length, but not the bytes.
    pub(super) fn truncate(&mut self, length: u64) {
        self.unmap();
        if length < self.length() {
            self.cut(length);
            self.lengths.push(length);
        }
    }

    /// Flips the bits of `mask` in one byte, in every state that the file's medium may come to have.
    pub(super) fn corrupt(&mut self, offset: u64, mask: u8) {
        assert!(offset < self.length(), "byte {offset} is beyond the end of the file ({} bytes)", self.length());
        self.unmap();
        let sector = offset / SECTOR_BYTES as u64;
        let versions = self.sectors.entry(sector).or_insert_with(|| Versions::durable(ZERO.clone()));
        for version in &mut versions.0 {
            Arc::make_mut(version)[(offset % SECTOR_BYTES as u64) as usize] ^= mask;
        }
    }

    /// Makes the file `length` bytes long and maps it. After a shortening, a power cut may bring back the old length
    /// but not the bytes.
    pub(super) fn map(&mut self, length: usize) -> Mapping {
        self.unmap();
        if length as u64 != self.length() {
            self.cut(length as u64);
            self.lengths.push(length as u64);
        }
        let mut buffer = AlignedBuffer::new(length);
        self.read(&mut buffer[..length], 0);
        let memory = Arc::new(Memory { start: buffer.as_mut_ptr(), length, _buffer: buffer });
        self.memory = Some(memory.clone());
        self.paged = true;
        // SAFETY: the buffer is aligned to units, has at least `length` bytes, and lives as long as `memory`. The
        // device reads it inside device calls only, when no mutable slice of the mapping is in use (see `Memory`).
        unsafe { Mapping::new(memory.start, length, memory) }
    }

    /// Brings the sectors up to the mapped memory, as writes that were not flushed.
    pub(super) fn absorb(&mut self) {
        let Some(memory) = self.memory.clone() else { return };
        // SAFETY: the memory is initialised, lives as long as `memory`, and is not written during a device call.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start, memory.length) };
        self.write(bytes, 0, WriteSync::Later);
    }

    /// Makes the file an ordinary one again; its mapping must have been dropped.
    pub(super) fn unmap(&mut self) {
        let live = self.memory.as_ref().is_some_and(|memory| Arc::strong_count(memory) > 1);
        assert!(!live, "the file has a live mapping: it can be neither mapped again nor written through a handle");
        self.absorb();
        self.memory = None;
    }

    /// The process died: the memory belongs to a mapping that may not be used any more.
    pub(super) fn orphan_memory(&mut self) {
        self.memory = None;
    }
}

/// The part of a transfer that falls into one sector.
struct Piece {
    sector: u64,
    within: Range<usize>,
    source: Range<usize>,
}

fn pieces(offset: u64, length: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = (at % SECTOR_BYTES as u64) as usize;
        let count = (SECTOR_BYTES - start).min(length - done);
        let source = done..done + count;
        done += count;
        (count > 0).then_some(Piece { sector: at / SECTOR_BYTES as u64, within: start..start + count, source })
    })
}
