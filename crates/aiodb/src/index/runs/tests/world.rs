//! Runs below a memtable, beside a model; a log in memory from which the memtable is made again after a crash; and segments that are
//! emptied and used again.

mod checks;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::segments::{SEGMENT_RECORDS, Segments};
use crate::cache::Cache;
use crate::config::MergePolicy;
use crate::format::location::Location;
use crate::format::place::Counting;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::index::accounting::{Accounting, ChunkBytes};
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::memtable::{ImmutableMemtable, LookedUp, Memtable};
use crate::index::range_tombstones::{RangeTombstone, Ranges, Urgency};
use crate::index::runs::{FILE_BYTES, RunContext, Runs};
use crate::index::snapshots::{Snapshots, View};
use crate::io::sim::SimDevice;
use crate::retention::Retention;
use crate::sync::as_another_thread;
use crate::{Compression, Result};

pub(super) const STORE: [u8; 16] = [7; 16];
pub(super) const DIRECTORY: &str = "/store/index/runs";

/// Keys of a table.
const KEYS: u32 = 60;

/// Bytes of a cache that does not hold all blocks.
const CACHE_BYTES: u64 = 128 << 10;

/// A record of the log.
#[derive(Clone)]
enum Logged {
    Publish(Vec<u8>, Entry),
    Range(RangeTombstone),
    Move(Vec<u8>, Location, Entry),
}

/// The contents of a store, as they should be.
type Model = BTreeMap<Vec<u8>, VersionChain>;

pub(super) struct World {
    pub(super) device: SimDevice,
    cache_bytes: u64,
    policy: MergePolicy,
    choice: usize,
    runs: Option<Runs<SimDevice>>,
    memtable: Memtable,
    /// A memtable whose flush has failed.
    unfinished: Option<ImmutableMemtable>,
    ranges: Ranges,
    snapshots: Snapshots,
    open_snapshots: Vec<(u64, u64, Model)>,
    model: Model,
    log: Vec<Logged>,
    next_sequence: u64,
    segments: Segments,
    tables: Vec<u32>,
    gone: BTreeSet<u32>,
    /// The length of the log at the last flush that succeeded.
    flushed: usize,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let device = SimDevice::new(seed);
        // Small runs are all of a size: some of these policies leave the oldest run out.
        let policy = MergePolicy { fan_out: 2 + seed as usize % 3, oldest_ratio: seed / 3 % 3 };
        let segments = Segments { next_life: 1, next_offset: SEGMENT_RECORDS, ..Segments::default() };
        let mut world = World {
            device,
            policy,
            choice: seed as usize,
            cache_bytes: seed % 2 * CACHE_BYTES,
            runs: None,
            memtable: Memtable::default(),
            unfinished: None,
            ranges: Ranges::default(),
            snapshots: Snapshots::new(Arc::new(Retention::default())),
            open_snapshots: Vec::new(),
            model: Model::new(),
            log: Vec::new(),
            next_sequence: 1,
            segments,
            tables: vec![16, 17],
            gone: BTreeSet::new(),
            flushed: 0,
        };
        world.open().expect("nothing fails");
        world
    }

    pub(super) fn runs(&self) -> &Runs<SimDevice> {
        self.runs.as_ref().expect("it is open")
    }

    pub(super) fn open(&mut self) -> Result<()> {
        self.runs = None;
        let mut runs = Runs::open((&self.device, &Arc::default()), Path::new(DIRECTORY), STORE, false)?;
        runs.policy = self.policy;
        let cache = Cache::of_blocks(self.cache_bytes, self.cache_bytes).expect("there is memory");
        self.runs = Some(runs.with_cache(Arc::new(cache)));
        Ok(())
    }

    fn context<T>(&self, work: impl FnOnce(&RunContext<'_>) -> T) -> T {
        let life_of = |segment| self.segments.life_of(segment);
        let chunks_of = |entry: &Entry| {
            let Location { segment, length, .. } = entry.location;
            vec![ChunkBytes { segment, life: life_of(segment), bytes: i64::from(length) }]
        };
        let accounting = Accounting {
            chunks_of: &chunks_of,
            named: &|table, chunks| self.segments.count_chunks(table, chunks),
            died: &|table, entry, bytes| self.segments.count_bytes(table, entry, -1, bytes),
            piled_up: &|_, operands| assert!(operands > 1),
            is_gone: &|table| self.gone.contains(&table),
            counting: Counting::AsTheyLie,
        };
        work(&RunContext {
            accounting: &accounting,
            life_of: &life_of,
            compression_of: &|table| self.compression_of(table),
            ..RunContext::quiet(&self.snapshots, &self.ranges)
        })
    }

    /// A table in two has compressed blocks.
    fn compression_of(&self, table: u32) -> Compression {
        [Compression::None, Compression::Lz4, Compression::None, Compression::Zstd(1)]
            [(table as usize + self.choice) % 4]
    }

    fn random_key(&self, random: &mut Rng) -> Vec<u8> {
        let table = self.tables[random.usize(..self.tables.len())];
        [&table.to_be_bytes()[..], format!("key{:04}", random.u32(..KEYS)).as_bytes()].concat()
    }

    /// Puts or deletes one key, and flushes that as a run of its own.
    pub(super) fn flush_one(&mut self, number: u32, kind: Kind, random: &mut Rng) {
        self.write_one(number, kind, random);
        self.flush(random).expect("nothing fails");
    }

    /// Puts or deletes one key.
    pub(super) fn write_one(&mut self, number: u32, kind: Kind, random: &mut Rng) {
        let key = [&16u32.to_be_bytes()[..], format!("key{number:04}").as_bytes()].concat();
        let (sequence, location) = (self.next_sequence, self.segments.place(random));
        self.write_entry(
            key,
            with_value(Entry { kind, sequence, location, separate: None, form: Form::default(), inline: None }),
        );
    }

    /// Puts, deletes or merges a key.
    pub(super) fn write(&mut self, random: &mut Rng) {
        let key = self.random_key(random);
        let kind = match random.u32(..10) {
            0..6 => Kind::Put,
            6..8 => Kind::Delete,
            _ => Kind::Merge,
        };
        let location = self.segments.place(random);
        let form = Form { chunked: kind != Kind::Delete && random.u8(..8) == 0, ..Form::default() };
        let separate = random.bool().then(|| random.u32(..));
        let entry = Entry { kind, sequence: self.next_sequence, location, separate, form, inline: None };
        self.write_entry(key, with_value(entry));
    }

    fn write_entry(&mut self, key: Vec<u8>, entry: Entry) {
        self.next_sequence += 1;
        self.publish(&key, entry.clone());
        self.model.entry(key.clone()).or_default().insert(entry.clone(), &mut Superseded::new());
        self.log.push(Logged::Publish(key, entry));
    }

    fn publish(&self, key: &[u8], entry: Entry) {
        let mut superseded = Superseded::new();
        self.memtable.insert(key, entry.clone().into(), &mut superseded, |superseded| self.retain(key, superseded));
        self.segments.count(key, &entry, 1);
        superseded.iter().for_each(|(entry, _)| self.segments.count(key, entry, -1));
    }

    fn retain(&self, key: &[u8], superseded: &Superseded) {
        let until =
            |(entry, until): &(Entry, u64)| (entry.clone(), self.ranges.first_after(key, entry.sequence).min(*until));
        self.snapshots.retain(key, &superseded.iter().map(until).collect());
    }

    /// Deletes a range of keys of one table.
    pub(super) fn delete_range(&mut self, random: &mut Rng) {
        let (one, other) = (self.random_key(random), random.u32(1..20));
        let mut end = one.clone();
        let last = end.len() - 1;
        end[last] = end[last].saturating_add(other as u8);
        let range = RangeTombstone { start: one.into(), end: end.into(), sequence: self.next_sequence };
        self.next_sequence += 1;
        for (_, chain) in self.model.iter_mut().filter(|(key, _)| range.contains(key)) {
            chain.cut(range.sequence, &mut Superseded::new());
        }
        self.ranges.insert(range.clone());
        self.log.push(Logged::Range(range));
    }

    /// Moves the record of some key elsewhere.
    pub(super) fn relocate(&mut self, random: &mut Rng) {
        let key = self.random_key(random);
        let Some(chain) = self.model.get_mut(&key) else { return };
        let movable: Vec<Entry> = chain.entries().iter().filter(|entry| !entry.is_delete()).cloned().collect();
        let Some(old) = movable.get(random.usize(..movable.len().max(1))) else { return };
        let mut entry = Entry { location: self.segments.place(random), ..old.clone() };
        // An operand and what is older become one put; a put that has expired becomes a delete.
        if random.u8(..4) == 0 {
            entry.kind = if old.kind == Kind::Put { Kind::Delete } else { Kind::Put };
            entry.form.chunked = false;
            entry = with_value(entry);
        }
        chain.insert(entry.clone(), &mut Superseded::new());
        // A snapshot that sees the record may be given either copy, which say the same, and is given the later one.
        for (_, _, model) in &mut self.open_snapshots {
            let seen = model.get_mut(&key).filter(|seen| seen.entries().contains(old));
            seen.into_iter().for_each(|seen| seen.insert(entry.clone(), &mut Superseded::new()));
        }
        assert!(self.publish_move(&key, old.location, entry.clone()), "the model says that it is current");
        self.log.push(Logged::Move(key, old.location, entry));
    }

    /// As `LmdbIndex::relocate`.
    fn publish_move(&self, key: &[u8], from: Location, entry: Entry) -> bool {
        let freezes = self.memtable.freezes();
        let chain = self.lookup(key, &View::LATEST).expect("nothing fails");
        let Some(current) = chain.at_place(from).cloned() else { return false };
        let looked_up = LookedUp { chain: Arc::new(chain), freezes };
        let mut superseded = Superseded::new();
        let retain = |superseded: &Superseded| self.retain(key, superseded);
        let replaced = self.memtable.replace(key, &looked_up, &current, entry.clone(), &mut superseded, retain);
        let replaced = replaced.expect("no freeze");
        if replaced {
            self.segments.count(key, &entry, 1);
            superseded.iter().for_each(|(entry, _)| self.segments.count(key, entry, -1));
        }
        replaced
    }

    /// As `LmdbIndex::chain`.
    fn lookup(&self, key: &[u8], view: &View) -> Result<VersionChain> {
        let deleted = self.ranges.newest_containing(key, view.sequence);
        let mut chain = VersionChain::default();
        self.memtable.lookup(key, view.sequence, &mut chain);
        let mut upper = chain.clone();
        if !chain.is_complete() {
            self.runs().begin_lookup(key, view.sequence)?.finish(key, &mut chain)?;
        }
        if !view.is_latest() {
            // A run may have an earlier copy of a record that is retained, in a segment that was used again.
            self.snapshots.add_versions(key, view, &mut upper)?;
            upper.add_below(&chain, view.sequence);
            chain = upper;
        }
        chain.cut(deleted, &mut Superseded::new());
        Ok(chain)
    }

    /// Flushes the memtable, sometimes with records in it that are later than the position.
    pub(super) fn flush(&mut self, random: &mut Rng) -> Result<()> {
        if let Some(immutable) = self.unfinished.take() {
            self.flush_immutable(immutable)?;
        }
        self.retire_empty_segments();
        let (batch, next_sequence) = (self.log.len() as u64, self.next_sequence);
        for _ in 0..random.usize(..10).saturating_sub(5) {
            self.write(random);
        }
        let position = Position { batch, checksum: 0, segment: 1, life: 1, offset: 4096 };
        let immutable = self.memtable.freeze(position, next_sequence);
        self.flush_immutable(immutable)
    }

    fn flush_immutable(&mut self, immutable: ImmutableMemtable) -> Result<()> {
        let ranges = self.ranges.oldest_while(usize::MAX, |range| range.sequence < immutable.next_sequence);
        let flushed = self.context(|context| self.runs().flush(&immutable, &ranges, context, &|_| ()));
        if let Err(error) = flushed {
            self.unfinished = Some(immutable);
            return Err(error);
        }
        self.memtable.forget_immutable();
        self.flushed = immutable.position.batch as usize;
        self.forget_ranges();
        // Segments are used again in an own life, once the runs have all that came before they were emptied.
        if self.open_snapshots.is_empty() {
            let flushed = self.flushed;
            for (segment, _) in self.segments.retired.extract_if(.., |(_, retired)| *retired <= flushed) {
                self.segments.lives.insert(segment, 0);
                self.segments.live.borrow_mut().remove(&segment);
                self.segments.chunks.borrow_mut().retain(|(_, of), _| *of != segment);
            }
        }
        Ok(())
    }

    fn forget_ranges(&self) {
        // Entries of a memtable whose flush has failed are still there.
        let flushed = if self.unfinished.is_some() { 0 } else { u64::MAX };
        let gone = self.runs().carried_out(&self.ranges, flushed).expect("it is open");
        self.ranges.forget(|range| gone.contains(range));
    }

    fn retire_empty_segments(&mut self) {
        let in_use: BTreeSet<u32> = self.model.values().flat_map(segments_of).collect();
        let retired: BTreeSet<u32> = self.segments.retired.iter().map(|(segment, _)| *segment).collect();
        let (length, current) = (self.log.len(), self.segments.current);
        let is_empty = |(segment, life): (&u32, &u64)| {
            let wanted = *life > 0 && *segment != current && !in_use.contains(segment) && !retired.contains(segment);
            wanted.then_some((*segment, length))
        };
        let empty: Vec<_> = self.segments.lives.iter().filter_map(is_empty).collect();
        self.segments.retired.extend(empty);
    }

    pub(super) fn merge(&mut self, random: &mut Rng) -> Result<bool> {
        let budget = if random.bool() { FILE_BYTES } else { random.u64(1..20_000) };
        let merged = self.context(|context| self.runs().merge_step(budget, context))?;
        self.forget_ranges();
        Ok(merged)
    }

    /// A step, in whose middle another thread does one of another merge. Says whether that has found one.
    pub(super) fn merge_two(&mut self, random: &mut Rng) -> Result<bool> {
        let budget = if random.bool() { FILE_BYTES } else { random.u64(1..20_000) };
        let beside = Cell::new(None);
        let begin_beside = || self.context(|context| self.runs().merge_step_unless_busy(budget, context));
        self.context(|context| {
            // Asked for each table of which keys are written.
            let compression_of = |table| {
                let known = beside.take().unwrap_or_else(|| as_another_thread(begin_beside));
                beside.set(Some(known));
                (context.compression_of)(table)
            };
            self.runs().merge_step(budget, &RunContext { compression_of: &compression_of, ..*context })
        })?;
        self.forget_ranges();
        Ok(beside.take().transpose()?.flatten() == Some(true))
    }

    pub(super) fn carry_out_ranges(&mut self) -> Result<bool> {
        let carried_out = self.context(|context| self.runs().range_step(Urgency::WherePaid, context))?;
        self.forget_ranges();
        Ok(carried_out)
    }

    /// Drops a table, and makes another.
    pub(super) fn change_table(&mut self, random: &mut Rng) {
        if !self.open_snapshots.is_empty() {
            return;
        }
        let number = random.usize(..self.tables.len());
        let next = self.tables.iter().chain(&self.gone).max().expect("there are some") + 1;
        let table = std::mem::replace(&mut self.tables[number], next);
        self.gone.insert(table);
        self.model.retain(|key, _| !key.starts_with(&table.to_be_bytes()));
    }

    /// A step of purging a table that is gone; true when there is nothing left to do.
    pub(super) fn purge(&mut self) -> Result<bool> {
        let tables = self.runs().tables()?;
        let Some(&table) = self.gone.iter().find(|table| tables.contains(table)) else { return Ok(true) };
        if self.memtable.len() > 0 {
            return Ok(false);
        }
        if self.context(|context| self.runs().purge_step(table, 0, context))? {
            assert!(!self.runs().tables()?.contains(&table), "nothing of table {table} is left");
        }
        Ok(false)
    }

    pub(super) fn change_snapshots(&mut self, random: &mut Rng) {
        if self.open_snapshots.len() < 3 && random.bool() {
            self.begin_snapshot();
        } else if !self.open_snapshots.is_empty() {
            let number = random.usize(..self.open_snapshots.len());
            self.snapshots.end(self.open_snapshots.remove(number).0);
        }
    }

    pub(super) fn begin_snapshot(&mut self) {
        let (hold, _) = self.snapshots.begin(0);
        let sequence = self.next_sequence - 1;
        self.snapshots.set_sequence(hold, sequence);
        self.open_snapshots.push((hold, sequence, self.model.clone()));
    }

    pub(super) fn end_snapshots(&mut self) {
        self.open_snapshots.drain(..).for_each(|(hold, ..)| self.snapshots.end(hold));
    }

    pub(super) fn reopen(&mut self) {
        self.end_snapshots();
        self.runs().close();
        self.recover().expect("the runs can be opened");
    }

    /// Opens the runs and brings the memtable up to the log, as after a crash.
    pub(super) fn recover(&mut self) -> Result<()> {
        self.open()?;
        self.open_snapshots.clear();
        self.snapshots = Snapshots::new(Arc::new(Retention::default()));
        self.memtable = Memtable::default();
        self.unfinished = None;
        self.ranges = Ranges::default();
        self.runs().range_tombstones().expect("it is open").into_iter().for_each(|range| self.ranges.insert(range));
        let from = self.runs().position().expect("it is open").map_or(0, |position| position.batch as usize);
        assert!(from >= self.flushed, "a flush that has succeeded is there");
        self.flushed = from;
        let counts = self.counts_of_runs();
        (self.segments.live, self.segments.chunks) = (RefCell::new(counts.0), RefCell::new(counts.1));
        let is_gone = |key: &[u8]| !self.tables.iter().any(|table| key.starts_with(&table.to_be_bytes()));
        for logged in &self.log[from..] {
            match logged {
                Logged::Publish(key, entry) if !is_gone(key) => self.publish(key, entry.clone()),
                Logged::Move(key, from, entry) if !is_gone(key) => drop(self.publish_move(key, *from, entry.clone())),
                Logged::Range(range) if !is_gone(&range.start) => self.ranges.insert(range.clone()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// An entry with the value that it must be found with, if it can have one: some have none, as if they were longer.
fn with_value(entry: Entry) -> Entry {
    let has_value =
        !entry.is_delete() && entry.separate.is_none() && !entry.form.chunked && !entry.sequence.is_multiple_of(3);
    // Some are long enough for several blocks.
    let length = entry.sequence as usize % 64 * if entry.sequence.is_multiple_of(2) { 16 } else { 1 };
    let inline = has_value.then(|| [&[entry.kind as u8][..], &vec![entry.sequence as u8; length]].concat().into());
    Entry { inline, ..entry }
}

fn segments_of(chain: &VersionChain) -> Vec<u32> {
    chain.entries().iter().filter(|entry| !entry.is_delete()).map(|entry| entry.location.segment).collect()
}
