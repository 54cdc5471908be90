use std::iter::once;

use super::*;
use crate::collection::{Collection, Kind};
use crate::locks::Claim;

fn key(name: &'static str) -> Key {
    Key { database: 0, name: Bytes::from_static(name.as_bytes()) }
}

fn entry(value: &'static str) -> Entry {
    Entry::from(Entry::lasting(Bytes::from_static(value.as_bytes())))
}

fn written<'a>(key: &'a Key, entry: Option<&'a Entry>) -> ChangedKey<'a> {
    ChangedKey { key, entry, elements: None }
}

/// Writes an entry, or none.
fn write(cache: &EntryCache, key: &Key, entry: Option<&Entry>) {
    let changed = written(key, entry);
    cache.write(false, once(&changed)).ended(once((&changed, true)));
}

/// A hash, its entry, and one element.
fn hash(number: u64, value: &'static [u8]) -> (Owner, Entry, Packed) {
    let entry = Entry::from(Entry::lasting(Collection { kind: Kind::Hash, number, count: 1, first: 0 }));
    let (field, value) = (Bytes::from_static(b"field"), Bytes::from_static(value));
    let elements = Packed::default().changed(once((&field, Some(&value)))).expect("it is small");
    (Owner { database: 0, number }, entry, elements)
}

#[test]
fn what_was_written_and_read_is_found() {
    let (cache, locks) = (EntryCache::new(1 << 20, 1 << 20), Locks::new());
    let (a, b) = (key("a"), key("b"));
    write(&cache, &a, Some(&entry("1")));
    cache.keep_read(&b, &entry("2"), cache.moment(&b), &locks);
    assert_eq!([&a, &b].map(|key| cache.get(key)), [Some(entry("1")), Some(entry("2"))]);
    assert_eq!(cache.get(&Key { database: 1, ..a.clone() }), None);
    let Counts { keys, bytes, hits, misses } = cache.counts();
    assert_eq!((keys, bytes, hits, misses), (2, 2 * (OVERHEAD as u64 + 2), 2, 1));
    write(&cache, &a, None);
    assert_eq!(cache.get(&a), None, "deleted, or refused");
    let long = Entry::from(Entry::lasting(Bytes::from(vec![0; LARGEST + 1])));
    write(&cache, &b, Some(&long));
    assert_eq!(cache.get(&b), None, "long values are left to the engine, and the old one is gone");
}

#[test]
fn without_memory_nothing_is_kept() {
    let (cache, locks, key) = (EntryCache::new(0, 0), Locks::new(), key("a"));
    write(&cache, &key, Some(&entry("1")));
    cache.keep_read(&key, &entry("1"), cache.moment(&key), &locks);
    let changed = written(&key, None);
    cache.write(true, once(&changed)).ended(once((&changed, true)));
    assert_eq!((cache.get(&key), cache.counts()), (None, Counts::default()));
}

#[tokio::test]
async fn what_may_be_old_is_not_kept() {
    let (cache, locks, key) = (EntryCache::new(1 << 20, 1 << 20), Locks::new(), key("a"));
    let old = entry("old");

    let before = cache.moment(&key);
    write(&cache, &key, None);
    cache.keep_read(&key, &old, before, &locks);
    assert_eq!(cache.get(&key), None, "a write has ended since");

    let before = cache.moment(&key);
    cache.write(true, std::iter::empty()).ended(std::iter::empty());
    cache.keep_read(&key, &old, before, &locks);
    assert_eq!(cache.get(&key), None, "the database has been emptied since");

    for claim in [Claim::on_keys(once((&key, true))), Claim::Everything] {
        let held = locks.claim(&claim).await;
        let changed = written(&key, None);
        let writing = cache.write(false, once(&changed));
        cache.keep_read(&key, &old, cache.moment(&key), &locks);
        assert_eq!(cache.get(&key), None, "a write is under way");
        writing.ended(once((&changed, true)));
        drop(held);
    }
    cache.keep_read(&key, &old, cache.moment(&key), &locks);
    assert_eq!(cache.get(&key), Some(old));
}

#[test]
fn nobody_knows_when_a_write_is_made_that_was_given_up() {
    let (cache, locks, key) = (EntryCache::new(1 << 20, 1 << 20), Locks::new(), key("a"));
    let other = Key { database: 1, ..key.clone() };
    let keep = |key: &Key| {
        cache.keep_read(key, &entry("read"), cache.moment(key), &locks);
        write(&cache, key, Some(&entry("written")));
        cache.get(key)
    };
    drop(cache.write(false, once(&written(&key, None))));
    assert_eq!((keep(&key), keep(&other)), (None, Some(entry("written"))));
    drop(cache.write(true, std::iter::empty()));
    assert_eq!((keep(&key), keep(&other)), (None, None));
    cache.write(true, std::iter::empty()).ended(std::iter::empty());
    assert_eq!(keep(&other), None);
}

#[test]
fn little_memory_is_not_exceeded() {
    let cache = EntryCache::new(100 << 10, 0);
    for number in 0..10_000u32 {
        let key = Key { database: 0, name: Bytes::copy_from_slice(&number.to_be_bytes()) };
        write(&cache, &key, Some(&entry("0123456789")));
    }
    let kept = (0..10_000u32).filter(|number| {
        cache.get(&Key { database: 0, name: Bytes::copy_from_slice(&number.to_be_bytes()) }).is_some()
    });
    let (kept, most) = (kept.count(), (100 << 10) / (OVERHEAD + 14));
    assert!(kept > most / 2 && kept <= most, "{kept} of {most}");
}

#[test]
fn elements_are_kept_as_their_collection_is_written() {
    let (cache, key) = (EntryCache::new(1 << 20, 1 << 20), key("a"));
    let ((owner, entry, one), (_, _, other)) = (hash(7, b"1"), hash(7, b"2"));
    let write = |elements: Option<&Packed>, is_known| {
        let changed = ChangedKey { elements: elements.cloned(), ..written(&key, Some(&entry)) };
        let writing = cache.write(false, once(&changed));
        assert_eq!(cache.elements(owner), None, "a write is under way");
        writing.ended(once((&changed, is_known)));
        cache.elements(owner)
    };
    assert_eq!(write(Some(&one), true), Some(one.clone()));
    assert_eq!(cache.counts().bytes, (OVERHEAD + 1 + OVERHEAD + one.bytes()) as u64);
    assert_eq!(write(Some(&other), true), Some(other.clone()));
    assert_eq!(write(None, true), None, "not all are known");
    cache.keep_elements(&key, owner, other.clone());
    assert_eq!(cache.elements(owner), Some(other.clone()), "they were read");
    assert_eq!(cache.elements(Owner { number: 8, ..owner }), None, "those of another collection");
    assert_eq!(write(Some(&one), false), None, "it is not known whether the write was made");
    cache.keep_elements(&key, owner, other.clone());
    cache.write(true, std::iter::empty()).ended(std::iter::empty());
    assert_eq!(cache.elements(owner), None, "the database was emptied");
    drop(cache.write(false, once(&written(&key, Some(&entry)))));
    cache.keep_elements(&key, owner, other);
    assert_eq!(cache.elements(owner), None, "a write was given up");
}
