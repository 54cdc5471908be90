//! Unit tests of the bounds of what is lost.

use super::Losses;

/// Three activations of segments with two batches of ten records each.
fn losses(without: &[u64], position: u64) -> Losses {
    let mut losses = Losses::new(Some(position));
    for number in (1..=6).filter(|number| !without.contains(number)) {
        losses.note_sound(number, 100 + 10 * number, Some((number - 1) / 2 + 20));
    }
    losses
}

#[test]
fn what_is_lost_of_a_segment_is_older_than_the_next_one() {
    let bound = |life| {
        let mut losses = losses(&[], 0);
        losses.lose_in(life);
        losses.below()
    };
    assert_eq!(losses(&[], 0).below(), 0, "nothing is lost");
    assert_eq!((bound(Some(20)), bound(Some(21))), (130, 150));
    assert_eq!((bound(Some(22)), bound(None)), (u64::MAX, u64::MAX), "nothing comes later, or nobody knows");
}

#[test]
fn missing_batches_are_older_than_the_one_behind_them() {
    for (without, position, missing, below) in
        [(&[][..], 0, 0, 0), (&[2, 3], 0, 2, 140), (&[2, 5], 1, 2, 160), (&[2], 2, 0, 0), (&[1, 2], 0, 2, 130)]
    {
        let mut losses = losses(without, position);
        assert_eq!((losses.lose_missing(), losses.below()), (missing, below), "{without:?} after {position}");
    }
    let mut losses = losses(&[4, 5, 6], 0);
    losses.note_damaged(5);
    assert_eq!((losses.lose_missing(), losses.below()), (1, u64::MAX), "nothing is sound behind it");
}

#[test]
fn what_was_given_up_was_older_than_the_newest_segment() {
    let mut losses = losses(&[], 0);
    losses.lose_given_up(Some(22));
    assert_eq!(losses.below(), 150);
    losses.lose_given_up(Some(23));
    assert_eq!(losses.below(), u64::MAX, "it has no batch");
}
