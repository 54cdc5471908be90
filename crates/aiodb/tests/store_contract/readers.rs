//! Readers.

use super::{Setup, Store};
use crate::support::{assert_value, refusal, value};
use aiodb::{Durability, Error};

pub(crate) fn readers(setup: &Setup) {
    const KEYS: u64 = 1500;
    let store = Store::new(setup);
    // Among small values some that span units and some in chunks.
    let length = |seed: u64| match seed % 100 {
        0 => 300_000,
        1..10 => 3000 + seed as usize,
        _ => 20 + seed as usize % 100,
    };
    for seed in (0..KEYS).filter(|seed| seed % 10 != 5) {
        store.table.put_with(&seed.to_be_bytes(), &value(seed, length(seed)), Durability::None).expect("a put works");
    }
    store.db.sync().expect("everything can be flushed");
    for depth in [1, 7, 64, 1024] {
        let mut reader = store.table.reader(depth).expect("a reader can be made");
        assert!(reader.poll().expect("an idle reader can be asked").is_none(), "an idle reader has no answer");
        let mut seen = vec![false; KEYS as usize];
        let mut next = 0;
        loop {
            while next < KEYS && reader.has_room() {
                reader.submit(&next.to_be_bytes(), next + 9000).expect("a get can be submitted");
                next += 1;
                assert!(reader.in_flight() <= depth, "a reader of depth {depth} never has more in flight");
            }
            let Some(got) = reader.poll().expect("a reader in use can be asked") else { break };
            let seed = got.token - 9000;
            assert!(!seen[seed as usize], "depth {depth}: get {seed} is answered once");
            seen[seed as usize] = true;
            let wanted = (seed % 10 != 5).then(|| value(seed, length(seed)));
            let found = got.value.unwrap_or_else(|error| panic!("depth {depth}: get {seed}: {error}"));
            assert_value(found, wanted.as_deref(), &format!("depth {depth}: get {seed}"));
        }
        assert!(seen.iter().all(|seen| *seen), "depth {depth}: every get is answered");
        assert_eq!(reader.in_flight(), 0, "depth {depth}: nothing is left in flight");
        let error = refusal(reader.submit(b"", 1), "an empty key");
        assert!(matches!(error, Error::KeyLength { .. }), "a reader refuses an empty key, not with: {error:?}");
        assert!(reader.poll().expect("a reader can be asked").is_none(), "what was refused was not started");
        // Dropped with gets in flight.
        for seed in 0..depth.min(100) as u64 {
            reader.submit(&seed.to_be_bytes(), seed).expect("a get can be submitted");
        }
    }
}

pub(crate) fn a_reader_sees_what_is_written_meanwhile(setup: &Setup) {
    let store = Store::new(setup);
    let mut reader = store.table.reader(4).expect("a reader can be made");
    for round in 0..200u64 {
        let durability = if round % 20 == 0 { Durability::Sync } else { Durability::None };
        let wanted = value(round, round as usize * 11);
        store.table.put_with(b"k", &wanted, durability).expect("a put works");
        reader.submit(b"k", round).expect("a get can be submitted");
        let got = reader.poll().expect("a reader can be asked").expect("one get is in flight");
        assert_eq!(got.token, round, "the answer carries the token of its get");
        assert_value(got.value.expect("the key can be read"), Some(&wanted), "the reader sees the last put");
    }
    store.db.truncate_table("t").expect("a table can be emptied");
    reader.submit(b"k", 1).expect("a reader follows its table through a truncate");
    let got = reader.poll().expect("a reader can be asked").expect("one get is in flight");
    assert_value(got.value.expect("an absent key is no error"), None, "after a truncate");
    store.db.drop_table("t").expect("a table can be dropped");
    let error = refusal(reader.submit(b"k", 1), "a get of a dropped table");
    assert!(matches!(error, Error::NoSuchTable { .. }), "a dropped table is named, not: {error:?}");
}
