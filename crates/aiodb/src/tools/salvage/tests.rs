//! Salvage from a device that does not give all bytes.

use super::*;
use crate::IndexKind;
use crate::io::sim::{Call, SimDevice};

const KEYS: u64 = 60;
const UNIT: u64 = UNIT_BYTES as u64;

fn value(key: u64, round: u64) -> Vec<u8> {
    let mut value = vec![(key + 7 * round) as u8; 3000];
    value[..8].copy_from_slice(&key.to_be_bytes());
    value[8..16].copy_from_slice(&round.to_be_bytes());
    value
}

/// A machine with a store that was closed, in which each key was put twice.
fn machine() -> SimDevice {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: 64 << 10, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    let table = db.create_table("t", IndexKind::Lsm).expect("the table can be made");
    for round in 0..2 {
        for key in 0..KEYS {
            table.put_with(&key.to_be_bytes(), &value(key, round), Durability::Sync).expect("a put works");
        }
    }
    db.close().expect("the store can be closed");
    drop((table, db));
    device.process_death()
}

fn salvage_all(device: &SimDevice, out: &Path) -> SalvageReport {
    let report = salvage_on(device.clone(), &[Path::new("/store")], out, &mut |done, total| assert!(done <= total));
    report.expect("what the device does not give is no failure")
}

/// The keys that are not in their newest version; none may have a value that was never put.
fn not_newest(out: &Path) -> Vec<u64> {
    let db = Db::open(out, Options::default()).expect("the new store can be opened");
    let table = db.table("t").expect("the table is there");
    let is_newest = |key: &u64| {
        let found = table.get(&key.to_be_bytes()).expect("a get works");
        assert!(found.is_none() || found == Some(value(*key, 0)) || found == Some(value(*key, 1)), "key {key}");
        found == Some(value(*key, 1))
    };
    (0..KEYS).filter(|key| !is_newest(key)).collect()
}

#[test]
fn a_unit_that_cannot_be_read_costs_what_lies_in_it() {
    let device = machine();
    let out = tempfile::tempdir().expect("a directory");
    let whole = salvage_all(&device, out.path());
    assert!(whole.is_complete() && not_newest(out.path()).is_empty(), "{whole:?}");
    let is_segment = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "seg");
    let segments: Vec<PathBuf> = device.file_names().iter().filter(is_segment).cloned().collect();
    let mut lost_keys = 0;
    for segment in segments.iter().step_by(4) {
        let bytes = device.file_bytes(segment).expect("the file is there");
        for unit in 0..bytes.len() as u64 / UNIT {
            // Those of a header are told of in other words; an empty segment has nothing.
            if bytes[(unit * UNIT) as usize..][..UNIT_BYTES].iter().all(|byte| *byte == 0) {
                continue;
            }
            device.make_unreadable(segment, unit * UNIT..unit * UNIT + 512);
            let out = tempfile::tempdir().expect("a directory");
            let report = salvage_all(&device, out.path());
            device.clear_faults();
            let what = format!("unit {unit} of {}: {report:?}", segment.display());
            let is_told =
                |region: &LostRegion| (&region.path, region.offset, region.length) == (segment, unit * UNIT, UNIT);
            assert!(report.lost.iter().any(is_told), "{what}");
            let wrong = not_newest(out.path());
            assert!(wrong.len() <= 2, "{wrong:?}, {what}");
            let is_in_doubt = report.doubtful_keys + report.older_than_damage > 0;
            assert!(wrong.is_empty() || is_in_doubt || report.tables["t"] < KEYS, "{wrong:?}, {what}");
            lost_keys += wrong.len();
        }
    }
    assert!(lost_keys > 0, "newest versions lie in the units");
}

#[test]
fn a_segment_that_cannot_be_read_at_all_costs_itself() {
    let device = machine();
    let segment = Path::new("/store/log/00000000.seg");
    let length = device.file_bytes(segment).expect("the file is there").len() as u64;
    device.make_unreadable(segment, 0..length);
    let out = tempfile::tempdir().expect("a directory");
    let report = salvage_all(&device, out.path());
    let lost: u64 =
        report.lost.iter().filter(|region| region.offset == 0).map(|region| region.length).max().unwrap_or(0);
    assert!(lost == length && report.segments > 0, "{report:?}");
    let wrong = not_newest(out.path());
    assert!(wrong.len() < KEYS as usize && report.tables["t"] > 0, "{wrong:?}");
}

#[test]
fn what_can_be_read_once_only_is_told_of() {
    let device = machine();
    let names = device.file_names();
    let has_newest = |path: &&PathBuf| {
        let bytes = device.file_bytes(path).expect("the file is there");
        let is_segment = path.extension().is_some_and(|extension| extension == "seg");
        is_segment && bytes.windows(64).any(|window| *window == value(KEYS - 1, 1)[..64])
    };
    let segment = names.iter().find(has_newest).expect("the last put is in the log").clone();
    // For its header, and for all of it.
    let failing = segment.clone();
    device.fail(Call::Read, 2, u64::MAX, move |path| *path == failing);
    let out = tempfile::tempdir().expect("a directory");
    let report = salvage_all(&device, out.path());
    let is_told = |region: &LostRegion| region.path == segment && region.what.contains("gave these bytes once");
    assert!(report.lost.iter().any(is_told) && !report.is_complete(), "{report:?}");
    assert!(not_newest(out.path()).contains(&(KEYS - 1)));
}

#[test]
fn identity_and_manifests_that_cannot_be_read_are_done_without() {
    for names in
        [&["STORE"][..], &["MANIFEST"], &["MANIFEST", "MANIFEST.copy"], &["STORE", "MANIFEST", "MANIFEST.copy"]]
    {
        let device = machine();
        names.iter().for_each(|name| device.make_unreadable(Path::new("/store").join(name), 0..1));
        let out = tempfile::tempdir().expect("a directory");
        let report = salvage_all(&device, out.path());
        assert!(report.notes.iter().any(|note| note.contains(names[0])), "{names:?}: {:?}", report.notes);
        assert!(not_newest(out.path()).is_empty(), "{names:?}");
    }
}

#[test]
fn a_pending_batch_that_cannot_be_read_is_told_of() {
    let device = machine();
    device.make_unreadable("/store/pending/0", 0..1);
    let out = tempfile::tempdir().expect("a directory");
    let report = salvage_all(&device, out.path());
    assert!(report.notes.iter().any(|note| note.contains("pending/0 cannot be read in part")), "{:?}", report.notes);
    assert!(not_newest(out.path()).is_empty() && report.older_than_damage == KEYS, "{report:?}");
}
