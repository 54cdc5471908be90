use super::{Case, Plan, Rate, rate};
use crate::class::Class;
use crate::soak::Options;
use crate::tests::parse;
use std::time::Duration;

#[test]
fn the_defaults_are_the_published_experiment() {
    let plan = Plan::of(&parse::<Options>(&[]).unwrap());
    assert_eq!(plan.cases, [Case { value_bytes: 25, class: Class::Interval }]);
    assert_eq!((plan.keys, plan.writers, plan.rate, plan.rounds), (50_000_000, 100, None, 3));
    assert_eq!((plan.point, plan.memory_bytes), (Duration::from_secs(10), 512 << 20));
}

#[test]
fn quick_fills_what_is_not_given() {
    let plan = Plan::of(&parse::<Options>(&["--quick", "--keys", "7", "--memory", "64M"]).unwrap());
    assert_eq!((plan.keys, plan.memory_bytes, plan.rounds), (7, 64 << 20, 1));
    assert!(plan.most_time <= Duration::from_secs(60));
}

#[test]
fn each_size_has_each_class() {
    let plan = Plan::of(&parse::<Options>(&["--value-bytes", "25,1024", "--durability", "interval,sync"]).unwrap());
    let cases: Vec<_> = plan.cases.iter().map(|case| (case.value_bytes, case.class)).collect();
    assert_eq!(cases, [(25, Class::Interval), (25, Class::Sync), (1024, Class::Interval), (1024, Class::Sync)]);
}

#[test]
fn rates_are_a_half_or_a_number() {
    assert_eq!(rate("half"), Ok(Rate::Half));
    assert_eq!(rate("20000"), Ok(Rate::PutsPerSecond(20_000)));
    for wrong in ["", "0", "fast", "-5", "0.5"] {
        assert!(rate(wrong).is_err(), "{wrong}");
    }
}
