use std::sync::atomic::{AtomicBool, Ordering};

use super::{GroupKey, Groups, REMEMBERED};

const KEYS: [(u32, u64); 2] = [(1, 11), (1, 12)];

fn keys() -> impl Iterator<Item = GroupKey> {
    KEYS.into_iter().map(|(table, hash)| GroupKey::One(table, hash))
}

#[test]
fn who_asks_for_a_key_of_a_batch_waits_for_it() {
    let groups = Groups::default();
    groups.wait_for(|| panic!("nothing is being published"));
    let (group, is_published) = (groups.begin(keys()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            groups.wait_for(|| KEYS[1]);
            assert!(is_published.load(Ordering::SeqCst));
        });
        // Another key, and other batches of the same key that come later, hold nobody up.
        groups.wait_for(|| (2, 7));
        is_published.store(true, Ordering::SeqCst);
        drop(group);
        asking.join().expect("it does not panic");
    });
    let _range = groups.begin([GroupKey::Range].into_iter());
    assert!(groups.is_torn(1, [(5, 5), (6, 6)].into_iter()), "a range may have any two keys");
}

#[test]
fn keys_that_were_read_beside_a_batch_are_torn() {
    let groups = Groups::default();
    let before = groups.ended();
    assert!(!groups.is_torn(before, KEYS.into_iter()));
    let group = groups.begin(keys());
    assert!(groups.is_torn(before, KEYS.into_iter()), "it is being published");
    assert!(!groups.is_torn(before, [KEYS[0], (2, 7)].into_iter()), "one of its keys only");
    drop(group);
    assert!(groups.is_torn(before, KEYS.into_iter()), "it was published meanwhile");
    let after = groups.ended();
    assert!(!groups.is_torn(after, KEYS.into_iter()), "it was published before");
    for _ in 0..REMEMBERED {
        drop(groups.begin([GroupKey::One(9, 9)].into_iter()));
    }
    assert!(!groups.is_torn(after, KEYS.into_iter()), "all of them are remembered");
    drop(groups.begin([GroupKey::One(9, 9)].into_iter()));
    assert!(groups.is_torn(after, KEYS.into_iter()), "one of them may have been any");
}
