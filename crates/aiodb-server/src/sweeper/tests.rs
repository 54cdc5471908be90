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
    let expired = || keyspace.expired_names(1, now_ms(), u64::MAX).unwrap().len();
    for left in [AT_ONCE + 1, 1] {
        assert!(sweep_databases(&keyspace).await);
        assert_eq!(expired(), left);
    }
    assert!(!sweep_databases(&keyspace).await);
    assert_eq!(expired(), 0);
    keyspace.close().unwrap();
}
