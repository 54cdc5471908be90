//! A set of runs as it is after one edit. It never changes: readers hold one as long as they need it.

use std::collections::HashMap;
use std::sync::Arc;

use super::file::RunFile;
use super::policy::Shape;
use crate::Result;
use crate::format::entry::RangeTombstone;
use crate::format::run::manifest::{ManifestRun, RunFileName, RunManifest};
use crate::index::chain::VersionChain;
use crate::io::Device;

/// Open files by their numbers.
pub(super) type Files<D> = HashMap<u64, Arc<RunFile<D>>>;

/// A run: files in the order of their keys.
pub(super) struct Run<D: Device> {
    pub(super) number: u64,
    pub(super) tier: u32,
    /// The oldest run of the merge that it takes part in, 0 for none.
    pub(super) merge: u64,
    /// Keys before this one count in `merged` alone.
    pub(super) from: Box<[u8]>,
    pub(super) merged: Vec<Arc<RunFile<D>>>,
    pub(super) files: Vec<Arc<RunFile<D>>>,
}

impl<D: Device> Run<D> {
    fn new(run: &ManifestRun, files: &Files<D>) -> Run<D> {
        let open = |names: &[RunFileName]| names.iter().map(|name| Arc::clone(&files[&name.number])).collect();
        let ManifestRun { number, tier, merge, .. } = *run;
        Run { number, tier, merge, from: run.from.clone(), merged: open(&run.merged), files: open(&run.files) }
    }

    /// The only file that a key may be in.
    fn file_of(&self, key: &[u8]) -> Option<&RunFile<D>> {
        let files = if *key < *self.from { &self.merged } else { &self.files };
        let at = files.partition_point(|file| *file.footer.largest_key < *key);
        files.get(at).map(|file| &**file).filter(|file| *file.footer.smallest_key <= *key)
    }

    /// All files in the order of their keys, each with the first key that counts in it.
    pub(super) fn pieces(&self) -> impl DoubleEndedIterator<Item = Piece<'_, D>> {
        self.merged.iter().map(|file| Piece { file, from: &[] }).chain(self.unmerged())
    }

    /// The files whose keys its merge has not reached yet.
    pub(super) fn unmerged(&self) -> impl DoubleEndedIterator<Item = Piece<'_, D>> {
        self.files.iter().map(|file| Piece { file, from: &self.from })
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
}

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

    /// All files with the keys that count in them.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_, D>> {
        self.runs.iter().flat_map(Run::pieces)
    }

    /// The open files.
    pub(super) fn files(&self) -> Files<D> {
        self.pieces().map(|piece| (piece.file.name.number, Arc::clone(piece.file))).collect()
    }

    /// What the policy knows of the runs.
    pub(super) fn shapes(&self) -> Vec<Shape> {
        let bytes = |run: &Run<D>| run.unmerged().map(|piece| piece.file.bytes()).sum();
        self.runs.iter().map(|run| Shape { tier: run.tier, merge: run.merge, bytes: bytes(run) }).collect()
    }

    /// Adds the entries of a key up to a sequence below those in `chain`, newest run first, until it is complete.
    pub(super) fn lookup(&self, key: &[u8], hash: u64, newest: u64, chain: &mut VersionChain) -> Result<()> {
        for run in &self.runs {
            if let Some(file) = run.file_of(key).filter(|file| file.may_contain(hash))
                && let Some(found) = file.find(key)?
            {
                chain.add_below(&found, newest);
                if chain.is_complete() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
