use super::{Case, Plan, live_bytes, times};
use crate::churn::Options;
use crate::class::Class;
use crate::ranks::Pattern;
use crate::tests::parse;
use std::time::Duration;

#[test]
fn the_defaults_are_the_published_experiment() {
    let plan = Plan::of(&parse::<Options>(&[]).unwrap());
    let class = Class::Interval;
    let cases = [(1024, Pattern::Uniform), (1024, Pattern::Zipf), (25, Pattern::Uniform), (25, Pattern::Zipf)];
    assert_eq!(plan.cases, cases.map(|(value_bytes, pattern)| Case { value_bytes, pattern, class }));
    assert_eq!((plan.times, plan.writers, plan.rounds), (5.0, 8, 3));
    assert_eq!((plan.live_bytes, plan.memory_bytes), (1 << 30, 256 << 20));
    assert_eq!((plan.records(plan.cases[0]), plan.records(plan.cases[2])), ((1 << 30) / 1049, (1 << 30) / 50));
    assert_eq!(plan.overwrites(plan.cases[2]), (1 << 30) / 50 * 5);
}

#[test]
fn quick_fills_what_is_not_given() {
    let arguments = ["--quick", "--live-bytes", "10M", "--memory", "64M", "--pattern", "zipf", "--value-bytes", "16"];
    let plan = Plan::of(&parse::<Options>(&arguments).unwrap());
    assert_eq!((plan.live_bytes, plan.memory_bytes, plan.rounds), (10 << 20, 64 << 20, 1));
    assert_eq!(plan.cases, [Case { value_bytes: 16, pattern: Pattern::Zipf, class: Class::Interval }]);
    assert!(plan.most_time <= Duration::from_secs(10));
}

#[test]
fn a_store_has_a_record_and_a_run_an_overwrite_at_least() {
    let options = parse::<Options>(&["--live-bytes", "1M", "--value-bytes", "1048576", "--overwrites", "0.01"]);
    let plan = Plan::of(&options.unwrap());
    assert_eq!((plan.records(plan.cases[0]), plan.overwrites(plan.cases[0])), (1, 1));
}

#[test]
fn nonsense_is_refused_in_words() {
    assert_eq!(times("2.5"), Ok(2.5));
    for wrong in ["", "0", "-1", "nan", "inf", "often"] {
        assert!(times(wrong).unwrap_err().contains("above 0"), "{wrong}");
    }
    assert_eq!(live_bytes("2G"), Ok(2 << 30));
    for wrong in ["0", "1023K", "17592186044417"] {
        assert!(live_bytes(wrong).unwrap_err().contains("from 1 MiB"), "{wrong}");
    }
    assert!(live_bytes("much").is_err());
}
