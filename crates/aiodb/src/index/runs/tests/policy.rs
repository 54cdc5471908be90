use crate::config::MergePolicy;
use crate::index::runs::policy::{
    Compaction, Job, LEAST_BYTES, Shape, choose_all, choose_at_rest, place_of_new, waiting,
};

const POLICY: MergePolicy = MergePolicy { fan_out: 4, oldest_ratio: 4 };

fn choose(shapes: &[Shape]) -> Option<std::ops::Range<usize>> {
    runs_of(crate::index::runs::policy::choose(POLICY, shapes, &[]))
}

fn runs_of(job: Option<Job>) -> Option<std::ops::Range<usize>> {
    job.map(|job| job.runs)
}

/// A run in no merge; those of less than four units are of the lowest tier, of less than sixteen of the next.
fn idle(units: u64) -> Shape {
    Shape { merge: 0, bytes: units * LEAST_BYTES }
}

/// The runs of one merge, and no other.
fn only(runs: std::ops::Range<usize>) -> Vec<std::ops::Range<usize>> {
    vec![runs]
}

#[test]
fn few_runs_stay_as_they_are() {
    assert_eq!(choose(&[]), None);
    let shapes = [idle(1), idle(1), idle(1), idle(1)];
    assert_eq!(choose(&shapes), None, "the oldest run does not count");
}

#[test]
fn runs_of_a_tier_are_merged_with_the_oldest_one_if_that_is_not_much_larger() {
    let mut shapes = vec![idle(1), idle(1), idle(1), idle(1), idle(16)];
    assert_eq!(choose(&shapes), Some(0..5));
    shapes[4] = idle(17);
    assert_eq!(choose(&shapes), Some(0..4));
    shapes.insert(4, idle(4));
    assert_eq!(choose(&shapes), Some(0..4));
    shapes[0] = idle(3);
    assert_eq!(choose(&shapes), Some(0..4), "they are of one tier still");
    shapes[3] = idle(4);
    assert_eq!(choose(&shapes), None, "three are of the lowest");
}

#[test]
fn a_short_run_behind_a_longer_one_is_merged_with_it() {
    let shapes = [idle(1), idle(20), idle(1), idle(1), idle(1), idle(1000)];
    assert_eq!(choose(&shapes), Some(1..5));
}

#[test]
fn a_low_tier_comes_before_a_merge_that_was_begun() {
    let begun = Shape { merge: 9, ..idle(8) };
    let mut shapes = vec![idle(1), idle(1), idle(1), begun, begun, idle(1000)];
    assert_eq!(choose(&shapes), Some(3..5));
    shapes.insert(0, idle(1));
    assert_eq!(choose(&shapes), Some(0..4));
}

/// Also those beyond what one merge takes in.
#[test]
fn all_runs_that_wait_for_merges_are_told() {
    assert_eq!(waiting(POLICY, &[idle(1); 4]), [0..0; 0], "the oldest run does not count");
    let mut shapes = vec![idle(1); 40];
    shapes.extend([idle(16), idle(16), idle(16), idle(16), idle(1000)]);
    assert_eq!(waiting(POLICY, &shapes), [0..40, 40..44]);
    shapes[41..44].iter_mut().for_each(|shape| shape.merge = 7);
    assert_eq!(waiting(POLICY, &shapes), [0..40, 41..44], "one run is no merge");
    shapes.truncate(30);
    assert_eq!(waiting(POLICY, &shapes), only(0..30), "with the oldest, which is not much larger");
}

#[test]
fn a_merge_beside_another_takes_none_of_its_runs() {
    let beside = |shapes: &[Shape], claimed: &[std::ops::Range<usize>]| {
        runs_of(crate::index::runs::policy::choose(POLICY, shapes, claimed))
    };
    let mut shapes = vec![idle(1); 16];
    shapes.extend([idle(16), idle(16), idle(16), idle(16), idle(1000)]);
    assert_eq!(beside(&shapes, &[]), Some(0..16));
    assert_eq!(beside(&shapes, &only(0..16)), Some(16..20), "of the next tier");
    assert_eq!(beside(&shapes, &[0..16, 16..20]), None);
    assert_eq!(beside(&shapes, &only(16..20)), Some(0..16));
    shapes.splice(0..0, vec![idle(1); 3]);
    assert_eq!(beside(&shapes, &[3..19, 19..23]), None, "runs that have come since are too few");
    shapes.insert(0, idle(1));
    assert_eq!(beside(&shapes, &only(4..20)), Some(0..4), "they are merged without the others of their tier");
    // A merge of which some steps are done.
    shapes[20..24].iter_mut().for_each(|shape| shape.merge = 7);
    assert_eq!(beside(&shapes, &[0..4, 4..20]), Some(20..24));
    assert_eq!(beside(&shapes, &[0..4, 20..24]), Some(4..20));
}

#[test]
fn the_oldest_run_is_not_taken_in_while_another_merge_has_it() {
    let choose = |claimed: &[std::ops::Range<usize>]| {
        let shapes = [idle(1), idle(1), idle(1), idle(1), idle(4), idle(16)];
        runs_of(crate::index::runs::policy::choose(POLICY, &shapes, claimed))
    };
    assert_eq!(choose(&[]), Some(0..4));
    assert_eq!(choose(&only(4..6)), Some(0..4));
    let shapes = [idle(1), idle(1), idle(1), idle(1), idle(4)];
    let choose =
        |claimed: &[std::ops::Range<usize>]| runs_of(crate::index::runs::policy::choose(POLICY, &shapes, claimed));
    assert_eq!((choose(&[]), choose(&only(4..5))), (Some(0..5), Some(0..4)));
    assert_eq!(choose(&only(3..9)), None, "also where some claimed runs cannot be merged any more");
}

#[test]
fn a_store_at_rest_takes_the_oldest_run_in_though_few_others_are_there() {
    let choose = |shapes: &[Shape]| runs_of(choose_at_rest(POLICY, shapes));
    assert_eq!(choose(&[idle(1)]), None);
    assert_eq!(choose(&[idle(1), idle(4)]), Some(0..2));
    assert_eq!(choose(&[idle(1), idle(5)]), None, "that would write much for little");
    let begun = Shape { merge: 9, ..idle(8) };
    assert_eq!(choose(&[idle(1), begun, begun, idle(1000)]), Some(1..3));
}

#[test]
fn merges_for_garbage_leave_out_what_came_since_and_an_oldest_run_that_is_large() {
    let wanted = Compaction::of_all(16);
    let choose = |shapes: &[Shape], left_out| runs_of(choose_all(POLICY, shapes, left_out, wanted));
    assert_eq!(choose(&[idle(1), idle(1), idle(1), idle(32)], 0), Some(0..4));
    assert_eq!(choose(&[idle(1), idle(1), idle(1), idle(32)], 1), Some(1..4));
    assert_eq!(choose(&[idle(1), idle(1), idle(1), idle(33)], 1), Some(1..3));
    assert_eq!(choose(&[idle(1), idle(1), idle(1), idle(33)], 2), None, "one run is all that may be merged");
    assert_eq!(choose(&[idle(1), idle(1)], 2), None, "all came since");
    let begun = Shape { merge: 9, ..idle(1) };
    assert_eq!(choose(&[begun, begun, idle(1), idle(1), idle(1000)], 2), Some(0..2));
    let choose = |shapes: &[Shape], left_out| {
        let wanted = Compaction { most_bytes: 1000 * LEAST_BYTES, ..wanted };
        runs_of(choose_all(POLICY, shapes, left_out, wanted))
    };
    assert_eq!(choose(&[idle(1), idle(1), idle(1000)], 1), Some(1..3), "it has no more than is suspected");
    assert_eq!(choose(&[idle(1), idle(1), idle(1001)], 0), Some(0..2));
    assert_eq!(choose(&[idle(1), idle(1000)], 1), None, "the oldest run alone");
    let many: Vec<_> = [idle(1); 20].into_iter().chain([idle(1000)]).collect();
    assert_eq!(choose(&many, 0), Some(4..20), "it is written once");
    assert_eq!(choose(&many, 5), Some(5..21));
}

/// An ingested run lies where it is not merged with shorter ones; the oldest of these may be, now that it is not the oldest of all.
#[test]
fn a_run_with_keys_of_its_own_is_not_written_again_for_shorter_ones() {
    let stores =
        [vec![], vec![idle(1)], vec![idle(1), idle(1), idle(1), idle(1)], vec![idle(1), idle(2), idle(40), idle(500)]];
    for shapes in stores {
        assert_eq!(choose(&shapes), None);
        for units in [20, 500, 10_000] {
            let (mut shapes, at) = (shapes.clone(), place_of_new(&shapes, units * LEAST_BYTES));
            shapes.insert(at, idle(units));
            let rests = |job: Option<std::ops::Range<usize>>| job.is_none_or(|runs| !runs.contains(&at));
            assert!(rests(choose(&shapes)), "{units} units: {shapes:?}");
            let is_longest = at + 1 == shapes.len();
            assert!(!is_longest || rests(runs_of(choose_at_rest(POLICY, &shapes))), "{units} units: {shapes:?}");
        }
    }
    let shapes = [idle(1), idle(1), idle(1), idle(1)];
    assert_eq!(place_of_new(&shapes, 5000 * LEAST_BYTES), 4);
    assert_eq!(place_of_new(&[], 1), 0);
    let large = [idle(1), idle(20), idle(900)];
    assert_eq!([1, 20, 21, 901].map(|units| place_of_new(&large, units * LEAST_BYTES)), [0, 1, 2, 3]);
    let begun = Shape { merge: 9, ..idle(8) };
    let of_newer = [idle(1), begun, begun, idle(900)];
    assert_eq!([8, 9, 901].map(|units| place_of_new(&of_newer, units * LEAST_BYTES)), [1, 3, 4]);
    let mut rising = [begun, begun, idle(900)];
    rising[1].bytes *= 2;
    assert_eq!(place_of_new(&rising, 9 * LEAST_BYTES), 0, "not within a merge");
    assert_eq!(place_of_new(&[idle(1), begun, begun], 900 * LEAST_BYTES), 1, "not behind a merge of the oldest");
}
