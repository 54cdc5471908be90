use std::io::ErrorKind;

use aiodb::merge::Add;
use aiodb::{Db, MergeOperators, Options};

use super::*;
use crate::collection::{Kind, expiring_key, expiring_string_key};
use crate::entry::{Entry, stored_key};
use crate::expiring::SEARCHED;

#[tokio::test(flavor = "multi_thread")]
async fn rounds_follow_each_other_until_nothing_expired_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 2, Options::default(), &|_| ()).unwrap();
    let at_ms = now_ms() + 1;
    let mut space = Space::new(&keyspace, 0);
    for number in 0..2 * SEARCHED + 1 {
        let collection = space.new_collection(1, Kind::Set).unwrap();
        let entry = Entry { expires_ms: at_ms.try_into().ok(), ..Entry::lasting(collection) };
        let key = Key { database: 1, name: number.to_string().into() };
        space.learn(key.clone(), None);
        space.put(key, entry.into());
    }
    keyspace.write(&space.changes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    for left in [SEARCHED + 1, 1] {
        assert!(sweep_databases(&keyspace, &mut Failures::default()).await);
        assert_eq!(keyspace.size(1, 0).unwrap(), left as u64);
    }
    assert!(!sweep_databases(&keyspace, &mut Failures::default()).await);
    assert!(keyspace.expired(1, now_ms()).unwrap().rows.is_empty());
    assert_eq!(keyspace.size(1, 0).unwrap(), 0);
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
async fn take_expired(keyspace: &Keyspace, now_ms: u64) -> Vec<Bytes> {
    let rows = keyspace.expired(0, now_ms).unwrap().rows;
    let due = |(row, name): &(Vec<u8>, Vec<u8>)| Due {
        row: row.clone(),
        key: Key { database: 0, name: name.clone().into() },
    };
    remove(keyspace, &rows.iter().map(due).collect::<Vec<_>>()).await.unwrap();
    rows.into_iter().map(|(_, name)| name.into()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_read_before_the_first_collection_expires_whatever_its_time_was() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
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
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    assert!(take_expired(&keyspace, u64::MAX).await.is_empty());
    keyspace.close().unwrap();
}

/// How many rows there are by which keys expire.
fn rows(keyspace: &Keyspace) -> usize {
    keyspace.expired(0, u64::MAX).unwrap().rows.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_go_with_their_rows_and_are_counted_until_they_expire() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    let key = |name: &'static str| Key { database: 0, name: name.into() };
    let string = |at_ms: u64| Entry { expires_ms: at_ms.try_into().ok(), ..Entry::lasting(Bytes::from_static(b"x")) };
    let write = async |name, at_ms| {
        let mut space = Space::new(&keyspace, 0);
        space.learn(key(name), keyspace.get(&key(name)).await.unwrap());
        space.put(key(name), string(at_ms).into());
        keyspace.write(&space.changes()).await.unwrap();
    };
    let now_ms = now_ms();
    for (name, at_ms) in
        [("stays", 0), ("goes", now_ms - 10), ("", now_ms - 9), ("\0", now_ms - 8), ("later", u64::MAX)]
    {
        write(name, at_ms).await;
    }
    assert_eq!((keyspace.size(0, 0).unwrap(), keyspace.size(0, now_ms).unwrap(), rows(&keyspace)), (5, 2, 4));
    // A new time takes the row along; the same one needs none.
    write("later", u64::MAX - 1).await;
    write("later", u64::MAX - 1).await;
    assert_eq!((keyspace.size(0, 0).unwrap(), rows(&keyspace)), (5, 4));
    // What has expired and is still there is overwritten like any other.
    write("goes", 0).await;
    assert_eq!((keyspace.size(0, now_ms).unwrap(), rows(&keyspace)), (3, 3));
    assert!(!sweep_databases(&keyspace, &mut Failures::default()).await);
    assert_eq!((keyspace.size(0, 0).unwrap(), rows(&keyspace)), (3, 1));
    assert!(keyspace.get(&key("")).await.unwrap().is_none());
    assert!(keyspace.get(&key("goes")).await.unwrap().is_some());
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_names_go_in_several_writes() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    for number in 0..AT_ONCE {
        let key = Key { database: 0, name: format!("{}{number}", "x".repeat(60_000)).into() };
        let mut space = Space::new(&keyspace, 0);
        space.learn(key.clone(), None);
        space.put(key, Entry { expires_ms: 1.try_into().ok(), ..Entry::lasting(Bytes::new()) }.into());
        keyspace.write(&space.changes()).await.unwrap();
    }
    assert!(!sweep_database(&keyspace, 0, &mut Failures::default()).await.unwrap());
    assert_eq!((keyspace.size(0, 0).unwrap(), rows(&keyspace)), (0, 0));
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_no_key_has_takes_nothing_away() {
    let dir = tempfile::tempdir().unwrap();
    put_string(dir.path(), "a", 1).await;
    // Another program overwrites the key, and does not know of the row.
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(dir.path(), Options { merge_operators, ..Options::default() }).unwrap();
    db.table("db0").unwrap().put(b"a", &Entry::from(Entry::lasting(Bytes::from_static(b"new"))).encode()).unwrap();
    db.close().unwrap();
    drop(db);
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    let key = Key { database: 0, name: "a".into() };
    // A key that somebody has a claim on is waited for, and others are not kept from him meanwhile.
    let held = keyspace.claim(&Claim::on_keys(std::iter::once((&key, false)))).await;
    let mut failures = Failures::default();
    let (swept, ()) = tokio::join!(sweep_database(&keyspace, 0, &mut failures), async {
        tokio::task::yield_now().await;
        drop(held);
    });
    assert!(!swept.unwrap());
    assert_eq!((keyspace.size(0, 0).unwrap(), rows(&keyspace)), (1, 0));
    assert!(keyspace.get(&key).await.unwrap().is_some());
    keyspace.close().unwrap();
}

/// Gives a key of a store a string that expires at this time.
async fn put_string(path: &std::path::Path, name: &'static str, at_ms: u64) {
    let keyspace = Keyspace::open(path, 1, Options::default(), &|_| ()).unwrap();
    let key = Key { database: 0, name: name.into() };
    let mut space = Space::new(&keyspace, 0);
    space.learn(key.clone(), None);
    space.put(key, Entry { expires_ms: at_ms.try_into().ok(), ..Entry::lasting(Bytes::new()) }.into());
    keyspace.write(&space.changes()).await.unwrap();
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn scans_leave_out_what_has_expired_however_much_that_is() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    let mut space = Space::new(&keyspace, 0);
    for number in 0..SEARCHED + 10 {
        let key = Key { database: 0, name: number.to_string().into() };
        let expires_ms = if number < 3 { 0 } else { 5 }.try_into().ok();
        space.learn(key.clone(), None);
        space.put(key, Entry { expires_ms, ..Entry::lasting(Bytes::new()) }.into());
    }
    keyspace.write(&space.changes()).await.unwrap();
    let names = Space::new(&keyspace, 6).names(0, None, 10, |_| true).unwrap();
    assert_eq!(names, ["0", "1", "2"]);
    assert_eq!(keyspace.size(0, 6).unwrap(), 3);
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_went_to_another_key_stays() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    put(&keyspace, "a", 1000).await;
    let rows = keyspace.expired(0, 2000).unwrap().rows;
    // A command that began before its time renames the key meanwhile.
    let [a, b] = ["a", "b"].map(|name| Key { database: 0, name: name.into() });
    let mut space = Space::new(&keyspace, 0);
    let entry = keyspace.get(&a).await.unwrap();
    space.learn(a.clone(), entry.clone());
    space.learn(b.clone(), None);
    space.delete(a.clone());
    space.put(b.clone(), entry.unwrap());
    keyspace.write(&space.changes()).await.unwrap();
    let due = |name: &Key| [Due { row: rows[0].0.clone(), key: name.clone() }];
    remove(&keyspace, &due(&a)).await.unwrap();
    assert_eq!((keyspace.size(0, 0).unwrap(), keyspace.expired(0, 2000).unwrap().rows.len()), (1, 1));
    remove(&keyspace, &due(&b)).await.unwrap();
    assert_eq!((keyspace.size(0, 0).unwrap(), keyspace.expired(0, 2000).unwrap().rows.len()), (0, 0));
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_overwritten_and_goes_when_it_expires() {
    let dir = tempfile::tempdir().unwrap();
    put_string(dir.path(), "a", 1000).await;
    put_string(dir.path(), "b", 1000).await;
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(dir.path(), Options { merge_operators, ..Options::default() }).unwrap();
    for name in [b"a", b"b"] {
        db.table("db0").unwrap().put(name, b"\xff another program's").unwrap();
    }
    db.close().unwrap();
    drop(db);
    let keyspace = Keyspace::open(dir.path(), 1, Options::default(), &|_| ()).unwrap();
    let [a, b] = ["a", "b"].map(|name| Key { database: 0, name: name.into() });
    assert!(keyspace.get(&a).await.is_err());
    let mut space = Space::new(&keyspace, 0);
    space.put(a.clone(), Entry::lasting(Bytes::new()).into());
    let stored = keyspace.get(&a).await.map(|entry| entry.as_ref().map(Stored::of));
    space.learn_unread(&a, stored).unwrap();
    assert!(space.learn_unread(&b, Err(crate::refusal::SYNTAX)).is_err(), "other errors are told");
    let failed = |kind: ErrorKind| {
        let (action, path, reason) = ("read", dir.path().to_path_buf(), kind.to_string());
        Err(Refusal::Engine(aiodb::Error::Io { action, path, kind, reason }))
    };
    assert!(space.learn_unread(&b, failed(ErrorKind::Other)).is_ok(), "the disk fails where it lies");
    assert!(space.learn_unread(&b, failed(ErrorKind::OutOfMemory)).is_err(), "the same read may succeed");
    keyspace.write(&space.changes()).await.unwrap();
    assert_eq!(keyspace.size(0, 0).unwrap(), 2);
    assert!(!sweep_database(&keyspace, 0, &mut Failures::default()).await.unwrap());
    assert_eq!((keyspace.size(0, 0).unwrap(), rows(&keyspace)), (1, 0));
    assert!(keyspace.get(&a).await.unwrap().is_some() && keyspace.get(&b).await.unwrap().is_none());
    keyspace.close().unwrap();
}

/// Flips a bit in the middle of these bytes wherever the log has them. The index stays.
fn damage(dir: &std::path::Path, bytes: &[u8]) {
    let mut damaged = 0;
    for entry in std::fs::read_dir(dir.join("log")).unwrap() {
        let path = entry.unwrap().path();
        let mut content = std::fs::read(&path).unwrap();
        let found: Vec<usize> = (0..content.len()).filter(|at| content[*at..].starts_with(bytes)).collect();
        found.iter().for_each(|at| content[at + bytes.len() / 2] ^= 1);
        if !found.is_empty() {
            std::fs::write(&path, content).unwrap();
        }
        damaged += found.len();
    }
    assert!(damaged > 0, "the log has {bytes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_keeps_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let options = Options { segment_bytes: 1 << 20, ..Options::default() };
        Keyspace::open(dir.path(), 1, options, &|_| ()).unwrap()
    };
    let keyspace = open();
    for (name, at_ms) in [("set a", 1000), ("set b", 1001), ("set c", 1002)] {
        put(&keyspace, name, at_ms).await;
    }
    let key = |name: &'static str| Key { database: 0, name: name.into() };
    let number = keyspace.get(&key("set b")).await.unwrap().unwrap().collection().unwrap().number;
    for (name, value) in [("string a", "value a"), ("string b", "value b"), ("string c", "value c")] {
        let mut space = Space::new(&keyspace, 0);
        space.learn(key(name), None);
        let entry = Entry { expires_ms: 1003.try_into().ok(), ..Entry::lasting(Bytes::from_static(value.as_bytes())) };
        space.put(key(name), entry.into());
        keyspace.write(&space.changes()).await.unwrap();
    }
    keyspace.close().unwrap();
    drop(keyspace);
    // The row of one collection, the row of one string, the value of another one, and both of a third.
    let row = |name: &'static str| expiring_string_key(1003, &stored_key(name.as_bytes()));
    damage(dir.path(), &expiring_key(1001, number));
    damage(dir.path(), &row("string a"));
    damage(dir.path(), b"value b");
    damage(dir.path(), &row("string c"));
    damage(dir.path(), b"value c");
    let keyspace = open();
    assert_eq!((keyspace.size(0, 0).unwrap(), keyspace.size(0, 1002).unwrap()), (6, 3));
    let names = |now_ms| Space::new(&keyspace, now_ms).names(0, None, 10, |_| true).unwrap();
    // Of one whose time cannot be read nobody says that it is over.
    assert_eq!(names(2000), ["string b", "string c"]);
    let mut failures = Failures::default();
    assert!(!sweep_database(&keyspace, 0, &mut failures).await.unwrap());
    let (count, lines) = failures.take();
    assert_eq!((count, lines.len()), (2, 2), "{lines:?}");
    assert!(lines[0].contains("a collection of database 0"), "{lines:?}");
    assert!(lines[1].contains("key \"string c\" of database 0"), "{lines:?}");
    assert_eq!((keyspace.size(0, 0).unwrap(), keyspace.size(0, 2000).unwrap()), (2, 0));
    for (name, is_there) in [("set a", false), ("set b", true), ("set c", false), ("string a", false)] {
        assert_eq!(keyspace.get(&key(name)).await.unwrap().is_some(), is_there, "{name}");
    }
    assert!(keyspace.get(&key("string b")).await.unwrap().is_none());
    // Each is told of once.
    assert!(!sweep_database(&keyspace, 0, &mut failures).await.unwrap());
    assert_eq!(failures.take(), (2, Vec::new()));
    keyspace.close().unwrap();
}

#[test]
fn so_many_failures_are_told_of_and_each_once() {
    let mut failures = Failures::default();
    for number in 0..2 * MOST_TOLD {
        failures.add(0, &number.to_be_bytes(), || number.to_string());
        failures.add(0, &number.to_be_bytes(), || unreachable!("it was told"));
    }
    let (count, lines) = failures.take();
    assert_eq!((count, lines.len()), (4 * MOST_TOLD, MOST_TOLD + 1));
    assert!(lines[MOST_TOLD].contains("nothing is said"), "{lines:?}");
}
