use std::cell::Cell;

use aiodb::{Db, IndexKind, Options};

use super::*;

#[test]
fn reads_go_on_at_another_moment() {
    let ended = || Err(Refusal::Engine(Error::SnapshotEnded));
    let attempts = Cell::new(0);
    let fails_until = |last: usize| {
        attempts.set(0);
        at_a_moment(|| {
            attempts.set(attempts.get() + 1);
            if attempts.get() < last { ended() } else { Ok(attempts.get()) }
        })
    };
    assert_eq!(fails_until(1).unwrap(), 1);
    assert_eq!(fails_until(ATTEMPTS).unwrap(), ATTEMPTS);
    assert!(fails_until(usize::MAX).is_err());
    assert_eq!(attempts.get(), ATTEMPTS);
    attempts.set(0);
    let refused: Result<(), _> = at_a_moment(|| {
        attempts.set(attempts.get() + 1);
        Err(Refusal::Engine(Error::Closed))
    });
    assert!(refused.is_err() && attempts.get() == 1, "other errors are told at once");
}

#[test]
fn a_walk_comes_to_each_record_once() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let table = db.create_table("t", IndexKind::default()).unwrap();
    let keys: Vec<Vec<u8>> = (0..9u8).map(|number| vec![number + 1]).collect();
    for key in &keys {
        table.put(key, b"x").unwrap();
    }
    for is_backward in [false, true] {
        let options = ScanOptions::all().from(&keys[1]).before(&keys[8]);
        let options = if is_backward { options.backward() } else { options };
        let (mut walk, mut seen, mut scans) = (Walk::new(options, is_backward), Vec::new(), 0);
        // The store may have ended a moment before anything was read at it.
        let outcome = walk.go(
            |rest| {
                scans += 1;
                if scans == 1 { Err(Error::SnapshotEnded.into()) } else { Ok((table.scan(rest)?, ())) }
            },
            |(), key, value| {
                assert_eq!(value, b"x");
                seen.push(key.to_vec());
                seen.len() < 2
            },
        );
        outcome.unwrap();
        assert_eq!(seen.len(), 2, "no more were wanted");
        walk.go(
            |rest| Ok((table.scan(rest)?, ())),
            |(), key, _| {
                seen.push(key.to_vec());
                true
            },
        )
        .unwrap();
        let mut expected = keys[1..8].to_vec();
        if is_backward {
            expected.reverse();
        }
        assert_eq!(seen, expected);
    }
    // One that never comes to anything ends.
    let mut scans = 0;
    let outcome = Walk::new(ScanOptions::all(), false).go(
        |_| {
            scans += 1;
            Err::<(Scan, ()), _>(Error::SnapshotEnded.into())
        },
        |(), _, _| true,
    );
    assert!(matches!(outcome, Err(Refusal::Engine(Error::SnapshotEnded))));
    assert_eq!(scans, ATTEMPTS);
    db.close().unwrap();
}
