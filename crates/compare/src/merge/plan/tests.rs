use super::{Case, Plan, seconds};
use crate::class::Class;
use crate::merge::Options;
use crate::tests::parse;
use std::time::Duration;

#[test]
fn the_defaults_are_the_published_experiment() {
    let plan = Plan::of(&parse::<Options>(&[]).unwrap());
    let class = Class::None;
    let cases = [(1, 1), (1, 8), (100_000, 1), (100_000, 8)];
    assert_eq!(plan.cases, cases.map(|(keys, writers)| Case { keys, writers, class }));
    assert_eq!((plan.duration, plan.memory_bytes, plan.rounds), (Duration::from_secs(5), 256 << 20, 5));
}

#[test]
fn quick_fills_what_is_not_given() {
    let arguments = ["--quick", "--keys", "7", "--writers", "2", "--durability", "sync,none", "--seconds", "0.5"];
    let plan = Plan::of(&parse::<Options>(&arguments).unwrap());
    assert_eq!(plan.cases, [Class::Sync, Class::None].map(|class| Case { keys: 7, writers: 2, class }));
    assert_eq!((plan.duration, plan.rounds), (Duration::from_millis(500), 1));
}

#[test]
fn lengths_of_time_are_neither_nothing_nor_for_ever() {
    assert_eq!(seconds("0.01"), Ok(0.01));
    for wrong in ["", "0", "-1", "nan", "inf", "3601", "long"] {
        assert!(seconds(wrong).unwrap_err().contains("from 0.01 to 3600"), "{wrong}");
    }
}
