use aiodb::Options;

use super::*;
use crate::collection::Kind;
use crate::entry::Entry;

#[tokio::test(flavor = "multi_thread")]
async fn rounds_follow_each_other_until_nothing_expired_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 2, Options::default()).unwrap();
    let at_ms = now_ms() + 1;
    let mut space = Space::new(&keyspace, 0);
    for number in 0..2 * AT_ONCE + 1 {
        let collection = space.new_collection(1, Kind::Set).unwrap();
        let entry = Entry { expires_ms: at_ms.try_into().ok(), ..Entry::lasting(collection) };
        space.put(Key { database: 1, name: number.to_string().into() }, entry.into());
    }
    keyspace.write(&space.changes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    let expired = || keyspace.expired_names(1, now_ms(), usize::MAX).unwrap().len();
    for left in [AT_ONCE + 1, 1] {
        assert!(sweep_databases(&keyspace).await);
        assert_eq!(expired(), left);
    }
    assert!(!sweep_databases(&keyspace).await);
    assert_eq!(expired(), 0);
    keyspace.close().unwrap();
}

/// Gives a key a collection that expires at this time, or another time to the one that it has.
async fn put(keyspace: &Keyspace, name: &'static str, at_ms: u64) {
    let key = Key { database: 0, name: name.into() };
    let mut space = Space::new(keyspace, 0);
    let entry = keyspace.get(&key).await.unwrap();
    space.learn(key.clone(), entry.clone());
    let entry = entry.unwrap_or_else(|| Entry::lasting(space.new_collection(0, Kind::Set).unwrap()).into());
    space.put(key, Entry { expires_ms: at_ms.try_into().ok(), ..entry });
    keyspace.write(&space.changes()).await.unwrap();
}

/// Takes away what has expired at this time, and says what that was.
async fn take_expired(keyspace: &Keyspace, now_ms: u64) -> Vec<bytes::Bytes> {
    let names = keyspace.expired_names(0, now_ms, AT_ONCE).unwrap();
    for name in &names {
        let key = Key { database: 0, name: name.clone() };
        let mut space = Space::new(keyspace, 0);
        space.learn(key.clone(), keyspace.get(&key).await.unwrap());
        space.delete(key);
        keyspace.write(&space.changes()).await.unwrap();
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_before_the_first_collection_expires_whatever_its_time_was() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 1, Options::default()).unwrap();
    put(&keyspace, "a", 1000).await;
    put(&keyspace, "b", 2000).await;
    assert_eq!(keyspace.first_expiry_ms(0), 0, "nothing is known of what an earlier process has left");
    assert!(take_expired(&keyspace, 500).await.is_empty());
    assert_eq!(keyspace.first_expiry_ms(0), 1000);
    put(&keyspace, "a", 1500).await;
    assert_eq!(take_expired(&keyspace, 1500).await, ["a"], "a later time");
    assert!(take_expired(&keyspace, 1500).await.is_empty());
    assert_eq!(keyspace.first_expiry_ms(0), 2000);
    put(&keyspace, "b", 1200).await;
    assert_eq!(take_expired(&keyspace, 1600).await, ["b"], "a shorter time, which has passed already");
    assert!(take_expired(&keyspace, 1600).await.is_empty());
    assert_eq!(keyspace.first_expiry_ms(0), u64::MAX);
    // The clock has gone back.
    put(&keyspace, "c", 300).await;
    put(&keyspace, "d", 600).await;
    assert_eq!(take_expired(&keyspace, 400).await, ["c"]);
    assert_eq!(take_expired(&keyspace, 600).await, ["d"]);
    keyspace.close().unwrap();
    drop(keyspace);
    let keyspace = Keyspace::open(dir.path(), 1, Options::default()).unwrap();
    assert!(take_expired(&keyspace, u64::MAX).await.is_empty());
    keyspace.close().unwrap();
}
