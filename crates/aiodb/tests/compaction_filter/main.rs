//! Compaction filters: what they give up goes for good, and nothing else; what they are asked, when, and how often.

mod panics;
mod stores;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aiodb::filter::{CompactionFilter, Expiry, FilterEntry, FilterPass, FilterRange, Mark, Verdict};
use aiodb::{CompactionFilters, Db, Durability, IndexKind, Options, ScanOptions, Step, Table, TableOptions};
use support::{quiet, scratch};
use tempfile::TempDir;

pub(crate) const LATER_MS: u64 = 100_000_000_000_000;

/// From when on a record with a key goes.
type Goes = Box<dyn Fn(&[u8]) -> Mark + Send + Sync>;

/// What happens before a verdict on a key.
type Before = Box<dyn FnMut(&[u8]) + Send>;

/// The keys that each pass was asked about.
type Seen = Arc<Mutex<Vec<Vec<Vec<u8>>>>>;

/// What a test has a filter do, and what the filter was asked.
#[derive(Default)]
pub(crate) struct Told {
    /// From when on a record goes; `None` = it stays.
    goes: Option<Goes>,
    /// Is called before each verdict.
    before: Mutex<Option<Before>>,
    marked: AtomicUsize,
    judged: Mutex<Vec<Vec<u8>>>,
    /// The time of each pass, and whether its merge had the oldest run.
    passes: Mutex<Vec<(u64, bool)>>,
    pub(crate) panics: AtomicBool,
}

#[derive(Clone, Default)]
pub(crate) struct Filter(pub(crate) Arc<Told>);

impl Filter {
    pub(crate) fn new(goes: impl Fn(&[u8]) -> Mark + Send + Sync + 'static) -> Filter {
        Filter(Arc::new(Told { goes: Some(Box::new(goes)), ..Told::default() }))
    }

    fn judged(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.0.judged.lock().expect("nobody panics with it"))
    }

    fn passes(&self) -> Vec<(u64, bool)> {
        std::mem::take(&mut self.0.passes.lock().expect("nobody panics with it"))
    }

    fn mark_of(&self, key: &[u8]) -> Mark {
        self.0.goes.as_ref().map_or(Mark::Never, |goes| goes(key))
    }
}

impl CompactionFilter for Filter {
    fn name(&self) -> &str {
        "told"
    }

    fn mark(&self, entry: &FilterEntry<'_>) -> Mark {
        self.0.marked.fetch_add(1, Ordering::SeqCst);
        self.mark_of(entry.key)
    }

    fn begin(&self, range: &FilterRange<'_>) -> Box<dyn FilterPass> {
        // A pass that begins later in the same merge has the same time.
        std::thread::sleep(Duration::from_millis(5));
        self.0.passes.lock().expect("nobody panics with it").push((range.now_ms, range.has_oldest));
        Box::new(Pass { told: self.clone(), now_ms: range.now_ms })
    }
}

struct Pass {
    told: Filter,
    now_ms: u64,
}

impl FilterPass for Pass {
    fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
        assert!(!self.told.0.panics.load(Ordering::SeqCst), "the filter has a bug");
        for (entry, verdict) in entries.iter().zip(verdicts) {
            if let Some(before) = self.told.0.before.lock().expect("nobody panics with it").as_mut() {
                before(entry.key);
            }
            self.told.0.judged.lock().expect("nobody panics with it").push(entry.key.to_vec());
            *verdict = match self.told.mark_of(entry.key) {
                Mark::From(time_ms) if time_ms <= self.now_ms => Verdict::Drop,
                Mark::Always => Verdict::Drop,
                _ => Verdict::Keep,
            };
        }
    }
}

pub(crate) fn options(filters: CompactionFilters) -> Options {
    Options { compaction_filters: filters, ..quiet() }
}

pub(crate) fn table_options(filter: &str) -> TableOptions {
    TableOptions { inline_bytes: 100, compaction_filter: Some(filter.into()), ..IndexKind::Lsm.into() }
}

/// A store with a table `t` that has this filter.
pub(crate) fn open(filter: impl CompactionFilter + 'static) -> (TempDir, Db, Table) {
    let (directory, name) = (scratch(), filter.name().to_string());
    let db = Db::open(directory.path(), options(CompactionFilters::default().with(filter))).expect("it can be made");
    let table = db.create_table_with("t", table_options(&name)).expect("the table can be made");
    (directory, db, table)
}

pub(crate) fn reopen(db: Db, path: &Path, options: Options) -> (Db, Table) {
    db.close().expect("it closes");
    drop(db);
    let db = Db::open(path, options).expect("it can be opened again");
    let table = db.table("t").expect("the table is there");
    (db, table)
}

pub(crate) fn upkeep(db: &Db) {
    (0..40).for_each(|_| db.step(Step::Upkeep).expect("upkeep works"));
}

pub(crate) fn put(table: &Table, key: &str, value: &[u8]) {
    table.put_with(key.as_bytes(), value, Durability::None).expect("a put works");
}

pub(crate) fn until(time_ms: u64, text: &str) -> Vec<u8> {
    [&time_ms.to_le_bytes(), text.as_bytes()].concat()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_millis() as u64
}

/// The keys of a table, by a scan; gets must agree.
pub(crate) fn keys(table: &Table) -> Vec<String> {
    let scan = table.scan(ScanOptions::all()).expect("a scan begins");
    let keys = scan.map(|record| record.expect("a record can be read").0);
    let keys: Vec<_> = keys.map(|key| String::from_utf8(key).expect("keys are text")).collect();
    for key in &keys {
        assert!(table.get(key.as_bytes()).expect("a get works").is_some(), "{key}");
    }
    keys
}

#[test]
fn what_has_expired_goes_for_good_and_nothing_else() {
    let (directory, db, table) = open(Expiry);
    assert_eq!(db.stats().format_version, 5);
    put(&table, "expired", &until(1, "a"));
    put(&table, "later", &until(LATER_MS, "b"));
    put(&table, "never", &until(0, "c"));
    put(&table, "short", b"d");
    put(&table, "unseen", &until(1, &"e".repeat(200)));
    table.put_with(&[b'x'; 600], &until(1, "long key"), Durability::None).expect("a put works");
    db.checkpoint().expect("a checkpoint works");
    assert!(table.get(b"expired").expect("a get works").is_some(), "gets do not ask the filter");
    upkeep(&db);
    assert_eq!(table.get(b"expired").expect("a get works"), None);
    assert!(table.get(&[b'x'; 600]).expect("a get works").is_some(), "runs have a part of its key");
    table.delete(&[b'x'; 600]).expect("a delete works");
    let left = ["later", "never", "short", "unseen"];
    assert_eq!(keys(&table), left);
    let metrics = db.metrics();
    assert_eq!((metrics.filter_dropped_keys, metrics.filter_waiting_keys), (1, 0));
    assert!(db.verify(&mut |_, _| {}).expect("it can be verified").damage.is_empty());
    // The log has it too: an index that is made again does not bring it back.
    let (db, table) = reopen(db, directory.path(), quiet());
    assert_eq!(keys(&table), left);
    assert_eq!(table.options(), table_options("expiry"));
    let (db, table) = reopen(db, directory.path(), Options { rebuild_index: true, ..quiet() });
    assert_eq!(keys(&table), left, "rebuilt");
    db.close().expect("it closes");
}

/// The newest version goes, in a merge without the older ones; they stay hidden, also once the newest is gone from runs and log.
#[test]
fn older_versions_do_not_come_back() {
    let (directory, db, table) = open(Expiry);
    for number in 0..200 {
        put(&table, &format!("{number:03}"), &until(0, "old"));
    }
    db.checkpoint().expect("a checkpoint works");
    for number in (0..200).step_by(2) {
        put(&table, &format!("{number:03}"), &until(1, "new"));
    }
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    let left: Vec<_> = (1..200).step_by(2).map(|number| format!("{number:03}")).collect();
    assert_eq!(keys(&table), left);
    assert_eq!(db.metrics().filter_dropped_keys, 100);
    // Commits, merges and reclaim until little is left of the old records.
    for round in 0..40u8 {
        table.put_with(b"other", &vec![round; 400_000], Durability::None).expect("a put works");
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    table.delete(b"other").expect("a delete works");
    assert_eq!(keys(&table), left);
    let (db, table) =
        reopen(db, directory.path(), Options { rebuild_index: true, ..options(CompactionFilters::default()) });
    assert_eq!(keys(&table), left);
    db.close().expect("it closes");
}

#[test]
fn snapshots_go_on_seeing_and_filters_are_asked_below_them_only() {
    let told = Filter::new(|_| Mark::From(0));
    let (_directory, db, table) = open(told.clone());
    put(&table, "below", b"1");
    let snapshot = db.snapshot().expect("a snapshot works");
    put(&table, "above", b"2");
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    assert_eq!(told.judged(), [b"below"; 0], "no merge is made for a run that has something above");
    put(&table, "above too", b"3");
    for _ in 0..8 {
        put(&table, "other", b"4");
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    assert_eq!(told.judged(), [b"below"], "but one that comes by asks");
    assert_eq!(keys(&table), ["above", "above too", "other"]);
    let seen = |key: &[u8]| snapshot.get(&table, key).expect("a snapshot can be read");
    assert_eq!(seen(b"below").as_deref(), Some(&b"1"[..]));
    assert_eq!(seen(b"above"), None);
    drop(snapshot);
    upkeep(&db);
    assert_eq!(keys(&table), [""; 0]);
}

#[test]
fn a_merge_without_work_for_the_filter_does_not_call_it() {
    let told = Filter::new(|key| if key.starts_with(b"later") { Mark::From(LATER_MS) } else { Mark::Never });
    let (directory, db, table) = open(told.clone());
    let other = db.create_table("other", IndexKind::Lsm).expect("a table can be made");
    for round in 0..16 {
        for number in 0..20 {
            put(&table, &format!("later {round} {number}"), b"value");
            put(&table, &format!("never {round} {number}"), b"value");
            put(&other, &format!("{round} {number}"), b"value");
        }
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    assert!(db.metrics().runs < 8, "runs are merged");
    let marked = || told.0.marked.load(Ordering::SeqCst);
    assert_eq!((marked(), told.judged().len(), told.passes().len()), (16 * 40, 0, 0));
    let (db, table) = reopen(db, directory.path(), options(CompactionFilters::default().with(told.clone())));
    for round in 0..8 {
        put(&table, &format!("never {round} again"), b"value");
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    assert_eq!((marked(), told.judged().len(), told.passes().len()), (16 * 40 + 8, 0, 0));
    assert_eq!(db.metrics().filter_asked_entries, 0);
    db.close().expect("it closes");
}

/// A deletion lies at a key of its own, and a pass takes what follows it along: over batches of entries, in the order of keys, once each.
#[test]
fn state_lasts_over_a_range_of_keys() {
    struct Covering(Seen);
    struct Covered {
        seen: Seen,
        number: usize,
        group: Option<Vec<u8>>,
    }
    impl CompactionFilter for Covering {
        fn name(&self) -> &str {
            "covering"
        }
        fn mark(&self, entry: &FilterEntry<'_>) -> Mark {
            if entry.value == Some(b"deleted") { Mark::From(1) } else { Mark::Never }
        }
        fn begin(&self, range: &FilterRange<'_>) -> Box<dyn FilterPass> {
            let mut seen = self.0.lock().expect("nobody panics with it");
            assert!(range.has_oldest && range.now_ms > 1);
            seen.push(Vec::new());
            Box::new(Covered { seen: Arc::clone(&self.0), number: seen.len() - 1, group: None })
        }
    }
    impl FilterPass for Covered {
        fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
            for (entry, verdict) in entries.iter().zip(verdicts) {
                self.seen.lock().expect("nobody panics with it")[self.number].push(entry.key.to_vec());
                if entry.value == Some(b"deleted") {
                    self.group = Some(entry.key.to_vec());
                }
                let covered = self.group.as_ref().is_some_and(|group| entry.key.starts_with(group));
                *verdict = if covered { Verdict::Drop } else { Verdict::Keep };
            }
        }
    }
    let seen = Seen::default();
    let (_directory, db, table) = open(Covering(Arc::clone(&seen)));
    for group in ["a", "b", "c"] {
        (0..700).for_each(|number| put(&table, &format!("{group}{number:04}"), b"row"));
    }
    put(&table, "b", b"deleted");
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    let left = keys(&table);
    assert_eq!(left.len(), 1400);
    assert!(left.iter().all(|key| !key.starts_with('b')));
    let seen = seen.lock().expect("nobody panics with it");
    assert_eq!(seen.len(), 1, "one pass");
    assert!(seen[0].windows(2).all(|pair| pair[0] < pair[1]) && seen[0].len() >= 1401, "in order, to the end");
}

/// All passes of a merge have one time; the whole index is one merge here, of two tables.
#[test]
fn the_clock_stands_still_for_one_merge() {
    let told = Filter::new(|_| Mark::Always);
    let (_directory, db, table) = open(told.clone());
    let second = db.create_table_with("second", table_options("told")).expect("a table can be made");
    for round in 0..4 {
        for table in [&table, &second] {
            put(table, &format!("key {round}"), b"value");
        }
        db.checkpoint().expect("a checkpoint works");
        assert_eq!(told.passes(), [], "no merge is made for what may go at any time");
    }
    let before_ms = now_ms();
    put(&table, "more", b"value");
    db.checkpoint().expect("a checkpoint works");
    db.step(Step::Merge).expect("a merge works");
    let passes = told.passes();
    let [(first_ms, _), (second_ms, _)] = passes[..] else { panic!("two passes: {passes:?}") };
    assert_eq!(first_ms, second_ms);
    assert!((before_ms..=now_ms()).contains(&first_ms));
}

#[test]
fn what_is_due_later_goes_when_its_time_comes_though_nobody_writes() {
    let (_directory, db, table) = open(Expiry);
    let soon_ms = now_ms() + 1500;
    put(&table, "soon", &until(soon_ms, "a"));
    put(&table, "later", &until(LATER_MS, "b"));
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    if now_ms() < soon_ms {
        assert!(db.metrics().filter_asked_entries == 0 || now_ms() >= soon_ms);
    }
    std::thread::sleep(Duration::from_millis(soon_ms.saturating_sub(now_ms()) + 10));
    upkeep(&db);
    assert_eq!(keys(&table), ["later"]);
}

/// The key is written to after the filter has seen it, and before it is deleted.
#[test]
fn what_is_written_meanwhile_stays() {
    let told = Filter::new(|_| Mark::From(0));
    let (_directory, db, table) = open(told.clone());
    (0..100).for_each(|number| put(&table, &format!("{number:02}"), b"old"));
    db.checkpoint().expect("a checkpoint works");
    let handle = table.clone();
    let write = move |key: &[u8]| match key[1] {
        b'3' => drop(handle.put_with(key, b"new", Durability::None).expect("a put works")),
        b'4' => drop(handle.delete_with(key, Durability::None).expect("a delete works")),
        _ => {}
    };
    // By another thread: that of the merge holds locks.
    let before = move |key: &[u8]| {
        std::thread::scope(|scope| scope.spawn(|| write(key)).join()).expect("it does not panic");
    };
    *told.0.before.lock().expect("nobody panics with it") = Some(Box::new(before));
    db.step(Step::Merge).expect("a merge works");
    *told.0.before.lock().expect("nobody panics with it") = None;
    let left: Vec<_> = (0..10).map(|number| format!("{number}3")).collect();
    assert_eq!(keys(&table), left);
    assert_eq!(table.get(b"53").expect("a get works").as_deref(), Some(&b"new"[..]));
    assert_eq!(db.metrics().filter_dropped_keys, 80);
}
