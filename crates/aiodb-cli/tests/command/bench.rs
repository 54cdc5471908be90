//! Benchmarks: the ones that measure nothing by themselves, and small runs of the others.

use crate::{INDEXES, Place, Ran, aiodb};
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

/// The rows of a small run, whose figures say nothing.
fn rows(arguments: &[&str]) -> Vec<serde_json::Value> {
    let place = Place::new();
    let directory = place.dir.path().to_str().expect("a plain path");
    let first = ["bench", arguments[0], "--json", "--dir", directory];
    let ran = Ran::of(&mut aiodb(first.iter().chain(&arguments[1..]))).exits(0);
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("one JSON value");
    assert_eq!(std::fs::read_dir(place.dir.path()).expect("a directory").count(), 0, "nothing is left behind");
    report["rows"].as_array().expect("rows").clone()
}

#[test]
fn scans_and_backups_are_held_against_the_disk() {
    let rows = rows(&["scan", "--pairs", "2000", "--rounds", "2", "--round-ms", "20", "--pace", "1"]);
    let against = |series: &str| -> Vec<&str> {
        let own = rows.iter().filter(|row| row["series"] == series);
        own.filter(|row| row["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0))
            .map(|row| row["against"].as_str().expect("a name"))
            .collect()
    };
    assert_eq!(against("scan, values in key order"), ["disk, sequential"]);
    assert_eq!(against("scan, values in no order"), ["disk, in no order"]);
    assert_eq!(against("iterate"), ["disk, sequential"]);
    assert_eq!(against("backup"), ["disk, sequential", "disk, copy"]);
    assert_eq!(against("gets beside a paced backup"), ["gets"]);
}

#[test]
fn cached_gets_are_held_against_lmdb() {
    let rows = rows(&["cache", "--pairs", "1000", "--rounds", "1", "--round-ms", "20", "--value-bytes", "24"]);
    let held = rows.iter().filter(|row| row["ratio_to_lmdb"].as_f64().is_some_and(|ratio| ratio > 0.0));
    assert_eq!((rows.len(), held.count()), (7, 6), "LMDB, and two ways to get with three kinds of index");
}

#[test]
fn a_soak_says_of_each_stretch_how_many_puts_and_how_long_the_longest_took() {
    let sizes =
        ["--writers", "4", "--keys", "20000", "--stretch-ms", "50", "--max-seconds", "20", "--durability", "none"];
    let rows = rows(&[&["soak", "--index", "lmdb,hash,lsm"][..], &sizes].concat());
    for index in INDEXES {
        let run: Vec<_> = rows.iter().filter(|row| row["index"] == index).collect();
        assert!(!run.is_empty(), "{index} has a stretch at least");
        let number = |name: &str| run.iter().map(|row| row[name].as_f64().expect("a number")).collect::<Vec<_>>();
        assert!(number("keys").is_sorted(), "{index}: puts are never undone");
        assert!(number("keys").iter().all(|keys| *keys <= 20_000.0), "{index}: no more than asked for");
        assert!(number("longest_us").iter().zip(number("p50_us")).all(|(longest, half)| *longest >= half));
    }
}
