//! The order of writes that users see, and waiting until they are durable.

mod support;

use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, Error, IndexKind, Options, Sequence};
use support::{KINDS, open, quiet, refusal, scratch, small};

#[test]
fn sequences_rise_over_tables_batches_and_openings() {
    let directory = scratch();
    let mut last = Sequence::default();
    for kind in KINDS {
        let db = Db::open(directory.path(), small()).expect("the store can be opened");
        let table = db.table_or_create(kind.name(), kind).expect("a table can be made");
        let mut rises = |sequence: aiodb::Result<Sequence>, what: &str| {
            let sequence = sequence.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(sequence > last, "{what} has sequence {sequence}, after {last}");
            assert_eq!(db.sequence(), sequence, "{what} was the last write");
            last = sequence;
        };
        for durability in [Durability::Sync, Durability::None] {
            rises(table.put_with(b"k", b"v", durability), "a put");
            rises(table.put_with(b"large", &vec![1; 600_000], durability), "a put in chunks");
            rises(table.delete_with(b"k", durability), "a delete");
            rises(table.delete_with(b"never there", durability), "a delete of nothing");
            let mut batch = Batch::new();
            batch.put(&table, b"a", b"1").and_then(|batch| batch.put(&table, b"b", b"2")).expect("it is in its limits");
            let before = db.sequence().number();
            rises(db.write_with(&batch, durability), "a batch");
            assert_eq!(db.sequence().number(), before + 2, "a batch of two has two sequences");
        }
        assert_eq!(db.write(&Batch::new()).expect("an empty batch is no error"), last, "it changes nothing");
        db.close().expect("the store can be closed");
    }
}

#[test]
fn what_was_waited_for_survives_a_power_cut() {
    for seed in 0..60 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let device = SimDevice::with_block_bytes(seed, 512);
        device.create_dir(Path::new("/store")).expect("a directory can be made");
        let options = Options { segment_bytes: 64 << 10, ..quiet() };
        let db = Db::open_on(device.clone(), "/store", options.clone()).expect("a store can be made");
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        let writes = rng.u64(2..40);
        let sequences: Vec<Sequence> = (0..writes)
            .map(|number| {
                let length = if rng.u8(..8) == 0 { 20_000 } else { rng.usize(8..300) };
                if rng.u8(..10) == 0 {
                    db.step(aiodb::Step::Write).expect("the batch can be written");
                }
                let value = support::value(number, length);
                table.put_with(&number.to_be_bytes(), &value, Durability::None).expect("a put works")
            })
            .collect();
        let waited = rng.u64(..writes);
        db.wait_durable(sequences[waited as usize]).expect("it becomes durable");
        let batches = db.stats().batches_written;
        for sequence in &sequences[..=waited as usize] {
            db.wait_durable(*sequence).expect("it is durable");
        }
        assert_eq!(db.stats().batches_written, batches, "seed {seed}: what is durable needs no further write");
        let after = device.power_cut();
        let again = Db::open_on(after, "/store", options).expect("the store can be opened again");
        let table = again.table("t").expect("the table is there");
        for number in 0..=waited {
            let found = table.get(&number.to_be_bytes()).expect("the key can be read");
            assert!(found.is_some(), "seed {seed}: write {number} of {waited} that were waited for");
        }
    }
}

#[test]
fn many_threads_wait_for_their_own_writes() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        std::thread::scope(|scope| {
            for thread in 0..8u64 {
                let (db, table) = (&db, &table);
                scope.spawn(move || {
                    for number in 0..40u64 {
                        let key = (thread << 32 | number).to_be_bytes();
                        let class = if thread < 2 { Durability::Sync } else { Durability::None };
                        let sequence = table.put_with(&key, b"v", class).expect("a put works");
                        db.wait_durable(sequence).expect("it becomes durable");
                        let stats = db.stats();
                        assert!(
                            stats.durable_batch > 0 && stats.durable_batch <= stats.last_batch,
                            "batch {} of {} is durable",
                            stats.durable_batch,
                            stats.last_batch
                        );
                    }
                });
            }
        });
        assert_eq!(db.stats().trouble, None, "background work went through");
    }
}

#[test]
fn waiting_for_what_was_never_written_is_refused() {
    let (ours, theirs) = (scratch(), scratch());
    let (db, table) = open(ours.path(), IndexKind::Hash, &quiet());
    let (_other, busier) = open(theirs.path(), IndexKind::Hash, &quiet());
    table.put(b"k", b"v").expect("a put works");
    for _ in 0..10 {
        busier.put_with(b"k", b"v", Durability::None).expect("a put works");
    }
    let foreign = busier.put_with(b"k", b"v", Durability::None).expect("a put works");
    let error = refusal(db.wait_durable(foreign), "waiting for a sequence that this store has not given");
    assert!(matches!(error, Error::Option { option: "sequence", .. }), "{error}");
    db.wait_durable(db.sequence()).expect("all that was written can be waited for");
    db.close().expect("the store can be closed");
    let error = refusal(db.wait_durable(Sequence::default()), "waiting after a close");
    assert!(matches!(error, Error::Closed), "{error}");
}
