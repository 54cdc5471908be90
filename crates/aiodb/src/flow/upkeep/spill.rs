//! `hash` tables with more keys than memory is for: their oldest places come to runs, and runs are merged, a bounded part at a time.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::format::location::Location;
use crate::index::hash::{HashIndex, SHARDS};
use crate::index::runs::spilled::{Above, Progress, Spill, SpilledMerge};
use crate::io::{Device, InPhase, Phase};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::settling::Unsettled;
use crate::store::spilling::{Age, Kept, SpillUnderWay, SpillWork};
use crate::store::upkeep::Upkeep;
use crate::sync::yield_now;
use crate::{Error, Result};

/// So many slots are looked at to tell how old the slots of an index are; fewer are looked at all.
const SAMPLED_SLOTS: usize = 64 << 10;

/// Writers are slowed where `hash` tables have this many times the memory that they should have, in quarters...
const CROWDED_QUARTERS: u64 = 5;

/// ...so that the tables have no more than this.
const MOST_QUARTERS: u64 = 6;

/// With each step so many keys come at least: writers are slowed, not stopped.
const LEAST_ADMITTED: u64 = 1024;

/// What a key takes in memory, about, with the empty places of its shard.
const KEY_MEMORY_BYTES: u64 = 11;

/// With so many runs a merge goes before the next spill, or beside it where writers help.
const MOST_RUNS: usize = 16;

/// A spill is worth it where so many parts of an index are old: else its runs would be many and small.
const LEAST_SHARE: usize = 8;

/// A table of which memory has kept all is tried again when it takes one part in so many of the bound more, or the bound is lower...
const KEPT_SHARE: u64 = 8;

/// ...or, where the system lacked memory or descriptors then, after so long.
const KEPT_MS: u64 = 5_000;

impl<D: Device> Upkeep<D> {
    /// Does a bounded part of the work. True if there may be more to do.
    pub(crate) fn spill_hashes(&self) -> Result<bool> {
        if self.options.read_only || !self.may_spill() && !self.is_over_bound() {
            return Ok(false);
        }
        // Where another thread is at a step, the rest of upkeep goes on. A checkpoint takes longer: upkeep rests meanwhile.
        let mut more = !self.spilling.is_held_for_checkpoint();
        if let Some(mut work) = self.spilling.try_lock() {
            self.commit.check_open()?;
            more = self.spill_step(&mut work)?;
        }
        if self.spilling.take_ended() {
            // A restart would load what memory has given up, and more than it is for.
            self.checkpoint()?;
        }
        Ok(more)
    }

    /// Slows a writer that adds so many keys to `hash` tables which have much more in memory than they should have. It waits for no more
    /// than a step. Where the store has no threads of its own the writer does a step.
    pub(crate) fn slow_by_spills(&self, keys: usize) -> Result<()> {
        if !self.options.background {
            return self.help_to_spill();
        }
        // Memory has more while a checkpoint is made.
        if !self.spilling.is_held_for_checkpoint() {
            if self.spilling.admission.is_closed() {
                self.background.wake_merger();
            }
            self.spilling.admission.come(keys);
        }
        self.commit.check_open()
    }

    fn help_to_spill(&self) -> Result<()> {
        let Some(mut work) = self.spilling.try_lock() else { return Ok(()) };
        self.commit.check_open()?;
        let is_late = || {
            let bytes = self.slot_bytes();
            bytes > (self.hash_bound(bytes) / 4).saturating_mul(MOST_QUARTERS)
        };
        if work.spill.is_some() || is_late() {
            // Where runs cannot be read or written, memory has more.
            let _ = self.spill_step(&mut work).inspect_err(|error| self.note_trouble(error));
        }
        Ok(())
    }

    /// Does a step on the thread that works beside upkeep where writers are slowed. True if there may be more to do.
    pub(crate) fn spill_beside(&self) -> Result<bool> {
        if !self.spilling.is_crowded() || self.spilling.is_held_for_checkpoint() {
            return Ok(false);
        }
        if self.spilling.is_waited_for() {
            yield_now();
            return Ok(true);
        }
        let Some(mut work) = self.spilling.try_lock() else { return Ok(false) };
        self.commit.check_open()?;
        // Upkeep may not meet it: the next step may be another.
        self.spill_step(&mut work).inspect_err(|error| self.note_trouble(error))
    }

    /// Brings places to runs until memory has no more than it is for, as far as they are old.
    pub(crate) fn bound_hashes(&self) -> Result<()> {
        while !self.options.read_only && self.is_over_bound() {
            let mut work = self.spilling.lock();
            if !self.spill_step(&mut work)? {
                break;
            }
        }
        Ok(())
    }

    /// Whether a spill or a merge may be under way.
    pub(crate) fn may_spill(&self) -> bool {
        self.spilling.has_begun() || self.spilled.is_any()
    }

    /// What the slots of all `hash` tables take in memory, but for tables that are gone.
    fn slot_bytes(&self) -> u64 {
        self.catalog.generations().iter().map(|generation| slot_bytes_of(generation)).sum()
    }

    /// What the slots of all `hash` tables may take together, which take so many now. Slots of a table that is gone cannot move on to files while a snapshot needs them:
    /// they are among what leaves less to the others.
    fn hash_bound(&self, slots: u64) -> u64 {
        self.memory.hash_bound(&self.options, self.ordered.open().count() as u64, slots)
    }

    fn is_over_bound(&self) -> bool {
        let bytes = self.slot_bytes();
        bytes > self.hash_bound(bytes)
    }

    /// Notes after a step in which a spill has come so many shards further whether writers are slowed, and how many keys they may add before the
    /// next one ends. Where there is no spill, memory has more.
    fn admit(&self, work: &SpillWork<D>, shards: usize) {
        let bytes = self.slot_bytes();
        let bound = self.hash_bound(bytes);
        let under_way = work.spill.as_ref().filter(|_| is_crowded(bytes, bound));
        self.spilling.set_crowded(under_way.is_some());
        self.spilling.admission.admit(under_way.map(|under_way| {
            let room = (bound / 4).saturating_mul(MOST_QUARTERS).saturating_sub(bytes) / KEY_MEMORY_BYTES;
            let steps = under_way.spill.shards_left().div_ceil(shards.max(1)).max(1);
            (room / steps as u64).max(LEAST_ADMITTED)
        }));
    }

    /// Has all shards give up their places, if some have, or take them back: what is in memory and in runs is of one moment then.
    pub(crate) fn finish_giving_up(&self, work: &mut SpillWork<D>) -> Result<()> {
        loop {
            work.leave_gone();
            let Some(spill) =
                work.spill.as_ref().map(|under_way| &under_way.spill).filter(|spill| spill.is_giving_up())
            else {
                return Ok(());
            };
            let takes_back = spill.takes_back();
            match self.go_on(work) {
                // They take them back.
                Err(error) if !takes_back => self.note_trouble(&error),
                outcome => outcome?,
            }
        }
    }

    /// Does a bounded part of the work; false if there was nothing to do.
    fn spill_step(&self, work: &mut SpillWork<D>) -> Result<bool> {
        let shards_left = |work: &SpillWork<D>| work.spill.as_ref().map(|under_way| under_way.spill.shards_left());
        let before = shards_left(work).unwrap_or(2 * SHARDS);
        let _phase = InPhase::enter(&self.device, Phase::Spill);
        let outcome = self.spill_or_merge(work);
        let done = shards_left(work).map_or(before, |left| before.saturating_sub(left));
        self.admit(work, done);
        outcome
    }

    /// [`Upkeep::spill_step`] itself.
    fn spill_or_merge(&self, work: &mut SpillWork<D>) -> Result<bool> {
        self.spilling.set_begun();
        work.leave_gone();
        let tables: Vec<_> = self.catalog.generations().into_iter().filter(|table| !table.is_gone()).collect();
        let bytes = tables.iter().map(|table| slot_bytes_of(table)).sum();
        let bound = self.hash_bound(bytes);
        let is_behind =
            |table: &Arc<Generation>| self.spilled.table(table.id).is_some_and(|runs| runs.runs() >= MOST_RUNS);
        // What keeps runs from being merged keeps no place in memory.
        let merge = |work: &mut SpillWork<D>| match self.merge_hashes(work, &tables) {
            Err(error) if bytes > bound => {
                self.note_trouble(&error);
                Ok(false)
            }
            merged => merged,
        };
        let merged = tables.iter().any(is_behind) && merge(work)?;
        // Where runs cannot be merged, or not as fast as keys come, they become more: memory must not.
        if work.spill.is_none() && bytes > bound && (!merged || is_crowded(bytes, bound)) {
            work.spill = self.choose_spill(work, &tables, (bytes, bound));
        }
        if work.spill.is_some() {
            self.go_on(work)?;
            return Ok(true);
        }
        Ok(merged || merge(work)?)
    }

    /// Begins to bring the oldest places of the largest table to a run, if some of them are old enough: such a part of it that half of the
    /// bound would be left if all tables gave up as much of theirs.
    fn choose_spill(
        &self,
        work: &SpillWork<D>,
        tables: &[Arc<Generation>],
        (bytes, bound): (u64, u64),
    ) -> Option<SpillUnderWay<D>> {
        let mut tables: Vec<_> = tables.iter().collect();
        tables.sort_by_key(|generation| Reverse(slot_bytes_of(generation)));
        for generation in tables {
            let TableIndex::Hash(index) = &generation.index else { continue };
            let is_early = |kept: &Kept| {
                let is_same = bound >= kept.bound && slot_bytes_of(generation) <= kept.slot_bytes + bound / KEPT_SHARE;
                is_same && self.device.clock_ms() < kept.until_ms
            };
            let is_too_early = work.kept.get(&generation.id).is_some_and(is_early);
            // Else memory has more.
            if is_too_early || !Spill::has_room(&self.spilled, index.slots()) {
                continue;
            }
            let position = self.commit.completed_end().0;
            // What is published before its batch lies behind this, and what is not published yet.
            let completed = (position.life, u32::try_from(position.offset).unwrap_or(u32::MAX));
            let before = self.age_to_spill(index, (bytes - bound / 2, bytes)).min(completed);
            let (old, tags) = self.count_older(index, before);
            if old == 0 || old * LEAST_SHARE < tags {
                continue;
            }
            let spill = Spill::begin(&self.spilled, generation.id);
            return Some(SpillUnderWay { generation: Arc::clone(generation), spill, before, has_lacked: false });
        }
        None
    }

    /// The age before which this part of the places lies, `gone` of `all`.
    fn age_to_spill(&self, index: &HashIndex, (gone, all): (u64, u64)) -> Age {
        let step = (index.len() / SAMPLED_SLOTS + 1).min(SHARDS);
        let mut ages = Vec::new();
        // Hashes spread keys over the shards evenly.
        (0..SHARDS).step_by(step).for_each(|shard| {
            index.for_each_in(shard, &mut |place| ages.push(self.age_of(place)));
        });
        let gone = (u128::from(gone) * ages.len() as u128 / u128::from(all)) as usize;
        let Some(last) = ages.len().checked_sub(1) else { return (0, 0) };
        let (_, (life, offset), _) = ages.select_nth_unstable(gone.min(last));
        (*life, offset.saturating_add(1))
    }

    /// How many places and floors a spill would bring to a run, about, and how many tags there are.
    fn count_older(&self, index: &HashIndex, before: Age) -> (usize, usize) {
        let (mut old, mut tags) = (0, 0);
        for shard in 0..SHARDS {
            index.for_each_tag(shard, || (), &mut |_, places, _| {
                old += places.iter().filter(|place| self.age_of(**place) < before).count();
                // A floor alone.
                old += usize::from(places.is_empty());
                tags += 1;
            });
        }
        (old, tags)
    }

    fn age_of(&self, place: Location) -> Age {
        (self.segments.get(place.segment).life(), place.offset)
    }

    /// Does a part of the spill that is under way. After an error nothing is left of it, unless shards have given up places: those are found
    /// in the run, until memory takes them back with the next steps.
    fn go_on(&self, work: &mut SpillWork<D>) -> Result<()> {
        let under_way = work.spill.as_mut().expect("the caller has looked");
        let SpillUnderWay { generation, spill, before, has_lacked } = under_way;
        let TableIndex::Hash(index) = &generation.index else { unreachable!("only hash tables are spilled") };
        let is_old = |place: Location| self.age_of(place) < *before;
        let pull_up = |hash| {
            self.pull_up(generation, index, hash, true)?;
            Ok(!generation.is_gone())
        };
        let step_tags = self.options.spill_step_tags.max(1);
        let shares = |hash| self.settling.push_anyway(Unsettled::tag(generation, hash));
        let above = Above { index, is_old: &is_old, pull_up: &pull_up, shares: &shares, step_tags };
        let outcome = spill.advance(&self.spilled, &above);
        let ends = outcome.as_ref().map_or(!spill.is_giving_up(), |progress| *progress != Progress::Part);
        let in_vain = spill.gave_up() == 0 || matches!(outcome, Ok(Progress::TakenBack));
        *has_lacked |= outcome.as_ref().is_err_and(Error::is_passing);
        match outcome {
            Ok(Progress::TakenBack | Progress::Done) if in_vain => {
                let bound = self.hash_bound(self.slot_bytes());
                let until_ms = if *has_lacked { self.device.clock_ms() + KEPT_MS } else { u64::MAX };
                work.kept.insert(generation.id, Kept { slot_bytes: slot_bytes_of(generation), bound, until_ms });
            }
            Ok(Progress::Done) => {
                work.kept.remove(&generation.id);
                self.spilling.set_ended();
            }
            _ => {}
        }
        if ends {
            work.spill = None;
        }
        outcome.map(drop)
    }

    /// Does a part of a merge; false if none is worth it, or none may end now.
    fn merge_hashes(&self, work: &mut SpillWork<D>, tables: &[Arc<Generation>]) -> Result<bool> {
        if work.spill.as_ref().is_some_and(|under_way| under_way.spill.is_giving_up()) {
            return Ok(false);
        }
        if work.merge.is_none() {
            for generation in tables {
                if let Some(merge) = SpilledMerge::begin(&self.spilled, generation.id)? {
                    work.merge = Some((Arc::clone(generation), merge));
                    break;
                }
            }
        }
        let Some((generation, merge)) = &mut work.merge else { return Ok(false) };
        let TableIndex::Hash(index) = &generation.index else { unreachable!("only hash tables have these runs") };
        // After an error nothing is left of it.
        let outcome = merge.advance(&self.spilled, index);
        if !matches!(outcome, Ok(false)) {
            work.merge = None;
        }
        outcome.map(|_| true)
    }
}

/// Whether slots take so much more than their bound that writers are slowed.
fn is_crowded(bytes: u64, bound: u64) -> bool {
    bytes > (bound / 4).saturating_mul(CROWDED_QUARTERS)
}

/// What the keys of a table take in memory, if it is a `hash` table.
fn slot_bytes_of(generation: &Generation) -> u64 {
    match &generation.index {
        TableIndex::Hash(index) => index.slot_bytes(),
        TableIndex::Ordered => 0,
    }
}
