//! Keys and values of all lengths.

use super::{Setup, Store};
use crate::support::{assert_get, assert_value, damage, refusal, scratch, value};
use aiodb::{Batch, Db, Durability, Error, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options};

pub(crate) fn what_was_put_is_got(setup: &Setup) {
    let store = Store::new(setup);
    assert_get(&store.table, b"a", None, "before anything was put");
    store.delete(b"a");
    assert_get(&store.table, b"a", None, "after a delete of an absent key");
    store.put(b"a", b"1");
    assert_get(&store.table, b"a", Some(b"1"), "after a put");
    assert_get(&store.table, b"b", None, "another key");
    store.put(b"a", b"two");
    assert_get(&store.table, b"a", Some(b"two"), "after an overwrite");
    store.put(b"a", b"");
    assert_get(&store.table, b"a", Some(b""), "after a put of an empty value");
    store.delete(b"a");
    assert_get(&store.table, b"a", None, "after a delete");
    store.put(b"a", b"3");
    assert_get(&store.table, b"a", Some(b"3"), "after a put of a deleted key");
    store.put(&[0], b"zero");
    store.put(&[0, 0], b"zeros");
    store.put(&[255; 16], b"ones");
    let store = store.reopened();
    for (key, value) in [(&b"a"[..], &b"3"[..]), (&[0], b"zero"), (&[0, 0], b"zeros"), (&[255; 16], b"ones")] {
        assert_get(&store.table, key, Some(value), "after a close");
    }
}

/// A key of this length whose last byte is `last`; keys of one length differ in nothing else.
fn long_key(length: usize, last: u8) -> Vec<u8> {
    let mut key = vec![b'k'; length];
    *key.last_mut().expect("keys have at least a byte") = last;
    key
}

pub(crate) fn key_lengths(setup: &Setup) {
    const LENGTHS: [usize; 10] = [1, 2, 447, 448, 480, 481, 511, 512, 600, MAX_KEY_BYTES];
    let mut store = Store::new(setup);
    for (number, length) in LENGTHS.into_iter().enumerate() {
        for last in [0, 1, 255] {
            // A small value next to the key, and one on blocks of its own.
            let bytes = if last == 1 { 3000 } else { 40 };
            store.put(&long_key(length, last), &value(number as u64 * 256 + u64::from(last), bytes));
        }
        store.delete(&long_key(length, 255));
    }
    for when in ["at once", "after a close"] {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let wanted = |last: u8, bytes| value(number as u64 * 256 + u64::from(last), bytes);
            assert_get(&store.table, &long_key(length, 0), Some(&wanted(0, 40)), when);
            assert_get(&store.table, &long_key(length, 1), Some(&wanted(1, 3000)), when);
            assert_get(&store.table, &long_key(length, 255), None, "a deleted key beside others as long");
            assert_get(&store.table, &long_key(length, 7), None, "a key that was never put beside others as long");
        }
        store = store.reopened();
    }
}

pub(crate) fn value_lengths(setup: &Setup) {
    const MIB: usize = 1 << 20;
    const LENGTHS: [usize; 23] = [
        0,
        1,
        960,
        1000,
        1024,
        1025,
        1279,
        1280,
        2048,
        3000,
        4000,
        4055,
        4056,
        4080,
        4081,
        4095,
        4096,
        4097,
        8192,
        65_536,
        MIB - 1,
        MIB,
        MIB + 1,
    ];
    let mut store = Store::new(&setup.with(|options| options.segment_bytes = 4 << 20));
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        store.put(&length.to_be_bytes(), &value(seed as u64, length));
    }
    for when in ["at once", "after a close"] {
        for (seed, length) in LENGTHS.into_iter().enumerate() {
            assert_get(&store.table, &length.to_be_bytes(), Some(&value(seed as u64, length)), when);
        }
        // A value of another length takes the place of each.
        for (seed, length) in LENGTHS.into_iter().enumerate() {
            let other = LENGTHS[LENGTHS.len() - 1 - seed];
            store.put(&length.to_be_bytes(), &value(seed as u64, other));
            assert_get(&store.table, &length.to_be_bytes(), Some(&value(seed as u64, other)), "another length");
            store.put(&length.to_be_bytes(), &value(seed as u64, length));
        }
        store = store.reopened();
    }
    assert!(damage(&store.db).is_empty(), "a check finds no damage, but: {:?}", damage(&store.db));
}

pub(crate) fn limits(setup: &Setup) {
    let store = Store::new(setup);
    let too_long = vec![b'k'; MAX_KEY_BYTES + 1];
    for key in [&[][..], &too_long] {
        let mut batch = Batch::new();
        let refused = [
            refusal(store.table.get(key), "a get"),
            refusal(store.table.put(key, b"v"), "a put"),
            refusal(store.table.delete(key), "a delete"),
            refusal(batch.put(&store.table, key, b"v").map(drop), "a put in a batch"),
            refusal(batch.delete(&store.table, key).map(drop), "a delete in a batch"),
            refusal(store.table.get_many(&[key]), "a get of many"),
        ];
        for error in refused {
            let length = key.len();
            assert!(
                matches!(error, Error::KeyLength { length: said, max: MAX_KEY_BYTES } if said == length),
                "a key of {length} bytes is refused with its length and the limit, not with: {error:?}"
            );
        }
        assert!(batch.is_empty(), "what was refused is not in the batch");
    }
    // A store's segments may allow less than the format does.
    let zeros = vec![0; MAX_VALUE_BYTES + 1];
    let large = Store::new(&setup.with(|options| options.segment_bytes = 4 << 20));
    let error = refusal(large.table.put(b"k", &zeros), "a value of 1 GiB and a byte");
    assert!(
        matches!(error, Error::ValueLength { length, max: MAX_VALUE_BYTES } if length == zeros.len()),
        "a value that is too long is refused with its length and the limit, not with: {error:?}"
    );
    let error = refusal(Batch::new().put(&large.table, b"k", &zeros).map(drop), "a value of 1 GiB and a byte");
    assert!(matches!(error, Error::ValueLength { .. }), "also in a batch, not with: {error:?}");
    assert_get(&large.table, b"k", None, "after a refused put");
    for segment_bytes in [0, 32 << 10, 100_000, 2 << 30] {
        let directory = scratch();
        let error =
            refusal(Db::open(directory.path(), Options { segment_bytes, ..setup.options.clone() }), "such a segment");
        assert!(
            matches!(error, Error::Option { option: "segment_bytes", .. }),
            "segments of {segment_bytes} bytes are refused by name, not with: {error:?}"
        );
    }
    for depth in [0, 4097] {
        let error = refusal(store.table.reader(depth).map(drop), "such a depth");
        assert!(
            matches!(error, Error::Option { option: "depth", .. }),
            "a reader of depth {depth} is refused by name, not with: {error:?}"
        );
    }
}

pub(crate) fn many_keys_at_once(setup: &Setup) {
    let store = Store::new(setup);
    let none: [&[u8]; 0] = [];
    assert!(store.table.get_many(&none).expect("no key is no error").is_empty(), "no keys have no values");
    for seed in 0..200u64 {
        let length = if seed % 50 == 0 { 300_000 } else { seed as usize * 37 % 6000 };
        store.table.put_with(&seed.to_be_bytes(), &value(seed, length), Durability::None).expect("a put works");
    }
    // Present and absent keys, some twice, more than are read at a time.
    let keys: Vec<u64> = (0..600).map(|number| number * 7 % 311).collect();
    let encoded: Vec<_> = keys.iter().map(|key| key.to_be_bytes()).collect();
    for when in ["before they are written", "after a checkpoint"] {
        let values = store.table.get_many(&encoded).expect("all keys can be read");
        assert_eq!(values.len(), keys.len(), "{when}: each key has an answer");
        for (&key, found) in keys.iter().zip(&values) {
            let length = if key % 50 == 0 { 300_000 } else { key as usize * 37 % 6000 };
            let wanted = (key < 200).then(|| value(key, length));
            assert_value(found.as_deref(), wanted.as_deref(), &format!("{when}: key {key}"));
        }
        store.db.checkpoint().expect("a checkpoint can be made");
    }
}
