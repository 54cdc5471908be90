use std::cell::RefCell;

use aiodb::merge::Add;
use aiodb::{MergeOperators, Options};
use bytes::Bytes;

use super::*;
use crate::command::now_ms;
use crate::entry::original_key;
use crate::keyspace::Keyspace;
use crate::locks::Key;
use crate::space::Space;

fn open(path: &std::path::Path) -> (Keyspace, Vec<String>) {
    let said = RefCell::new(Vec::new());
    let keyspace =
        Keyspace::open(path, 2, Options::default(), &|line| said.borrow_mut().push(line.to_string())).unwrap();
    (keyspace, said.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_nobody_has_counted_are_counted_once() {
    let dir = tempfile::tempdir().unwrap();
    // As earlier versions left it: the engine knows the times of strings.
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let keys = db.create_table("db1", IndexKind::default()).unwrap();
    let (mut batch, soon_ms) = (Batch::new(), now_ms() + 5000);
    for number in 0..2 * AT_ONCE as u64 + 5 {
        let expires_ms = (number % 2 == 1).then(|| soon_ms.try_into().unwrap());
        let entry = Entry { expires_ms, ..Entry::lasting(Bytes::from_static(b"x")) };
        let (name, value) = (number.to_be_bytes(), Entry::from(entry).encode());
        match expires_ms {
            Some(at) => batch.put_until(&keys, &name[1..], &value, at).unwrap(),
            None => batch.put(&keys, &name[1..], &value).unwrap(),
        };
    }
    db.write(&batch).unwrap();
    db.close().unwrap();
    drop((keys, db));

    let (keyspace, said) = open(dir.path());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("database 1"), "{said:?}");
    let (size, half) = (2 * AT_ONCE as u64 + 5, AT_ONCE as u64 + 2);
    assert_eq!([0, 1].map(|database| keyspace.size(database, 0).unwrap()), [0, size]);
    assert_eq!(keyspace.size(1, soon_ms).unwrap(), size - half);
    keyspace.close().unwrap();
    drop(keyspace);

    // They are there after their time, until they are removed with their part of the size.
    while now_ms() < soon_ms {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let (keyspace, said) = open(dir.path());
    assert!(said.is_empty(), "{said:?}");
    assert_eq!((keyspace.size(1, 0).unwrap(), keyspace.size(1, now_ms()).unwrap()), (size, size - half));
    let name = original_key(&1u64.to_be_bytes()[1..]).to_vec().into();
    let key = Key { database: 1, name };
    assert!(keyspace.get(&key).await.unwrap().is_some());
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_values_and_names_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let at_ms = 4_102_444_800_000u64.try_into().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let keys = db.create_table("db0", IndexKind::default()).unwrap();
    let value =
        Entry::from(Entry { expires_ms: Some(at_ms), ..Entry::lasting(Bytes::from(vec![b'x'; 100_000])) }).encode();
    let long = vec![b'x'; MAX_KEY_BYTES];
    for name in (0..100).map(|number| vec![1, number]).chain([long.clone()]) {
        let mut batch = Batch::new();
        batch.put_until(&keys, &name, &value, at_ms).unwrap();
        db.write(&batch).unwrap();
    }
    db.close().unwrap();
    drop((keys, db));
    let (keyspace, said) = open(dir.path());
    assert!(said.len() == 2 && said[1].contains("a key of 65536 bytes"), "{said:?}");
    assert_eq!((keyspace.size(0, 0).unwrap(), keyspace.size(0, u64::MAX).unwrap()), (101, 1));
    let entry = keyspace.get(&Key { database: 0, name: long.into() }).await.unwrap().unwrap();
    assert_eq!(entry.expires_ms, None);
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_count_takes_rows_away_that_no_key_has() {
    let dir = tempfile::tempdir().unwrap();
    let (keyspace, _) = open(dir.path());
    let mut space = Space::new(&keyspace, 0);
    let key = Key { database: 0, name: "a".into() };
    space.learn(key.clone(), None);
    space.put(key, Entry { expires_ms: 9.try_into().ok(), ..Entry::lasting(Bytes::new()) }.into());
    keyspace.write(&space.changes()).await.unwrap();
    keyspace.close().unwrap();
    drop(keyspace);
    // As the documents say it for who changes keys without the server.
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(dir.path(), Options { merge_operators, ..Options::default() }).unwrap();
    db.table("db0").unwrap().put(b"a", &Entry::from(Entry::lasting(Bytes::new())).encode()).unwrap();
    db.table("db0").unwrap().put(b"b", b"\xff another program's").unwrap();
    db.drop_table(NAME).unwrap();
    db.close().unwrap();
    drop(db);
    let (keyspace, said) = open(dir.path());
    assert_eq!((said.len(), keyspace.size(0, 0).unwrap()), (1, 2));
    assert!(keyspace.expired(0, 9).unwrap().rows.is_empty());
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_see_the_sizes_that_they_leave() {
    let dir = tempfile::tempdir().unwrap();
    let (keyspace, _) = open(dir.path());
    let key = |database, name: &'static str| Key { database, name: name.into() };
    let string = || Entry::lasting(Bytes::from_static(b"x")).into();
    let mut space = Space::new(&keyspace, 0);
    space.put(key(0, "a"), string());
    space.put(key(0, "b"), string());
    space.put(key(1, "a"), string());
    assert_eq!([0, 1].map(|database| space.count(database).unwrap()), [2, 1]);
    keyspace.write(&space.changes()).await.unwrap();
    let mut space = Space::new(&keyspace, 0);
    // Unread: one is there, and one is not.
    space.put(key(0, "a"), string());
    space.put(key(0, "c"), string());
    space.delete(key(0, "b"));
    space.delete(key(0, "d"));
    assert_eq!(space.count(0).unwrap(), 2);
    space.clear(1).unwrap();
    space.put(key(1, "a"), string());
    space.put(key(1, "b"), string());
    assert_eq!(space.count(1).unwrap(), 2);
    keyspace.write(&space.changes()).await.unwrap();
    assert_eq!([0, 1].map(|database| keyspace.size(database, 0).unwrap()), [2, 2]);
    keyspace.close().unwrap();
    drop(keyspace);

    // What the engine says is what a program reads that knows the operator.
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(dir.path(), Options { merge_operators, ..Options::default() }).unwrap();
    assert_eq!(db.table(NAME).unwrap().get(&[0, 1]).unwrap().unwrap(), 2i64.to_le_bytes());
    db.close().unwrap();
}
