//! A disk that was full and has room again.

mod support;

use std::path::Path;

use aiodb::io::sim::SimDevice;
use aiodb::io::{Device, Disk};
use aiodb::{Db, Durability, Error, IndexKind, Options, Step, Table};
use support::{KINDS, Mount, OVERHEAD_SEGMENTS, assert_get, assert_value, open, segment_files, small, value};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Puts keys, whose values have this `length`, until the disk is full; returns how many there are. `write` ends a batch.
fn fill<D: Device>(table: &Table<D>, length: &dyn Fn(u64) -> usize, write: impl Fn(), what: &str) -> u64 {
    let mut full = None;
    let mut count = 0;
    for number in 0..200_000u64 {
        if number.is_multiple_of(4) {
            write();
        }
        match table.put_with(&key(number), &value(number, length(number)), Durability::None) {
            Ok(_) => count = number + 1,
            Err(error) => {
                full = Some(error);
                break;
            }
        }
    }
    assert!(matches!(full, Some(Error::DiskFull { .. })), "{what}: a full disk is a refusal, not: {full:?}");
    count
}

/// Fills the disk, finds that reads and deletes go on, makes room, and finds that writes go on. `work` does what the
/// store's own threads would, `write` ends a batch.
fn fill_and_recover<D: Device>(db: &Db<D>, table: &Table<D>, write: impl Fn(), work: impl Fn(), what: &str) {
    let length = |number: u64| 1000 + number as usize % 3000;
    let count = fill(table, &length, write, what);
    let get =
        |number: u64| table.get(&key(number)).unwrap_or_else(|error| panic!("{what}: a get of key {number}: {error}"));
    for number in (0..count).step_by(97) {
        assert_value(
            get(number).as_deref(),
            Some(&value(number, length(number))),
            &format!("{what}: key {number} when full"),
        );
    }
    assert_value(get(count).as_deref(), None, &format!("{what}: what was refused is not there"));
    // Every fourth key goes, one at a time, as a user does who makes room. Room comes back bit by bit, as records are
    // moved together; until then a write is refused, and that is all that may happen to it.
    let persist = |what: &str, write: &dyn Fn() -> aiodb::Result<aiodb::Sequence>| {
        support::eventually(what, || match write() {
            Ok(_) => true,
            Err(Error::DiskFull { .. }) => {
                work();
                false
            }
            Err(error) => panic!("{what}: {error}"),
        });
    };
    for number in (0..count).step_by(4) {
        let what = format!("{what}: key {number} of {count} can be deleted when the disk is full");
        persist(&what, &|| table.delete_with(&key(number), Durability::None));
        if number.is_multiple_of(20) {
            work();
        }
    }
    // A part of the room is used again.
    let anew = |number: u64| value(number + 1_000_000, length(number));
    for number in (0..count / 4).step_by(4) {
        let what = format!("{what}: key {number} of {count} can be put once there is room");
        persist(&what, &|| table.put_with(&key(number), &anew(number), Durability::None));
    }
    for number in 0..count {
        let wanted = match number {
            _ if !number.is_multiple_of(4) => Some(value(number, length(number))),
            _ if number < count / 4 => Some(anew(number)),
            _ => None,
        };
        assert_value(get(number).as_deref(), wanted.as_deref(), &format!("{what}: key {number} at the end"));
    }
    // A check writes a checkpoint first, which takes some room of its own.
    for number in (1..count).step_by(2) {
        persist(&format!("{what}: key {number} of {count} can be deleted"), &|| {
            table.delete_with(&key(number), Durability::None)
        });
    }
    support::eventually(&format!("{what}: there is room for a check"), || {
        work();
        match db.verify(&mut |_, _| {}) {
            Ok(report) => {
                assert!(report.damage.is_empty(), "{what}: a check finds no damage, but {:?}", report.damage);
                true
            }
            Err(Error::DiskFull { .. } | Error::Io { kind: std::io::ErrorKind::StorageFull, .. }) => false,
            Err(error) => panic!("{what}: a check on a disk that was full: {error}"),
        }
    });
}

#[test]
fn a_full_disk_on_the_simulator() {
    for (segments, segment_bytes) in [(20, 64 << 10), (30, 512 << 10)] {
        let device = SimDevice::new(segments);
        device.create_dir(Path::new("/store")).expect("the simulated disk has room");
        let options = Options { segment_bytes, background: false, ..Options::default() };
        let db = Db::open_on(device.clone(), "/store", options.clone()).expect("a store can be made");
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        device.set_capacity(Some(segments * segment_bytes));
        let work = || {
            // As far as it goes: a full disk refuses some of it.
            for step in [Step::Settle, Step::Prepare, Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare] {
                let _ = db.step(step);
            }
        };
        // Batches are far smaller than a segment, as they are in a store of the usual size.
        let write = || db.step(Step::Write).expect("the open batch can be written");
        fill_and_recover(&db, &table, write, work, &format!("{segments} segments"));
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let db = Db::open_on(device, "/store", options).expect("the store opens again");
        let table = db.table("t").expect("the table is there");
        let found = table.get(&key(0)).expect("the key can be read");
        assert_value(found.as_deref(), Some(&value(1_000_000, 1000)), "after it was opened again");
    }
}

#[test]
fn a_full_disk() {
    for (what, arguments) in [("a disk in memory", &["-t", "tmpfs", "-o", "size=24m", "tmpfs"])] {
        for kind in KINDS {
            let Some(mount) = Mount::new(arguments) else { return };
            let store = mount.path().join("store");
            let (db, table) = open(&store, kind, &small());
            fill_and_recover::<Disk>(&db, &table, || (), std::thread::yield_now, &format!("{what}, {}", kind.name()));
            db.truncate_table("t").expect("a table can be emptied");
            support::eventually("the space comes back after a truncate", || {
                segment_files(&store).len() <= OVERHEAD_SEGMENTS
            });
            table.put(&key(1), b"after").expect("a put works");
            db.close().expect("a sound store can be closed");
            drop((db, table));
            let (_db, table) = open(&store, kind, &small());
            assert_get(&table, &key(1), Some(b"after"), what);
        }
    }
}

/// What a checkpoint leaves that finds no room takes it from all that follow.
#[test]
fn a_checkpoint_that_finds_no_room_leaves_nothing() {
    let device = SimDevice::new(7);
    let store = Path::new("/store");
    device.create_dir(store).expect("the simulated disk has room");
    let options = Options { segment_bytes: 64 << 10, background: false, ..Options::default() };
    let db = Db::open_on(device.clone(), store, options.clone()).expect("a store can be made");
    let tables = ["a", "b"].map(|name| db.create_table(name, IndexKind::Hash).expect("a table can be made"));
    let checkpoints = || {
        let names = device.list(&store.join("index")).expect("a directory can be listed");
        names.iter().filter(|name| name.ends_with(".ckp")).count()
    };
    let change = |round: u64| {
        for number in 0..200 {
            for table in &tables {
                table.put(&key(number), &value(round, 20)).expect("there is room");
            }
        }
    };
    change(0);
    let before = device.used_bytes();
    db.step(Step::Checkpoint).expect("there is room");
    // The space of the last files comes back only with the manifest that does not name them.
    let needed = device.used_bytes() - before;
    let mut refused = 0;
    let (coarse, fine) = (0..needed, needed.saturating_sub(80 << 10)..needed + (8 << 10));
    for (round, extra) in coarse.step_by(needed as usize / 10).chain(fine.step_by(1024)).enumerate() {
        change(round as u64 + 1);
        device.set_capacity(Some(device.used_bytes() + extra));
        match db.step(Step::Checkpoint) {
            Ok(()) => {}
            Err(Error::DiskFull { .. } | Error::Io { kind: std::io::ErrorKind::StorageFull, .. }) => refused += 1,
            Err(error) => panic!("round {round}: {error}"),
        }
        assert_eq!(checkpoints(), 2, "round {round}, {extra} of {needed} bytes");
        device.set_capacity(None);
    }
    println!("{needed} bytes, {refused} refused");
    assert!(refused > 10, "{refused} checkpoints were refused");
    db.close().expect("a sound store can be closed");
    drop((tables, db));
    let db = Db::open_on(device, store, options).expect("the store opens again");
    for name in ["a", "b"] {
        let table = db.table(name).expect("the table is there");
        assert!(table.get(&key(0)).expect("it can be read").is_some());
    }
}
