//! Bounded steps of the work behind the scenes: merges, range tombstones, tables that are gone. Each makes one file at most, and
//! ends with an edit, so a crash loses no more than one step.

use std::ops::{Bound, Range};
use std::sync::Arc;

use super::asking::{Asking, Decided, Taken};
use super::claims::Claimed;
use super::counts::Changes;
use super::cursor::{MERGE_WINDOW_BYTES, RunCursor};
use super::file::RunFile;
use super::filtering::{EntryMark, Passes};
use super::merge::{Merge, due_ranges};
use super::policy::{Compaction, choose_all, choose_at_rest};
use super::set::{Piece, Run, RunSet};
use super::turns::StepTurn;
use super::writer::{Making, RunWriter};
use super::{RunContext, Runs};
use crate::budget::{Held, Part};
use crate::format::run::manifest::{ManifestRun, RunFileName, RunManifest};
use crate::index::range_tombstones::{MANY_RANGES, RangeTombstone, Urgency};
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::{Error, Result};

/// Times that a step may take in more bytes than it is to write: where entries meet, less is written than read.
const READ_RATIO: u64 = 2;

/// Why what filters know is never found locked for good.
const NO_PANIC: &str = "no code panics while it holds what filters know";

/// What a step has made of its inputs.
struct Made<'a, D: Device> {
    file: Option<Arc<RunFile<D>>>,
    changes: Changes<'a>,
    /// The key with which the next step goes on; `None` at the end.
    next: Option<Box<[u8]>>,
    /// What filters know of the merge.
    passes: Option<Passes>,
}

impl<D: Device> Runs<D> {
    /// A bounded part of the most useful merge; it writes about `budget_bytes`, and [`Runs::file_bytes`] at most. False if there is
    /// nothing to do.
    pub(crate) fn merge_step(&self, budget_bytes: u64, context: &RunContext<'_>) -> Result<bool> {
        self.merge_in_turn(self.turns.lock(), budget_bytes, context)
    }

    /// [`Runs::merge_step`], unless another thread does a step: then `None`.
    pub(crate) fn merge_step_if_free(&self, budget_bytes: u64, context: &RunContext<'_>) -> Result<Option<bool>> {
        let Some(turn) = self.turns.try_lock() else { return Ok(None) };
        self.merge_in_turn(turn, budget_bytes, context).map(Some)
    }

    /// [`Runs::merge_step`], unless another thread does a step: then one of a merge of other runs beside it. `None` if there is none, or
    /// two steps are under way.
    pub(crate) fn merge_step_unless_busy(&self, budget_bytes: u64, context: &RunContext<'_>) -> Result<Option<bool>> {
        match self.turns.try_lock() {
            Some(turn) => self.merge_in_turn(turn, budget_bytes, context).map(Some),
            None => self.merge_step_beside(budget_bytes, context),
        }
    }

    /// Like [`Runs::merge_step`] until the runs that are wanted are one, whatever the policy: then all garbage of before is known, if
    /// the oldest run is among them.
    pub(crate) fn compact_step(&self, budget_bytes: u64, wanted: Compaction, context: &RunContext<'_>) -> Result<bool> {
        let turn = self.turns.lock_alone();
        let claimed = self.claim(
            |policy, set, _| {
                // A run begins where the next older one ends.
                let newer = set.runs.windows(2).take_while(|runs| runs[1].until >= wanted.until).count();
                choose_all(policy, &set.shapes(), newer, wanted)
            },
            budget_bytes,
        )?;
        self.merge_if_any(turn, claimed, context)
    }

    /// Like [`Runs::merge_step`] in a store in which nothing else is to be done: garbage that few runs hide is found then.
    pub(crate) fn rest_step(&self, budget_bytes: u64, context: &RunContext<'_>) -> Result<bool> {
        let turn = self.turns.lock_alone();
        let claimed = self.claim(|policy, set, _| choose_at_rest(policy, &set.shapes()), budget_bytes)?;
        self.merge_if_any(turn, claimed, context)
    }

    /// A step of the most useful merge beside which another may begin, or that has begun beside another.
    fn merge_in_turn(&self, mut turn: StepTurn<'_>, budget_bytes: u64, context: &RunContext<'_>) -> Result<bool> {
        if let Some(claimed) = self.claim_most_useful(budget_bytes)? {
            return self.merge_if_any(turn, Some(claimed), context);
        }
        // The merge beside this one may have more to do.
        turn.wait_alone();
        let claimed = self.claim_most_useful(budget_bytes)?;
        self.merge_if_any(turn, claimed, context)
    }

    /// A step of a merge beside the one that is under way; `None` if there is none, or no room for it, or filters must be asked in turn.
    fn merge_step_beside(&self, budget_bytes: u64, context: &RunContext<'_>) -> Result<Option<bool>> {
        if context.filtering.is_some() || !self.has_room_for_two() {
            return Ok(None);
        }
        let Some(turn) = self.turns.try_lock_beside() else { return Ok(None) };
        let Some(claimed) = self.claim_most_useful(budget_bytes)? else { return Ok(None) };
        self.merge_if_any(turn, Some(claimed), context).map(Some)
    }

    /// Does a step of a claimed merge, if there is one; ends the claim before the turn.
    fn merge_if_any(
        &self,
        mut turn: StepTurn<'_>,
        claimed: Option<Claimed<'_, D>>,
        context: &RunContext<'_>,
    ) -> Result<bool> {
        let Some(claimed) = claimed else { return Ok(false) };
        self.merge_claimed(&claimed, context)?;
        turn.has_merged(self.len());
        Ok(true)
    }

    fn merge_claimed(&self, claimed: &Claimed<'_, D>, context: &RunContext<'_>) -> Result<()> {
        let Claimed { set, job, step_bytes, .. } = claimed;
        let inputs = &set.runs[job.runs.clone()];
        let cursors = job.runs.clone().map(|run| RunCursor::merging(set, run, set.runs[run].unmerged()));
        let cursors = cursors.collect::<Result<Vec<_>>>()?;
        let _windows = Held::new(&self.accounts, Part::Buffers, cursors.len() as u64 * MERGE_WINDOW_BYTES);
        let files = inputs.iter().flat_map(|run| &run.files);
        let base = files.map(|file| file.footer.smallest_sequence).min().unwrap_or(0);
        let number = inputs.last().expect("a merge has runs").number;
        let is_begun = inputs.iter().any(|run| run.merge > 0);
        let passes = self.take_passes(number, context);
        let now_ms = passes.now_ms;
        // What comes before an error is merged again: a pass begins there anew.
        let put_back = |_: &Error| {
            if is_begun {
                self.put_passes(number, Passes::new(now_ms), context);
            }
        };
        let merge = Merge::new(set, cursors, job.runs.end == set.runs.len(), passes, context);
        let mut made = self.write(merge, base, *step_bytes).inspect_err(put_back)?;
        let left = |run: &Run<D>| {
            let is_left =
                |file: &&Arc<RunFile<D>>| made.next.as_ref().is_some_and(|next| file.footer.largest_key >= *next);
            run.files.iter().filter(is_left).map(|file| file.name).collect()
        };
        let progress = Progress {
            numbers: inputs.iter().map(|run| run.number).collect(),
            left: inputs.iter().map(left).collect(),
            made: made.file.as_ref().map(|file| file.name),
            next: made.next.clone(),
        };
        let edited = self.edit(Vec::from_iter(made.file.take()), |manifest| {
            progress.apply(manifest);
            made.changes.apply(manifest);
        });
        edited.inspect_err(put_back)?;
        if let Some(passes) = made.passes.filter(|_| made.next.is_some()) {
            self.put_passes(number, passes, context);
        }
        made.changes.report_merged();
        Ok(())
    }

    /// What filters know of a merge: nothing but the time, if it begins.
    fn take_passes(&self, merge: u64, context: &RunContext<'_>) -> Passes {
        let now_ms = context.filtering.map_or(0, |filtering| filtering.now_ms);
        let asks = context.filtering.filter(|filtering| filtering.asks);
        let begun = asks.and_then(|_| self.passes.lock().expect(NO_PANIC).remove(&merge));
        begun.unwrap_or_else(|| Passes::new(now_ms))
    }

    /// Keeps what filters know of a merge for its next step.
    fn put_passes(&self, merge: u64, passes: Passes, context: &RunContext<'_>) {
        if context.filtering.is_some_and(|filtering| filtering.asks) {
            self.passes.lock().expect(NO_PANIC).insert(merge, passes);
        }
    }

    /// A bounded part of carrying out the range tombstones behind which no snapshot looks: writes a file again without what they
    /// have deleted. False if there is nothing to do.
    pub(crate) fn range_step(&self, urgency: Urgency, context: &RunContext<'_>) -> Result<bool> {
        let _turn = self.turns.lock_alone();
        let set = self.set()?;
        let due = due_ranges(context, set.manifest.next_sequence);
        let is_due = |range: &&RangeTombstone| range.sequence <= due;
        let takes_all = urgency == Urgency::AtOnce || set.manifest.ranges.len() >= MANY_RANGES;
        let is_wanted =
            |piece: &Piece<'_, D>, range| piece.needs(range) && (takes_all || piece.is_worth_rewriting(range));
        let needs = |piece: &Piece<'_, D>| {
            !piece.file.is_unreadable()
                && set.manifest.ranges.iter().filter(is_due).any(|range| is_wanted(piece, range))
        };
        let Some(place) = find(&set, |place| Ok(needs(&place.piece(&set))))? else { return Ok(false) };
        self.rewrite(&set, place, None, context)?;
        Ok(true)
    }

    /// A bounded part of leaving out a table that is gone; true when no run has a key of it. `durable` is the last batch that is
    /// durable, that of the drop or a later one.
    pub(crate) fn purge_step(&self, table: u32, durable: u64, context: &RunContext<'_>) -> Result<bool> {
        let _turn = self.turns.lock_alone();
        let set = self.set()?;
        let (start, end) = (table.to_be_bytes(), (table + 1).to_be_bytes());
        let is_here = |key: &[u8]| *key >= start[..] && *key < end[..];
        let has_keys = |place: Place| {
            if !place.piece(&set).overlaps(&start, &end) {
                return Ok(false);
            }
            let bound = Bound::Included(&start[..]);
            let first = RunCursor::scanning(&set, place.run, place.only(), false, bound, None)?;
            Ok(first.key().is_some_and(is_here))
        };
        if let Some(place) = find(&set, has_keys)? {
            self.rewrite(&set, place, Some((table, durable)), context)?;
            return Ok(false);
        }
        self.edit(Vec::new(), |manifest| {
            manifest.durable_batch = manifest.durable_batch.max(durable);
            manifest.ranges.retain(|range| !is_here(&range.start));
            manifest.chunks.retain(|count| count.table != table);
            manifest.keys.retain(|count| count.table != table);
        })
        .map(|_| true)
    }

    /// Writes what a merge makes of the next keys, until it has made enough.
    fn write<'a>(&self, mut merge: Merge<'a, D>, base: u64, budget_bytes: u64) -> Result<Made<'a, D>> {
        let (carried_out, hash_seed) = (merge.carried_out, self.hash_seed());
        let making = Making { base, carried_out, hash_seed, is_asked_by_puts: false };
        let mut output: Option<RunWriter<D>> = None;
        let mut key = Vec::new();
        let mut is_left = merge.next_key(&mut key);
        let has_room = |merge: &Merge<'_, D>, output: &Option<RunWriter<D>>| {
            let is_first = merge.visited_keys == 0;
            let waiting = merge.asking.as_ref().map_or(0, Asking::waiting_bytes);
            let written = output.as_ref().map_or(0, RunWriter::bytes) + waiting;
            let has_room = written < budget_bytes && merge.visited_bytes() < budget_bytes.saturating_mul(READ_RATIO);
            let is_full = budget_bytes < u64::MAX && merge.asking.as_ref().is_some_and(Asking::is_full);
            is_first || has_room && !is_full
        };
        while is_left && has_room(&merge, &output) {
            let taken = merge.take(&key)?;
            if !taken.chain.is_empty() {
                self.put(&mut output, making, &mut merge, &key, taken)?;
            }
            is_left = merge.next_key(&mut key);
        }
        let next = is_left.then(|| key.into());
        self.put_decided(&mut output, making, &mut merge)?;
        let file = output.map(RunWriter::finish).transpose()?;
        file.iter().for_each(|file| merge.changes.finished(file.name.number));
        Ok(Made { file, changes: merge.changes, next, passes: merge.asking.map(Asking::into_passes) })
    }

    /// Writes what a merge has left of a key; where a filter is asked, it waits for the answer.
    fn put(
        &self,
        output: &mut Option<RunWriter<D>>,
        making: Making,
        merge: &mut Merge<'_, D>,
        key: &[u8],
        taken: Taken,
    ) -> Result<()> {
        if merge.asking.as_ref().is_some_and(|asking| asking.is_due_before(key)) {
            self.put_decided(output, making, merge)?;
        }
        match &mut merge.asking {
            None => self.add(output, making, key, (&taken, EntryMark::NEVER), merge.changes.context),
            Some(asking) => {
                asking.offer(key.into(), taken);
                Ok(())
            }
        }
    }

    /// Writes the keys that wait for a filter's answer, once they have it.
    fn put_decided(&self, output: &mut Option<RunWriter<D>>, making: Making, merge: &mut Merge<'_, D>) -> Result<()> {
        for Decided { key, taken, mark, is_dropped } in merge.asking.as_mut().map(Asking::decide).unwrap_or_default() {
            if is_dropped && planted::is_on(Bug::FilteredInPlace) {
                merge.leave_out_dropped(&key, &taken.chain);
            } else {
                self.add(output, making, &key, (&taken, mark), merge.changes.context)?;
            }
        }
        Ok(())
    }

    fn add(
        &self,
        output: &mut Option<RunWriter<D>>,
        making: Making,
        key: &[u8],
        (taken, mark): (&Taken, EntryMark),
        context: &RunContext<'_>,
    ) -> Result<()> {
        let output = match output {
            Some(output) => output,
            none => none.insert(self.new_writer(making)?),
        };
        output.add(key, &taken.chain, taken.latest_life, mark, context.compression_of)
    }

    /// Writes one file of a run again: without what range tombstones have deleted, and without a table that is gone, of which the
    /// batch is known that makes it so.
    pub(super) fn rewrite(
        &self,
        set: &Arc<RunSet<D>>,
        place: Place,
        gone: Option<(u32, u64)>,
        context: &RunContext<'_>,
    ) -> Result<()> {
        let cursor = RunCursor::merging(set, place.run, place.only())?;
        let _window = Held::new(&self.accounts, Part::Buffers, MERGE_WINDOW_BYTES);
        let passes = Passes::new(context.filtering.map_or(0, |filtering| filtering.now_ms));
        let mut merge = Merge::new(set, vec![cursor], place.run + 1 == set.runs.len(), passes, context);
        if let Some((table, _)) = gone {
            merge.leave_out(table);
        }
        let file = place.piece(set).file;
        let mut made = self.write(merge, file.footer.smallest_sequence, u64::MAX)?;
        let (number, old) = (set.runs[place.run].number, file.name);
        let new = made.file.as_ref().map(|file| file.name);
        self.edit(Vec::from_iter(made.file.take()), |manifest| {
            let at = place_of(manifest, number);
            let run = &mut manifest.runs[at];
            for files in [&mut run.merged, &mut run.files] {
                if let Some(at) = files.iter().position(|file| *file == old) {
                    files.splice(at..=at, new);
                }
            }
            // The merge that a run takes part in ends with its own edit.
            if run.merge == 0 && run.files.is_empty() {
                manifest.runs.remove(at);
            }
            if let Some((_, durable)) = gone {
                manifest.durable_batch = manifest.durable_batch.max(durable);
            }
            made.changes.apply(manifest);
        })?;
        made.changes.report_merged();
        Ok(())
    }
}

/// A piece of a run of a set.
#[derive(Clone, Copy)]
pub(super) struct Place {
    run: usize,
    piece: usize,
}

impl Place {
    pub(super) fn piece<D: Device>(self, set: &RunSet<D>) -> Piece<'_, D> {
        set.runs[self.run].piece(self.piece)
    }

    /// The numbers of this piece alone.
    fn only(self) -> Range<usize> {
        self.piece..self.piece + 1
    }
}

/// All pieces.
pub(super) fn places<D: Device>(set: &RunSet<D>) -> impl Iterator<Item = Place> {
    let runs = set.runs.iter().map(Run::all).enumerate();
    runs.flat_map(|(run, pieces)| pieces.map(move |piece| Place { run, piece }))
}

/// The first piece of which `wanted` says so.
fn find<D: Device>(set: &RunSet<D>, wanted: impl Fn(Place) -> Result<bool>) -> Result<Option<Place>> {
    for place in places(set) {
        if wanted(place)? {
            return Ok(Some(place));
        }
    }
    Ok(None)
}

fn place_of(manifest: &RunManifest, number: u64) -> usize {
    let at = manifest.runs.iter().position(|run| run.number == number);
    at.expect("only steps that have claimed runs take them away")
}

/// How far a step has brought a merge.
struct Progress {
    /// The runs that are merged, newest first; they follow each other.
    numbers: Vec<u64>,
    /// The files of each that have keys left.
    left: Vec<Vec<RunFileName>>,
    made: Option<RunFileName>,
    /// The next key; `None` at the end.
    next: Option<Box<[u8]>>,
}

impl Progress {
    fn apply(self, manifest: &mut RunManifest) {
        let first = place_of(manifest, self.numbers[0]);
        let runs: Range<usize> = first..first + self.numbers.len();
        let (last, merge) = (runs.end - 1, self.numbers[self.numbers.len() - 1]);
        manifest.runs[last].merged.extend(self.made);
        let Some(next) = self.next else {
            let until = manifest.runs[runs.clone()].iter().map(|run| run.until).max().unwrap_or(0);
            let newer_tier = manifest.runs[first..last].iter().map(|run| run.tier + 1).max();
            let oldest = &mut manifest.runs[last];
            let tier = newer_tier.unwrap_or(0).max(oldest.tier);
            let files = std::mem::take(&mut oldest.merged);
            let merged = ManifestRun { number: oldest.number, until, tier, files, ..ManifestRun::default() };
            let is_empty = merged.files.is_empty();
            manifest.runs.splice(runs, (!is_empty).then_some(merged));
            return;
        };
        for (run, left) in manifest.runs[runs].iter_mut().zip(self.left) {
            (run.merge, run.from, run.files) = (merge, next.clone(), left);
        }
    }
}
