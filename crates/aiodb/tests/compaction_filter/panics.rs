//! Filters that panic: nothing more is given up, and merges go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
