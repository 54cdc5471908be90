//! An open file of a run: what is kept in memory of it, and its blocks, which are read when they are asked for.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::filtering::opened_worth_asking_ms;
use crate::budget::{Accounts, Held, Part};
use crate::format::manifest::damage_error;
use crate::format::run::RunSeed;
use crate::format::run::block::{Block, Chain};
use crate::format::run::fences::Fences;
use crate::format::run::filter::Filter;
use crate::format::run::footer::{Footer, Parts};
use crate::format::run::manifest::RunFileName;
use crate::format::run::marks::{Marks, NEVER};
use crate::format::run::sealed::unseal;
use crate::format::segment::Damage;
use crate::index::chain::VersionChain;
use crate::io::buffer::AlignedBuffer;
use crate::io::{Access, Device, File, UNIT_BYTES};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};
use crate::{Error, Result};

/// What can be done about a damaged file.
pub(super) const ADVICE: &str = "`aiodb verify --rebuild` makes the index again from the log";

/// A file of a run. It is removed when the last reader leaves it, once no set of runs has it.
pub(super) struct RunFile<D: Device> {
    device: D,
    path: PathBuf,
    file: D::File,
    seed: RunSeed,
    pub(super) name: RunFileName,
    pub(super) footer: Footer,
    pub(super) fences: Fences,
    /// Sets of runs take it from here when they are made.
    filter: Mutex<FilterPlace, { Rank::RunFilter as u8 }>,
    /// `None` where no compaction filter has anything to do with the entries.
    pub(super) marks: Option<Marks>,
    /// The time from which on so much is due, of which no filter has been asked in this process, that the file is worth writing again.
    next_due_ms: u64,
    /// Set once no set of runs has the file.
    dropped: OnceLock<Arc<Removals>>,
    /// Whether a block could not be read, or was damaged. Relaxed: who learns of it late meets the block too.
    is_unreadable: AtomicBool,
    /// What is in memory of it, its filter aside, as long as anybody has it.
    held: Held,
}

/// Where the filter of a file is.
enum FilterPlace {
    Memory(Arc<KeptFilter>),
    /// Memory has no room for it.
    Disk,
    /// The file does without it as long as it is open: it could not be read, or no look-up asks it any more.
    Nowhere,
}

/// A filter that is in memory as long as a file or a set of runs has it.
pub(super) struct KeptFilter {
    filter: Filter,
    held: Held,
}

impl KeptFilter {
    fn new(accounts: &Arc<Accounts>, filter: Filter) -> Arc<KeptFilter> {
        let held = Held::new(accounts, Part::Filters, filter.bytes() as u64);
        Arc::new(KeptFilter { filter, held })
    }

    /// Whether a key with this hash may be in the file.
    #[inline]
    pub(super) fn may_contain(&self, hash: u64) -> bool {
        self.filter.may_contain(hash)
    }
}

/// What is in memory of an open file.
pub(super) struct FileParts {
    pub(super) footer: Footer,
    pub(super) fences: Fences,
    pub(super) filter: Filter,
    /// Whether memory has the filter until the next look at all filters, also where there is no room for it.
    pub(super) is_filter_kept: bool,
    pub(super) marks: Option<Marks>,
    /// See [`RunFile::next_due_ms`].
    pub(super) next_due_ms: u64,
}

impl FileParts {
    /// Bytes that a file with these parts takes in memory, without its filter.
    fn memory_bytes<D: Device>(&self) -> u64 {
        let keys = self.footer.smallest_key.len() + self.footer.largest_key.len();
        let marks = self.marks.as_ref().map_or(0, Marks::memory_bytes);
        (size_of::<RunFile<D>>() + keys + self.fences.memory_bytes() + marks) as u64
    }
}

/// What a backup copies of a file, which never changes.
pub(crate) struct CapturedFile<'a, D: Device> {
    /// Its number in the directory of the runs.
    pub(crate) number: u64,
    pub(crate) file: &'a D::File,
    pub(crate) path: &'a Path,
    pub(crate) bytes: u64,
    /// Whether its last unit tells it from all others.
    pub(crate) is_told_by_end: bool,
}

/// Whether files may be made and removed. A reader may hold some beyond the end of its store, and an ingest may be under way then, whose
/// next opening may give the same names to others.
#[derive(Default)]
pub(super) struct Removals {
    /// Held while a file is made or removed.
    are_over: Mutex<bool, { Rank::RunRemoval as u8 }>,
}

impl Removals {
    /// No file is made or removed once this returns.
    pub(super) fn end(&self) {
        *self.are_over.lock().expect(NO_PANIC) = true;
    }

    /// Makes or removes a file; `None` if that is over.
    pub(super) fn unless_over<T>(&self, change: impl FnOnce() -> T) -> Option<T> {
        let are_over = self.are_over.lock().expect(NO_PANIC);
        (!*are_over).then(change)
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it makes or removes a file";

/// Why the lock of a filter is never found poisoned.
const NO_PANIC_WITH_FILTER: &str = "no code panics while it holds the filter";

const FILTER_LENGTH: &str = "a filter of the wrong length";

/// The hash of a key, for filters.
pub(super) fn hash_of(seed: u64, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// A key's entries, as they are in memory.
pub(super) fn chain_of((entries, partial): Chain) -> VersionChain {
    VersionChain::of_run(entries, partial)
}

/// The path of a file of a run.
pub(crate) fn path_of(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:012}.run"))
}

impl<D: Device> RunFile<D> {
    /// Opens a file that a manifest names.
    pub(super) fn open(
        (device, accounts): (&D, &Arc<Accounts>),
        directory: &Path,
        store: &[u8; 16],
        name: RunFileName,
        access: Access,
    ) -> Result<Arc<RunFile<D>>> {
        let path = path_of(directory, name.number);
        let file = device.open(&path, access).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => damage_error(&path, 0, Damage::Foreign("the file is missing"), ADVICE),
            _ => Error::io("open", &path, &error),
        })?;
        let unit = UNIT_BYTES as u64;
        let length = file.length().map_err(|e| Error::io("look at", &path, &e))?;
        let damaged = |offset: u64, damage| damage_error(&path, offset, damage, ADVICE);
        if length != u64::from(name.units) * unit {
            return Err(damaged(length, Damage::Foreign("the file does not have its length")));
        }
        let start = u64::from(name.data_units) * unit;
        let tail = read(&path, &file, name.data_units, name.units)?;
        let footer_at = tail.len() - UNIT_BYTES;
        let footer_offset = start + footer_at as u64;
        let footer = Footer::decode(&tail[footer_at..], store, name.number, footer_offset)
            .map_err(|damage| damaged(footer_offset, damage))?;
        if footer.data_units != name.data_units {
            return Err(damaged(footer_offset, Damage::Foreign("its blocks do not end where they should")));
        }
        let (parts, seed) = (footer.parts(), RunSeed::new(store, name.number));
        let part = |offset: u64, length: u32, checksum: u32| {
            let at = (offset - start) as usize;
            let bytes = &tail[at..at + length as usize];
            if seed.checksum_at(offset, bytes) == checksum { Ok(bytes) } else { Err(damaged(offset, Damage::Checksum)) }
        };
        let malformed = |offset, what| damaged(offset, Damage::Foreign(what));
        let filter = Filter::decode(part(parts.filter, footer.filter_bytes, footer.filter_checksum)?)
            .ok_or_else(|| malformed(parts.filter, FILTER_LENGTH))?;
        let fences = Fences::decode(part(parts.fences, footer.fence_bytes, footer.fence_checksum)?)
            .filter(|fences| fences.units() == footer.data_units)
            .ok_or_else(|| malformed(parts.fences, "fences that do not fit"))?;
        let marks = match footer.mark_bytes {
            0 => None,
            length => {
                let marks = Marks::decode(part(parts.marks, length, footer.mark_checksum)?, fences.len());
                Some(marks.ok_or_else(|| malformed(parts.marks, "marks that do not fit"))?)
            }
        };
        let next_due_ms = marks.as_ref().map_or(NEVER, opened_worth_asking_ms);
        let parts = FileParts { footer, fences, filter, is_filter_kept: false, marks, next_due_ms };
        Ok(Arc::new(RunFile::new((device, accounts), (path, file), seed, name, parts)))
    }

    /// A file that has just been written.
    pub(super) fn written(
        place: (&D, &Arc<Accounts>),
        (path, file): (PathBuf, D::File),
        seed: RunSeed,
        parts: FileParts,
    ) -> Arc<RunFile<D>> {
        let footer = &parts.footer;
        let units = u32::try_from(footer.parts().end / UNIT_BYTES as u64).expect("a file of a run is bounded");
        let name = RunFileName { number: footer.number, units, data_units: footer.data_units };
        Arc::new(RunFile::new(place, (path, file), seed, name, parts))
    }

    fn new(
        (device, accounts): (&D, &Arc<Accounts>),
        (path, file): (PathBuf, D::File),
        seed: RunSeed,
        name: RunFileName,
        parts: FileParts,
    ) -> RunFile<D> {
        let held = Held::new(accounts, Part::Runs, parts.memory_bytes::<D>());
        let FileParts { footer, fences, filter, is_filter_kept, marks, next_due_ms } = parts;
        let has_room = accounts.bytes(Part::Filters) + filter.bytes() as u64 <= accounts.filter_room();
        let filter = match has_room || is_filter_kept {
            true => FilterPlace::Memory(KeptFilter::new(accounts, filter)),
            false => FilterPlace::Disk,
        };
        RunFile {
            device: device.clone(),
            path,
            file,
            seed,
            name,
            footer,
            fences,
            filter: Mutex::new(filter),
            marks,
            next_due_ms,
            dropped: OnceLock::new(),
            is_unreadable: AtomicBool::new(false),
            held,
        }
    }

    /// The time from which on so much is due, of which no filter has been asked in this process, that the file is worth writing again.
    pub(super) fn next_due_ms(&self) -> u64 {
        self.next_due_ms
    }

    /// The filter, if memory has it.
    pub(super) fn filter(&self) -> Option<Arc<KeptFilter>> {
        match &*self.filter.lock().expect(NO_PANIC_WITH_FILTER) {
            FilterPlace::Memory(filter) => Some(Arc::clone(filter)),
            FilterPlace::Disk | FilterPlace::Nowhere => None,
        }
    }

    /// Bytes that the filter takes in memory if it is there.
    pub(super) fn filter_bytes(&self) -> u64 {
        match *self.filter.lock().expect(NO_PANIC_WITH_FILTER) {
            FilterPlace::Nowhere => 0,
            FilterPlace::Memory(_) | FilterPlace::Disk => u64::from(self.footer.filter_bytes),
        }
    }

    /// Gives the filter back. Sets of runs that have it keep it.
    pub(super) fn give_filter_back(&self) {
        let mut place = self.filter.lock().expect(NO_PANIC_WITH_FILTER);
        if matches!(*place, FilterPlace::Memory(_)) {
            *place = FilterPlace::Disk;
        }
    }

    /// Gives the filter back for good: no set of runs will have the file any more.
    pub(super) fn forget_filter(&self) {
        *self.filter.lock().expect(NO_PANIC_WITH_FILTER) = FilterPlace::Nowhere;
    }

    /// Whether the filter is not in memory, and can be loaded.
    pub(super) fn can_load_filter(&self) -> bool {
        matches!(*self.filter.lock().expect(NO_PANIC_WITH_FILTER), FilterPlace::Disk)
    }

    /// Reads the filter again. Sets of runs have it once they are made anew. Where it cannot be read, nobody tries again, unless the error says
    /// nothing of the file.
    pub(super) fn load_filter(&self) -> Result<()> {
        let read = self.read_filter();
        let mut place = self.filter.lock().expect(NO_PANIC_WITH_FILTER);
        if !matches!(*place, FilterPlace::Disk) {
            return Ok(());
        }
        match read {
            Ok(filter) => {
                *place = FilterPlace::Memory(KeptFilter::new(self.held.accounts(), filter));
                Ok(())
            }
            Err(error) => {
                if !error.is_passing() {
                    *place = FilterPlace::Nowhere;
                }
                Err(error)
            }
        }
    }

    fn read_filter(&self) -> Result<Filter> {
        let Parts { filter: start, fences: end, .. } = self.footer.parts();
        let units = |bytes: u64| (bytes / UNIT_BYTES as u64) as u32;
        // An error says nothing of the blocks: merges go on.
        let bytes = read(&self.path, &self.file, units(start), units(end))?;
        let bytes = &bytes[..self.footer.filter_bytes as usize];
        let damaged = |damage| damage_error(&self.path, start, damage, ADVICE);
        if self.seed.checksum_at(start, bytes) != self.footer.filter_checksum {
            return Err(damaged(Damage::Checksum));
        }
        Filter::decode(bytes).ok_or_else(|| damaged(Damage::Foreign(FILTER_LENGTH)))
    }

    /// The entries of a key in the block of this number, whose plain bytes are given, if it is there.
    pub(super) fn find(&self, key: &[u8], number: usize, bytes: &[u8]) -> Result<Option<VersionChain>> {
        let found = self.block(number, bytes)?.find(key).map_err(|damage| self.damaged(number, damage))?;
        Ok(found.map(chain_of))
    }

    /// The file as a backup sees it.
    pub(super) fn captured(&self) -> CapturedFile<'_, D> {
        let is_told_by_end = self.footer.blocks_checksum != 0;
        CapturedFile {
            number: self.name.number,
            file: &self.file,
            path: &self.path,
            bytes: self.bytes(),
            is_told_by_end,
        }
    }

    /// See [`Device::stream_bytes`].
    pub(super) fn stream_bytes(&self) -> usize {
        self.device.stream_bytes()
    }

    /// The file itself, for a queue of reads.
    pub(super) fn device_file(&self) -> &D::File {
        &self.file
    }

    /// A failed read of this file. One that ends too early is damaged, whoever reads it.
    pub(super) fn read_error(&self, error: &io::Error) -> Error {
        let error = match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                damage_error(&self.path, 0, Damage::Foreign("the file ends too early"), ADVICE)
            }
            _ => Error::io("read", &self.path, error),
        };
        self.note(&error);
        error
    }

    /// Reads units of the data blocks.
    pub(super) fn read(&self, start: u32, end: u32) -> Result<AlignedBuffer> {
        read(&self.path, &self.file, start, end).inspect_err(|error| self.note(error))
    }

    /// [`RunFile::read`] to the begin of a buffer, which is long enough.
    pub(super) fn read_into(&self, start: u32, end: u32, buffer: &mut AlignedBuffer) -> Result<()> {
        read_into(&self.path, &self.file, start, end, buffer).inspect_err(|error| self.note(error))
    }

    /// Takes note of a failed read, unless the next one may well succeed.
    fn note(&self, error: &Error) {
        if error.is_unreadable() && !error.is_passing() {
            self.is_unreadable.store(true, Ordering::Relaxed);
        }
    }

    /// The plain bytes of the block of this number, from its units: checked, and decompressed.
    pub(super) fn plain<'a>(&self, number: usize, units: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        let (start, _) = self.fences.units_of(number);
        let offset = u64::from(start) * UNIT_BYTES as u64;
        unseal(units, self.seed, offset).map_err(|damage| self.damaged(number, damage))
    }

    /// The block of this number in its plain bytes.
    pub(super) fn block<'a>(&self, number: usize, plain: &'a [u8]) -> Result<Block<'a>> {
        Block::decode(plain).map_err(|damage| self.damaged(number, damage))
    }

    /// Whether a block could not be read since the file was opened, or was damaged: merges leave the file as it is. They would fail at
    /// each attempt, after they have written what comes before that block.
    pub(super) fn is_unreadable(&self) -> bool {
        self.is_unreadable.load(Ordering::Relaxed)
    }

    /// The error about a damaged block.
    pub(super) fn damaged(&self, block: usize, damage: Damage) -> Error {
        self.is_unreadable.store(true, Ordering::Relaxed);
        let offset = u64::from(self.fences.units_of(block).0) * UNIT_BYTES as u64;
        damage_error(&self.path, offset, damage, ADVICE)
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.name.units) * UNIT_BYTES as u64
    }

    /// About how many bytes it would have on disk if no block were compressed.
    pub(super) fn plain_bytes(&self) -> u64 {
        let Footer { plain_units, data_units, .. } = self.footer;
        let saved = u64::from(plain_units.saturating_sub(data_units));
        self.bytes() + saved * UNIT_BYTES as u64
    }

    /// Bytes in memory.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.held.bytes() + self.filter().map_or(0, |filter| filter.held.bytes())
    }

    /// Has the file removed when the last reader leaves it.
    pub(super) fn set_dropped(&self, removals: &Arc<Removals>) {
        let _ = self.dropped.set(Arc::clone(removals));
    }
}

impl<D: Device> Drop for RunFile<D> {
    fn drop(&mut self) {
        let Some(removals) = self.dropped.get() else { return };
        removals.unless_over(|| {
            // A queue of reads may still know the file: its space is free all the same. If one of these fails, the next opening
            // removes the file.
            let _ = self.file.truncate(0);
            let _ = self.device.remove(&self.path);
        });
    }
}

fn read<F: File>(path: &Path, file: &F, start: u32, end: u32) -> Result<AlignedBuffer> {
    let mut buffer = AlignedBuffer::new((end - start) as usize * UNIT_BYTES);
    read_into(path, file, start, end, &mut buffer)?;
    Ok(buffer)
}

fn read_into<F: File>(path: &Path, file: &F, start: u32, end: u32, buffer: &mut AlignedBuffer) -> Result<()> {
    let buffer = &mut buffer[..(end - start) as usize * UNIT_BYTES];
    let offset = u64::from(start) * UNIT_BYTES as u64;
    let bytes = file.read_at(buffer, offset).map_err(|e| Error::io("read", path, &e))?;
    if bytes < buffer.len() {
        let damage = Damage::Foreign("the file ends too early");
        return Err(damage_error(path, offset + bytes as u64, damage, ADVICE));
    }
    Ok(())
}
