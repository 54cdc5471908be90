use super::{Dropped, Dropping, KEY_BYTES, MAX_BYTES};

fn dropped(table: u32, number: u32) -> Dropped {
    Dropped { table, key: number.to_be_bytes().into(), sequence: u64::from(number) }
}

#[test]
fn keys_of_one_table_are_taken_in_their_order_within_bounds() {
    let dropping = Dropping::default();
    (0..5).for_each(|number| dropping.push(dropped(16, number)));
    (5..8).for_each(|number| dropping.push(dropped(17, number)));
    let numbers = |taken: &[Dropped]| taken.iter().map(|dropped| dropped.sequence).collect::<Vec<_>>();
    let taken = dropping.take(3, usize::MAX);
    assert_eq!(numbers(&taken), [0, 1, 2]);
    dropping.put_back(taken);
    assert_eq!(numbers(&dropping.take(100, usize::MAX)), [0, 1, 2, 3, 4]);
    assert_eq!(numbers(&dropping.take(100, 2 * (KEY_BYTES + 4))), [5, 6]);
    assert_eq!(numbers(&dropping.take(100, 1)), [7], "one at least");
    assert!(dropping.take(100, usize::MAX).is_empty());
    assert_eq!(dropping.len(), 0);
}

#[test]
fn there_is_room_as_long_as_the_queue_has_not_reached_its_bound() {
    let (dropping, key) = (Dropping::default(), vec![0; (MAX_BYTES / 4) - KEY_BYTES]);
    let push = || dropping.push(Dropped { table: 16, key: key.clone().into(), sequence: 1 });
    for number in 0..4 {
        assert_eq!((dropping.is_short(), dropping.has_room()), (number < 2, true), "{number}");
        push();
    }
    assert!(!dropping.has_room());
    dropping.take(3, usize::MAX);
    assert!(dropping.is_short() && dropping.has_room());
}
