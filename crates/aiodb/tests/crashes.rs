//! Moments that once went wrong, each led up to by hand: crashes, failed writes, a full disk.

mod support;

use std::path::Path;

use aiodb::io::sim::{Call, SimDevice};
use aiodb::io::{Access, Device, File, Phase};
use aiodb::merge::{Append, MergeOperator};
use aiodb::{
    BackupOptions, Db, Durability, Error, IndexKind, MergeOperators, Options, Repository, ScanOptions, Step, Table,
    TableOptions,
};
use support::{KINDS, ORDERED, scratch, value};

const SEEDS: u64 = 200;
const SEGMENT_BYTES: u64 = 64 << 10;
const UNIT_BYTES: u64 = 4096;

/// Operands of a key that are folded.
const FOLDED: usize = 16;

fn open(device: &SimDevice) -> Db<SimDevice> {
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = Options { segment_bytes: SEGMENT_BYTES, background: false, ..Options::default() };
    Db::open_on(device.clone(), "/store", options).expect("the store opens")
}

fn get(db: &Db<SimDevice>, key: &[u8]) -> Option<Vec<u8>> {
    db.table("t").expect("the table is there").get(key).expect("a get works")
}

fn put(db: &Db<SimDevice>, key: &[u8]) {
    let table = db.table("t").expect("the table is there");
    table.put_with(key, b"value", Durability::None).expect("a put works");
}

/// The keys that a scan of everything finds.
fn keys(table: &Table<SimDevice>, kind: IndexKind) -> Result<Vec<Vec<u8>>, Error> {
    let scan = if kind.is_ordered() { table.scan(ScanOptions::all()) } else { table.iterate() };
    scan?.map(|record| record.map(|(key, _)| key)).collect()
}

/// A process that dies while it fills a segment, or a power cut that takes the emptying of one back, leaves a file that takes space and
/// holds nothing. On a full disk it was never filled again, since that seemed to take more, and nobody else had its space.
#[test]
fn a_file_that_is_no_segment_yet_gives_its_space_back() {
    let device = SimDevice::new(1);
    let db = open(&device);
    db.create_table("t", IndexKind::Hash).expect("a table can be made");
    put(&db, b"key");
    db.close().expect("it closes");
    let path = Path::new("/store/log/00000040.seg");
    let device = device.process_death();
    let file = device.open(path, Access::NEW_SEGMENT).expect("a file can be made");
    file.reserve(SEGMENT_BYTES).expect("there is space");
    file.sync().expect("it can be flushed");
    let options = Options { read_only: true, ..Options::default() };
    let reader = Db::open_on(device.clone(), "/store", options).expect("it opens for reading");
    reader.close().expect("it closes");
    let length = |device: &SimDevice| device.file_bytes(path).expect("it is there").len() as u64;
    assert_eq!(length(&device), SEGMENT_BYTES, "who only reads changes nothing");
    let device = device.process_death();
    let db = open(&device);
    assert_eq!(length(&device), 0, "nothing is lost with its bytes");
    assert_eq!(get(&db, b"key"), Some(b"value".to_vec()));
}

/// What a key's operands make may be so long that it is written in parts, which need room like any write. A write that made room on a
/// full disk folded them, met a full disk in doing so, and waited for itself to make room.
#[test]
fn a_fold_on_a_full_disk_does_not_wait_for_itself() {
    for kind in KINDS {
        let (device, directory) = (SimDevice::new(1), scratch());
        device.set_real_directory(directory.path());
        device.create_dir(Path::new("/store")).expect("a directory can be made");
        let merge_operators = MergeOperators::default().with(Append);
        let options =
            Options { segment_bytes: SEGMENT_BYTES, background: false, merge_operators, ..Options::default() };
        let db = Db::open_on(device.clone(), "/store", options).expect("the store opens");
        let merge = Some(Append.name().into());
        let table = db.create_table_with("t", TableOptions { merge, ..kind.into() });
        let table = table.expect("a table can be made");
        let operand = [7; 6000];
        for _ in 0..FOLDED {
            table.merge_with(b"folded", &operand, Durability::Sync).expect("there is room");
        }
        device.set_capacity(Some(device.used_bytes()));
        let put = |number: u32| table.put_with(&number.to_be_bytes(), &[1; 5000], Durability::Sync);
        let refusal = (0..100).find_map(|number| put(number).err()).expect("the disk is full");
        assert!(matches!(refusal, Error::DiskFull { .. }), "{kind:?}: {refusal}");
        let made = table.get(b"folded").expect("a get works").expect("it is there");
        assert_eq!(made.len(), FOLDED * operand.len(), "{kind:?}");
    }
}

/// A power cut may take a segment's header and leave what was written behind it. A later process that began the same life
/// there again took those bytes for its own, and lost what it had acknowledged.
#[test]
fn no_life_of_a_segment_is_begun_twice() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let device = SimDevice::new(seed);
        let db = open(&device);
        db.create_table("t", IndexKind::Hash).expect("a table can be made");
        // The next process begins a segment of its own.
        let second = device.process_death();
        drop(db);
        let db = open(&second);
        put(&db, b"first");
        db.step(Step::Write).expect("the batch can be written");
        let third = second.power_cut();
        drop(db);
        let db = open(&third);
        if get(&db, b"first").is_some() {
            continue;
        }
        lost += 1;
        put(&db, b"second");
        third.crash_after(1 + seed % 8);
        let _ = db.step(Step::Write);
        let fourth = third.process_death();
        drop(db);
        let db = open(&fourth);
        assert_eq!(get(&db, b"first"), None, "seed {seed}: what was gone stays gone");
        assert_eq!(get(&db, b"second").as_deref(), Some(&b"value"[..]), "seed {seed}: what was acknowledged is there");
    }
    assert!(lost > 20, "a power cut took an unflushed write {lost} times");
}

/// A closed store is opened, begins a segment, and loses power before anything is written there. The next process must not
/// go on in the old segment, since the header of the new one says that the log left it.
#[test]
fn a_segment_begun_in_vain_after_a_close_is_not_followed() {
    let mut in_vain = 0;
    for seed in 0..SEEDS {
        let device = SimDevice::new(seed);
        let db = open(&device);
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        // One unit is left in the segment: it has a header, and each of these batches fills one.
        for _ in 0..SEGMENT_BYTES / UNIT_BYTES - 3 {
            table.put_with(b"first", b"value", Durability::Sync).expect("a put works");
        }
        db.close().expect("the store closes");
        drop((table, db));
        let db = open(&device);
        device.crash_inside(Phase::SegmentReuse, 0, 1 + seed % 3);
        let table = db.table("t").expect("the table is there");
        let _ = table.put_with(b"long", &value(0, UNIT_BYTES as usize), Durability::Sync);
        in_vain += u64::from(device.phases().contains(&Phase::SegmentReuse));
        let third = device.power_cut();
        drop((table, db));
        let db = open(&third);
        put(&db, b"second");
        db.sync().expect("the put can be made durable");
        let fourth = third.power_cut();
        drop(db);
        let db = open(&fourth);
        assert_eq!(get(&db, b"second").as_deref(), Some(&b"value"[..]), "seed {seed}: what was acknowledged is there");
    }
    assert!(in_vain > 20, "a power cut fell into the beginning of a segment {in_vain} times");
}

/// A write that is refused at the last moment may have begun a segment for nothing. The log still ends in the one before,
/// which must not be emptied and given away as long as a closed store goes on there.
#[test]
fn the_segment_of_the_last_batch_is_not_given_away() {
    // In some of these rounds the segment has room for small batches, but not for the one that is refused.
    let rounds = (0..SEGMENT_BYTES / UNIT_BYTES).flat_map(|units| [(units, 2), (units, 200)]);
    for (units, puts) in rounds {
        let device = SimDevice::new(units);
        let db = open(&device);
        db.create_table("t", IndexKind::Hash).expect("a table can be made");
        let emptied = db.create_table("emptied", IndexKind::Hash).expect("a table can be made");
        for number in 0..40u8 {
            emptied.put_with(&[number % 4], &value(0, 12_000), Durability::Sync).expect("a put works");
        }
        let mut writer = emptied.write_stream(b"late").expect("a value can be begun");
        std::io::Write::write_all(&mut writer, &value(0, 12_000)).expect("a value can be written");
        for _ in 0..units {
            emptied.put_with(b"filling", b"value", Durability::Sync).expect("a put works");
        }
        db.truncate_table("emptied").expect("the table can be emptied");
        let refused = writer.finish_with(Durability::Sync);
        assert!(matches!(refused, Err(Error::TableEmptied { .. })), "the table was emptied meanwhile");
        // On a full disk no garbage is tolerated.
        device.set_capacity(Some(device.used_bytes()));
        let full = db.step(Step::Prepare);
        assert!(matches!(full, Err(Error::DiskFull { .. })), "there is no room for another segment");
        for step in [Step::Settle].into_iter().chain([Step::Reclaim; 100]) {
            db.step(step).expect("the disk works");
        }
        device.set_capacity(None);
        db.checkpoint().expect("the disk works");
        db.step(Step::Prepare).expect("the disk works");
        // The memory of the batch that was opened in vain may be gone: then nothing says that the log was to leave the segment.
        let device = device.power_cut();
        drop((emptied, db));
        open(&device).close().expect("the store closes");
        let db = open(&device);
        let table = db.table("t").expect("the table is there");
        let length = |number| if number < 2 { 100 } else { 12_000 };
        for number in 0..puts {
            let put = table.put_with(&[number], &value(number.into(), length(number)), Durability::Sync);
            put.expect("a put works");
        }
        let next = device.process_death();
        drop((table, db));
        let db = open(&next);
        for number in 0..puts {
            let found = get(&db, &[number]);
            assert!(found == Some(value(number.into(), length(number))), "{units}, {puts}: key {number} is there");
        }
    }
}

/// LMDB's file as it was before a range tombstone was carried out covers the same position of the log as afterwards. By then the segment
/// that held the list of a large value's chunks was used again, and nobody could count the chunks off any more.
#[test]
fn an_index_from_before_entries_were_taken_out_is_made_again() {
    let root = scratch();
    let file = |process: &str| root.path().join(process).join("store/index/lmdb/data.mdb");
    let device = SimDevice::new(1);
    device.set_real_directory(root.path().join("first"));
    let db = open(&device);
    let table = db.create_table("t", IndexKind::Lmdb).expect("a table can be made");
    // Its chunks fill two segments, the list that names them lies in a third.
    table.put_with(b"large", &value(0, 40_000), Durability::Sync).expect("a put works");
    for number in 0..6 {
        table.put_with(&[number], &value(number.into(), 12_000), Durability::Sync).expect("a put works");
    }
    table.delete_range(&[0], b"").expect("a range can be deleted");
    table.put_with(b"last", b"value", Durability::Sync).expect("a put works");
    db.checkpoint().expect("the disk works");
    let before = std::fs::read(file("first")).expect("the index has a file");
    for step in [Step::Upkeep, Step::Reclaim, Step::Checkpoint].into_iter().cycle().take(60) {
        db.step(step).expect("the disk works");
    }
    let next = device.process_death();
    drop((table, db));
    std::fs::create_dir_all(file("second").parent().expect("it lies in a directory")).expect("it can be made");
    std::fs::write(file("second"), before).expect("the file can be put back");
    next.set_real_directory(root.path().join("second"));
    let db = open(&next);
    assert!(db.stats().rebuilt_indexes, "an index that is older than the checkpoint is not believed");
    assert_eq!(db.recount().expect("the disk works"), Vec::<String>::new());
    assert_eq!(get(&db, b"large"), None);
    assert_eq!(get(&db, b"last"), Some(b"value".to_vec()));
}

/// A closed store is opened, and a power cut tears what is written. Were the next batch written over it and torn as well, the
/// sectors of both could make up the first one again, which an opening in between had found to be gone.
#[test]
fn a_torn_batch_is_not_made_whole_by_the_next_one() {
    let mut torn_twice = 0;
    for seed in 0..SEEDS {
        let device = SimDevice::new(seed);
        let db = open(&device);
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        db.close().expect("the store closes");
        drop((table, db));
        // Of the batches that follow only the sectors with the key differ.
        let long = value(0, 3000);
        let mut machine = device;
        let mut gone: Vec<[u8; 1]> = Vec::new();
        for key in [*b"1", *b"2", *b"3"] {
            let db = open(&machine);
            let table = db.table("t").expect("the table is there");
            for key in &gone {
                assert!(table.get(key).expect("a get works").is_none(), "seed {seed}: what was gone stays gone");
            }
            table.put_with(&key, &long, Durability::None).expect("a put works");
            db.step(Step::Write).expect("the batch can be written");
            let next = machine.power_cut();
            drop((table, db));
            machine = next;
            if get(&open(&machine), &key).is_none() {
                gone.push(key);
            }
        }
        torn_twice += u64::from(gone.len() > 1);
    }
    assert!(torn_twice > 20, "two batches were torn one after the other {torn_twice} times");
}

#[test]
fn scans_and_snapshots_go_on_when_writing_has_failed() {
    for kind in KINDS {
        let (device, directory) = (SimDevice::new(1), scratch());
        device.set_real_directory(directory.path());
        let db = open(&device);
        let table = db.create_table("t", kind).expect("a table can be made");
        table.put_with(b"a", b"value", Durability::Sync).expect("a put works");
        table.put_with(b"b", b"value", Durability::None).expect("a put works");
        device.fail(Call::Write, 0, 1, |_| true);
        assert!(table.put_with(b"c", b"value", Durability::Sync).is_err(), "the write fails");
        let refused = table.put_with(b"d", b"value", Durability::Sync);
        assert!(matches!(refused, Err(Error::Failed { .. })), "nothing is written any more");

        let wanted = [b"a".to_vec(), b"b".to_vec()];
        let mut found = keys(&table, kind).expect("a scan works");
        found.sort();
        assert_eq!(found, wanted, "{}: what gets see", kind.name());
        let snapshot = db.snapshot().expect("a snapshot can be taken");
        for (key, there) in [(b"a", true), (b"b", true), (b"c", false)] {
            let seen = snapshot.get(&table, key).expect("a get works");
            assert_eq!(seen.is_some(), there, "{}: {}", kind.name(), key.escape_ascii());
        }
    }
}

/// The table's keys are taken out of the index once the snapshot has ended: a scan must not show that as an empty table.
#[test]
fn a_scan_of_a_snapshot_that_has_ended_says_so() {
    for kind in KINDS {
        let (device, directory) = (SimDevice::new(2), scratch());
        device.set_real_directory(directory.path());
        let db = open(&device);
        let table = db.create_table("t", kind).expect("a table can be made");
        table.put(b"a", b"value").expect("a put works");
        let snapshot = db.snapshot().expect("a snapshot can be taken");
        db.truncate_table("t").expect("the table can be emptied");
        device.set_capacity(Some(device.used_bytes() + (256 << 10)));
        let has_ended = |number: u64| {
            // Refused now and then: the disk is full.
            let _ = table.put_with(&(number % 5).to_be_bytes(), &value(number, 2000), Durability::None);
            let _ = db.step(Step::Checkpoint);
            let _ = db.step(Step::Upkeep);
            matches!(snapshot.get(&table, b"a"), Err(Error::SnapshotEnded))
        };
        assert!((0..2000).any(has_ended), "{}: a full disk ends the snapshot", kind.name());
        let scan = if kind.is_ordered() { snapshot.scan(&table, ScanOptions::all()) } else { snapshot.iterate(&table) };
        let first = scan.and_then(|mut scan| scan.next_record().map(|record| record.is_some()));
        assert!(matches!(first, Err(Error::SnapshotEnded)), "{}: {first:?}", kind.name());
    }
}

/// Room is what a snapshot may have to give way to, and only on a disk that is full.
#[test]
fn a_disk_that_fails_while_segments_are_made_ends_no_snapshot() {
    for kind in KINDS {
        let (device, directory) = (SimDevice::new(1), scratch());
        device.set_real_directory(directory.path());
        let db = open(&device);
        let table = db.create_table("t", kind).expect("a table can be made");
        for key in 0..40_u8 {
            table.put_with(&[key], &value(0, SEGMENT_BYTES as usize / 10), Durability::Sync).expect("a put works");
        }
        let snapshot = db.snapshot().expect("a snapshot can be taken");
        for key in 0..40_u8 {
            table.put_with(&[key], &value(1, SEGMENT_BYTES as usize / 10), Durability::Sync).expect("a put works");
        }
        for _ in 0..50 {
            db.step(Step::Upkeep).expect("upkeep works");
        }
        assert!(db.stats().segments_retiring > 0, "{}: the snapshot holds segments", kind.name());
        device.fail(Call::Sync, 0, u64::MAX, |directory| directory.ends_with("log"));
        let fails = |number: u64| {
            // Uses up the free segments.
            let _ = table.put_with(&number.to_be_bytes(), &value(2, SEGMENT_BYTES as usize / 10), Durability::Sync);
            matches!(db.step(Step::Upkeep), Err(Error::Io { .. }))
        };
        assert!((0..200).any(fails), "{}: no segment can be made", kind.name());
        let seen = snapshot.get(&table, &[0]).expect("the snapshot has not ended");
        assert_eq!(seen, Some(value(0, SEGMENT_BYTES as usize / 10)), "{}", kind.name());
    }
}

/// A backup that failed may have left a repository whose name only the kernel knows: the next one must make it durable before
/// it puts a restore point there.
#[test]
fn a_restore_point_survives_though_the_backup_before_it_failed() {
    let mut failed = 0;
    for skip in 0..40 {
        let device = SimDevice::new(skip);
        let db = open(&device);
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        table.put(b"key", b"value").expect("a put works");
        device.create_dir(Path::new("/backup")).expect("a directory can be made");
        let back_up = |db: &Db<SimDevice>, device: &SimDevice| {
            db.backup_on(device.clone(), "/backup", &BackupOptions::default(), &mut |_, _| {})
        };
        device.fail(Call::Sync, skip % 10, 1, |path| path.starts_with("/backup"));
        failed += u64::from(back_up(&db, &device).is_err());
        device.clear_faults();
        let made = back_up(&db, &device).expect("a backup can be made");
        let next = device.power_cut();
        drop((table, db));
        let repository = Repository::open_on(next.clone(), "/backup").expect("the repository is there");
        let points = repository.points();
        assert!(points.contains(&made.point), "skip {skip}: {:?} is not among {points:?}", made.point);
        drop(repository);
        back_up(&open(&next), &next).expect("another backup can be made");
    }
    assert!(failed > 10, "{failed} backups failed");
}

/// A fold was committed, and the process died before the checkpoint that would have said so: the replay brings back those operands that came
/// after the last checkpoint, and the fold stands for older ones too.
#[test]
fn a_committed_fold_survives_the_replay_of_its_operands() {
    for kind in ORDERED {
        let (device, directory) = (SimDevice::new(1), scratch());
        device.set_real_directory(directory.path());
        let open = |device: &SimDevice| {
            device.create_dir(Path::new("/store")).expect("a directory can be made");
            let merge_operators = MergeOperators::default().with(Append);
            let options =
                Options { segment_bytes: SEGMENT_BYTES, background: false, merge_operators, ..Options::default() };
            Db::open_on(device.clone(), "/store", options).expect("the store opens")
        };
        let db = open(&device);
        let options = TableOptions { merge: Some(Append.name().to_owned()), ..support::with_values(kind) };
        let table = db.create_table_with("t", options).expect("a table can be made");
        let wanted: Vec<u8> = (0..FOLDED as u8).collect();
        for operand in &wanted {
            if *operand == 4 {
                db.checkpoint().expect("the disk works");
            }
            table.merge(b"key", &[*operand]).expect("a merge works");
        }
        (0..4).for_each(|_| db.step(Step::Settle).expect("the machine runs"));
        assert!(db.metrics().folded_keys > 0, "the operands are folded");
        device.fail(Call::Write, 0, u64::MAX, |path| path.to_string_lossy().starts_with("/store/MANIFEST"));
        db.checkpoint().expect_err("the manifest cannot be written");
        let next = device.process_death();
        next.clear_faults();
        drop((table, db));
        let db = open(&next);
        assert_eq!(get(&db, b"key"), Some(wanted.clone()), "{}: opened", kind.name());
        db.checkpoint().expect("the disk works");
        assert_eq!(get(&db, b"key"), Some(wanted.clone()), "{}: committed", kind.name());
    }
}
