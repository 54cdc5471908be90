use std::iter::once;

use super::*;
use crate::locks::Claim;

fn key(name: &'static str) -> Key {
    Key { database: 0, name: Bytes::from_static(name.as_bytes()) }
}

fn entry(value: &'static str) -> Entry {
    Entry::from(Entry::lasting(Bytes::from_static(value.as_bytes())))
}

/// Writes an entry, or none.
fn write(cache: &EntryCache, key: &Key, entry: Option<&Entry>) {
    cache.write(false, once(key)).ended(once((key, entry)));
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
    cache.write(true, once(&key)).ended(once((&key, None)));
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
        writing.ended(once((&key, None)));
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
