//! A set of runs as it is after one edit. It never changes: readers hold one as long as they need it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::file::{KeptFilter, RunFile};
use super::policy::Shape;
use crate::format::entry::RangeTombstone;
use crate::format::run::manifest::{ManifestRun, RunFileName, RunManifest};
use crate::io::{Device, UNIT_BYTES};
use crate::planted::{self, Bug};

/// Open files by their numbers.
pub(super) type Files<D> = HashMap<u64, Arc<RunFile<D>>>;

/// A run: files in the order of their keys.
pub(super) struct Run<D: Device> {
    pub(super) number: u64,
    /// The sequence after the position of the latest memtable of which it has all entries.
    pub(super) until: u64,
    /// The oldest run of the merge that it takes part in, 0 for none.
    pub(super) merge: u64,
    /// Keys before this one count in `merged` alone.
    pub(super) from: Box<[u8]>,
    pub(super) merged: Vec<Arc<RunFile<D>>>,
    pub(super) files: Vec<Arc<RunFile<D>>>,
    /// The first bytes of the largest key of each file, side by side: a look-up compares these first.
    ends: Vec<u64>,
    /// The filters of all pieces, as far as memory had them when the set was made.
    filters: Vec<Option<Arc<KeptFilter>>>,
}

/// The first bytes of a key as a number: a key with a lower one comes before.
fn first_bytes(key: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = key.len().min(bytes.len());
    bytes[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(bytes)
}

impl<D: Device> Run<D> {
    fn new(run: &ManifestRun, files: &Files<D>) -> Run<D> {
        let open =
            |names: &[RunFileName]| -> Vec<_> { names.iter().map(|name| Arc::clone(&files[&name.number])).collect() };
        let ManifestRun { number, until, merge, .. } = *run;
        let (merged, files) = (open(&run.merged), open(&run.files));
        let ends = files.iter().map(|file| first_bytes(&file.footer.largest_key)).collect();
        let filters = merged.iter().chain(&files).map(|file| file.filter()).collect();
        Run { number, until, merge, from: run.from.clone(), merged, files, ends, filters }
    }

    /// The only file that a key may be in, if its filter says so of the hash.
    pub(super) fn file_of(&self, key: &[u8], hash: u64) -> Option<&Arc<RunFile<D>>> {
        let number = self.first_up_to(key)?;
        let file = self.piece(number).file;
        (*file.footer.smallest_key <= *key && self.may_contain(number, hash)).then_some(file)
    }

    /// Whether a key with this hash may be here. One filter is asked, and no file.
    pub(super) fn may_have(&self, key: &[u8], hash: u64) -> bool {
        self.first_up_to(key).is_some_and(|number| self.may_contain(number, hash))
    }

    /// Whether the filter of a piece lets a hash pass.
    #[inline]
    fn may_contain(&self, number: usize, hash: u64) -> bool {
        match &self.filters[number] {
            Some(filter) => filter.may_contain(hash),
            None => !planted::is_on(Bug::FilterLeftOutHidesKeys),
        }
    }

    /// The number of the piece that has a key if any has, which may begin behind it.
    fn first_up_to(&self, key: &[u8]) -> Option<usize> {
        let ends_before = |file: &Arc<RunFile<D>>| *file.footer.largest_key < *key;
        if *key < *self.from {
            let number = self.merged.partition_point(ends_before);
            return (number < self.merged.len()).then_some(number);
        }
        let wanted = first_bytes(key);
        let begin = self.ends.partition_point(|end| *end < wanted);
        let equal = self.ends[begin..].partition_point(|end| *end == wanted);
        let number = begin + self.files[begin..begin + equal].partition_point(ends_before);
        (number < self.files.len()).then_some(self.merged.len() + number)
    }

    /// The numbers of all pieces.
    pub(super) fn all(&self) -> Range<usize> {
        0..self.merged.len() + self.files.len()
    }

    /// The numbers of the pieces whose keys its merge has not reached yet.
    pub(super) fn unmerged(&self) -> Range<usize> {
        self.merged.len()..self.all().end
    }

    /// A file, by its number in the order of keys, with the first key that counts in it.
    pub(super) fn piece(&self, number: usize) -> Piece<'_, D> {
        match number.checked_sub(self.merged.len()) {
            None => Piece { file: &self.merged[number], from: &[] },
            Some(number) => Piece { file: &self.files[number], from: &self.from },
        }
    }

    /// All files in the order of their keys.
    pub(super) fn pieces(&self) -> impl DoubleEndedIterator<Item = Piece<'_, D>> {
        self.all().map(|number| self.piece(number))
    }
}

/// A file of a run.
pub(super) struct Piece<'a, D: Device> {
    pub(super) file: &'a Arc<RunFile<D>>,
    /// Keys before this one do not count.
    pub(super) from: &'a [u8],
}

impl<D: Device> Clone for Piece<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Piece<'_, D> {}

impl<D: Device> Piece<'_, D> {
    /// Whether some keys that count may lie in a range.
    pub(super) fn overlaps(&self, start: &[u8], end: &[u8]) -> bool {
        let footer = &self.file.footer;
        *footer.smallest_key < *end && *footer.largest_key >= *start && *self.from < *end
    }

    /// Whether entries may be here that a range tombstone has deleted.
    pub(super) fn needs(&self, range: &RangeTombstone) -> bool {
        let footer = &self.file.footer;
        footer.carried_out < range.sequence
            && footer.smallest_sequence < range.sequence
            && self.overlaps(&range.start, &range.end)
    }

    /// Whether what a range tombstone has deleted here is worth that the file is written again for it alone, before a merge does.
    pub(super) fn is_worth_rewriting(&self, range: &RangeTombstone) -> bool {
        let fences = &self.file.fences;
        let first = fences.units_of(fences.block_of(&range.start)).1;
        let last = fences.units_of(fences.block_of(&range.end)).0;
        fences.units() <= SMALL_UNITS || last.saturating_sub(first) >= fences.units() / LEAST_SHARE
    }
}

/// Units of a file that is written again for any range tombstone.
const SMALL_UNITS: u32 = 16;

/// A larger file is written again if a range tombstone covers at least one in so many of its blocks.
const LEAST_SHARE: u32 = 8;

/// All runs, newest first, and what the manifest says of them.
pub(super) struct RunSet<D: Device> {
    pub(super) manifest: RunManifest,
    pub(super) runs: Vec<Run<D>>,
}

impl<D: Device> RunSet<D> {
    /// The set that a manifest describes; all its files are among those given.
    pub(super) fn new(manifest: RunManifest, files: &Files<D>) -> RunSet<D> {
        let runs = manifest.runs.iter().map(|run| Run::new(run, files)).collect();
        RunSet { manifest, runs }
    }

    /// See [`Device::stream_bytes`]; one unit where there is no file.
    pub(super) fn stream_bytes(&self) -> usize {
        self.pieces().next().map_or(UNIT_BYTES, |piece| piece.file.stream_bytes())
    }

    /// All files with the keys that count in them.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_, D>> {
        self.runs.iter().flat_map(Run::pieces)
    }

    /// The open files.
    pub(super) fn files(&self) -> Files<D> {
        self.pieces().map(|piece| (piece.file.name.number, Arc::clone(piece.file))).collect()
    }

    /// The same set with the filters that its files have by now; `None` if it has these.
    pub(super) fn with_present_filters(&self) -> Option<RunSet<D>> {
        let is_present = |(piece, filter): (Piece<'_, D>, &Option<Arc<KeptFilter>>)| {
            piece.file.filter().as_ref().map(Arc::as_ptr) == filter.as_ref().map(Arc::as_ptr)
        };
        let is_as_present = self.runs.iter().all(|run| run.pieces().zip(&run.filters).all(is_present));
        (!is_as_present).then(|| RunSet::new(self.manifest.clone(), &self.files()))
    }

    /// The same set for who asks no filter, and may hold it for long: it keeps none in memory.
    pub(super) fn without_filters(&self) -> RunSet<D> {
        let mut set = RunSet::new(self.manifest.clone(), &self.files());
        set.runs.iter_mut().for_each(|run| run.filters.fill(None));
        set
    }

    /// What the policy knows of the runs that can be merged.
    pub(super) fn shapes(&self) -> Vec<Shape> {
        let bytes = |run: &Run<D>| run.files.iter().map(|file| file.bytes()).sum();
        let runs = &self.runs[..self.mergeable()];
        runs.iter().map(|run| Shape { merge: run.merge, bytes: bytes(run) }).collect()
    }

    /// How many of the newest runs can be merged: those before the first with a file that cannot be read, and before all that
    /// take part in its merge.
    fn mergeable(&self) -> usize {
        let is_unreadable = |run: &Run<D>| run.pieces().any(|piece| piece.file.is_unreadable());
        let Some(unreadable) = self.runs.iter().position(is_unreadable) else { return self.runs.len() };
        let takes_part = |run: &Run<D>| run.merge > 0 && run.merge == self.runs[unreadable].merge;
        self.runs.iter().position(takes_part).unwrap_or(unreadable)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::first_bytes;

    /// Keys of which one comes before another have first bytes that do not come after.
    #[test]
    fn first_bytes_are_in_the_order_of_keys() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut keys: Vec<Vec<u8>> = (0..5000)
            .map(|_| (0..random.usize(0..12)).map(|_| [0, 1, 127, 128, 255][random.usize(0..5)]).collect())
            .collect();
        keys.sort();
        assert!(keys.windows(2).all(|pair| first_bytes(&pair[0]) <= first_bytes(&pair[1])));
    }
}
