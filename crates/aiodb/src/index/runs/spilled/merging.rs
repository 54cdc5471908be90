//! Merges: runs that follow each other become one. What newer runs have under a tag comes first, and what lies below a floor goes.
//!
//! No record is read for that: whoever has found out that a place counts no more has put a floor above it. A floor goes where nothing is
//! below any more.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::super::cursor::MERGE_WINDOW_BYTES;
use super::super::file::{Removals, RunFile};
use super::super::set::{Run, RunSet};
use super::super::writer::RunWriter;
use super::tables::{SpilledTable, SpilledTables, bytes_of, set_of};
use super::tag::add;
use super::walk::TagWalk;
use crate::Result;
use crate::budget::{Held, Part};
use crate::format::run::manifest::{ManifestRun, RunFileName};
use crate::index::hash::{HashIndex, first_hash_of};
use crate::index::runs::FILE_BYTES;
use crate::io::Device;
use crate::planted::{self, Bug};

/// Bytes of runs that are merged in one step.
const STEP_BYTES: u64 = 4 << 20;

/// So many runs of about one size are merged into one: a look-up asks fewer filters than this times the number of sizes.
const FAN_OUT: usize = 4;

/// All runs are merged when the oldest has at most so many times as much as the others.
const OLDEST_RATIO: u64 = 2;

/// Runs up to this size are taken to be of one size.
const SMALL_BYTES: u64 = 1 << 20;

/// A merge under way. Dropped, it leaves nothing behind.
pub(crate) struct SpilledMerge<D: Device> {
    runs: Arc<SpilledTable<D>>,
    removals: Arc<Removals>,
    set: Arc<RunSet<D>>,
    merged: Range<usize>,
    walk: TagWalk,
    /// What the walk has read.
    _windows: Held,
    output: Option<RunWriter<D>>,
    made: Vec<Arc<RunFile<D>>>,
    is_written: bool,
}

impl<D: Device> SpilledMerge<D> {
    /// Begins a merge of runs of a table, if some are worth it and the disk has room for it; no other merge of this table may be under way.
    pub(crate) fn begin(tables: &SpilledTables<D>, table: u32) -> Result<Option<SpilledMerge<D>>> {
        let Some(runs) = tables.table(table) else { return Ok(None) };
        // Without a run that does not count everywhere yet.
        let set = Arc::new(runs.read().set.without_filters());
        // Runs that cannot be read stay as they are, and so do those below.
        let is_unreadable = |run: &Run<D>| run.files.iter().any(|file| file.is_unreadable());
        let readable = set.runs.iter().position(is_unreadable).unwrap_or(set.runs.len());
        let bytes: Vec<u64> = set.runs.iter().map(bytes_of).collect();
        let Some(merged) = choose(&bytes, readable, |bytes| tables.has_room(bytes)) else { return Ok(None) };
        let walk = TagWalk::merging(&set, merged.clone())?;
        let _windows = Held::new(&tables.accounts, Part::Buffers, merged.len() as u64 * MERGE_WINDOW_BYTES);
        let (removals, made) = (Arc::clone(&tables.removals), Vec::new());
        Ok(Some(SpilledMerge { runs, removals, set, merged, walk, _windows, output: None, made, is_written: false }))
    }

    /// Does a bounded part of the work; true once all is done. No spill of the table is giving up places.
    pub(crate) fn advance(&mut self, tables: &SpilledTables<D>, index: &HashIndex) -> Result<bool> {
        if !self.is_written {
            self.is_written = self.write_some(tables)?;
            return Ok(false);
        }
        self.end(tables, index);
        Ok(true)
    }

    fn number(&self) -> u64 {
        self.set.runs[self.merged.start].number
    }

    /// Writes what some more tags come to; true once all are written.
    fn write_some(&mut self, tables: &SpilledTables<D>) -> Result<bool> {
        let is_oldest = self.merged.end == self.set.runs.len();
        let stop = self.walk.visited_bytes() + STEP_BYTES;
        while self.walk.visited_bytes() < stop {
            let Some(mut tag) = self.walk.next(&self.set)? else {
                self.finish_file()?;
                tables.sync_names()?;
                return Ok(true);
            };
            tag.has_floor &= !is_oldest;
            if planted::is_on(Bug::SpillMergeReversed) {
                tag.places.reverse();
            }
            if tag.places.is_empty() && !tag.has_floor {
                continue;
            }
            if self.output.as_ref().is_some_and(|output| output.bytes() >= FILE_BYTES) {
                self.finish_file()?;
            }
            let number = self.number();
            let output = match &mut self.output {
                Some(output) => output,
                none => none.insert(tables.new_writer(number)?),
            };
            add(output, self.runs.table, &tag, number)?;
        }
        // Its descriptor may be closed until the next step.
        self.output.as_mut().map_or(Ok(()), RunWriter::flush)?;
        Ok(false)
    }

    fn finish_file(&mut self) -> Result<()> {
        let file = self.output.take().map(RunWriter::finish).transpose()?;
        self.made.extend(file);
        Ok(())
    }

    /// Puts what was made in the place of what was merged. Spills have put runs before those only.
    fn end(&mut self, tables: &SpilledTables<D>, index: &HashIndex) {
        let mut layers = self.runs.write();
        debug_assert!(layers.next.is_none(), "the caller has looked");
        let number = self.number();
        let mut runs = layers.set.manifest.runs.clone();
        let first = runs.iter().position(|run| run.number == number).expect("only merges take runs away");
        let files: Vec<RunFileName> = self.made.iter().map(|file| file.name).collect();
        let merged = (!files.is_empty()).then(|| ManifestRun { number, files, ..ManifestRun::default() });
        let gone = runs.splice(first..first + self.merged.len(), merged).flat_map(|run| run.files);
        let gone: BTreeSet<u64> = gone.map(|file| file.number).collect();
        let old = Arc::clone(&layers.set);
        layers.set = set_of(&old, runs, &self.made);
        drop(layers);
        self.made.clear();
        // The next checkpoint must name other files.
        index.count_change(first_hash_of(0));
        let files = old.files().into_values().filter(|file| gone.contains(&file.name.number));
        if planted::is_on(Bug::SpilledGoneEarly) {
            files.for_each(|file| file.set_dropped(&self.removals));
        } else {
            tables.add_obsolete(files);
        }
    }
}

impl<D: Device> Drop for SpilledMerge<D> {
    fn drop(&mut self) {
        self.made.iter().for_each(|file| file.set_dropped(&self.removals));
    }
}

impl<D: Device> SpilledTable<D> {
    /// Bytes of the runs that the next merge takes in, if one is worth it: while it is under way, all of them.
    pub(crate) fn debt_bytes(&self) -> u64 {
        let bytes: Vec<u64> = self.set().runs.iter().map(bytes_of).collect();
        choose(&bytes, bytes.len(), |_| true).map_or(0, |runs| bytes[runs].iter().sum())
    }
}

/// The runs of so many bytes, newest first, that are worth a merge, of which the first so many can be read: all, where the newer ones have half
/// as much as the oldest, so that memory has filters of few places that count no more. Else such that follow each other, none of a larger size
/// than most of them; so, too, where the disk has no room for all.
pub(super) fn choose(bytes: &[u64], readable: usize, has_room: impl Fn(u64) -> bool) -> Option<Range<usize>> {
    let fits = |runs: &Range<usize>| has_room(bytes[runs.clone()].iter().sum());
    let (oldest, newer) = bytes.split_last()?;
    let are_worth_it = readable == bytes.len() && newer.iter().sum::<u64>() * OLDEST_RATIO >= *oldest;
    let all = are_worth_it.then_some(0..bytes.len()).filter(fits);
    let of_one_size = |most| of_one_size(&bytes[..readable], most).filter(fits);
    all.or_else(|| of_one_size(usize::MAX)).or_else(|| of_one_size(FAN_OUT))
}

/// The first runs that follow each other of which as many are of one size as are merged, and at most so many, and none is of a larger one.
fn of_one_size(bytes: &[u64], most: usize) -> Option<Range<usize>> {
    let sizes: Vec<u32> = bytes.iter().map(|bytes| (bytes / SMALL_BYTES).max(1).ilog(4)).collect();
    for wanted in 0..=*sizes.iter().max()? {
        let mut start = 0;
        while start < sizes.len() {
            let (mut end, mut count) = (start, 0);
            while count < most && sizes.get(end).is_some_and(|size| *size <= wanted) {
                count += usize::from(sizes[end] == wanted);
                end += 1;
            }
            if count >= FAN_OUT {
                return Some(start..end);
            }
            start = end + 1;
        }
    }
    None
}
