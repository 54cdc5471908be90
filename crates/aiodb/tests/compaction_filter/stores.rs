//! Stores and tables with filters by other ways: without the program's filter, ingested, copied, backed up, refused.

use aiodb::filter::Expiry;
use aiodb::{BackupOptions, CompactionFilters, Db, Error, IndexKind, Repository, TableOptions};

use super::{LATER_MS, keys, open, options, put, reopen, table_options, until, upkeep};
use crate::support::{quiet, refusal, scratch};

#[test]
fn without_the_filter_merges_go_on_and_nothing_is_given_up() {
    let (directory, db, table) = open(Expiry);
    put(&table, "before", &until(1, "a"));
    let (db, table) = reopen(db, directory.path(), quiet());
    for round in 0..8 {
        put(&table, &format!("meanwhile {round}"), &until(1, "b"));
        db.checkpoint().expect("a checkpoint works");
        upkeep(&db);
    }
    assert_eq!(keys(&table).len(), 9);
    assert!(db.metrics().runs < 6, "merges go on");
    let (db, table) = reopen(db, directory.path(), options(CompactionFilters::default().with(Expiry)));
    upkeep(&db);
    assert_eq!(keys(&table), [""; 0]);
    db.close().expect("it closes");
}

#[test]
fn ingested_and_copied_tables_are_asked_about_too() {
    let (_directory, db, table) = open(Expiry);
    let mut ingest = db.ingest("ingested", table_options("expiry")).expect("an ingest begins");
    for number in 0..500u32 {
        let time_ms = if number % 2 == 0 { 1 } else { LATER_MS };
        ingest.put(format!("{number:03}").as_bytes(), &until(time_ms, "v")).expect("a record is taken");
    }
    let ingested = ingest.finish().expect("it comes to its end");
    assert_eq!(keys(&ingested).len(), 500);
    put(&table, "expired", &until(1, "a"));
    put(&table, "later", &until(LATER_MS, "b"));
    let copy = db.copy_table(&table, "copy", table.options(), &mut |_, _| {}).expect("it is copied");
    upkeep(&db);
    assert_eq!(keys(&ingested).len(), 250);
    assert_eq!(keys(&copy), ["later"]);
}

#[test]
fn backups_have_marks_and_what_is_given_up() {
    let (_directory, db, table) = open(Expiry);
    put(&table, "gone", &until(1, "a"));
    put(&table, "later", &until(LATER_MS, "b"));
    db.checkpoint().expect("a checkpoint works");
    upkeep(&db);
    put(&table, "expired", &until(1, "c"));
    db.checkpoint().expect("a checkpoint works");
    let (repository, target) = (scratch(), scratch());
    db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("a backup can be made");
    let repository = Repository::open(repository.path()).expect("the repository can be opened");
    repository.restore(None, target.path(), &mut |_, _| {}).expect("it can be restored");
    let db = Db::open(target.path(), options(CompactionFilters::default().with(Expiry))).expect("it opens");
    let table = db.table("t").expect("the table is there");
    assert_eq!(keys(&table), ["expired", "later"]);
    upkeep(&db);
    assert_eq!(keys(&table), ["later"]);
    assert!(db.verify(&mut |_, _| {}).expect("it can be verified").damage.is_empty());
}

#[test]
fn only_tables_with_sorted_runs_take_a_filter() {
    let directory = scratch();
    let db = Db::open(directory.path(), quiet()).expect("the store can be made");
    for kind in [IndexKind::Hash, IndexKind::Lmdb] {
        let options = TableOptions { compaction_filter: Some("expiry".into()), ..kind.into() };
        let error = refusal(db.create_table_with("t", options), "a filter of such a table");
        assert!(matches!(error, Error::Option { option: "compaction_filter", .. }), "{error}");
    }
    let long = "f".repeat(256);
    let error = refusal(db.create_table_with("t", table_options(&long)), "so long a name");
    assert!(matches!(error, Error::Option { option: "compaction_filter", .. }), "{error}");
    assert_eq!(db.stats().format_version, 1, "a store without filters stays as earlier programs know it");
}
