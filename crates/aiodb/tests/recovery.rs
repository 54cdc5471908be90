//! What is there again when a store is opened after its process died, or after it has lost an index.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use aiodb::{Batch, Db, Durability, Error, IndexKind, Options, Step, Table};
use fastrand::Rng;
use support::{
    KINDS, Known, Role, assert_value, copy_tree, damage, open, open_several, quiet, refusal, say, scratch, scratches,
    small, upkeep, value,
};

/// Threads of a child that write, each to keys of its own.
const THREADS: u64 = 3;
/// Keys of each.
const KEYS: u64 = 80;

/// What a process does as a child of a test.
#[test]
fn child() {
    let Some(role) = support::role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["write", paths, kind, next] => write_until_killed(&paths.split(':').collect::<Vec<_>>(), kind_of(kind), next),
        ["tail", path, kind] => leave_a_tail(Path::new(path), kind_of(kind)),
        _ => panic!("no such role: {role:?}"),
    }
}

fn kind_of(name: &str) -> IndexKind {
    KINDS.into_iter().find(|kind| kind.name() == name).expect("the role names a kind of index")
}

/// A key, and its new value or none.
type Change = (Vec<u8>, Option<Vec<u8>>);

/// The changes of one operation, which follow from its thread and number: all of them or none survive.
fn operation(thread: u64, number: u64) -> (Vec<Change>, Durability) {
    let mut rng = Rng::with_seed(thread << 32 | number);
    let changes = if rng.u8(..5) == 0 { rng.u64(2..6) } else { 1 };
    let change = |_| {
        let key = (thread << 16 | rng.u64(..KEYS)).to_be_bytes().to_vec();
        let length = match rng.u8(..60) {
            0 => 300_000,
            1..6 => rng.usize(1280..9000),
            _ => rng.usize(..300),
        };
        (key, (rng.u8(..4) > 0).then(|| value(number, length)))
    };
    let changes = (0..changes).map(change).collect();
    let durability = match rng.u8(..10) {
        0 => Durability::Sync,
        1..4 => Durability::Interval(Duration::from_millis(10)),
        _ => Durability::None,
    };
    (changes, durability)
}

/// Writes from many threads, and says which operations were acknowledged.
fn write_until_killed(paths: &[&str], kind: IndexKind, next: &str) {
    let (db, table) = open_several(paths, kind, &small());
    let next: Vec<u64> = next.split(' ').map(|number| number.parse().expect("the role has numbers")).collect();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (db, table, first) = (&db, &table, next[thread as usize]);
            scope.spawn(move || {
                for number in first.. {
                    apply(db, table, thread, number);
                    say(&format!("{thread} {number}"));
                }
            });
        }
        scope.spawn(|| {
            loop {
                std::thread::sleep(Duration::from_millis(70));
                db.checkpoint().expect("a checkpoint can be made");
            }
        });
    });
}

fn apply(db: &Db, table: &Table, thread: u64, number: u64) {
    let (changes, durability) = operation(thread, number);
    let outcome = match &changes[..] {
        [(key, Some(value))] => table.put_with(key, value, durability),
        [(key, None)] => table.delete_with(key, durability),
        changes => {
            let mut batch = Batch::new();
            for (key, value) in changes {
                match value {
                    Some(value) => batch.put(table, key, value),
                    None => batch.delete(table, key),
                }
                .expect("the operation is in its limits");
            }
            db.write_with(&batch, durability)
        }
    };
    outcome.unwrap_or_else(|error| panic!("operation {number} of thread {thread}: {error}"));
}

/// What a thread's keys hold after its first operations.
#[derive(Clone, Default)]
struct Contents {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    operations: u64,
}

impl Contents {
    fn advance(&mut self, thread: u64, operations: u64) {
        while self.operations < operations {
            self.operations += 1;
            for (key, value) in operation(thread, self.operations).0 {
                match value {
                    Some(value) => self.values.insert(key, value),
                    None => self.values.remove(&key),
                };
            }
        }
    }
}

#[test]
fn acknowledged_writes_survive_the_death_of_the_process() {
    for (kind, count) in KINDS.into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
        let seed = fastrand::u64(..);
        println!("{} in {count} directories with seed {seed}", kind.name());
        let mut rng = Rng::with_seed(seed);
        let directories = scratches(count);
        let paths: Vec<_> = directories.iter().map(|one| one.path().to_str().expect("the path is text")).collect();
        let mut contents = vec![Contents::default(); THREADS as usize];
        for round in 0..10 {
            let next: Vec<_> = contents.iter().map(|contents| (contents.operations + 1).to_string()).collect();
            let mut child = Role::start(&["write", &paths.join(":"), kind.name(), &next.join(" ")]);
            let mut lines = Vec::new();
            for _ in 0..rng.u64(..1200) {
                lines.push(child.line().expect("the child writes until it is killed"));
            }
            lines.extend(child.kill());
            for line in lines {
                let (thread, number) = line.split_once(' ').expect("the child says which thread did which operation");
                let thread: u64 = thread.parse().expect("a thread is a number");
                contents[thread as usize].advance(thread, number.parse().expect("an operation is a number"));
            }
            // Every other time the next process recovers what this one left behind.
            if round % 2 == 1 {
                check_threads(&paths, kind, &contents, &format!("round {round}"));
            }
        }
        let operations: u64 = contents.iter().map(|contents| contents.operations).sum();
        assert!(operations > 500, "the children got something done: {operations} operations");
    }
}

/// Each thread's keys hold what was acknowledged, or one whole operation more.
fn check_threads(paths: &[&str], kind: IndexKind, contents: &[Contents], when: &str) {
    let (db, table) = open_several(paths, kind, &quiet());
    for (thread, acknowledged) in contents.iter().enumerate() {
        let thread = thread as u64;
        let keys: Vec<_> = (0..KEYS).map(|key| (thread << 16 | key).to_be_bytes().to_vec()).collect();
        let found = table.get_many(&keys).expect("all keys can be read");
        let found: BTreeMap<_, _> =
            keys.into_iter().zip(found).filter_map(|(key, value)| Some((key, value?))).collect();
        let mut begun = acknowledged.clone();
        begun.advance(thread, acknowledged.operations + 1);
        if found == begun.values {
            continue;
        }
        for key in acknowledged.values.keys().chain(found.keys()) {
            let what = format!(
                "{when}: {} operations of thread {thread} were acknowledged: key {key:?}",
                acknowledged.operations
            );
            assert_value(found.get(key).map(Vec::as_slice), acknowledged.values.get(key).map(Vec::as_slice), &what);
        }
    }
    assert!(damage(&db).is_empty(), "{when}: a check finds no damage, but {:?}", damage(&db));
}

/// A long log, a checkpoint, and a little after it.
fn leave_a_tail(path: &Path, kind: IndexKind) {
    let (db, table) = open(path, kind, &quiet());
    for number in 0..5000u64 {
        table.put_with(&number.to_be_bytes(), &value(number, 100), Durability::None).expect("a put works");
    }
    db.checkpoint().expect("a checkpoint can be made");
    for number in 0..10u64 {
        table.put(&number.to_be_bytes(), b"after the checkpoint").expect("a put works");
    }
    for number in 10..13u64 {
        table.put_with(&number.to_be_bytes(), b"pending", Durability::None).expect("a put works");
    }
    say("ready");
    std::thread::sleep(Duration::from_secs(3600));
}

#[test]
fn only_what_came_after_the_checkpoint_is_replayed() {
    for kind in KINDS {
        let directory = scratch();
        let mut child = Role::start(&["tail", directory.path().to_str().expect("the path is text"), kind.name()]);
        assert_eq!(child.line().as_deref(), Some("ready"), "the child has written its log");
        child.kill();
        let (db, table) = open(directory.path(), kind, &quiet());
        let stats = db.stats();
        let found = (stats.recovered_batches, stats.recovered_records, stats.recovered_pending_records);
        assert_eq!(
            found,
            (10, 10, 3),
            "{}: the batches, records and pending records since the checkpoint",
            kind.name()
        );
        assert!(!stats.rebuilt_indexes, "{}: the index was there", kind.name());
        for number in 0..5000u64 {
            let wanted = match number {
                0..10 => b"after the checkpoint".to_vec(),
                10..13 => b"pending".to_vec(),
                _ => value(number, 100),
            };
            support::assert_get(&table, &number.to_be_bytes(), Some(&wanted), kind.name());
        }
    }
}

/// A store whose log has seen everything that an index can learn from it, just before its process dies.
struct Past {
    tables: Vec<Known>,
    db: Db,
    directory: tempfile::TempDir,
    options: Options,
}

impl Past {
    fn new(seed: u64) -> Past {
        let mut rng = Rng::with_seed(seed);
        let directory = scratch();
        let hash_mask = if rng.u8(..3) == 0 { !0 << 60 } else { u64::MAX };
        // Through the page cache, for the sake of the many gets.
        let options = Options { segment_bytes: 64 << 10, hash_mask, direct: false, ..quiet() };
        let db = Db::open(directory.path(), options.clone()).expect("a store can be made");
        let create = |name: &str, kind| Known::new(db.create_table(name, kind).expect("a table can be made"));
        let mut tables: Vec<_> = KINDS
            .into_iter()
            .flat_map(|kind| [create(kind.name(), kind), create(&format!("{} 2", kind.name()), kind)])
            .collect();
        for kind in KINDS {
            let mut dropped = create("dropped", kind);
            dropped.change(&mut rng, 100);
            db.drop_table("dropped").expect("a table can be dropped");
        }
        for round in 0..5 {
            for known in &mut tables {
                known.change(&mut rng, 150);
            }
            if round == 2 {
                for known in tables.iter_mut().filter(|known| known.table.name().ends_with('2')) {
                    db.truncate_table(known.table.name()).expect("a table can be emptied");
                    known.contents.clear();
                    known.change(&mut rng, 50);
                }
            }
            if rng.bool() {
                db.step(Step::Write).expect("the open batch can be written");
            }
            upkeep(&db);
        }
        assert!(db.stats().bytes_moved_by_reclaim > 0, "reclaim has moved records");
        for known in &mut tables {
            known.change(&mut rng, 30);
        }
        Past { tables, db, directory, options }
    }

    /// The store as the death of the process would leave it, or as closing it did.
    fn image(&self) -> tempfile::TempDir {
        let image = scratch();
        copy_tree(self.directory.path(), image.path());
        image
    }

    fn check(&self, db: &Db, when: &str) {
        for known in &self.tables {
            known.check(db, &format!("{when}: table {}", known.table.name()));
        }
        assert!(damage(db).is_empty(), "{when}: a check finds no damage, but {:?}", damage(db));
    }
}

/// Removes the files of the lost indexes. Returns whether there were any.
fn lose(store: &Path, lost: &str) -> bool {
    let index = store.join("index");
    let mut found = false;
    for entry in std::fs::read_dir(&index).expect("the store has indexes") {
        let entry = entry.expect("the indexes can be listed");
        let name = entry.file_name().into_string().expect("the store's names are text");
        if ["lmdb", "runs"].contains(&name.as_str()) && lost.contains(&name) {
            std::fs::remove_dir_all(entry.path()).expect("the index can be removed");
            found = true;
        }
        if name.starts_with("hash-") && lost.contains("hash") {
            std::fs::remove_file(entry.path()).expect("the checkpoint can be removed");
            found = true;
        }
    }
    found
}

#[test]
fn a_lost_index_is_made_again_from_the_log() {
    // The first three once found something.
    for seed in [1, 117, 145, fastrand::u64(..)] {
        let past = Past::new(seed);
        for state in ["killed", "closed"] {
            if state == "closed" {
                past.db.close().expect("a sound store can be closed");
            }
            for lost in ["nothing", "lmdb", "hash", "runs", "lmdb, hash and runs", "nothing, but told to rebuild"] {
                let when = format!("seed {seed}, {state}, {lost} lost");
                let image = past.image();
                let is_lost = lose(image.path(), lost);
                let rebuild_index = lost.contains("told");
                let options = Options { rebuild_index, ..past.options.clone() };
                let db = Db::open(image.path(), options).unwrap_or_else(|error| panic!("{when}: {error}"));
                assert_eq!(
                    is_lost || rebuild_index,
                    db.stats().rebuilt_indexes,
                    "{when}: stats say whether indexes were rebuilt"
                );
                past.check(&db, &when);
                upkeep(&db);
                past.check(&db, &format!("{when}, after upkeep"));
                db.close().expect("a rebuilt store can be closed");
                drop(db);
                let db = Db::open(image.path(), past.options.clone()).unwrap_or_else(|error| panic!("{when}: {error}"));
                assert!(!db.stats().rebuilt_indexes, "{when}: a rebuilt index is there the next time");
                past.check(&db, &format!("{when}, opened again"));
            }
        }
    }
}

#[test]
fn an_interrupted_creation_is_begun_again() {
    let directory = scratch();
    let db = Db::open(directory.path(), quiet()).expect("a store can be made");
    db.close().expect("a sound store can be closed");
    drop(db);
    // The identity comes last; whatever was made before it is made again.
    for missing in [&["STORE"][..], &["STORE", "MANIFEST.copy"], &["STORE", "MANIFEST", "MANIFEST.copy", "pending"]] {
        let image = scratch();
        copy_tree(directory.path(), image.path());
        for name in missing {
            let path = image.path().join(name);
            let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
            removed.expect("the file can be removed");
        }
        std::fs::write(image.path().join("STORE.new"), b"AIODB").expect("a file can be written");
        let error =
            refusal(Db::open(image.path(), Options { create: false, ..quiet() }), "a store without an identity");
        assert!(matches!(error, Error::NoStore { .. }), "without {missing:?} there is no store, not: {error:?}");
        let (db, table) = open(image.path(), IndexKind::Hash, &quiet());
        table.put(b"k", b"v").expect("a put works");
        db.close().expect("a sound store can be closed");
        assert!(!image.path().join("STORE.new").exists(), "a file that was being written is removed");
    }
}

#[test]
fn files_that_were_being_written_are_removed() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    table.put(b"k", b"v").expect("a put works");
    db.checkpoint().expect("a checkpoint can be made");
    let image = scratch();
    copy_tree(directory.path(), image.path());
    let leftovers =
        ["MANIFEST.new", "MANIFEST.copy.new", "log/00000077.seg.new", "index/hash-00000016-00000009.ckp.new"];
    for name in leftovers {
        std::fs::write(image.path().join(name), b"half").expect("a file can be written");
    }
    // Segments beyond those in use: cut while being filled, not yet filled, not yet given a header.
    let next = std::fs::read_dir(image.path().join("log")).expect("there is a log").count() as u32 - 1;
    for (number, length) in [(next, 0), (next + 1, 8192), (next + 2, 1 << 20)] {
        let path = image.path().join(format!("log/{number:08}.seg"));
        assert!(!path.exists(), "the test knows which segments are there");
        std::fs::write(path, vec![0; length]).expect("a file can be written");
    }
    let (db, table) = open(image.path(), IndexKind::Hash, &small());
    for name in leftovers {
        assert!(!image.path().join(name).exists(), "{name} is removed");
    }
    support::assert_get(&table, b"k", Some(b"v"), "after the leftovers were removed");
    for number in 0..4000u64 {
        table
            .put_with(&number.to_be_bytes(), &value(number, 1000), Durability::None)
            .expect("the segments can be used");
    }
    db.sync().expect("everything can be flushed");
    assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
}
