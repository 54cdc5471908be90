//! Stores of more segments than their process may have files open, and processes that have none left.

mod support;

use std::fs::File;
use std::path::Path;

use aiodb::{
    Backend, BackupOptions, Batch, Db, Durability, Error, IndexKind, Options, Repository, ScanOptions, Step, Table,
};
use support::{KINDS, Role, assert_get, damage, eventually, refusal, say, scratch, value};

const SEGMENT_BYTES: u64 = 64 << 10;
const VALUE_BYTES: usize = 3000;
const KEYS: u64 = 5000;

/// What a process does as a child of a test: it bounds its own descriptors.
#[test]
fn child() {
    let Some(role) = support::role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    let [what, path, kind, backend, limit] = role[..] else { panic!("no such role: {role:?}") };
    let limit = limit.parse().expect("a number");
    let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
    // SAFETY: the call reads the structure.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) }, 0);
    let kind = KINDS.into_iter().find(|known| known.name() == kind).expect("the role names a kind of index");
    let backend = match backend {
        "uring" => Backend::Uring,
        "libaio" => Backend::Libaio,
        _ => Backend::Threads,
    };
    let options = Options { segment_bytes: SEGMENT_BYTES, backend, ..Options::default() };
    match what {
        "work" => work(Path::new(path), kind, &options, limit),
        "starve" => starve(Path::new(path), kind, &options),
        _ => panic!("no such role: {role:?}"),
    }
    say("done");
}

#[track_caller]
fn runs_through(what: &str, kind: IndexKind, backend: Backend, limit: u64) {
    let directory = scratch();
    if !support::is_available(backend, directory.path()) {
        return;
    }
    let backend = format!("{backend:?}").to_lowercase();
    let path = directory.path().to_str().unwrap();
    let mut child = Role::start(&[what, path, kind.name(), &backend, &limit.to_string()]);
    assert_eq!(child.line().as_deref(), Some("done"), "{what}, {}, {backend}, {limit}", kind.name());
}

#[test]
fn a_store_of_many_segments_works_within_few_descriptors() {
    for (kind, backend, limit) in [
        (IndexKind::Hash, Backend::Uring, 64),
        (IndexKind::Lmdb, Backend::Uring, 256),
        (IndexKind::Lmdb, Backend::Libaio, 64),
        (IndexKind::Lsm, Backend::Uring, 64),
        (IndexKind::Hash, Backend::Threads, 64),
        (IndexKind::Lsm, Backend::Threads, 256),
    ] {
        runs_through("work", kind, backend, limit);
    }
}

#[test]
fn a_process_without_descriptors_refuses_and_goes_on() {
    for backend in [Backend::Uring, Backend::Libaio, Backend::Threads] {
        for kind in KINDS {
            runs_through("starve", kind, backend, 96);
        }
    }
}

#[test]
fn a_bound_below_the_least_is_refused() {
    let directory = scratch();
    let options = Options { max_open_files: 7, ..Options::default() };
    let error = refusal(Db::open(directory.path(), options), "a bound of 7");
    assert!(matches!(error, Error::Option { option: "max_open_files", .. }), "{error}");
    let db = Db::open(directory.path(), Options { max_open_files: 8, ..Options::default() }).unwrap();
    assert_eq!(db.stats().max_open_files, 8);
    assert_eq!(db.metrics().max_open_files, 8);
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Values of a round differ from those of the others.
fn held(number: u64, round: u64) -> Vec<u8> {
    value(number << 8 | round, VALUE_BYTES)
}

fn open(path: &Path, options: &Options, kind: IndexKind) -> (Db, Table) {
    let db = Db::open(path.join("store"), options.clone()).expect("the store can be opened");
    let table = if options.read_only { db.table("t") } else { db.table_or_create("t", kind) };
    (db, table.expect("the table is there"))
}

fn assert_bounded(db: &Db) {
    let stats = db.stats();
    assert!(stats.open_files <= stats.max_open_files, "{} of {}", stats.open_files, stats.max_open_files);
}

fn work(path: &Path, kind: IndexKind, options: &Options, limit: u64) {
    let (db, table) = open(path, options, kind);
    for number in 0..KEYS {
        let durability = if number.is_multiple_of(50) { Durability::Sync } else { Durability::None };
        table.put_with(&key(number), &held(number, 0), durability).expect("a put works");
    }
    let stats = db.stats();
    assert!(stats.segments_in_use > limit, "{} segments with {limit} files", stats.segments_in_use);
    assert!(stats.max_open_files < limit);
    assert_bounded(&db);
    check(&db, &table, 0);
    let repository = path.join("repository");
    db.backup(&repository, &BackupOptions::default(), &mut |_, _| ()).expect("a backup works");
    let mut batch = Batch::new();
    for number in (0..KEYS).filter(|number| !number.is_multiple_of(4)) {
        batch.put(&table, &key(number), &held(number, 1)).expect("it fits");
        if number % 16 == 15 {
            db.write(&std::mem::take(&mut batch)).expect("a batch works");
        }
    }
    db.write(&batch).expect("a batch works");
    (0..20).for_each(|_| db.step(Step::Reclaim).expect("reclaim works"));
    db.checkpoint().expect("a checkpoint works");
    check(&db, &table, 1);
    db.backup(&repository, &BackupOptions::default(), &mut |_, _| ()).expect("a second backup works");
    assert_eq!(db.stats().trouble, None);
    drop(table);
    db.close().expect("the store can be closed");
    for read_only in [false, true] {
        let (db, table) = open(path, &Options { read_only, ..options.clone() }, kind);
        check(&db, &table, 1);
        assert!(damage(&db).is_empty());
        drop(table);
        db.close().expect("the store can be closed");
    }
    let repository = Repository::open(&repository).expect("the repository can be opened");
    repository.restore(None, path.join("restored"), &mut |_, _| ()).expect("a restore works");
    let restored = Db::open(path.join("restored"), options.clone()).expect("what was restored can be opened");
    check(&restored, &restored.table("t").expect("its table is there"), 1);
}

/// All keys hold what was put in this round, or the one before where this one left them out.
fn check(db: &Db, table: &Table, round: u64) {
    let wanted = |number: u64| held(number, if number.is_multiple_of(4) { 0 } else { round });
    for number in (0..KEYS).step_by(7) {
        assert_get(table, &key(number), Some(&wanted(number)), "a blocking get");
    }
    let mut reader = table.reader(600).expect("a reader can be made");
    let (mut next, mut seen) = (0, 0);
    loop {
        while next < KEYS && reader.has_room() {
            // Each is in another segment than the one before.
            reader.submit(&key(next * 1009 % KEYS), next * 1009 % KEYS).expect("a get is taken");
            next += 1;
        }
        let Some(got) = reader.poll().expect("the queue works") else { break };
        let found = got.value.expect("the key can be read");
        assert!(found == Some(&wanted(got.token)[..]), "key {}", got.token);
        seen += 1;
    }
    assert_eq!(seen, KEYS);
    let ordered = table.stats().expect("the table is there").kind.is_ordered();
    let scan = if ordered { table.scan(ScanOptions::default()) } else { table.iterate() };
    let mut scan = scan.expect("a scan can be begun");
    let mut records = 0;
    while let Some((name, found)) = scan.next().transpose().expect("the scan goes on") {
        let number = u64::from_be_bytes(name.try_into().expect("keys have 8 bytes"));
        assert!(found == wanted(number), "key {number}");
        records += 1;
    }
    assert_eq!(records, KEYS);
    assert_bounded(db);
}

/// All descriptors that the process may still have.
fn eat(eaten: &mut Vec<File>) {
    while let Ok(file) = File::open("/dev/null") {
        eaten.push(file);
    }
}

/// Whether it worked; an error must be the one that says what to do.
fn worked<T>(outcome: aiodb::Result<T>) -> bool {
    let Err(error) = outcome else { return true };
    assert!(matches!(error, Error::TooManyOpenFiles { limit: Some(96), .. }), "{error:?}");
    assert!(error.to_string().contains("may have 96 files") && error.to_string().contains("ulimit"), "{error}");
    false
}

fn starve(path: &Path, kind: IndexKind, options: &Options) {
    const FIRST: u64 = 2000;
    let (db, table) = open(path, options, kind);
    for number in 0..FIRST {
        table.put_with(&key(number), &held(number, 0), Durability::None).expect("a put works");
    }
    let (mut eaten, mut acknowledged, mut refused) = (Vec::new(), Vec::new(), 0);
    for number in FIRST..KEYS {
        // Whatever the store closes is taken at once.
        eat(&mut eaten);
        let durability = if number.is_multiple_of(5) { Durability::Sync } else { Durability::None };
        let put = worked(table.put_with(&key(number), &held(number, 0), durability));
        if put {
            acknowledged.push(number);
        }
        let got = worked(table.get(&key(number * 1009 % FIRST)));
        refused += u64::from(!put) + u64::from(!got);
    }
    assert!(refused > 0, "the process had descriptors left");
    let other = if kind == IndexKind::Hash { IndexKind::Lmdb } else { IndexKind::Hash };
    worked(db.table_or_create("another", other));
    worked(db.checkpoint());
    worked(table.reader(4).map(drop));
    eaten.clear();
    table.put(&key(KEYS), &held(KEYS, 0)).expect("puts work again");
    for number in (0..FIRST).chain(acknowledged.iter().copied()).chain([KEYS]) {
        assert_get(&table, &key(number), Some(&held(number, 0)), "after descriptors came back");
    }
    db.checkpoint().expect("checkpoints work again");
    eventually("a background thread goes on", || db.step(Step::Upkeep).is_ok());
    assert!(!db.metrics().write_failed);
    eat(&mut eaten);
    drop(table);
    db.close().expect("a store that has descriptors of its own can be closed without others");
    eaten.clear();
    let (db, table) = open(path, options, kind);
    for number in (0..FIRST).chain(acknowledged).chain([KEYS]) {
        assert_get(&table, &key(number), Some(&held(number, 0)), "after reopening");
    }
    assert!(damage(&db).is_empty());
}
