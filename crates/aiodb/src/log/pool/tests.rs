use super::Pool;
use crate::log::RESERVED_SEGMENTS;

/// Makes a free segment as [`crate::log::Segments`] does, in the neediest directory that has room.
fn make(pool: &mut Pool, has_room: impl Fn(usize) -> bool) -> bool {
    let Some(ordinal) = pool.by_need().into_iter().find(|ordinal| has_room(*ordinal)) else { return false };
    let (number, absent) = pool.next_to_make(ordinal);
    if absent {
        pool.remove_absent(number)
    } else {
        pool.add(number)
    }
    pool.add_free(number);
    true
}

/// Takes segments as the log does while it grows; returns how many came from each directory.
fn taken_of(count: usize, segments: usize, has_room: impl Fn(usize) -> bool) -> Vec<usize> {
    let mut pool = Pool::new(count);
    let mut taken = vec![0; count];
    for _ in 0..segments {
        while pool.free_count() < RESERVED_SEGMENTS + 1 && make(&mut pool, &has_room) {}
        let number = pool.take_free().expect("a segment is free");
        taken[number as usize % count] += 1;
    }
    taken
}

#[test]
fn directories_take_turns() {
    for count in 1..=9 {
        let taken = taken_of(count, count * 20, |_| true);
        assert!(taken.iter().all(|taken| (19..=21).contains(taken)), "{count} directories got {taken:?} segments");
    }
}

#[test]
fn a_full_directory_is_passed_over() {
    assert_eq!(taken_of(3, 100, |ordinal| ordinal != 1)[1], 0, "the full directory gets nothing");
    let taken = taken_of(3, 100, |ordinal| ordinal != 1);
    assert!(taken[0].abs_diff(taken[2]) <= 1, "the others share the rest: {taken:?}");
    assert_eq!(taken_of(2, 100, |ordinal| ordinal == 1), [0, 100], "also when it is the first");
}

#[test]
fn the_first_directory_gives_its_last_segment_last() {
    let mut pool = Pool::new(2);
    for number in [0, 1, 3] {
        pool.add(number);
        pool.add_free(number);
    }
    let taken: Vec<_> = std::iter::from_fn(|| pool.take_free()).collect();
    assert_eq!(taken, [1, 3, 0]);
}

#[test]
fn an_absent_segment_is_filled_before_a_new_one_is_made() {
    let mut pool = Pool::new(2);
    pool.add(4);
    pool.add_absent(4);
    assert_eq!((pool.next_to_make(0), pool.next_to_make(1)), ((4, true), (1, false)));
    pool.remove_absent(4);
    assert_eq!(pool.next_to_make(0), (6, false));
    assert_eq!(pool.end(), 6, "no number from there on exists");
}
