//! Filters that panic: nothing more is given up, and merges go on. And filters whose marks and verdicts have nothing to do with each other.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aiodb::CompactionFilters;
use aiodb::filter::{CompactionFilter, FilterEntry, FilterPass, FilterRange, Mark, Verdict};

use super::{Filter, keys, open, options, put, reopen, upkeep};

#[test]
fn a_panic_gives_up_nothing_and_stops_nothing() {
    let told = Filter::new(|key| if key == b"kept" { Mark::Never } else { Mark::From(0) });
    let (directory, db, table) = open(told.clone());
    (0..20).for_each(|number| put(&table, &format!("key {number:02}"), b"value"));
    put(&table, "kept", b"value");
    told.0.panics.store(true, Ordering::SeqCst);
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    assert_eq!(keys(&table).len(), 21);
    let trouble = db.stats().trouble.expect("it is told").to_string();
    assert!(trouble.contains("the compaction filter `told` failed: it panicked: the filter has a bug"), "{trouble}");
    for round in 0..8 {
        put(&table, "kept", &[round]);
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    assert!(db.metrics().runs < 6, "merges go on");
    told.0.panics.store(false, Ordering::SeqCst);
    let (db, table) = reopen(db, directory.path(), options(CompactionFilters::default().with(told)));
    upkeep(&db);
    assert_eq!(keys(&table), ["kept"]);
    db.close().expect("it closes");
}

/// A filter of whose methods some panic.
struct Panicking {
    marked: Arc<AtomicUsize>,
    panics_in_mark: bool,
}

impl CompactionFilter for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }
    fn mark(&self, _: &FilterEntry<'_>) -> Mark {
        self.marked.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics_in_mark, "a mark has a bug");
        Mark::From(1)
    }
    fn begin(&self, _: &FilterRange<'_>) -> Box<dyn FilterPass> {
        Box::new(EndsBadly)
    }
}

struct EndsBadly;

impl FilterPass for EndsBadly {
    fn judge(&mut self, _: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
        verdicts.fill(Verdict::Drop);
    }
}

impl Drop for EndsBadly {
    fn drop(&mut self) {
        panic!("the end of a pass has a bug");
    }
}

#[test]
fn a_pass_that_panics_at_its_end_has_said_what_goes() {
    let (_directory, db, table) = open(Panicking { marked: Arc::default(), panics_in_mark: false });
    (0..20).for_each(|number| put(&table, &format!("{number:02}"), b"value"));
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    assert_eq!(keys(&table), [""; 0]);
    db.close().expect("the store works");
}

#[test]
fn a_flush_asks_no_more_for_marks_after_a_panic() {
    let marked = Arc::new(AtomicUsize::new(0));
    let (_directory, db, table) = open(Panicking { marked: Arc::clone(&marked), panics_in_mark: true });
    (0..20).for_each(|number| put(&table, &format!("{number:02}"), b"value"));
    db.checkpoint().expect("a checkpoint works");
    assert_eq!(marked.load(Ordering::SeqCst), 1);
    upkeep(&db);
    assert_eq!(keys(&table).len(), 20);
    db.close().expect("it closes");
}

/// A filter that says anything, whatever it has said before.
#[derive(Clone, Default)]
struct Lying {
    asked: Arc<AtomicUsize>,
    given_up: Arc<Mutex<BTreeSet<Vec<u8>>>>,
}

impl CompactionFilter for Lying {
    fn name(&self) -> &str {
        "lying"
    }
    fn mark(&self, _: &FilterEntry<'_>) -> Mark {
        match self.asked.fetch_add(1, Ordering::SeqCst) % 3 {
            0 => Mark::Never,
            1 => Mark::From(1),
            _ => Mark::Always,
        }
    }
    fn begin(&self, _: &FilterRange<'_>) -> Box<dyn FilterPass> {
        Box::new(self.clone())
    }
}

impl FilterPass for Lying {
    fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
        for (entry, verdict) in entries.iter().zip(verdicts) {
            if self.asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(5) {
                self.given_up.lock().expect("nobody panics with it").insert(entry.key.to_vec());
                *verdict = Verdict::Drop;
            }
        }
    }
}

/// What goes is what it has given up, a snapshot sees all, and merges come to an end.
#[test]
fn a_filter_whose_marks_are_lies_gives_up_no_more_than_it_says() {
    let filter = Lying::default();
    let (_directory, db, table) = open(filter.clone());
    (0..300).for_each(|number| put(&table, &format!("{number:03}"), b"value"));
    let snapshot = db.snapshot().expect("a snapshot works");
    for round in 0..8 {
        put(&table, &format!("round {round}"), b"value");
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    let seen = (0..300)
        .filter(|number| snapshot.get(&table, format!("{number:03}").as_bytes()).expect("a get works").is_some());
    assert_eq!(seen.count(), 300);
    drop(snapshot);
    upkeep(&db);
    let given_up = filter.given_up.lock().expect("nobody panics with it").clone();
    let left: BTreeSet<_> = keys(&table).into_iter().map(String::into_bytes).collect();
    let all = (0..300).map(|number| format!("{number:03}")).chain((0..8).map(|round| format!("round {round}")));
    for key in all.map(String::into_bytes) {
        assert!(left.contains(&key) || given_up.contains(&key), "{}", String::from_utf8_lossy(&key));
    }
    assert!(left.len() < 308, "something was given up");
    assert!(db.metrics().runs < 6, "merges go on");
    let asked = filter.asked.load(Ordering::SeqCst);
    upkeep(&db);
    assert_eq!(filter.asked.load(Ordering::SeqCst), asked, "merges come to an end");
    assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
    db.close().expect("it closes");
}
