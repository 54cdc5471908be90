//! Filters in merges that take several steps: a pass lives as long as its merge, and so does its time.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fastrand::Rng;

use super::sizes::entry;
use super::world::{DIRECTORY, STORE};
use crate::filter::{CompactionFilter, FilterEntry, FilterPass, FilterRange, Mark, TableFilter, Verdict};
use crate::format::position::Position;
use crate::index::chain::Superseded;
use crate::index::codec::encode_key;
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::Ranges;
use crate::index::runs::filtering::Filtering;
use crate::index::runs::{RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::{Call, SimDevice};
use crate::retention::Retention;

const TABLE: u32 = 16;

/// The table without a filter, whose keys come after all others.
const PLAIN_TABLE: u32 = 17;

/// What a step of a merge writes, so that one takes several.
const STEP_BYTES: u64 = 16 << 10;

/// What a filter makes of a key number.
#[derive(Clone, Copy)]
struct Rule {
    /// From when on it may go...
    mark: fn(u32) -> Mark,
    /// ...and whether it does.
    goes: fn(u32) -> bool,
}

impl Default for Rule {
    fn default() -> Rule {
        Rule { mark: mark_of, goes: |number| number.is_multiple_of(2) }
    }
}

/// The times of a run of 1000 keys lie apart.
const SPREAD: Rule = Rule { mark: |number| Mark::From(u64::from(number % 1000) + 10), goes: |_| true };

/// Of a key number: from when on it goes.
fn mark_of(number: u32) -> Mark {
    match number % 4 {
        0 => Mark::From(u64::from(number % 8) + 10),
        1 => Mark::From(5),
        _ => Mark::Never,
    }
}

fn number_of(key: &[u8]) -> u32 {
    u32::from_be_bytes(key.try_into().expect("keys have four bytes"))
}

/// The time of a pass, and what it was asked about.
type Asked = (u64, Vec<u32>);

/// Gives up even keys whose time has come, and keeps those that it could give up with odd ones.
#[derive(Clone, Default)]
struct Counting {
    passes: Arc<Mutex<Vec<Asked>>>,
    rule: Rule,
    number: usize,
    now_ms: u64,
}

impl CompactionFilter for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn mark(&self, entry: &FilterEntry<'_>) -> Mark {
        (self.rule.mark)(number_of(entry.key))
    }

    fn begin(&self, range: &FilterRange<'_>) -> Box<dyn FilterPass> {
        let mut passes = self.passes.lock().expect("nobody panics with it");
        passes.push((range.now_ms, Vec::new()));
        Box::new(Counting { number: passes.len() - 1, now_ms: range.now_ms, ..self.clone() })
    }
}

impl FilterPass for Counting {
    fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
        for (entry, verdict) in entries.iter().zip(verdicts) {
            let number = number_of(entry.key);
            self.passes.lock().expect("nobody panics with it")[self.number].1.push(number);
            let is_over = matches!((self.rule.mark)(number), Mark::From(time_ms) if time_ms <= self.now_ms);
            *verdict = if is_over && (self.rule.goes)(number) { Verdict::Drop } else { Verdict::Keep };
        }
    }
}

/// Runs with a filter, and what was told of it.
struct Filtered {
    device: SimDevice,
    runs: Runs<SimDevice>,
    filter: Counting,
    now_ms: Cell<u64>,
    dropped: RefCell<Vec<u32>>,
    /// There is room for more as long as fewer were dropped.
    most_dropped: Cell<usize>,
    asks: Cell<bool>,
    is_registered: Cell<bool>,
    snapshots: Snapshots,
    sequence: Cell<u64>,
}

impl Filtered {
    fn new() -> Filtered {
        let device = SimDevice::new(1);
        Filtered {
            runs: Self::open(&device),
            device,
            filter: Counting::default(),
            now_ms: Cell::new(1),
            dropped: RefCell::default(),
            most_dropped: Cell::new(usize::MAX),
            asks: Cell::new(true),
            is_registered: Cell::new(true),
            snapshots: Snapshots::new(Arc::new(Retention::default())),
            sequence: Cell::new(1),
        }
    }

    fn open(device: &SimDevice) -> Runs<SimDevice> {
        Runs::open((device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails")
    }

    fn reopen(&mut self) {
        self.runs.close();
        self.runs = Self::open(&self.device);
    }

    fn with<T>(&self, work: impl FnOnce(&Runs<SimDevice>, &RunContext<'_>) -> T) -> T {
        let registered = TableFilter::Registered("counting".into(), Arc::new(self.filter.clone()));
        let filter = if self.is_registered.get() { registered } else { TableFilter::Unregistered };
        let filter_of = |table| if table == TABLE { filter.clone() } else { TableFilter::None };
        let dropped = |table, key: &[u8], sequence| {
            assert!(table == TABLE && sequence > 0);
            self.dropped.borrow_mut().push(number_of(key));
        };
        let filtering = Filtering {
            filter_of: &filter_of,
            now_ms: self.now_ms.get(),
            asks: self.asks.get(),
            has_room: &|| self.dropped.borrow().len() < self.most_dropped.get(),
            dropped: &dropped,
            asked: &|_| (),
            failed: &|error| panic!("{error}"),
        };
        let ranges = Ranges::default();
        let context = RunContext { filtering: Some(&filtering), ..RunContext::quiet(&self.snapshots, &ranges) };
        work(&self.runs, &context)
    }

    fn flush(&self, numbers: impl Iterator<Item = u32>) {
        let (memtable, mut random) = (Memtable::default(), Rng::with_seed(1));
        for number in numbers {
            for table in [TABLE, PLAIN_TABLE] {
                let sequence = self.sequence.replace(self.sequence.get() + 1);
                let key = encode_key(table, &number.to_be_bytes());
                memtable.insert(&key, entry(sequence, &mut random).into(), &mut Superseded::new(), |_| ());
            }
        }
        let next = self.sequence.get();
        let position = Position { batch: next, checksum: 0, segment: 1, life: 1, offset: 4096 };
        self.with(|runs, context| runs.flush(&memtable.freeze(position, next), &[], context, &|_| ()))
            .expect("nothing fails");
    }

    fn merge_step(&self) -> crate::Result<bool> {
        self.with(|runs, context| runs.merge_step(STEP_BYTES, context))
    }

    fn filter_step(&self) -> bool {
        self.with(|runs, context| runs.filter_step(context)).expect("nothing fails")
    }

    /// What was dropped since this was asked last.
    fn take_dropped(&self) -> Vec<u32> {
        std::mem::take(&mut self.dropped.borrow_mut())
    }

    fn take_passes(&self) -> Vec<Asked> {
        std::mem::take(&mut self.filter.passes.lock().expect("nobody panics with it"))
    }
}

/// As many runs as are merged into one, each with a part of the keys.
fn with_runs(keys: u32) -> Filtered {
    let filtered = Filtered::new();
    for run in 0..5 {
        filtered.flush((0..keys).filter(|number| number % 5 == run));
    }
    filtered
}

#[test]
fn a_pass_and_its_time_last_from_step_to_step() {
    let filtered = with_runs(4000);
    filtered.now_ms.set(20);
    let mut steps = 0;
    while filtered.merge_step().expect("nothing fails") {
        steps += 1;
        filtered.now_ms.set(20 + steps);
    }
    assert!(steps > 4, "{steps} steps");
    assert_eq!(filtered.take_passes(), [(20, (0..4000).collect())]);
    let dropped: Vec<u32> = (0..4000).step_by(4).collect();
    assert_eq!(*filtered.dropped.borrow(), dropped);
    assert!(!filtered.filter_step(), "everything was asked about");
}

#[test]
fn after_a_failure_a_pass_begins_again_with_the_same_time() {
    let filtered = with_runs(4000);
    filtered.now_ms.set(20);
    assert!(filtered.merge_step().expect("nothing fails"));
    filtered.device.fail(Call::Write, 0, 1, |path| path.extension().is_some_and(|extension| extension == "run"));
    filtered.now_ms.set(30);
    assert!(filtered.merge_step().is_err());
    while filtered.merge_step().expect("nothing fails") {}
    let passes = filtered.take_passes();
    assert_eq!(passes.iter().map(|(now_ms, _)| *now_ms).collect::<Vec<_>>(), [20, 20]);
    let mut asked: Vec<u32> = passes.into_iter().flat_map(|(_, asked)| asked).collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked, (0..4000).collect::<Vec<_>>());
}

#[test]
fn a_file_is_due_when_a_time_has_come_and_once_in_a_process() {
    let mut filtered = Filtered::new();
    filtered.flush(0..64);
    filtered.now_ms.set(4);
    assert!(!filtered.filter_step(), "nothing may go yet");
    filtered.now_ms.set(5);
    assert!(filtered.filter_step());
    assert_eq!(filtered.take_passes().len(), 1);
    assert!(filtered.dropped.borrow().is_empty(), "odd keys are kept");
    assert!(!filtered.filter_step());
    filtered.reopen();
    assert!(!filtered.filter_step(), "the file says what was kept");
    filtered.now_ms.set(10);
    assert!(filtered.filter_step(), "more may go");
    assert_eq!(*filtered.dropped.borrow(), (0..64).step_by(8).collect::<Vec<_>>());
    filtered.now_ms.set(13);
    assert!(!filtered.filter_step(), "what was given up is not asked about again");
    filtered.reopen();
    filtered.dropped.borrow_mut().clear();
    assert!(filtered.filter_step(), "but by the next process, which may not find its delete");
    filtered.now_ms.set(14);
    assert!(filtered.filter_step());
    assert_eq!(filtered.take_passes().len(), 3);
    let (hold, _ended) = filtered.snapshots.begin(0);
    filtered.snapshots.set_sequence(hold, filtered.sequence.get() - 1);
    filtered.flush(100..104);
    assert!(!filtered.filter_step(), "the file waits for the end of a snapshot that does not see all of it");
    filtered.snapshots.end(hold);
    assert!(filtered.filter_step());
}

#[test]
fn files_whose_times_lie_apart_are_written_again_a_few_times_and_all_have_their_turn() {
    let mut filtered = Filtered::new();
    filtered.filter.rule = SPREAD;
    filtered.flush(0..1000);
    filtered.flush(1000..2000);
    let mut steps = 0;
    for now_ms in 10..1200 {
        filtered.now_ms.set(now_ms);
        steps += u32::from(filtered.filter_step());
    }
    let dropped: BTreeSet<u32> = filtered.take_dropped().into_iter().collect();
    assert_eq!(dropped, (0..2000).collect());
    assert!((4..20).contains(&steps), "{steps} files were written");
}

/// A day after the first time of a file it is written again, also for the sake of a few.
#[test]
fn nothing_waits_for_long() {
    const LATER_MS: u64 = 1_000_000_000;
    let mut filtered = Filtered::new();
    let mark = |number| Mark::From(if number == 7 { 10 } else { LATER_MS });
    filtered.filter.rule = Rule { mark, ..SPREAD };
    filtered.flush(0..1000);
    let day_ms = 24 * 60 * 60 * 1000;
    filtered.now_ms.set(day_ms + 9);
    assert!(!filtered.filter_step());
    filtered.now_ms.set(day_ms + 10);
    assert!(filtered.filter_step() && !filtered.filter_step());
    assert_eq!(filtered.take_dropped(), [7]);
}

#[test]
fn a_file_with_more_than_there_is_room_for_is_dropped_in_one_go() {
    let mut filtered = Filtered::new();
    filtered.filter.rule = SPREAD;
    filtered.flush(0..1000);
    filtered.now_ms.set(2000);
    filtered.most_dropped.set(100);
    let mut dropped = BTreeSet::new();
    for _ in 0..20 {
        filtered.filter_step();
        dropped.extend(filtered.take_dropped());
    }
    assert_eq!(dropped, (0..1000).collect());
    assert_eq!(filtered.take_passes().len(), 1, "and that is not asked about again");
    filtered.most_dropped.set(0);
    filtered.flush(1000..2000);
    assert!(!filtered.filter_step(), "without room nothing begins");
}

#[test]
fn nothing_is_asked_while_the_store_is_opened_and_marks_stay() {
    let filtered = with_runs(4000);
    filtered.now_ms.set(20);
    filtered.asks.set(false);
    assert!(!filtered.filter_step() && filtered.merge_step().expect("nothing fails"));
    while filtered.merge_step().expect("nothing fails") {}
    assert_eq!((filtered.take_passes().len(), filtered.take_dropped().len()), (0, 0));
    filtered.asks.set(true);
    filtered.now_ms.set(30);
    while filtered.filter_step() {}
    assert!(filtered.take_passes().iter().all(|(now_ms, _)| *now_ms == 30));
    let dropped: BTreeSet<u32> = filtered.take_dropped().into_iter().collect();
    assert_eq!(dropped, (0..4000).step_by(4).collect());
}

/// A pass that went on behind what it was not asked about would miss that.
#[test]
fn a_step_without_room_ends_a_pass() {
    let filtered = with_runs(4000);
    filtered.now_ms.set(20);
    assert!(filtered.merge_step().expect("nothing fails"));
    filtered.most_dropped.set(0);
    assert!(filtered.merge_step().expect("nothing fails"));
    filtered.most_dropped.set(usize::MAX);
    while filtered.merge_step().expect("nothing fails") {}
    let passes = filtered.take_passes();
    assert_eq!(passes.len(), 2);
    for (now_ms, asked) in &passes {
        assert_eq!(*now_ms, 20);
        assert!(asked.windows(2).all(|pair| pair[0] + 1 == pair[1]), "a pass has a gap");
    }
    assert!(passes[0].1.last().map(|last| last + 1) < passes[1].1.first().copied());
}

#[test]
fn a_merge_without_the_filter_carries_marks() {
    let mut filtered = with_runs(400);
    filtered.now_ms.set(20);
    filtered.is_registered.set(false);
    assert!(!filtered.filter_step(), "no filter is there to be asked");
    while filtered.merge_step().expect("nothing fails") {}
    filtered.is_registered.set(true);
    filtered.reopen();
    while filtered.filter_step() {}
    let dropped: BTreeSet<u32> = filtered.take_dropped().into_iter().collect();
    assert_eq!(dropped, (0..400).step_by(4).collect());
}
