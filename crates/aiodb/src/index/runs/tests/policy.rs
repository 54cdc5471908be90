use crate::config::MergePolicy;
use crate::index::runs::policy::{Job, Shape, choose_at_rest};

fn choose(shapes: &[Shape]) -> Option<Job> {
    crate::index::runs::policy::choose(MergePolicy { fan_out: 4, oldest_ratio: 4 }, shapes)
}

fn idle(tier: u32, bytes: u64) -> Shape {
    Shape { tier, merge: 0, bytes }
}

#[test]
fn few_runs_stay_as_they_are() {
    assert_eq!(choose(&[]), None);
    let shapes = [idle(0, 10), idle(0, 10), idle(0, 10), idle(0, 10)];
    assert_eq!(choose(&shapes), None, "the oldest run does not count");
}

#[test]
fn runs_of_a_tier_are_merged_with_the_oldest_one_if_that_is_not_much_larger() {
    let mut shapes = vec![idle(0, 10), idle(0, 10), idle(0, 10), idle(0, 10), idle(3, 160)];
    assert_eq!(choose(&shapes).map(|job| job.runs), Some(0..5));
    shapes[4].bytes = 161;
    assert_eq!(choose(&shapes).map(|job| job.runs), Some(0..4));
    shapes.insert(4, idle(1, 40));
    assert_eq!(choose(&shapes).map(|job| job.runs), Some(0..4));
}

#[test]
fn a_low_tier_comes_before_a_merge_that_was_begun() {
    let begun = Shape { tier: 1, merge: 9, bytes: 100 };
    let mut shapes = vec![idle(0, 1), idle(0, 1), idle(0, 1), begun, begun, idle(5, 1000)];
    assert_eq!(choose(&shapes).map(|job| job.runs), Some(3..5));
    shapes.insert(0, idle(0, 1));
    assert_eq!(choose(&shapes).map(|job| job.runs), Some(0..4));
}

#[test]
fn a_store_at_rest_takes_the_oldest_run_in_though_few_others_are_there() {
    let policy = MergePolicy { fan_out: 4, oldest_ratio: 4 };
    let choose = |shapes: &[Shape]| choose_at_rest(policy, shapes).map(|job| job.runs);
    assert_eq!(choose(&[idle(0, 10)]), None);
    assert_eq!(choose(&[idle(0, 10), idle(1, 40)]), Some(0..2));
    assert_eq!(choose(&[idle(0, 10), idle(1, 41)]), None, "that would write much for little");
    let begun = Shape { tier: 0, merge: 9, bytes: 100 };
    assert_eq!(choose(&[idle(0, 1), begun, begun, idle(5, 1000)]), Some(1..3));
}
