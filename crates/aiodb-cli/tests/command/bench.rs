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
    assert_eq!(against("ingest"), ["disk, sequential writes"]);
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

/// A number of a row.
fn number(row: &serde_json::Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} is a number in {row}"))
}

#[test]
fn churn_says_what_overwrites_take_of_the_disk() {
    let sizes =
        ["--records", "20000", "--value-bytes", "100", "--overwrites", "2.5", "--writers", "4", "--stretch-ms", "50"];
    let rows = rows(&[&["churn", "--index", "lmdb,hash,lsm", "--durability", "none"][..], &sizes].concat());
    for index in INDEXES {
        for pattern in ["uniform", "zipf"] {
            let of_run: Vec<_> = rows.iter().filter(|row| row["index"] == index && row["pattern"] == pattern).collect();
            let (run, stretches) = of_run.split_last().expect("a run");
            assert!(!stretches.is_empty(), "{index} {pattern} has a stretch at least");
            assert!(run["series"] == "run" && stretches.iter().all(|row| row["series"] == "stretch"));
            assert_eq!((number(run, "overwrites"), number(run, "user_bytes")), (50_000.0, 50_000.0 * 125.0));
            assert_eq!((number(run, "live_bytes"), number(run, "refused")), (20_000.0 * 125.0, 0.0));
            assert_eq!(run["is_at_rest"], true);
            // A store of little data takes its fixed space: four segments, and more.
            let (most, before) = (number(run, "most_space"), number(run, "space_before"));
            assert!(most >= before && before > 1.0 && number(run, "space_at_rest") > 1.0, "{run}");
            // All that was put is in the log at least. A file system in memory has no disk that counts.
            for name in ["device_bytes_per_user_byte", "process_bytes_per_user_byte"] {
                assert!(run[name].is_null() || run[name] == 0.0 || number(run, name) > 1.0, "{run}");
            }
            let of_run = |name: &str| stretches.iter().map(|row| number(row, name)).collect::<Vec<_>>();
            assert!(of_run("overwrites").is_sorted() && of_run("overwrites").iter().all(|count| *count <= 50_000.0));
            assert!(of_run("longest_us").iter().zip(of_run("p50_us")).all(|(longest, half)| *longest >= half));
            assert!(
                of_run("most_directory_bytes").iter().zip(of_run("directory_bytes")).all(|(most, now)| *most >= now)
            );
            let worst = of_run("overwrites_per_s").into_iter().fold(f64::INFINITY, f64::min);
            assert_eq!(number(run, "worst_stretch_overwrites_per_s"), worst);
            assert_eq!(number(run, "checked_records"), 1000.0 + 6334.0);
        }
    }
}

#[test]
fn churn_of_inline_values_has_them_in_its_rows_and_nowhere_else() {
    let sizes =
        ["--records", "1000", "--value-bytes", "25", "--overwrites", "1", "--writers", "2", "--pattern", "zipf"];
    let rows = rows(&[&["churn", "--index", "lsm,hash", "--inline-bytes", "64"][..], &sizes].concat());
    let inline = |index: &str| {
        let own = rows.iter().filter(|row| row["index"] == index);
        own.map(|row| number(row, "inline_bytes")).collect::<Vec<_>>()
    };
    assert!(inline("lsm").len() >= 2 && inline("lsm").iter().all(|bytes| *bytes == 64.0));
    assert!(inline("hash").len() >= 2 && inline("hash").iter().all(|bytes| *bytes == 0.0));
}

#[test]
fn values_without_room_for_their_version_are_a_wrong_command_line() {
    for argument in ["--value-bytes=15", "--overwrites=0", "--overwrites=many", "--pattern=latest", "--records=0"] {
        let refused = Ran::of(&mut aiodb(["bench", "churn", argument])).exits(2);
        assert!(refused.stderr.contains(argument.split('=').next().unwrap()), "{}", refused.stderr);
    }
}

#[test]
fn merges_are_held_against_puts_and_their_gets_against_gets() {
    let sizes = ["--keys", "1,500", "--writers", "1,4", "--rounds", "2", "--seconds", "0.02"];
    let rows = rows(&[&["merge", "--index", "lmdb,hash,lsm"][..], &sizes].concat());
    assert_eq!(rows.len(), 3 * 2 * 2, "a row of each index, number of keys and of writers");
    for row in &rows {
        assert!(INDEXES.iter().any(|index| row["index"] == *index), "{row}");
        for kind in ["merges", "puts", "gets_of_merged", "gets_of_put"] {
            let operations = &row[kind];
            assert_eq!(operations["per_s_rounds"].as_array().expect("rounds").len(), 2);
            assert!(number(operations, "count") >= 2.0 && number(operations, "per_s") > 0.0, "{row}");
            assert!(number(operations, "per_s_caught_up") > 0.0, "{row}");
            assert!(number(operations, "p99_us") >= number(operations, "p50_us"), "{row}");
        }
        for ratio in ["merges_to_puts", "merges_to_puts_caught_up", "gets_of_merged_to_put"] {
            let [least, median, most] = ["min", "median", "max"].map(|name| number(&row[ratio], name));
            assert!(0.0 < least && least <= median && median <= most, "{row}");
        }
        assert_eq!(row["checked_counters"], row["keys"]);
    }
}
