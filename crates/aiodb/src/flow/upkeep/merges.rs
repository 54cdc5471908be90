//! What ordered indexes ask of the store while they commit and merge, and the merges of sorted runs, a bounded part at a time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::filter::TableFilter;
use crate::flow::room::MERGED_LAST_SHARE;
use crate::flow::upkeep::reclaim::victim::TOLERATED_SEGMENTS;
use crate::format::settings::Settings;
use crate::index::accounting::{Accounting, ChunkBytes};
use crate::index::chain::Entry;
use crate::index::ordered::OrderedIndex;
use crate::index::runs::filtering::Filtering;
use crate::index::runs::{Compaction, RunContext};
use crate::io::{Device, InPhase, Phase};
use crate::log::{Segment, State};
use crate::store::dropping::Dropped;
use crate::store::suspicion::Look;
use crate::store::upkeep::Upkeep;
use crate::sync::atomic::Ordering;
use crate::{IndexKind, Result};

/// The oldest run takes part in merges for the sake of garbage if the others together have at least one in so many of its bytes, or if
/// more garbage is suspected than it has bytes.
const MERGED_FOR_GARBAGE_SHARE: u64 = 16;

/// On a full disk the oldest run is not merged for less garbage than one part in so many of a segment, if it has more bytes than that.
const LEAST_GARBAGE_SHARE: u64 = 4;

/// How short of room a store is that looks for garbage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shortage {
    None,
    /// Writes find no segment.
    Full,
    /// Nor can any be emptied: garbage is worth as many bytes as are written for it.
    InVain,
}

/// What has become of a step of a merge.
enum Stepped {
    Done,
    /// There is nothing to merge.
    Nothing,
    /// Another thread does a step.
    Busy,
}

impl<D: Device> Upkeep<D> {
    /// Does a bounded part of a commit or a merge, which is answered by the store. Entries of runs that died may lie in segments that have
    /// begun another life by then, in which they count nothing.
    pub(crate) fn with_context<T>(
        &self,
        ordered: &OrderedIndex<D>,
        accounting: &Accounting<'_>,
        work: impl FnOnce(&RunContext<'_>) -> Result<T>,
    ) -> Result<T> {
        // No segment that is in use now begins another life meanwhile, of which LMDB does not ask.
        let _reader = ordered.committed.runs().map(|_| self.epochs.pin());
        let lives: RefCell<BTreeMap<u32, u64>> = RefCell::default();
        let life = |number| self.segments.find(number).map_or(0, |segment| segment.life());
        let life_of = |number| *lives.borrow_mut().entry(number).or_insert_with(|| life(number));
        let died = |table, dead: &Entry, bytes| {
            let number = dead.location.segment;
            // The life is asked of runs only. A list of chunks counts elsewhere too.
            let asked = lives.borrow().get(&number).copied();
            if asked.is_none_or(|asked| asked == life(number) && (dead.form.chunked || self.is_in_use(number))) {
                (accounting.died)(table, dead, bytes);
            }
        };
        let named = |table, chunks: ChunkBytes| self.count_named(table, chunks);
        let counting = self.catalog.counting();
        let accounting = Accounting { died: &died, named: &named, counting, ..*accounting };
        let (snapshots, ranges) = (&*self.snapshots, &*ordered.ranges);
        let compression_of = |table| self.catalog.block_compression(table);
        let inline_bytes_of = |table| self.catalog.inline_bytes(table);
        let (life_of, compression_of, inline_bytes_of) = (&life_of, &compression_of, &inline_bytes_of);
        self.with_filtering(|filtering| {
            let accounting = &accounting;
            work(&RunContext { accounting, snapshots, ranges, life_of, compression_of, inline_bytes_of, filtering })
        })
    }

    /// Does work that may ask compaction filters, if there are tables with some.
    fn with_filtering<T>(&self, work: impl FnOnce(Option<&Filtering<'_>>) -> T) -> T {
        if !self.catalog.has_filters() {
            return work(None);
        }
        let asked = |entries| _ = self.meters.filter_asked_entries.fetch_add(entries as u64, Ordering::Relaxed);
        let dropped = |table, key: &[u8], sequence| self.dropping.push(Dropped { table, key: key.into(), sequence });
        work(Some(&Filtering {
            filter_of: &|table| self.filter_of_table(table),
            asks: self.dropping.has_begun(),
            now_ms: self.certain_ms(),
            has_room: &|| self.dropping.has_room(),
            dropped: &dropped,
            asked: &asked,
            failed: &|error| self.note_trouble(error),
        }))
    }

    /// The compaction filter of a table. One that an ingest has just named may not be in the catalog yet: its marks are carried on.
    fn filter_of_table(&self, table: u32) -> TableFilter {
        let generation = self.catalog.generation(table);
        generation.map_or(TableFilter::Unregistered, |generation| self.filter_of(&generation.settings))
    }

    /// The compaction filter of a table with these settings.
    pub(crate) fn filter_of(&self, settings: &Settings) -> TableFilter {
        let find = |name: &String| self.options.compaction_filters.find(name).unwrap_or(TableFilter::Unregistered);
        settings.compaction_filter.as_ref().map_or(TableFilter::None, find)
    }

    /// Does a bounded part of asking filters about what may go by now, where there is room for it. True if there may be more to do.
    pub(crate) fn ask_filters(&self) -> Result<bool> {
        let may_ask = !self.options.compaction_filters.is_empty() && self.dropping.is_short();
        let Some(ordered) = self.ordered.get(IndexKind::Lsm).filter(|_| may_ask) else { return Ok(false) };
        self.merging_with(ordered, &|context| ordered.filter_some(context), |ask| ask())
    }

    /// Counts what runs name more of a table's chunks, or less, than before.
    pub(crate) fn count_named(&self, table: u32, chunks: ChunkBytes) {
        if let Some(segment) = self.segments.find(chunks.segment).filter(|segment| segment.life() == chunks.life) {
            *segment.live_chunks().entry(table).or_default() += chunks.bytes;
        }
    }

    /// Whether a segment has records that count.
    pub(crate) fn is_in_use(&self, number: u32) -> bool {
        self.segments.find(number).is_some_and(|segment| matches!(segment.state(), State::Active | State::Sealed))
    }

    /// Does a bounded part of the most useful merge of each index of runs. True if there may be more to do.
    pub(crate) fn merge_some(&self) -> Result<bool> {
        self.ordered.open().try_fold(false, |more, ordered| Ok(self.merge_some_of(ordered)? || more))
    }

    /// [`Upkeep::merge_some`] of one index. What it supersedes must have a place while a snapshot needs it: neither memory nor a full disk may
    /// have one, and then merges wait.
    pub(crate) fn merge_some_of(&self, ordered: &OrderedIndex<D>) -> Result<bool> {
        if self.snapshots.is_short() {
            return Ok(false);
        }
        self.merging(ordered, &|context| ordered.merge_some(context))
    }

    /// Does a bounded part of merging all that is committed into the oldest level, if what is newer has at least one in so many of its
    /// bytes: then all garbage is known. True if there may be more to do.
    pub(crate) fn compact_some(&self, least_share: u64) -> Result<bool> {
        self.compact(Compaction::of_all(least_share))
    }

    fn compact(&self, wanted: Compaction) -> Result<bool> {
        let one = |ordered: &OrderedIndex<D>| self.merging(ordered, &|context| ordered.compact_some(wanted, context));
        self.ordered.open().try_fold(false, |more, ordered| Ok(one(ordered)? || more))
    }

    /// Does a bounded part of the merges without which segments full of deletes are not worth emptying. Runs that come meanwhile are left out. True
    /// if there may be more to do.
    pub(crate) fn merge_for_deletes(&self, is_full: bool) -> Result<bool> {
        let Some(until) = self.reclaim_waits_until() else { return Ok(false) };
        let least_share = if is_full { MERGED_LAST_SHARE } else { MERGED_FOR_GARBAGE_SHARE };
        self.compact(Compaction { until, ..Compaction::of_all(least_share) })
    }

    /// Looks whether runs may hide much garbage: whether much more counts as alive than when least did since they were merged for its
    /// sake. On a full disk, so much is much that a merge pays.
    pub(crate) fn look_for_garbage(&self, shortage: Shortage) {
        let Some(ordered) = self.ordered.get(IndexKind::Lsm).filter(|_| !self.suspicion.is_any()) else { return };
        let Some(runs) = ordered.committed.runs() else { return };
        let is_committed = ordered.memtable.len() == 0;
        let look = Look { live: self.live_bytes(), runs: runs.len(), is_committed, until: runs.until() };
        let tolerated = TOLERATED_SEGMENTS * self.segments.segment_bytes;
        if shortage != Shortage::None {
            let oldest_bytes = runs.oldest_bytes();
            let worth = worth_of_merge(self.least_moved_share(), self.log_bytes(), oldest_bytes);
            let worth = if shortage == Shortage::InVain { worth.min(oldest_bytes) } else { worth };
            // Less makes no segment worth emptying.
            let worth = worth.max(oldest_bytes.min(self.segments.segment_bytes / LEAST_GARBAGE_SHARE));
            self.suspicion.look_for_room(look, tolerated, worth, oldest_bytes);
        } else if self.snapshots.oldest().0.saturating_add(1) < look.until {
            // What a merge finds would be retained for that snapshot, whose segments are kept too.
            self.suspicion.note(look);
        } else {
            self.suspicion.look(look, tolerated);
        }
    }

    /// Does a bounded part of merging the runs where they are suspected of garbage. Runs that come meanwhile are left out, so that it ends.
    /// True if there may be more to do.
    pub(crate) fn merge_for_garbage(&self) -> Result<bool> {
        let suspicion = &self.suspicion;
        let Some(ordered) = self.ordered.get(IndexKind::Lsm).filter(|_| suspicion.is_any()) else { return Ok(false) };
        let (until, most_bytes) = (suspicion.until(), suspicion.bytes());
        let wanted = Compaction { until, least_share: MERGED_FOR_GARBAGE_SHARE, most_bytes };
        let merged = self.merging(ordered, &|context| ordered.compact_some(wanted, context));
        match &merged {
            Ok(true) => {}
            // There may be room later.
            Err(error) if error.is_full() => {}
            // Another error would come again.
            Ok(false) | Err(_) => suspicion.end(self.live_bytes()),
        }
        merged
    }

    /// Bytes of all records that count as alive.
    fn live_bytes(&self) -> u64 {
        self.segments_in_use().map(|segment| segment.live_but_deletes()).sum()
    }

    /// Bytes of all segments that are in use.
    fn log_bytes(&self) -> u64 {
        self.segments_in_use().count() as u64 * self.segments.segment_bytes
    }

    fn segments_in_use(&self) -> impl Iterator<Item = &Segment<D>> {
        self.segments.iter().filter(|segment| matches!(segment.state(), State::Active | State::Sealed))
    }

    /// Does a bounded part of the merges of a store in which nothing else is to be done: they find the garbage that few runs hide. True if
    /// there may be more to do.
    pub(crate) fn merge_at_rest(&self) -> Result<bool> {
        let one = |ordered: &OrderedIndex<D>| self.merging(ordered, &|context| ordered.merge_at_rest(context));
        self.ordered.open().try_fold(false, |more, ordered| Ok(one(ordered)? || more))
    }

    /// Bytes that a step of a merge writes at most.
    pub(crate) fn merge_step_bytes(&self) -> u64 {
        let runs = self.ordered.open().filter_map(|ordered| ordered.committed.runs());
        runs.map(|runs| runs.file_bytes()).min().unwrap_or(u64::MAX)
    }

    fn merging(&self, ordered: &OrderedIndex<D>, merge: &dyn Fn(&RunContext<'_>) -> Result<bool>) -> Result<bool> {
        self.merging_with(ordered, merge, |merge| self.making_room(merge))
    }

    /// [`Upkeep::merging`], by a call that may call again what it is given.
    fn merging_with(
        &self,
        ordered: &OrderedIndex<D>,
        merge: &dyn Fn(&RunContext<'_>) -> Result<bool>,
        call: impl FnOnce(&dyn Fn() -> Result<bool>) -> Result<bool>,
    ) -> Result<bool> {
        if ordered.committed.runs().is_none() || self.options.read_only {
            return Ok(false);
        }
        self.commit.check_open()?;
        let _phase = InPhase::enter(&self.device, Phase::Merge);
        let died = |table, dead: &Entry, bytes| self.count_dead(table, dead, bytes);
        let piled_up = |index_key: &[u8], operands| self.must_fold(index_key, operands);
        let chunks_of = |entry: &Entry| self.chunks_of(entry);
        let accounting = Accounting { chunks_of: &chunks_of, died: &died, piled_up: &piled_up, ..Accounting::NONE };
        call(&|| self.with_context(ordered, &accounting, merge))
    }

    /// Slows a write of so many keys where merges are behind. Each step of a merge lets some keys in; a write that comes later waits for
    /// the end of the next one, or does one if no other thread does. It waits for no more steps than its keys are worth, so that merges which are
    /// far behind do not hold it up longer, unless there are as many runs as there may be. Where a run cannot be read, writes go on.
    pub(crate) fn throttle_by_merges(&self, ordered: &OrderedIndex<D>, keys: usize) -> Result<()> {
        let Some(runs) = ordered.committed.runs().filter(|runs| runs.is_behind()) else { return Ok(()) };
        let memtable_keys = ordered.memtable.most_keys();
        let mut left = runs.steps_for(keys, memtable_keys);
        loop {
            let last = runs.last_step();
            if !runs.is_behind() || !runs.is_full() && runs.lets_in(keys, memtable_keys) {
                return Ok(());
            }
            if left == 0 && !runs.is_full() {
                runs.let_in(keys, memtable_keys);
                return Ok(());
            }
            left = left.saturating_sub(1);
            match self.unless_damaged(self.merge_some_unless_busy(ordered, false))? {
                Some(Stepped::Done) => {}
                Some(Stepped::Busy) => {
                    self.background.wake_merger();
                    runs.wait_for_step(last);
                }
                Some(Stepped::Nothing) | None => return Ok(()),
            }
        }
    }

    /// Does a step of a merge beside that of another thread where writers are slowed by merges. True if there may be more to do.
    pub(crate) fn merge_beside(&self) -> Result<bool> {
        let is_behind = |ordered: &&OrderedIndex<D>| ordered.committed.runs().is_some_and(|runs| runs.is_behind());
        self.ordered.open().filter(is_behind).try_fold(false, |more, ordered| {
            Ok(matches!(self.merge_some_unless_busy(ordered, true)?, Stepped::Done) || more)
        })
    }

    /// [`Upkeep::merge_some_of`], unless another thread does a step; then perhaps one `beside` it.
    fn merge_some_unless_busy(&self, ordered: &OrderedIndex<D>, beside: bool) -> Result<Stepped> {
        if self.snapshots.is_short() {
            return Ok(Stepped::Nothing);
        }
        let is_busy = Cell::new(false);
        let more = self.merging(ordered, &|context| {
            let merged = ordered.merge_some_unless_busy(beside, context)?;
            is_busy.set(merged.is_none());
            Ok(merged.unwrap_or(false))
        })?;
        Ok(match is_busy.get() {
            true => Stepped::Busy,
            false if more => Stepped::Done,
            false => Stepped::Nothing,
        })
    }

    /// Returns when merges are not too far behind, or a run cannot be read, while the store is being opened.
    pub(crate) fn bound_merges(&self, ordered: &OrderedIndex<D>) -> Result<()> {
        while ordered.committed.runs().is_some_and(|runs| runs.is_behind())
            && self.unless_damaged(self.merge_some_of(ordered))?.unwrap_or(false)
        {}
        Ok(())
    }

    /// What work behind the scenes has done; `None` where it has met what cannot be read, which is noted: the work that is next may go
    /// round it.
    pub(crate) fn unless_damaged<T>(&self, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Err(damage) if damage.is_unreadable() => {
                self.note_trouble(&damage);
                Ok(None)
            }
            outcome => outcome.map(Some),
        }
    }
}

/// Bytes of garbage that a merge with the oldest run, of `oldest_bytes`, should find on a full disk. Emptying segments of which `moved` is
/// the share that is moved writes moved / (1 - moved) bytes for a byte of room. If garbage of h of the log's L bytes is not known, `moved` is
/// higher by h / L, which costs h / L / (1 - moved)^2 bytes more; a merge for each H bytes of garbage costs `oldest_bytes` / H. With h = H / 2 on
/// the average the sum is least where H = (1 - moved) (2 L `oldest_bytes`)^(1/2).
fn worth_of_merge(moved: f64, log_bytes: u64, oldest_bytes: u64) -> u64 {
    ((1.0 - moved) * (2.0 * log_bytes as f64 * oldest_bytes as f64).sqrt()) as u64
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
