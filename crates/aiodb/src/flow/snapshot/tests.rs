use std::collections::BTreeSet;
use std::ops::Bound::Unbounded;
use std::sync::Arc;

use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::index::chain::{Entry, VersionChain};
use crate::index::memtable::Reached;
use crate::index::snapshots::{MAX_VERSIONS, Snapshots, View};
use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::retention::Retention;
use crate::{Batch, Db, Durability, IndexKind, Options, Step};

fn entry(sequence: u64) -> Entry {
    let location = Location { segment: 1, offset: 0, length: 16 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline: None }
}

fn seen(snapshots: &Snapshots, sequence: u64) -> BTreeSet<u64> {
    let mut chain = VersionChain::default();
    let view = View { sequence, at_ms: None, cached: false };
    snapshots.add_versions(b"key", &view, &mut chain).expect("memory can be read");
    chain.entries().iter().map(|entry| entry.sequence).collect()
}

#[test]
fn a_version_is_kept_as_long_as_a_snapshot_sees_it() {
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    let supersede = |from, until| snapshots.retain(b"key", &[(entry(from), until)].into_iter().collect());
    supersede(1, 2);
    assert_eq!(snapshots.counts(), (0, 0), "nobody sees it");
    let (first, _) = snapshots.begin(0);
    supersede(2, 5);
    snapshots.set_sequence(first, 4);
    supersede(5, 6);
    let (second, _) = snapshots.begin(0);
    snapshots.set_sequence(second, 6);
    supersede(6, 9);
    assert_eq!(seen(&snapshots, 4), BTreeSet::from([2]));
    assert_eq!(seen(&snapshots, 6), BTreeSet::from([6]));
    let (keys, reached) = snapshots.versions_in((Unbounded, Unbounded), false, 10).expect("memory can be read");
    assert_eq!((keys.len(), reached), (1, Reached::End));
    snapshots.end(first);
    snapshots.end(second);
    assert_eq!(snapshots.counts(), (0, 0));
}

/// A range delete of many keys is carried out in many steps, on a full disk perhaps without an end.
#[test]
fn versions_are_told_once_of_a_range_delete() {
    const KEYS: u64 = 100_000;
    let (directory, device) = (tempfile::tempdir().expect("a directory can be made"), SimDevice::new(1));
    device.set_real_directory(directory.path());
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, versions_in_memory: 64, ..Options::default() };
    let db = Db::open_on(device, "/store", options).expect("the store can be made");
    let table = db.create_table("t", IndexKind::Lmdb).expect("the table can be made");
    let put = |keys: &[u64]| {
        for some in keys.chunks(1000) {
            let mut batch = Batch::new();
            for key in some {
                batch.put(&table, &key.to_be_bytes(), b"value").expect("it fits");
            }
            db.write_with(&batch, Durability::None).expect("the machine runs");
        }
        db.checkpoint().expect("the machine runs");
    };
    put(&(0..KEYS).collect::<Vec<_>>());
    table.delete_range(&1000u64.to_be_bytes(), &(KEYS - 1000).to_be_bytes()).expect("the machine runs");
    let snapshot = db.snapshot().expect("the store is open");
    // Neighbours of the range, before and behind: a layer with both has the range between them.
    put(&(0..100).chain(KEYS - 100..KEYS).collect::<Vec<_>>());
    let mut most = 0;
    for _ in 0..10 {
        db.step(Step::DeleteRanges).expect("the machine runs");
        let (noted, layers) = db.engine.engine.snapshots.noted_ranges();
        assert!(noted <= layers, "{noted} notes of one range in {layers} layers");
        most = most.max(noted);
    }
    assert!(most > 0, "a layer is concerned");
    assert_eq!(snapshot.get(&table, &5u64.to_be_bytes()).expect("files can be read"), Some(b"value".to_vec()));
}

#[test]
fn the_oldest_snapshot_ends_when_too_much_has_gathered() {
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    let (oldest, oldest_ended) = snapshots.begin(0);
    snapshots.set_sequence(oldest, 10);
    let (newer, newer_ended) = snapshots.begin(0);
    snapshots.set_sequence(newer, 1 << 40);
    for number in 0..=MAX_VERSIONS as u32 {
        snapshots.retain(&number.to_be_bytes(), &[(entry(1), 11)].into_iter().collect());
    }
    assert!(oldest_ended.load(std::sync::atomic::Ordering::SeqCst));
    assert!(!newer_ended.load(std::sync::atomic::Ordering::SeqCst));
    assert_eq!(snapshots.counts().0, 1);
    assert!(snapshots.counts().1 <= MAX_VERSIONS, "what only the oldest saw is gone");
}
