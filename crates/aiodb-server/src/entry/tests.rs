use super::*;

#[test]
fn entries_come_back() {
    for expires_ms in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
        for value in [&b""[..], b"red"] {
            let entry = Entry { value: Bytes::copy_from_slice(value), expires_ms };
            assert_eq!(Entry::decode(entry.encode()).unwrap(), entry);
        }
    }
}

#[test]
fn foreign_values_are_refused() {
    for stored in [&b""[..], b"\x01short", b"red"] {
        assert!(Entry::decode(stored.to_vec()).is_err(), "{stored:?}");
    }
}

#[test]
fn keys_come_back_in_the_same_order() {
    let keys = [&b""[..], b"\0", b"\0\0", b"\0a", b"\x01", b"a"];
    let stored: Vec<_> = keys.iter().map(|key| stored_key(key)).collect();
    assert!(stored.is_sorted() && stored.iter().all(|key| !key.is_empty()));
    assert!(keys.iter().zip(&stored).all(|(key, stored)| original_key(stored) == *key));
}
