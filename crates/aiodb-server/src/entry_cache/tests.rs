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

/// Writes an entry, or none.
fn write(cache: &EntryCache, key: &Key, entry: Option<&Entry>) {
    write_collection(cache, key, entry, None);
}

/// [`write`] with the elements of a collection, if they are known.
fn write_collection(cache: &EntryCache, key: &Key, entry: Option<&Entry>, elements: Option<Packed>) {
    end(cache.write(false, once(key)), key, entry, elements);
}

fn end(writing: Writing<'_>, key: &Key, entry: Option<&Entry>, elements: Option<Packed>) {
    writing.ended(once((&ChangedKey { key, entry, elements }, true)));
}

/// An entry of a hash, and one element.
fn hash(number: u64, value: &'static [u8]) -> (Entry, Packed) {
    let entry = Entry::from(Entry::lasting(Collection { kind: Kind::Hash, number, count: 1, first: 0 }));
    let (field, value) = (Bytes::from_static(b"field"), Bytes::from_static(value));
    (entry, Packed::default().changed(once((&field, Some(&value)))).expect("it is small"))
}

#[test]
fn what_was_written_and_read_is_found() {
    let (cache, locks) = (EntryCache::new(1 << 20), Locks::new());
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
    let (cache, locks, key) = (EntryCache::new(0), Locks::new(), key("a"));
    write(&cache, &key, Some(&entry("1")));
    cache.keep_read(&key, &entry("1"), cache.moment(&key), &locks);
    end(cache.write(true, once(&key)), &key, None, None);
    assert_eq!((cache.get(&key), cache.counts()), (None, Counts::default()));
}

#[tokio::test]
async fn what_may_be_old_is_not_kept() {
    let (cache, locks, key) = (EntryCache::new(1 << 20), Locks::new(), key("a"));
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
        let writing = cache.write(false, once(&key));
        cache.keep_read(&key, &old, cache.moment(&key), &locks);
        assert_eq!(cache.get(&key), None, "a write is under way");
        end(writing, &key, None, None);
        drop(held);
    }
    cache.keep_read(&key, &old, cache.moment(&key), &locks);
    assert_eq!(cache.get(&key), Some(old));
}

#[test]
fn nobody_knows_when_a_write_is_made_that_was_given_up() {
    let (cache, locks, key) = (EntryCache::new(1 << 20), Locks::new(), key("a"));
    let other = Key { database: 1, ..key.clone() };
    let keep = |key: &Key| {
        cache.keep_read(key, &entry("read"), cache.moment(key), &locks);
        write(&cache, key, Some(&entry("written")));
        cache.get(key)
    };
    drop(cache.write(false, once(&key)));
    assert_eq!((keep(&key), keep(&other)), (None, Some(entry("written"))));
    drop(cache.write(true, std::iter::empty()));
    assert_eq!((keep(&key), keep(&other)), (None, None));
    cache.write(true, std::iter::empty()).ended(std::iter::empty());
    assert_eq!(keep(&other), None);
}

#[test]
fn little_memory_is_not_exceeded() {
    let cache = EntryCache::new(100 << 10);
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
fn elements_go_with_their_collection() {
    let (cache, locks, key) = (EntryCache::new(1 << 20), Locks::new(), key("a"));
    let (entry, one) = hash(7, b"1");
    write_collection(&cache, &key, Some(&entry), Some(one.clone()));
    assert_eq!(cache.elements(&key, 7), Some(one.clone()));
    assert_eq!(cache.elements(&key, 8), None, "those of another collection");
    assert_eq!(cache.counts().bytes, (OVERHEAD + 1 + one.bytes()) as u64);
    let (_, other) = hash(7, b"2");
    write_collection(&cache, &key, Some(&entry), Some(other.clone()));
    assert_eq!(cache.elements(&key, 7), Some(other.clone()));
    write_collection(&cache, &key, Some(&entry), None);
    assert_eq!((cache.get(&key), cache.elements(&key, 7)), (Some(entry.clone()), None), "not all are known");
    cache.keep_elements(&key, entry.clone(), other.clone());
    assert_eq!(cache.elements(&key, 7), Some(other.clone()), "they were read");
    cache
        .write(false, once(&key))
        .ended(once((&ChangedKey { key: &key, entry: Some(&entry), elements: Some(one) }, false)));
    assert_eq!((cache.get(&key), cache.elements(&key, 7)), (None, None), "it is not known whether the write was made");
    cache.keep_read(&key, &entry, cache.moment(&key), &locks);
    drop(cache.write(false, once(&key)));
    cache.keep_elements(&key, entry, other);
    assert_eq!(cache.elements(&key, 7), None, "a write was given up");
}
