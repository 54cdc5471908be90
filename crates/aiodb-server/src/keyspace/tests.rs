use aiodb::MergeOperators;
use aiodb::merge::Add;
use tokio::runtime::Handle;

use super::*;
use crate::collection::{Kind, Span};
use crate::space::Space;

/// Collections that are deleted while something is read: more than the store lets wait behind a snapshot.
const DELETED: u64 = 1100;

fn open(path: &Path) -> Keyspace {
    Keyspace::open(path, 2, Options::default(), &|_| ()).unwrap()
}

/// Gives a key a set with these members, whose owner is returned.
async fn put_set(keyspace: &Keyspace, key: Key, members: impl Iterator<Item = Bytes>) -> Owner {
    let mut space = Space::new(keyspace, 0);
    space.learn(key.clone(), None);
    let mut collection = space.new_collection(key.database, Kind::Set).unwrap();
    let owner = Owner { database: key.database, number: collection.number };
    for member in members {
        space.elements.put(owner, member, Bytes::new());
        collection.count += 1;
    }
    space.put(key, Entry::lasting(collection).into());
    keyspace.write(&space.changes()).await.unwrap();
    owner
}

async fn delete(keyspace: &Keyspace, key: Key) {
    let mut space = Space::new(keyspace, 0);
    space.learn(key.clone(), keyspace.get(&key).await.unwrap());
    space.delete(key);
    keyspace.write(&space.changes()).await.unwrap();
}

fn numbered(database: Database, number: u64) -> Key {
    Key { database, name: format!("{number:05}").into() }
}

async fn put_many(keyspace: &Keyspace, database: Database) {
    for number in 0..DELETED {
        put_set(keyspace, numbered(database, number), std::iter::once("x".into())).await;
    }
}

/// Deletes many collections from within a visit of something else.
fn delete_many(keyspace: &Keyspace, database: Database) {
    Handle::current().block_on(async {
        for number in 0..DELETED {
            delete(keyspace, numbered(database, number)).await;
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_visited_while_many_collections_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = open(dir.path());
    put_many(&keyspace, 0).await;
    put_many(&keyspace, 1).await;
    // Once with a time that has passed, so that what has expired is looked at too.
    put_set(&keyspace, Key { database: 0, name: "z".into() }, std::iter::once("x".into())).await;
    let mut space = Space::new(&keyspace, 0);
    let expired = Key { database: 0, name: "expired".into() };
    space.learn(expired.clone(), None);
    space.put(expired, Entry { expires_ms: 5.try_into().ok(), ..Entry::lasting(Bytes::new()) }.into());
    keyspace.write(&space.changes()).await.unwrap();
    let mut names = Vec::new();
    tokio::task::block_in_place(|| {
        keyspace.visit_names(0, None, 10, |name| {
            if names.len() == 10 {
                delete_many(&keyspace, 1);
            }
            names.push(name.to_vec());
            true
        })
    })
    .unwrap();
    let expected = (0..DELETED).map(|number| numbered(0, number).name.to_vec()).chain([b"z".to_vec()]);
    assert_eq!(names, expected.collect::<Vec<_>>());
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_visited_while_many_collections_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let keyspace = open(dir.path());
    let members: Vec<Bytes> = (0..3000).map(|number| format!("{number:05}").into()).collect();
    let owner = put_set(&keyspace, Key { database: 0, name: "large".into() }, members.iter().cloned()).await;
    for is_backward in [false, true] {
        put_many(&keyspace, 0).await;
        let mut seen = Vec::new();
        tokio::task::block_in_place(|| {
            keyspace.visit_elements(owner, &Span { is_backward, ..Span::ALL }, |name, _| {
                if seen.len() == 10 {
                    delete_many(&keyspace, 0);
                }
                seen.push(Bytes::copy_from_slice(name));
                true
            })
        })
        .unwrap();
        if is_backward {
            seen.reverse();
        }
        assert!(seen == members, "{} of {} were seen", seen.len(), members.len());
    }
    keyspace.close().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_without_a_table_of_elements_can_be_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let key = || Key { database: 0, name: "set".into() };
    let keyspace = open(dir.path());
    put_set(&keyspace, key(), std::iter::once("x".into())).await;
    keyspace.close().unwrap();
    drop(keyspace);
    // As a user may with the command.
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(dir.path(), Options { merge_operators, ..Options::default() }).unwrap();
    db.drop_table("db0.elements").unwrap();
    db.close().unwrap();
    drop(db);
    let keyspace = open(dir.path());
    delete(&keyspace, key()).await;
    assert!(keyspace.get(&key()).await.unwrap().is_none());
    assert_eq!(keyspace.size(0, 0).unwrap(), 0);
    keyspace.close().unwrap();
}
