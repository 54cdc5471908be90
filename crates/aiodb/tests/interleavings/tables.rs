//! Batches beside changes of the tables that they write to.

use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Condition, Db, Durability, Error, IndexKind, Step, Table};
use shuttle::rand::Rng as _;
use shuttle::thread;

use crate::machine::{Machine, value};
use crate::schedules::{LONG_RUN, RUN, in_fewer_orders};

/// A batch has a large value in one table and a part in another, while the first is emptied. Who has seen that done and nothing of the
/// batch finds the batch whole later; and what is there of the large value stays there, whatever is emptied and used again.
#[test]
fn interleavings_of_batches_and_truncates() {
    in_fewer_orders(LONG_RUN, |kind| {
        let machine = Machine::new(9, kind);
        let (db, table) = machine.open();
        let other = db.create_table("other", kind).expect("the machine runs");
        let class = [Durability::None, Durability::Sync][shuttle::rand::thread_rng().gen_range(0..2)];
        // Longer than a quarter of a segment, and so in chunks.
        let wanted = value(0, 1, 20_000);
        let writing = thread::spawn({
            let (db, table, other, wanted) = (db.clone(), table.clone(), other.clone(), wanted.clone());
            move || {
                let mut batch = Batch::new();
                batch.put(&table, b"key", &wanted).expect("it is short");
                batch.put(&other, b"key", b"part").expect("it is short");
                db.write_with(&batch, class).expect("the machine runs");
            }
        });
        let emptying = thread::spawn({
            let (db, other) = (db.clone(), other.clone());
            move || {
                db.truncate_table("t").expect("the machine runs");
                other.get(b"key").expect("the machine runs").is_some()
            }
        });
        writing.join().expect("no thread panics");
        let was_first = emptying.join().expect("no thread panics");
        let found = table.get(b"key").expect("the machine runs");
        assert!(found.is_some() || was_first, "the batch came later, and this part of it is lost");
        assert!(found.as_ref().is_none_or(|found| *found == wanted), "another value");
        use_again(&machine, &db, &other);
        check(&db, &table, &other, found.as_deref());
        let machine = machine.process_death();
        let (db, table) = machine.open();
        let other = db.table("other").expect("it was made");
        check(&db, &table, &other, found.as_deref());
    });
}

/// Batches and conditional writes are in the tables that the names had at one moment, whatever these were.
#[test]
fn interleavings_of_batches_and_swaps() {
    in_fewer_orders(RUN, |kind| {
        let machine = Machine::new(21, kind);
        let (db, table) = machine.open();
        let other = db.create_table("other", kind).expect("the machine runs");
        table.put_with(b"marked", b"", Durability::Sync).expect("the machine runs");
        let class = [Durability::None, Durability::Sync][shuttle::rand::thread_rng().gen_range(0..2)];
        let writing = thread::spawn({
            let (db, table, other) = (db.clone(), table.clone(), other.clone());
            move || {
                let mut batch = Batch::new();
                batch.put(&table, b"batch", b"of t").expect("it is short");
                batch.put(&other, b"batch", b"of other").expect("it is short");
                db.write_with(&batch, class).expect("the machine runs");
                let mut batch = Batch::new();
                batch.require(&table, b"marked", Condition::Absent).expect("it is short");
                batch.put(&table, b"claimed", b"since there was no mark").expect("it is short");
                match db.write_with(&batch, class) {
                    Ok(_) | Err(Error::ConditionFailed { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        });
        let swapping = thread::spawn({
            let db = db.clone();
            move || db.swap_tables("t", "other").expect("the machine runs")
        });
        writing.join().expect("no thread panics");
        swapping.join().expect("no thread panics");
        let get = |table: &Table<SimDevice>, key: &[u8]| table.get(key).expect("the machine runs");
        let check = |table: &Table<SimDevice>, other: &Table<SimDevice>| {
            let mut found = [table, other].map(|table| get(table, b"batch"));
            found.sort();
            assert_eq!(found, [Some(b"of other".to_vec()), Some(b"of t".to_vec())], "a batch of two moments");
            assert!(get(table, b"marked").is_none() && get(other, b"marked").is_some(), "the names");
            assert_eq!(get(other, b"claimed"), None, "a write into a table that does not fulfil its condition");
        };
        check(&table, &other);
        let machine = machine.process_death();
        let (db, table) = machine.open();
        check(&table, &db.table("other").expect("it was made"));
    });
}

/// Two tables are swapped beside calls of a thread that go to one and then to the other: before these, between them, or after them.
#[test]
fn interleavings_of_calls_and_swaps() {
    in_fewer_orders(RUN, |kind| {
        let machine = Machine::new(26, kind);
        let (db, table) = machine.open();
        let other = db.create_table("other", kind).expect("the machine runs");
        table.put_with(b"is", b"t", Durability::None).expect("the machine runs");
        other.put_with(b"is", b"other", Durability::None).expect("the machine runs");
        let swapping = thread::spawn({
            let db = db.clone();
            move || db.swap_tables("t", "other").expect("the machine runs")
        });
        let get = |table: &Table<SimDevice>, key: &[u8]| table.get(key).expect("the machine runs");
        for round in 0..12u8 {
            let both = [&table, &other];
            let [first, second] = [both[usize::from(round % 2)], both[usize::from(1 - round % 2)]];
            let names: [&[u8]; 2] = if round % 2 == 0 { [b"t", b"other"] } else { [b"other", b"t"] };
            let found = [first, second].map(|table| get(table, b"is").expect("both have it"));
            assert!(found != [names[1], names[1]], "the first name had changed, and the second one not yet: {found:?}");
            if round % 4 == 0 {
                first.put_with(&[round], b"1", Durability::None).expect("the machine runs");
                second.put_with(&[round], b"2", Durability::None).expect("the machine runs");
            }
        }
        swapping.join().expect("no thread panics");
        for round in [0u8, 4, 8] {
            let found = [&table, &other].map(|table| get(table, &[round]));
            let found = found.each_ref().map(Option::as_deref);
            // Before both puts, between them, and after them.
            let allowed: [[Option<&[u8]>; 2]; 3] =
                [[Some(b"1"), Some(b"2")], [None, Some(b"2")], [Some(b"2"), Some(b"1")]];
            assert!(allowed.contains(&found), "{found:?}");
        }
    });
}

/// A table is emptied while another thread changes and reads it: what that has acknowledged is there, or the table is empty.
#[test]
fn interleavings_of_puts_and_truncates() {
    in_fewer_orders(RUN, |kind| {
        let machine = Machine::new(27, kind);
        let (db, table) = machine.open();
        table.put_with(b"key", b"0", Durability::None).expect("the machine runs");
        let class = [Durability::None, Durability::Sync][shuttle::rand::thread_rng().gen_range(0..2)];
        let emptying = thread::spawn({
            let db = db.clone();
            move || db.truncate_table("t").expect("the machine runs")
        });
        for version in [b"1", b"2"] {
            let mut batch = Batch::new();
            batch.put(&table, b"key", version).expect("it is short");
            match shuttle::rand::thread_rng().gen_range(0..2) {
                0 => table.put_with(b"key", version, class).map(drop).expect("the machine runs"),
                _ => db.write_with(&batch, class).map(drop).expect("the machine runs"),
            }
            let found = table.get(b"key").expect("the machine runs");
            assert!(found.as_ref().is_none_or(|found| found == version), "{found:?} after {version:?}");
        }
        emptying.join().expect("no thread panics");
    });
}

/// A table is made, one emptied, one dropped and one ingested beside checkpoints. After a power cut all that was done is there.
#[test]
fn interleavings_of_checkpoints_and_changes_of_tables() {
    in_fewer_orders(LONG_RUN, |kind| {
        let machine = Machine::new(13, kind);
        let (db, table) = machine.open();
        let dropped = db.create_table("dropped", kind).expect("the machine runs");
        for table in [&table, &dropped] {
            table.put_with(b"key", b"value", Durability::Sync).expect("the machine runs");
        }
        let changing = thread::spawn({
            let db = db.clone();
            move || {
                db.create_table("made", kind).expect("the machine runs");
                db.truncate_table("t").expect("the machine runs");
                db.drop_table("dropped").expect("the machine runs");
                if kind == IndexKind::Lsm {
                    let mut ingest = db.ingest("ingested", kind.into()).expect("the machine runs");
                    ingest.put(b"key", b"value").expect("the machine runs");
                    ingest.finish().expect("the machine runs");
                }
            }
        });
        let checkpointing = thread::spawn({
            let db = db.clone();
            move || (0..2).for_each(|_| db.checkpoint().expect("the machine runs"))
        });
        changing.join().expect("no thread panics");
        checkpointing.join().expect("no thread panics");
        let machine = machine.power_cut();
        let (db, table) = machine.open();
        assert_eq!(table.get(b"key").expect("the machine runs"), None, "the table was emptied");
        let tables: Vec<_> = db.tables().into_iter().map(|(name, _)| name).collect();
        if kind == IndexKind::Lsm {
            assert_eq!(tables, ["ingested", "made", "t"]);
            let found = db.table("ingested").and_then(|table| table.get(b"key")).expect("the machine runs");
            assert_eq!(found.as_deref(), Some(&b"value"[..]));
        } else {
            assert_eq!(tables, ["made", "t"]);
        }
    });
}

/// A table is made, and gets another name, beside checkpoints, and the power is cut at any step: what was durable in each table is in one
/// table after that, by the name from before or from after.
#[test]
fn interleavings_of_names_and_checkpoints() {
    in_fewer_orders(LONG_RUN, |kind| {
        let machine = Machine::new(23, kind);
        let (db, table) = machine.open();
        table.put_with(b"is", b"t", Durability::Sync).expect("the machine runs");
        machine.device.crash_after(shuttle::rand::thread_rng().gen_range(5..150));
        let changing = thread::spawn({
            let db = db.clone();
            move || -> aiodb::Result<()> {
                let copy = db.create_table("copy", kind)?;
                copy.put_with(b"is", b"copy", Durability::Sync)?;
                db.swap_tables("t", "copy")
            }
        });
        let checkpointing = thread::spawn({
            let db = db.clone();
            move || (0..3).try_for_each(|_| db.checkpoint())
        });
        let is_swapped = changing.join().expect("no thread panics").is_ok() && !machine.device.has_crashed();
        let _ = checkpointing.join().expect("no thread panics");
        let machine = machine.power_cut();
        let (db, table) = machine.open();
        let is = |table: &Table<SimDevice>| table.get(b"is").expect("the machine runs");
        let of_copy = db.table("copy").ok().map(|copy| is(&copy));
        let found = (is(&table), of_copy.flatten());
        let (t, copy) = (Some(b"t".to_vec()), Some(b"copy".to_vec()));
        let before = [(t.clone(), None), (t.clone(), copy.clone())];
        let is_right = if is_swapped { false } else { before.contains(&found) };
        assert!(is_right || found == (copy, t), "{is_swapped}: {found:?}");
    });
}

/// Of a batch that is written meanwhile gets one after the other, readers and gets of several keys see all, or nothing.
#[test]
fn interleavings_of_batches_and_gets() {
    const KEYS: [&[u8]; 2] = [b"first", b"second"];
    in_fewer_orders(RUN, |kind| {
        let machine = Machine::new(22, kind);
        let (db, table) = machine.open();
        let class = [Durability::None, Durability::Sync][shuttle::rand::thread_rng().gen_range(0..2)];
        let writing = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || {
                for version in 1..4u8 {
                    let mut batch = Batch::new();
                    for key in KEYS {
                        match version {
                            3 => batch.delete(&table, key).expect("it is short"),
                            _ => batch.put(&table, key, &[version]).expect("it is short"),
                        };
                    }
                    db.write_with(&batch, class).expect("the machine runs");
                }
            }
        });
        // The third version is that nothing is there any more, which nothing else is as soon as a version was seen.
        let version = |last: u8, found: Option<&[u8]>| found.map_or(if last > 0 { 3 } else { 0 }, |value| value[0]);
        let mut last = 0;
        for round in 0..4 {
            let found: Vec<Option<Vec<u8>>> = match round % 3 {
                0 => KEYS.map(|key| table.get(key).expect("the machine runs")).into(),
                1 => {
                    let mut reader = table.reader(1).expect("a reader can be made");
                    let mut get = |key| {
                        reader.submit(key, 0).expect("a get can be submitted");
                        let got = reader.poll().expect("the machine runs").expect("one is in flight");
                        got.value.expect("the machine runs").map(<[u8]>::to_vec)
                    };
                    KEYS.map(|key| get(key)).into()
                }
                _ => table.get_many(&KEYS).expect("the machine runs"),
            };
            for (number, found) in found.iter().enumerate() {
                let seen = version(last, found.as_deref());
                assert!(seen >= last, "round {round}: version {seen} of key {number} after version {last}");
                last = seen;
            }
            if round % 3 == 2 {
                assert_eq!(found[0], found[1], "several keys are of one moment");
            }
        }
        writing.join().expect("no thread panics");
        assert_eq!(KEYS.map(|key| table.get(key).expect("the machine runs")), [None, None]);
    });
}

/// A batch that changes a key more than once is seen as it ends, or not at all.
#[test]
fn interleavings_of_keys_that_a_batch_changes_again() {
    in_fewer_orders(RUN, |kind| {
        let machine = Machine::new(24, kind);
        let (db, table) = machine.open();
        table.put_with(b"key", b"0", Durability::None).expect("the machine runs");
        let class = [Durability::None, Durability::Sync][shuttle::rand::thread_rng().gen_range(0..2)];
        let writing = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || {
                for version in [b"1", b"2"] {
                    let mut batch = Batch::new();
                    match kind {
                        IndexKind::Hash => batch.delete(&table, b"key").expect("it is short"),
                        _ => batch.delete_range(&table, b"a", b"z").expect("it is short"),
                    };
                    batch.put(&table, b"key", b"half").expect("it is short");
                    batch.put(&table, b"key", version).expect("it is short");
                    db.write_with(&batch, class).expect("the machine runs");
                }
            }
        });
        let mut last = b'0';
        for round in 0..4 {
            let found = match round % 2 {
                0 => table.get(b"key").expect("the machine runs"),
                _ => table.get_many(&[b"key"]).expect("the machine runs").remove(0),
            };
            let found = found.expect("it is never away");
            assert!(found.len() == 1 && found[0] >= last, "{found:?} after {last}");
            last = found[0];
        }
        writing.join().expect("no thread panics");
        assert_eq!(table.get(b"key").expect("the machine runs"), Some(b"2".to_vec()));
    });
}

/// A table is gone through while it is emptied, and what was in memory of it is committed then: all of it is seen, or nothing.
#[test]
fn interleavings_of_scans_and_truncates() {
    const KEYS: u8 = 4;
    in_fewer_orders(RUN, |kind| {
        let machine = Machine::new(25, kind);
        let (db, table) = machine.open();
        for key in 0..KEYS {
            table.put_with(&[key], b"value", Durability::None).expect("the machine runs");
            if key == KEYS / 2 {
                // The index on disk has these, and memory the others.
                db.step(Step::Checkpoint).expect("the machine runs");
            }
        }
        let emptying = thread::spawn({
            let db = db.clone();
            move || {
                db.truncate_table("t").expect("the machine runs");
                db.step(Step::Checkpoint).expect("the machine runs");
            }
        });
        let found: Vec<_> = table.iterate().and_then(Iterator::collect).expect("the table is there");
        assert!(found.is_empty() || found.len() == usize::from(KEYS), "{} of {KEYS} keys", found.len());
        emptying.join().expect("no thread panics");
    });
}

/// Empties all segments that have any garbage, and uses them again.
fn use_again(machine: &Machine, db: &Db<SimDevice>, table: &Table<SimDevice>) {
    let put = |number: u64| table.put_with(b"garbage", &value(1, number, 15_000), Durability::None);
    db.step(Step::Write).expect("the machine runs");
    (0..8).for_each(|number| _ = put(number).expect("the machine runs"));
    machine.device.set_capacity(Some(0));
    for number in 0.. {
        match put(number) {
            Ok(_) => assert!(number < 100, "the disk is full at last"),
            Err(Error::DiskFull { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    machine.device.set_capacity(None);
    for step in [Step::Checkpoint, Step::Prepare] {
        db.step(step).expect("the machine runs");
    }
    (0..8).for_each(|number| _ = put(number).expect("the machine runs"));
}

fn check(db: &Db<SimDevice>, table: &Table<SimDevice>, other: &Table<SimDevice>, wanted: Option<&[u8]>) {
    assert_eq!(other.get(b"key").expect("the machine runs").as_deref(), Some(&b"part"[..]));
    assert!(table.get(b"key").expect("it was there").as_deref() == wanted, "the large value is another or gone");
    assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
}
