use std::path::PathBuf;

use crate::io::sim::{Call, Effect, SimDevice};
use crate::io::{Device, UNIT_BYTES};
use crate::{Db, Durability, Error, IndexKind, Options, Table};

const KEYS: u64 = 100;
const UNIT: u64 = UNIT_BYTES as u64;

fn value(key: u64) -> Vec<u8> {
    let mut value = vec![key as u8; 3000];
    value[..8].copy_from_slice(&key.to_be_bytes());
    value
}

/// A machine with an open store of small segments, in each batch one record.
fn store(kind: IndexKind) -> (SimDevice, Db<SimDevice>, Table<SimDevice>) {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: 64 << 10, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    let table = db.create_table("t", kind).expect("the table can be made");
    for key in 0..KEYS {
        table.put_with(&key.to_be_bytes(), &value(key), Durability::Sync).expect("a put works");
    }
    db.checkpoint().expect("the machine runs");
    (device, db, table)
}

/// The file and the unit in which the value of a key begins.
fn find(device: &SimDevice, key: u64) -> (PathBuf, u64) {
    let names = device.file_names();
    let segments = names.iter().filter(|path| path.extension().is_some_and(|extension| extension == "seg"));
    let mut found = segments.rev().filter_map(|path| {
        let bytes = device.file_bytes(path).expect("the file is there");
        let at = bytes.windows(64).position(|window| *window == value(key)[..64])?;
        Some((path.clone(), at as u64 / UNIT))
    });
    found.next().expect("the value is in the log")
}

#[test]
fn a_check_goes_on_behind_what_the_device_does_not_give() {
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let (device, db, table) = store(kind);
        let sound = db.verify(&mut |_, _| {}).expect("nothing fails");
        assert!(sound.damage.is_empty() && sound.index_entries == KEYS, "{sound:?}");
        let [(unread, unit), (harmed, harmed_unit)] = [20, 80].map(|key| find(&device, key));
        device.make_unreadable(&unread, unit * UNIT..(unit + 1) * UNIT);
        device.corrupt(&harmed, harmed_unit * UNIT + 2000, 1);
        let report = db.verify(&mut |_, _| {}).expect("what it finds is no failure");
        let is_unread = |damage: &Error| matches!(damage, Error::Io { action: "read", path, reason, .. } if *path == unread && reason.contains("from byte"));
        let is_harmed = |damage: &Error| matches!(damage, Error::Corruption { path, .. } if *path == harmed);
        assert!(report.damage.iter().any(is_unread) && report.damage.iter().any(is_harmed), "{report:?}");
        // All other batches were found, and all other records through the index.
        assert!(report.damage.iter().all(|damage| is_unread(damage) || is_harmed(damage)), "{report:?}");
        assert_eq!(report.segments, sound.segments);
        assert!(report.batches + 4 >= sound.batches && report.batches < sound.batches, "{report:?}");
        assert!(report.index_entries + 4 >= KEYS && report.index_entries < KEYS, "{report:?}");
        device.clear_faults();
        drop((table, db));
    }
}

#[test]
fn a_header_that_the_device_does_not_give_is_listed() {
    let (device, db, _table) = store(IndexKind::Lsm);
    let (segment, _) = find(&device, 20);
    device.make_unreadable(&segment, 0..UNIT);
    let report = db.verify(&mut |_, _| {}).expect("what it finds is no failure");
    assert!(matches!(&report.damage[..], [Error::Io { action: "read", path, .. }] if *path == segment), "{report:?}");
    assert_eq!(report.index_entries, KEYS);
}

#[test]
fn a_failure_that_says_nothing_of_the_bytes_is_no_damage() {
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let (device, db, _table) = store(kind);
        // By the name that it had when it was opened, as it was made.
        let is_segment = |path: &std::path::Path| path.to_string_lossy().contains(".seg");
        let mut failed = 0;
        // Until it comes so late that no read meets it.
        for skip in (0..).step_by(20) {
            device.disturb(Call::Read, Effect::Shortage, skip, 1, is_segment);
            let outcome = db.verify(&mut |_, _| {});
            device.clear_faults();
            match outcome {
                Ok(report) => {
                    assert!(report.damage.is_empty(), "{report:?}");
                    break;
                }
                Err(error) => assert!(error.is_passing(), "{error}"),
            }
            failed += 1;
        }
        assert!(failed > 3, "reads of segments and of records: {failed}");
    }
}
