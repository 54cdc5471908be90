use super::super::child::tests::figures;
use super::super::child::{Figures, Point, Workload};
use super::super::measure::Outcome;
use super::super::settings;
use super::{Condition, Summary, best_settings, ratio_table, ratios, summarise, sweep_table, table};
use crate::engine::{IN_FLIGHT, Reads, TOGETHER};

fn outcome(engine: &str, round: u32, threads: u32, reads: Reads, operations_per_s: f64) -> Outcome {
    Outcome {
        engine: engine.to_owned(),
        family: settings::named(engine).unwrap().family(),
        value_bytes: 4096,
        round,
        point: Point { workload: Workload::Read, threads, reads },
        figures: Some(Figures { operations_per_s, cpu_us_per_operation: 1e6 / operations_per_s, ..figures() }),
        void: None,
    }
}

fn void(outcome: Outcome) -> Outcome {
    Outcome { void: Some("swap".to_owned()), ..outcome }
}

#[test]
fn the_interval_is_students() {
    assert_eq!(Summary::of([]), None);
    assert_eq!(Summary::of([7.0]).unwrap().ci95_half_width, None);
    let summary = Summary::of([2.0, 4.0, 3.0]).unwrap();
    assert_eq!((summary.median, summary.min, summary.max, summary.rounds), (3.0, 2.0, 4.0, 3));
    // The standard deviation is 1, the quantile for two degrees of freedom 4.303.
    assert!((summary.ci95_half_width.unwrap() - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9);
}

#[test]
fn void_rounds_are_counted_and_not_averaged() {
    let outcomes = [
        outcome("lmdb-nordahead", 1, 1, Reads::OneByOne, 10.0),
        void(outcome("lmdb-nordahead", 2, 1, Reads::OneByOne, 1000.0)),
        outcome("lmdb-nordahead", 3, 1, Reads::OneByOne, 20.0),
    ];
    let rows = summarise(&outcomes);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].operations_per_s.unwrap().median, 15.0);
    assert_eq!(rows[0].void_rounds, 1);
    let all_void = summarise(&[void(outcome("lmdb-nordahead", 1, 1, Reads::OneByOne, 10.0))]);
    assert_eq!(all_void[0].operations_per_s, None);
    assert!(table(&all_void).contains("void"), "a point that is void stays in the table");
}

#[test]
fn a_rival_is_met_at_its_best_under_each_condition() {
    let mut outcomes = Vec::new();
    for round in 1..=2 {
        let factor = f64::from(round);
        outcomes.extend([
            outcome("aiodb-lmdb", round, 1, IN_FLIGHT, 80.0 * factor),
            outcome("aiodb-lmdb", round, 8, Reads::OneByOne, 999.0),
            outcome("rocksdb-direct", round, 1, Reads::OneByOne, 10.0 * factor),
            outcome("rocksdb-buffered", round, 1, Reads::OneByOne, 5.0),
            outcome("rocksdb-buffered", round, 64, Reads::OneByOne, 40.0 * factor),
            outcome("rocksdb-direct", round, 1, TOGETHER, 20.0 * factor),
        ]);
    }
    let ratios = ratios(&outcomes);
    let figures: Vec<_> = ratios
        .iter()
        .map(|ratio| (ratio.condition, ratio.theirs.engine.as_str(), ratio.rate_ratio.median, ratio.cpu_ratio.median))
        .collect();
    assert_eq!(
        figures,
        [
            (Condition::OneThread, "rocksdb-direct", 8.0, 0.125),
            (Condition::OneThreadTogether, "rocksdb-direct", 4.0, 0.25),
            (Condition::BestOfAll, "rocksdb-buffered", 2.0, 0.5),
        ]
    );
    assert!(ratio_table(&ratios).contains("best threads: 64, one by one"));
}

#[test]
fn a_ratio_pairs_rounds_that_both_count() {
    let outcomes = [
        outcome("aiodb-hash", 1, 1, IN_FLIGHT, 80.0),
        outcome("aiodb-hash", 2, 1, IN_FLIGHT, 80.0),
        outcome("redb-half-cache", 1, 1, Reads::OneByOne, 10.0),
        void(outcome("redb-half-cache", 2, 1, Reads::OneByOne, 1.0)),
    ];
    let ratios = ratios(&outcomes);
    assert!(ratios.iter().all(|ratio| ratio.rate_ratio.median == 8.0 && ratio.rate_ratio.rounds == 1));
    assert!(super::ratios(&outcomes[..2]).is_empty(), "nobody to compare with");
}

#[test]
fn the_sweep_keeps_what_is_best_somewhere() {
    let swept = [
        outcome("lmdb-nordahead", 1, 1, Reads::OneByOne, 10.0),
        outcome("lmdb-nordahead", 1, 64, Reads::OneByOne, 70.0),
        outcome("lmdb-default", 1, 1, Reads::OneByOne, 20.0),
        void(outcome("lmdb-nordahead-writemap", 1, 64, Reads::OneByOne, 99.0)),
    ];
    let engines: Vec<_> = ["aiodb-lmdb", "lmdb-nordahead", "lmdb-default", "redb-small-cache", "redb-half-cache"]
        .iter()
        .map(|name| settings::named(name).unwrap())
        .collect();
    let best = best_settings(&swept, &engines);
    assert_eq!(best, ["lmdb-nordahead", "redb-small-cache"], "redb was never measured: its first setting goes on");
    let text = sweep_table(&swept, &best);
    assert!(text.lines().any(|line| line.contains("lmdb-nordahead ") && line.contains("yes")), "{text}");
    assert!(text.lines().any(|line| line.contains("lmdb-default") && !line.contains("yes")), "{text}");
}
