use std::sync::atomic::{AtomicBool, Ordering};

use super::{GroupKey, Groups, REMEMBERED, REMEMBERED_KEYS, group_key};

const KEYS: [u64; 2] = [11, 12];

fn keys() -> impl Iterator<Item = GroupKey> {
    KEYS.into_iter().map(GroupKey::One)
}

#[test]
fn who_asks_for_a_key_of_a_batch_waits_for_it() {
    let groups = Groups::default();
    assert!(!groups.wait_for(0, || panic!("nothing is being published")));
    let (group, is_published) = (groups.begin(keys()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            assert!(!groups.wait_for(0, || KEYS[1]), "it changes each key once");
            assert!(is_published.load(Ordering::SeqCst));
        });
        // Another key holds nobody up, nor does the same one of another table.
        assert!(!groups.wait_for(0, || 7));
        assert!(!groups.wait_for(0, || group_key(1, KEYS[0])));
        is_published.store(true, Ordering::SeqCst);
        drop(group);
        asking.join().expect("it does not panic");
    });
    let _range = groups.begin([GroupKey::Range].into_iter());
    assert!(groups.is_torn(1, || vec![5, 6]), "a range may have any two keys");
}

#[test]
fn keys_that_were_read_beside_a_batch_are_torn() {
    let groups = Groups::default();
    let before = groups.ended();
    assert!(!groups.is_torn(before, || KEYS.to_vec()));
    let group = groups.begin(keys());
    assert!(groups.is_torn(before, || KEYS.to_vec()), "it is being published");
    assert!(!groups.is_torn(before, || vec![KEYS[0], 7]), "one of its keys only");
    drop(group);
    assert!(groups.is_torn(before, || KEYS.to_vec()), "it was published meanwhile");
    let after = groups.ended();
    assert!(!groups.is_torn(after, || KEYS.to_vec()), "it was published before");
    for _ in 0..REMEMBERED {
        drop(groups.begin([GroupKey::One(9)].into_iter()));
    }
    assert!(!groups.is_torn(after, || KEYS.to_vec()), "all of them are remembered");
    drop(groups.begin([GroupKey::One(9)].into_iter()));
    assert!(groups.is_torn(after, || KEYS.to_vec()), "one of them may have been any");
    let after = groups.ended();
    drop(groups.begin((0..=REMEMBERED_KEYS as u64).map(|key| GroupKey::One(100 + key))));
    assert!(groups.is_torn(after, || KEYS.to_vec()), "a batch of so many keys is not remembered");
}

#[test]
fn who_asks_for_a_key_that_a_batch_changes_again_looks_it_up_again() {
    let groups = Groups::default();
    let [again, once] = KEYS.map(GroupKey::One);
    for several in [vec![again, once, again], vec![GroupKey::Range, again]] {
        let before = groups.again();
        drop(groups.begin(several.into_iter()));
        assert!(groups.wait_for(before, || KEYS[0]), "it was published meanwhile");
        assert!(!groups.wait_for(before, || KEYS[1]), "another key");
        assert!(!groups.wait_for(groups.again(), || KEYS[0]), "it was published before");
    }
    let before = groups.again();
    for single in [vec![GroupKey::Range], vec![again, once], vec![GroupKey::Range, GroupKey::Range]] {
        drop(groups.begin(single.into_iter()));
    }
    assert_eq!(groups.again(), before, "they change no key more than once");
    for _ in 0..=REMEMBERED {
        drop(groups.begin([once, once].into_iter()));
    }
    assert!(groups.wait_for(before, || KEYS[0]), "one of them may have been any");
}
