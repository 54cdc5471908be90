use std::collections::BTreeSet;
use std::ops::Bound::Unbounded;
use std::sync::Arc;

use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::index::chain::{Entry, VersionChain};
use crate::index::memtable::Reached;
use crate::index::snapshots::{MAX_VERSIONS, Snapshots, View};
use crate::retention::Retention;

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
