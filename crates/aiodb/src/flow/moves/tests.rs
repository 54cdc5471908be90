use super::*;
use crate::format::batch::Append;
use crate::format::place::Counting;
use crate::format::record::{Kind, Origin};
use crate::io::sim::SimDevice;
use crate::{Db, Durability, IndexKind, Options, Step, Table, TableOptions};

const SEGMENT_BYTES: u64 = 1 << 20;
/// As in [`AppendPath::max_batch_bytes`].
const MOST_BYTES: usize = SEGMENT_BYTES as usize - UNIT_BYTES;
const RECORDS: usize = 500;

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_be_bytes()
}

/// The move of a put from a place.
fn moved<'a>(table: u32, key: &'a [u8], value: &'a [u8], from: (Origin, u64)) -> Append<'a> {
    let append = Append { moved: Some(from), ..Append::new(Kind::Put, table, key, value) };
    Append { separate: Counting::AsTheyLie.is_denser_separate(&append), ..append }
}

/// Lengths of values whose moves fill one batch, and how many of the first of them die, so that the others are longer than a batch may be.
fn lengths_that_lie_less_densely() -> (Vec<usize>, usize) {
    let (bytes, origin) = (vec![0; 6200], Origin { segment: 0, offset: 4096 });
    for seed in 0..10_000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let lengths: Vec<usize> = (0..RECORDS).map(|_| [1000, 2048, 5000, 6200][random.usize(..4)]).collect();
        let key = key(0);
        let moves: Vec<_> = lengths.iter().map(|length| moved(16, &key, &bytes[..*length], (origin, 1))).collect();
        let mut cursor = Cursor::new();
        let fits = |append: &&Append<'_>| {
            cursor.take(append);
            cursor.end <= MOST_BYTES - UNIT_BYTES
        };
        let count = moves.iter().take_while(fits).count();
        if let Some(dead) = (1..4).find(|dead| batch_bytes(moves[*dead..count].iter()) > MOST_BYTES) {
            return (lengths, dead);
        }
    }
    panic!("there are some");
}

fn put(table: &Table<SimDevice>, number: usize, value: &[u8]) {
    table.put_with(&key(number), value, Durability::None).expect("the machine runs");
}

/// Records die between the look-up and the turn. What is left is laid out anew, and may be longer than all of them were.
#[test]
fn moves_that_do_not_fit_into_one_batch_any_more_go_to_several() {
    let (lengths, dead) = lengths_that_lie_less_densely();
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let device = SimDevice::new(1);
    device.set_real_directory(directory.path());
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: SEGMENT_BYTES, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options.clone()).expect("the store can be made");
    let table = TableOptions { inline_bytes: 0, ..IndexKind::Lsm.into() };
    let table = db.create_table_with("t", table).expect("the table can be made");
    let engine = &db.engine.engine;
    assert_eq!(engine.max_batch_bytes(), MOST_BYTES);

    let values: Vec<Vec<u8>> = (0..).zip(&lengths).map(|(number, length)| vec![number as u8; *length]).collect();
    values.iter().enumerate().for_each(|(number, value)| put(&table, number, value));
    db.step(Step::Write).expect("the machine runs");
    // The next batch goes into a fresh segment.
    while SEGMENT_BYTES - engine.commit.log_end().offset >= MIN_MOVE_BYTES as u64 {
        put(&table, RECORDS, b"a unit");
        db.step(Step::Write).expect("the machine runs");
    }
    let generation = table.slot.generation().expect("the table is there");
    let keys: Vec<_> = (0..RECORDS).map(key).collect();
    let move_of = |number: usize| {
        let looked_up = engine.ordered_of(&generation).look_up(generation.id, &keys[number]).expect("the machine runs");
        let entry = looked_up.chain.newest().expect("it is there");
        let origin = Origin { segment: entry.location.segment, offset: entry.location.offset };
        let append = moved(generation.id, &keys[number], &values[number], (origin, entry.sequence));
        let operation = Operation { generation: Some(generation.clone()), append, hash: 0, over: None };
        Move { operation, looked_up: Some(looked_up) }
    };
    let mut moves: Vec<_> = (0..RECORDS).map(move_of).collect();
    for key in keys.iter().take(dead) {
        table.delete_with(key, Durability::None).expect("the machine runs");
    }
    let mut written = Vec::new();
    let note = |number, _| {
        written.push(number);
        Ok(())
    };
    engine.move_in_batches(&mut moves, |one| engine.still_current(one), note).expect("the machine runs");
    assert_eq!(written, (dead..RECORDS).collect::<Vec<_>>(), "all that are still there are moved, once");
    drop(moves);

    let check = |db: &Db<SimDevice>| {
        let table = db.table("t").expect("it is there");
        for (number, value) in values.iter().enumerate() {
            let found = table.get(&key(number)).expect("the machine runs");
            assert!(found.as_ref() == (number >= dead).then_some(value), "key {number}");
        }
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
        let report = db.verify(&mut |_, _| {}).expect("the machine runs");
        assert!(report.damage.is_empty(), "{:?}", report.damage);
    };
    check(&db);
    db.close().expect("the machine runs");
    drop((table, db));
    check(&Db::open_on(device, "/store", options).expect("the store can be opened"));
}
