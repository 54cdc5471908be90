//! Benchmarks that measure nothing by themselves.

use crate::{Place, Ran, aiodb};
use std::ffi::OsStr;

fn cost(arguments: &[&OsStr]) -> Ran {
    Ran::of(&mut aiodb([OsStr::new("bench"), OsStr::new("cost")].iter().chain(arguments)))
}

#[test]
fn costs_without_results_are_refused_with_the_way_to_get_them() {
    let place = Place::new();
    let [results, directory, json] = ["--results".as_ref(), place.dir.path().as_os_str(), "--json".as_ref()];
    let refused = cost(&[results, directory, json]).exits(3);
    assert_eq!(refused.error_kind(), "bench");
    assert!(refused.stderr.contains("aiodb bench queue-depth"), "{}", refused.stderr);

    place.file("other.json", "{}");
    let refused = cost(&[results, directory]).exits(3);
    assert!(refused.stderr.contains("other.json"), "{}", refused.stderr);
}

#[test]
fn absurd_prices_are_a_wrong_command_line() {
    for argument in ["--dram-usd-per-gb=0", "--ssd-usd-per-gb=-1", "--node-usd=much", "--gets-per-s=inf"] {
        let refused = cost(&[argument.as_ref()]).exits(2);
        assert!(refused.stderr.contains(argument.split('=').next().unwrap()), "{}", refused.stderr);
    }
}
