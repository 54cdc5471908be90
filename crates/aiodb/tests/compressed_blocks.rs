//! Tables of kind `lsm` whose blocks of runs are compressed: what they hold is found in every way, takes less of the disk, and survives what
//! other tables survive.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use aiodb::{
    BackupOptions, Compression, Db, Durability, Error, IndexKind, Options, Repository, ScanOptions, Table,
    TableOptions, TableStats,
};
use support::{assert_get, assert_value, damage, quiet, refusal, scratch, upkeep, value};

const KINDS: [Compression; 3] = [Compression::Lz4, Compression::Zstd(1), Compression::Zstd(9)];

/// Rows of a table.
const ROWS: u64 = 6_000;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn table_options(block_compression: Compression) -> TableOptions {
    TableOptions { inline_bytes: 200, block_compression, ..IndexKind::Lsm.into() }
}

/// Options without a cache of blocks, so that each get reads one.
fn options() -> Options {
    Options { block_cache_bytes: Some(0), ..quiet() }
}

/// A row like many, of which some are too long for the index, and some do not compress.
fn row(number: u64, round: u64) -> (Vec<u8>, Vec<u8>) {
    let key = format!("accounts/of somebody/{:09}", number * 7);
    let regular =
        format!("{{\"number\": {number}, \"round\": {round}, \"city\": \"somewhere\", \"state\": \"active\"}}");
    let row = match number % 50 {
        0 => value(number + round, 3000),
        1..4 => value(number + round, 150),
        _ => regular.into_bytes(),
    };
    (key.into_bytes(), row)
}

fn put(table: &Table, contents: &mut Contents, round: u64) {
    for number in (0..ROWS).filter(|number| number % 3 == round % 3 || round == 0) {
        let (key, value) = row(number, round);
        if (number + round).is_multiple_of(11) {
            table.delete_with(&key, Durability::None).expect("a delete works");
            contents.remove(&key);
        } else {
            table.put_with(&key, &value, Durability::None).expect("a put works");
            contents.insert(key, value);
        }
    }
}

/// A table `t` with several runs, and what it holds.
fn filled(db: &Db, compression: Compression) -> (Table, Contents) {
    let table = db.create_table_with("t", table_options(compression)).expect("the table can be made");
    let mut contents = Contents::new();
    for round in 0..4 {
        put(&table, &mut contents, round);
        db.checkpoint().expect("a checkpoint can be made");
    }
    (table, contents)
}

/// Every way to read says what the contents are, and nothing is wrong with the store.
fn check(db: &Db, contents: &Contents, when: &str) {
    let table = db.table("t").expect("the table is there");
    for number in (0..ROWS).step_by(13) {
        let (key, _) = row(number, 0);
        assert_get(&table, &key, contents.get(&key).map(Vec::as_slice), when);
    }
    let keys: Vec<_> = contents.keys().step_by(7).collect();
    for (key, found) in keys.iter().zip(table.get_many(&keys).expect("gets work")) {
        assert_value(found.as_deref(), Some(&contents[*key]), when);
    }
    for backward in [false, true] {
        let options = if backward { ScanOptions::all().backward() } else { ScanOptions::all() };
        let scan = table.scan(options).expect("a scan begins");
        let mut found: Vec<(Vec<u8>, Vec<u8>)> = scan.collect::<Result<_, _>>().expect("a scan works");
        if backward {
            found.reverse();
        }
        assert!(found.iter().map(|(key, value)| (key, value)).eq(contents), "{when}, backward: {backward}");
    }
    assert!(damage(db).is_empty(), "{when}: {:?}", damage(db));
}

fn stats(db: &Db) -> TableStats {
    db.table("t").and_then(|table| table.stats()).expect("the table is there")
}

fn run_files(store: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(store.join("index/runs")).expect("there are runs");
    let files = files.map(|file| file.expect("it can be listed").path());
    files.filter(|path| path.extension().is_some_and(|end| end == "run")).collect()
}

#[test]
fn compressed_tables_hold_what_others_do_in_less_of_the_disk() {
    let plain = scratch();
    let db = Db::open(plain.path(), options()).expect("a store can be made");
    let (table, _) = filled(&db, Compression::None);
    upkeep(&db);
    let (without, options_of_it) = (stats(&db), table.options());
    assert_eq!((without.index_disk_bytes, db.stats().format_version), (without.index_plain_bytes, 5));
    assert_eq!((without.block_compression, options_of_it.block_compression), (Compression::None, Compression::None));
    for compression in KINDS {
        let directory = scratch();
        let db = Db::open(directory.path(), options()).expect("a store can be made");
        let (table, contents) = filled(&db, compression);
        check(&db, &contents, "at once");
        let snapshot = db.snapshot().expect("a snapshot can be taken");
        upkeep(&db);
        check(&db, &contents, "after upkeep");
        let seen = snapshot.get(&table, &row(1, 0).0).expect("a get works");
        assert_value(seen.as_deref(), contents.get(&row(1, 0).0).map(Vec::as_slice), "in a snapshot");
        drop(snapshot);
        upkeep(&db);
        let with = stats(&db);
        assert_eq!((with.block_compression, db.stats().format_version), (compression, 5));
        assert!(with.index_disk_bytes * 2 < without.index_disk_bytes, "{compression}: {with:?}, {without:?}");
        assert!(with.index_disk_bytes * 2 < with.index_plain_bytes, "{compression}: {with:?}");
        assert!(db.recount().expect("it can be counted").is_empty());
        db.truncate_table("t").expect("it can be emptied");
        assert_eq!(table.options(), table_options(compression), "what is emptied stays as it was made");
        assert!(table.get(&row(1, 0).0).expect("a get works").is_none());
    }
}

#[test]
fn compressed_tables_are_opened_again() {
    for compression in KINDS {
        let directory = scratch();
        let db = Db::open(directory.path(), options()).expect("a store can be made");
        let (_, contents) = filled(&db, compression);
        db.close().expect("it closes");
        drop(db);
        let cached = Options { block_cache_bytes: Some(4 << 20), ..options() };
        let openings = [
            (Options { read_only: true, create: false, ..options() }, "read only"),
            (cached, "with a cache"),
            (Options { rebuild_index: true, ..options() }, "made again from the log"),
        ];
        for (options, when) in openings {
            let db = Db::open(directory.path(), options).expect("it opens again");
            let table = db.table("t").expect("the table is there");
            assert_eq!(table.options(), table_options(compression), "{when}");
            check(&db, &contents, when);
            check(&db, &contents, when);
            drop(table);
            db.close().expect("it closes");
        }
    }
}

#[test]
fn compressed_tables_come_back_from_backups_and_are_salvaged() {
    let (directory, repository, restored, salvaged) = (scratch(), scratch(), scratch(), scratch());
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let (_, contents) = filled(&db, Compression::Zstd(3));
    db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("a backup can be made");
    let backups = Repository::open(repository.path()).expect("it can be opened");
    assert!(backups.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    backups.restore(None, restored.path(), &mut |_, _| {}).expect("it can be restored");
    db.close().expect("it closes");
    drop(db);
    aiodb::salvage(directory.path(), salvaged.path(), &mut |_, _| {}).expect("it can be salvaged");
    for (store, when) in [(&restored, "restored"), (&salvaged, "salvaged")] {
        let db = Db::open(store.path(), options()).expect("it opens");
        let table = db.table("t").expect("the table is there");
        assert_eq!(table.options(), table_options(Compression::Zstd(3)), "{when}");
        check(&db, &contents, when);
        upkeep(&db);
        check(&db, &contents, when);
        assert!(stats(&db).index_disk_bytes < stats(&db).index_plain_bytes, "{when}: {:?}", stats(&db));
    }
}

#[test]
fn tables_are_compressed_and_not_any_more_by_a_copy() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let (_, contents) = filled(&db, Compression::None);
    for (number, compression) in [Compression::Lz4, Compression::Zstd(19), Compression::None].into_iter().enumerate() {
        let (from, name) = (db.table("t").expect("the table is there"), format!("copy {number}"));
        let copy = db.copy_table(&from, &name, table_options(compression), &mut |_, _| {}).expect("it can be copied");
        assert_eq!(copy.options(), table_options(compression));
        drop((from, copy));
        db.drop_table("t").expect("it can be dropped");
        upkeep(&db);
        let from = db.table(&name).expect("the table is there");
        db.copy_table(&from, "t", table_options(compression), &mut |_, _| {}).expect("it can be copied back");
        drop(from);
        db.drop_table(&name).expect("it can be dropped");
        upkeep(&db);
        check(&db, &contents, &format!("{compression}"));
        let stats = stats(&db);
        assert_eq!(stats.index_disk_bytes < stats.index_plain_bytes, compression != Compression::None, "{stats:?}");
    }
}

/// Damage of a compressed block is told of, and never taken for absence.
#[test]
fn damaged_blocks_are_an_error() {
    for compression in KINDS {
        let directory = scratch();
        let db = Db::open(directory.path(), options()).expect("a store can be made");
        let (_, contents) = filled(&db, compression);
        upkeep(&db);
        db.close().expect("it closes");
        drop(db);
        for path in run_files(directory.path()) {
            let file = std::fs::File::options().read(true).write(true).open(&path).expect("it can be opened");
            let mut byte = [0];
            file.read_exact_at(&mut byte, 2000).expect("it can be read");
            file.write_all_at(&[byte[0] ^ 0x10], 2000).expect("it can be written");
        }
        let db = Db::open(directory.path(), options()).expect("the footers are whole");
        assert!(damage(&db).iter().any(|damage| matches!(damage, Error::Corruption { .. })), "{:?}", damage(&db));
        let (table, mut damaged) = (db.table("t").expect("the table is there"), 0);
        for (key, value) in &contents {
            match table.get(key) {
                Err(Error::Corruption { what, .. }) => {
                    assert!(what.contains("checksum"), "{what}");
                    damaged += 1;
                }
                found => assert_value(found.expect("it is damage or there").as_deref(), Some(value), "beside damage"),
            }
        }
        assert!(damaged > 20 && damaged < contents.len() / 2, "{compression}: {damaged} keys lie in damaged blocks");
        drop(table);
        db.close().expect("it closes");
        let db = Db::open(directory.path(), Options { rebuild_index: true, ..options() }).expect("it is made again");
        check(&db, &contents, "made again from the log");
    }
}

#[test]
fn what_cannot_be_compressed_so_is_refused() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let of = |kind: IndexKind, block_compression| TableOptions { block_compression, ..kind.into() };
    for wrong in [
        of(IndexKind::Lmdb, Compression::Lz4),
        of(IndexKind::Hash, Compression::Zstd(3)),
        of(IndexKind::Lsm, Compression::Zstd(0)),
        of(IndexKind::Lsm, Compression::Zstd(20)),
    ] {
        let error = refusal(db.create_table_with("t", wrong.clone()), "such a table");
        assert!(matches!(error, Error::Option { option: "block_compression", .. }), "{error:?}");
        assert_eq!(db.stats().format_version, 1, "nothing was made");
    }
    db.create_table_with("t", of(IndexKind::Lsm, Compression::Zstd(19))).expect("it can be made");
    assert_eq!(db.stats().format_version, 5);
    for name in ["MANIFEST", "MANIFEST.copy"] {
        let manifest = std::fs::read(directory.path().join(name)).expect("it is there");
        assert_eq!(manifest[8..12], [5, 0, 0, 0], "an older program refuses {name}");
    }
}

/// Pairs of a measurement: how many, and the bytes of keys and values.
const MEASURED: [(u64, usize, usize); 2] = [(2_000_000, 25, 25), (500_000, 100, 400)];

/// The words of which values are made.
fn vocabulary() -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(1);
    (0..256).map(|_| (0..random.usize(3..9)).map(|_| random.lowercase()).chain([' ']).collect()).collect()
}

/// A value by its number.
fn of_words(vocabulary: &[String], number: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(number);
    let mut value = Vec::with_capacity(length + 16);
    while value.len() < length {
        value.extend_from_slice(vocabulary[random.usize(..vocabulary.len())].as_bytes());
    }
    value.truncate(length);
    value
}

/// A key by its number: neighbours in their order are none in that of numbers.
fn measured_key(number: u64, length: usize) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    format!("{mixed:0>length$}").into_bytes()
}

/// What compression saves and costs.
#[test]
#[ignore = "a measurement; it prints bytes of runs, and rates of puts, gets and a scan"]
fn what_compression_saves_and_costs() {
    let compressions = [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(3)];
    for (pairs, key_bytes, value_bytes) in MEASURED {
        // In turns, so that a machine that slows down does not slow one of them down.
        for round in 0..3 {
            for compression in compressions {
                measure(compression, (pairs, key_bytes, value_bytes), round);
            }
        }
    }
}

fn measure(compression: Compression, (pairs, key_bytes, value_bytes): (u64, usize, usize), round: u32) {
    const GETS: u64 = 100_000;
    let directory = scratch();
    let options = Options { block_cache_bytes: Some(8 << 20), ..Options::default() };
    let db = Db::open(directory.path(), options).expect("a store can be made");
    let made = TableOptions { inline_bytes: 400, block_compression: compression, ..IndexKind::Lsm.into() };
    let table = db.create_table_with("t", made).expect("the table can be made");
    let rate = |count: u64, begun: std::time::Instant| count as f64 / begun.elapsed().as_secs_f64();
    let vocabulary = vocabulary();
    let begun = std::time::Instant::now();
    for number in 0..pairs {
        let (key, value) = (measured_key(number, key_bytes), of_words(&vocabulary, number, value_bytes));
        table.put_with(&key, &value, Durability::None).expect("a put works");
    }
    db.checkpoint().expect("a checkpoint can be made");
    let puts = rate(pairs, begun);
    // Merges come to their end.
    let (mut last, mut same) = (0, 0);
    while same < 30 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let written = db.metrics().run_file_bytes;
        (last, same) = if written == last { (last, same + 1) } else { (written, 0) };
    }
    let stats = stats(&db);
    let mut random = fastrand::Rng::with_seed(u64::from(round));
    let begun = std::time::Instant::now();
    for _ in 0..GETS {
        let key = measured_key(random.u64(..pairs), key_bytes);
        assert!(table.get(&key).expect("a get works").is_some());
    }
    let gets = rate(GETS, begun);
    let begun = std::time::Instant::now();
    let found = table.scan(ScanOptions::all()).expect("a scan begins").fold(0, |count, record| {
        record.expect("a scan works");
        count + 1
    });
    assert_eq!(found, pairs);
    let scanned = rate(pairs, begun);
    println!(
        "{key_bytes}+{value_bytes} {compression} round {round}: {} MB of runs ({} without), {puts:.0} puts/s, {gets:.0} gets/s, {scanned:.0} records/s scanned",
        stats.index_disk_bytes / 1_000_000,
        stats.index_plain_bytes / 1_000_000,
    );
}
