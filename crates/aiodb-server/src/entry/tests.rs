use super::*;

#[test]
fn entries_come_back() {
    for expires_ms in [None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)] {
        for value in [&b""[..], b"red"] {
            let entry = Entry { value: Value::String(Bytes::copy_from_slice(value)), expires_ms };
            assert_eq!(Entry::decode(entry.encode()).unwrap(), entry);
        }
        for kind in Kind::ALL {
            let collection = Collection { kind, number: 7 << 40, count: 3, first: -5 };
            let entry = Entry { value: Value::Collection(collection), expires_ms };
            assert_eq!(Entry::decode(entry.encode()).unwrap(), entry);
        }
    }
}

#[test]
fn strings_are_stored_as_they_always_were() {
    let string = |expires_ms| Entry { value: Value::String("red".into()), expires_ms };
    assert_eq!(string(None).encode(), b"\0red");
    assert_eq!(string(NonZeroU64::new(5)).encode(), b"\x01\x05\0\0\0\0\0\0\0red");
}

#[test]
fn foreign_values_are_refused() {
    for stored in [&b""[..], b"\x01short", b"red", b"\x02short"] {
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
