//! How layers of versions come to files, and how files are merged: a bounded part at a time, by whichever thread does the next one.
//!
//! What is written is what some snapshot sees. A layer in memory goes first, the oldest before the others. Else layers that follow each
//! other and have about as many versions are merged, so that look-ups ask few of them.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use super::Versions;
use super::file::{VersionFile, VersionWriter};
use super::layer::{Held, Layer, Span};
use super::scratch::Scratch;
use super::walk::{MERGE_UNITS, Walk};
use crate::budget::Accounts;
use crate::format::versions::KeyVersions;
use crate::index::range_tombstones::RangeTombstone;
use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, Rank};
use crate::{Error, Result};

/// Keys that are looked at in one step, at most: about one write. With small lists each layer takes several steps all the same.
const STEP_KEYS: usize = 4096;
const LEAST_STEP_KEYS: usize = 4;
const STEPS_PER_LIST: usize = 4;

/// Bytes of one file: what its filter is made of takes little memory.
const FILE_BYTES: u64 = 32 << 20;

/// So many layers of a size are merged into one.
const FAN_OUT: usize = 4;

/// No merge has more bytes than this to read: its output takes as much room again until it is done.
const MOST_MERGED_BYTES: u64 = 1 << 30;

/// A layer is written again when so many range tombstones have been forgotten since.
const MOST_ENDED: usize = 256;

/// Bytes that a version takes in a file, at most, for what it counts in memory: the most for keys of which a block has room for one.
const VERSION_BYTES: u64 = 256;

/// The list is so many times as large before its keys may take no more memory.
const MOST_LISTS: usize = 4;

/// The place of files, and what is under way there.
pub(super) struct Spill {
    scratch: Arc<dyn Scratch>,
    /// For what is kept in memory of files.
    accounts: Arc<Accounts>,
    /// Where checksums start.
    store: [u8; 16],
    /// What the list counts when it becomes a layer. Relaxed: a bound that may be met late.
    list_load: AtomicUsize,
    /// Held for a step.
    work: Mutex<Work, { Rank::Spilling as u8 }>,
    /// Bytes of the disk that are for others. Relaxed: a bound.
    leave_free: AtomicU64,
    /// Bytes that somebody has lent to others for a moment. Relaxed, as above.
    lent_bytes: AtomicU64,
    /// Bytes that the merge under way may still write. Relaxed: changed by the thread that has the right to a step.
    merging_bytes: AtomicU64,
    /// Whether the last attempt found no room, or failed otherwise. Relaxed: what they say may be met late.
    is_refused: AtomicBool,
    has_failed: AtomicBool,
}

#[derive(Default)]
struct Work {
    /// A layer in memory that is being written, and layers that are being merged.
    spilled: Option<Job>,
    merged: Option<Job>,
    /// Layers that could not be read: they are merged no more.
    unreadable: BTreeSet<u64>,
    is_closed: bool,
}

/// The sequences of snapshots, in their order; the highest number is that of one that may yet have any.
pub(crate) struct Seen(Vec<u64>);

impl Seen {
    pub(crate) fn new(sequences: impl Iterator<Item = u64>) -> Seen {
        let mut sequences: Vec<u64> = sequences.collect();
        sequences.sort_unstable();
        Seen(sequences)
    }

    /// Whether one of them sees a record that was written at `from` and superseded at `until`.
    fn sees(&self, from: u64, until: u64) -> bool {
        if self.0.last() == Some(&u64::MAX) {
            return from < until;
        }
        let first = self.0.partition_point(|sequence| *sequence < from);
        let skipped = usize::from(planted::is_on(Bug::VersionMergeForgetsOldest) && first == 0);
        self.0.get(first + skipped).is_some_and(|sequence| *sequence < until)
    }
}

/// Layers on their way to be one layer in files.
struct Job {
    inputs: Vec<Input>,
    /// Of the files that it reads.
    input_bytes: u64,
    walk: Walk,
    output: Option<VersionWriter>,
    made: Vec<VersionFile>,
    versions: usize,
    span: Span,
}

/// A layer that is written again.
struct Input {
    id: u64,
    /// How many range tombstones had ended versions in it when the job began: the others are noted of its output too.
    ended: usize,
}

impl Spill {
    pub(super) fn new(scratch: Arc<dyn Scratch>, accounts: &Arc<Accounts>, store: [u8; 16], list_load: usize) -> Spill {
        Spill {
            scratch,
            accounts: Arc::clone(accounts),
            store,
            list_load: AtomicUsize::new(list_load),
            work: Mutex::default(),
            leave_free: AtomicU64::new(0),
            lent_bytes: AtomicU64::new(0),
            merging_bytes: AtomicU64::new(0),
            is_refused: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        }
    }

    /// What the list counts when it becomes a layer.
    pub(super) fn list_load(&self) -> usize {
        self.list_load.load(Ordering::Relaxed)
    }

    /// Whether so many bytes more may be taken.
    fn has_room(&self, bytes: u64) -> bool {
        let for_others = self.leave_free.load(Ordering::Relaxed) + self.lent_bytes.load(Ordering::Relaxed);
        let wanted = bytes.saturating_add(for_others);
        self.scratch.free_bytes().is_none_or(|free| free >= wanted)
    }

    /// Keeps the merge that is under way now, if there is one.
    fn set_merged(&self, work: &mut Work, merged: Option<Job>) {
        self.merging_bytes.store(merged.as_ref().map_or(0, Job::unwritten_bytes), Ordering::Relaxed);
        work.merged = merged;
    }

    fn step_keys(&self) -> usize {
        (self.list_load() / STEPS_PER_LIST).clamp(LEAST_STEP_KEYS, STEP_KEYS)
    }

    pub(super) fn note(&self, outcome: Option<&Error>) {
        self.is_refused.store(outcome.is_some_and(Error::is_full), Ordering::Relaxed);
        self.has_failed.store(outcome.is_some_and(|error| !error.is_full()), Ordering::Relaxed);
    }
}

impl Versions {
    /// Versions that come to files when `list_load` of them have gathered in memory.
    pub(in crate::index) fn spilling(
        scratch: Arc<dyn Scratch>,
        accounts: &Arc<Accounts>,
        store: [u8; 16],
        list_load: usize,
    ) -> Versions {
        Versions { spill: Some(Spill::new(scratch, accounts, store, list_load.max(1))), ..Versions::default() }
    }

    /// Sets what the list counts when it becomes a layer.
    pub(in crate::index) fn bound(&self, list_load: usize) {
        if let Some(spill) = &self.spill {
            spill.list_load.store(list_load.max(1), Ordering::Relaxed);
        }
    }

    /// What the versions in memory count.
    pub(in crate::index) fn load_in_memory(&self) -> usize {
        self.load()
    }

    /// Says how many bytes of the disk files must leave free.
    pub(in crate::index) fn leave_free(&self, bytes: u64) {
        if let Some(spill) = &self.spill {
            spill.leave_free.store(bytes, Ordering::Relaxed);
        }
    }

    /// Counts bytes of the disk that were lent to others, or no longer are.
    pub(in crate::index) fn lend(&self, bytes: u64, is_lent: bool) {
        if let Some(spill) = &self.spill {
            let more = if is_lent { bytes } else { bytes.wrapping_neg() };
            spill.lent_bytes.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Bytes that the versions in memory, so many more, and the merge that is under way may take in files.
    pub(in crate::index) fn unwritten_bytes(&self, more: usize) -> u64 {
        let unwritten =
            |spill: &Spill| (self.load() + more) as u64 * VERSION_BYTES + spill.merging_bytes.load(Ordering::Relaxed);
        self.spill.as_ref().map_or(0, unwritten)
    }

    pub(super) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Whether memory has so much that writers should help to bring it to files.
    pub(in crate::index) fn is_behind(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| self.load() >= spill.list_load().saturating_mul(2))
    }

    /// Whether memory has as much as it may, and there is no way to bring it to files.
    pub(in crate::index) fn is_overfull(&self, most: usize) -> bool {
        let most = self.spill.as_ref().map_or(most, |spill| most.min(spill.list_load().saturating_mul(MOST_LISTS)));
        self.load() > most && self.is_stuck()
    }

    /// Whether memory has so much that it must take no more for puts, since the disk has no room.
    pub(in crate::index) fn is_short(&self) -> bool {
        let is_refused = |spill: &Spill| spill.is_refused.load(Ordering::Relaxed);
        self.is_behind() && self.spill.as_ref().is_some_and(is_refused)
    }

    /// Whether the last attempt to bring versions to files has failed, or there is no place for them.
    pub(in crate::index) fn is_stuck(&self) -> bool {
        let has_failed =
            |spill: &Spill| spill.is_refused.load(Ordering::Relaxed) || spill.has_failed.load(Ordering::Relaxed);
        self.spill.as_ref().is_none_or(has_failed)
    }

    /// Does a bounded part of bringing versions to files, or of merging those; `seen` tells what snapshots there are. True if there may be
    /// more to do.
    pub(in crate::index) fn spill_some(&self, seen: &dyn Fn() -> Seen) -> Result<bool> {
        let Some(spill) = &self.spill else { return Ok(false) };
        let mut work = spill.work.lock().expect(NO_PANIC);
        Ok(self.spill_memory(spill, &mut work, seen)? || self.merge_files(spill, &mut work, seen)?)
    }

    /// Does a bounded part of bringing versions to files, for a thread that has them come. It waits for another one that is at it only where
    /// memory has next to all that it may. True if there may be more to do.
    pub(in crate::index) fn help_to_spill(&self, seen: &dyn Fn() -> Seen) -> Result<bool> {
        let Some(spill) = &self.spill else { return Ok(false) };
        let mut work = if self.load() >= spill.list_load().saturating_mul(MOST_LISTS - 1) {
            spill.work.lock().expect(NO_PANIC)
        } else {
            let Ok(work) = spill.work.try_lock() else { return Ok(false) };
            work
        };
        self.spill_memory(spill, &mut work, seen)
    }

    /// Removes all files; none is made any more.
    pub(in crate::index) fn close(&self) -> Result<()> {
        let Some(spill) = &self.spill else { return Ok(()) };
        let mut work = spill.work.lock().expect(NO_PANIC);
        (work.spilled, work.is_closed) = (None, true);
        spill.set_merged(&mut work, None);
        spill.scratch.close()
    }

    /// Gives up what is under way of layers that nobody needs any more, and its files, unless a thread is at it right now: that one finds so
    /// itself before its next step.
    pub(in crate::index) fn give_up_jobs(&self) {
        let Some(spill) = &self.spill else { return };
        let Ok(mut work) = spill.work.try_lock() else { return };
        let (spilled, merged) = (work.spilled.take(), work.merged.take());
        work.spilled = spilled.filter(|job| self.is_wanted(job));
        spill.set_merged(&mut work, merged.filter(|job| self.is_wanted(job)));
    }

    /// Whether any layer that a job reads is still there.
    fn is_wanted(&self, job: &Job) -> bool {
        self.read().layers.iter().any(|layer| job.has(layer.id))
    }

    /// Writes a part of the oldest layer in memory. False if there is none.
    fn spill_memory(&self, spill: &Spill, work: &mut Work, seen: &dyn Fn() -> Seen) -> Result<bool> {
        if work.is_closed {
            return Ok(false);
        }
        // After an error nothing is left of the job.
        let outcome = self.next_spilled(spill, work).and_then(|job| self.proceed(spill, job, seen));
        let (job, any) = outcome.inspect_err(|error| spill.note(Some(error)))?;
        // The first step of a layer that cannot be written may well succeed.
        if job.is_none() {
            spill.note(None);
        }
        work.spilled = job;
        Ok(any)
    }

    fn next_spilled(&self, spill: &Spill, work: &mut Work) -> Result<Option<Job>> {
        if let Some(job) = work.spilled.take().filter(|job| self.is_wanted(job)) {
            return Ok(Some(job));
        }
        if self.read().load >= spill.list_load() {
            // The bound has fallen since the last version came.
            self.freeze_if_full(&mut self.write());
        }
        let layers = Arc::clone(&self.read().layers);
        let Some(oldest) = layers.iter().rposition(|layer| layer.is_in_memory()) else { return Ok(None) };
        let bytes = layers[oldest].load as u64 * VERSION_BYTES;
        if !spill.has_room(bytes + spill.merging_bytes.load(Ordering::Relaxed)) {
            // A merge can begin again.
            spill.set_merged(work, None);
        }
        if !spill.has_room(bytes) {
            return Err(Error::DiskFull { path: spill.scratch.path().to_path_buf() });
        }
        Job::new(&layers[oldest..=oldest]).map(Some)
    }

    /// Merges a part of some layers in files. False if none should be.
    fn merge_files(&self, spill: &Spill, work: &mut Work, seen: &dyn Fn() -> Seen) -> Result<bool> {
        if work.is_closed {
            return Ok(false);
        }
        let under_way = work.merged.take().filter(|job| self.is_wanted(job));
        spill.set_merged(work, None);
        let (inputs, job) = match under_way {
            Some(job) => (job.layers(), Ok(Some(job))),
            None => {
                let layers = Arc::clone(&self.read().layers);
                let Some(wanted) = choose(&layers, &work.unreadable, spill.list_load()) else { return Ok(false) };
                let wanted = &layers[wanted];
                if !spill.has_room(bytes_of(wanted)) {
                    return Ok(false);
                }
                (wanted.iter().map(|layer| layer.id).collect(), Job::new(wanted).map(Some))
            }
        };
        let outcome = job.and_then(|job| self.proceed(spill, job, seen));
        let (job, any) = outcome.inspect_err(|error| {
            if error.is_unreadable() {
                work.unreadable.extend(inputs);
            }
        })?;
        spill.set_merged(work, job);
        Ok(any)
    }

    /// Goes on with a job, if there is one. Returns it unless it is done, and whether there was one.
    fn proceed(&self, spill: &Spill, job: Option<Job>, seen: &dyn Fn() -> Seen) -> Result<(Option<Job>, bool)> {
        let Some(mut job) = job else { return Ok((None, false)) };
        // Asked after the job was chosen: what its layers have was superseded before, so later snapshots do not see it.
        if !job.advance(spill, &seen())? {
            return Ok((Some(job), true));
        }
        drop(self.replace(job));
        Ok((None, true))
    }

    /// Has the output of a job take the place of its inputs, as far as they are still there. Returns what may be dropped.
    fn replace(&self, job: Job) -> Vec<Arc<Layer>> {
        let mut state = self.write();
        let mut inputs = Vec::new();
        let Some(at) = state.layers.iter().position(|layer| job.has(layer.id)) else { return inputs };
        let mut ended: Vec<Arc<RangeTombstone>> = Vec::new();
        for layer in state.layers.iter() {
            let Some(input) = job.inputs.iter().find(|input| input.id == layer.id) else { continue };
            ended.extend(layer.ended[input.ended..].iter().cloned());
            inputs.push(Arc::clone(layer));
        }
        ended.sort_unstable_by_key(|range| range.sequence);
        ended.dedup_by_key(|range| range.sequence);
        let id = state.next_layer;
        state.next_layer += 1;
        let layers = Arc::make_mut(&mut state.layers);
        layers.retain(|layer| !job.has(layer.id));
        if !job.made.is_empty() {
            let Job { made, versions, span, .. } = job;
            let held = Held::Files(made.into());
            layers.insert(at, Arc::new(Layer { id, held, versions, load: 0, span, ended }));
        }
        self.recount(&state);
        inputs
    }
}

fn bytes_of(layers: &[Arc<Layer>]) -> u64 {
    layers.iter().map(|layer| layer.bytes()).sum()
}

/// Layers in files that are to be merged: such that follow each other, none of a larger size than the most of them. Or one that is to be
/// written again. Of too many bytes the newest are merged.
pub(super) fn choose(layers: &[Arc<Layer>], unreadable: &BTreeSet<u64>, unit: usize) -> Option<std::ops::Range<usize>> {
    // One in memory comes to a file first: range tombstones that are forgotten meanwhile are noted of it.
    let is_readable = |layer: &Arc<Layer>| !layer.is_in_memory() && !unreadable.contains(&layer.id);
    let tier = |layer: &Arc<Layer>| {
        // Long keys have few versions in many bytes.
        let units = (layer.bytes() / (unit as u64).saturating_mul(VERSION_BYTES)) as usize;
        (layer.versions / unit).max(units).max(1).ilog(FAN_OUT)
    };
    let most = layers.iter().map(tier).max()?;
    for wanted in 0..=most {
        let mut start = 0;
        while start < layers.len() {
            let is_taken = |layer: &&Arc<Layer>| is_readable(layer) && tier(layer) <= wanted;
            let count = layers[start..].iter().take_while(is_taken).count();
            let taken = &layers[start..start + count];
            let of_tier = taken.iter().filter(|layer| tier(layer) == wanted).count();
            let fitting = (0..=count).rev().find(|some| bytes_of(&taken[..*some]) <= MOST_MERGED_BYTES).unwrap_or(0);
            if of_tier >= FAN_OUT && fitting >= FAN_OUT {
                return Some(start..start + fitting);
            }
            start += count + 1;
        }
    }
    let often_ended = |layer: &Arc<Layer>| layer.ended.len() >= MOST_ENDED && is_readable(layer);
    layers.iter().position(often_ended).map(|at| at..at + 1)
}

impl Job {
    fn new(layers: &[Arc<Layer>]) -> Result<Job> {
        let inputs = layers.iter().map(|layer| Input { id: layer.id, ended: layer.ended.len() }).collect();
        let walk = Walk::new(Vec::new(), layers, (Bound::Unbounded, Bound::Unbounded), false, MERGE_UNITS)?;
        let input_bytes = bytes_of(layers);
        Ok(Job { inputs, input_bytes, walk, output: None, made: Vec::new(), versions: 0, span: Span::NONE })
    }

    /// Bytes that a merge may still write.
    fn unwritten_bytes(&self) -> u64 {
        let written = self.made.iter().map(VersionFile::bytes).chain(self.output.iter().map(VersionWriter::bytes));
        self.input_bytes.saturating_sub(written.sum())
    }

    fn layers(&self) -> Vec<u64> {
        self.inputs.iter().map(|input| input.id).collect()
    }

    fn has(&self, layer: u64) -> bool {
        self.inputs.iter().any(|input| input.id == layer)
    }

    /// Writes some more keys; true once all are written.
    fn advance(&mut self, spill: &Spill, seen: &Seen) -> Result<bool> {
        for _ in 0..spill.step_keys() {
            let Some((key, mut versions)) = self.walk.next()? else {
                return self.finish_file().map(|()| true);
            };
            versions.retain(|version| seen.sees(version.entry.sequence, version.until));
            if !versions.is_empty() {
                self.add(spill, &key, &versions)?;
            }
        }
        Ok(false)
    }

    fn add(&mut self, spill: &Spill, key: &[u8], versions: &KeyVersions) -> Result<()> {
        if self.output.as_ref().is_some_and(|output| output.bytes() >= FILE_BYTES) {
            self.finish_file()?;
        }
        let output = match &mut self.output {
            Some(output) => output,
            None => self.output.insert(VersionWriter::new(spill.scratch.create()?, &spill.accounts, &spill.store)),
        };
        output.add(key, versions)?;
        self.versions += versions.len();
        versions.iter().for_each(|version| self.span.include(version));
        Ok(())
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some(output) = self.output.take() {
            self.made.push(output.finish()?);
        }
        Ok(())
    }
}

/// Why the right to a step is never found poisoned.
const NO_PANIC: &str = "no code panics while it brings versions to files";
