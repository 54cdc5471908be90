use super::{Figure, ratio_table, ratios, tables, ways_to_add};
use crate::class::Class;
use crate::merge::child::Operation;
use crate::merge::child::tests::{measured, merge_totals};
use crate::merge::measure::Run;
use crate::merge::plan::Case;
use crate::merge::settings::named;
use crate::summary::summarise;

const CASE: Case = Case { keys: 1, writers: 8, class: Class::None };

/// A run of an engine with a thousand merges, puts, gets of merged and of put keys in so many seconds each.
fn run(engine: &str, round: u32, seconds: [f64; 4]) -> Run {
    let operations = [Operation::Merge, Operation::Put, Operation::GetOfMerged, Operation::GetOfPut];
    Run {
        engine: engine.to_owned(),
        family: named(engine).unwrap().family(),
        case: CASE,
        round,
        memory_limit_bytes: None,
        points: operations.into_iter().zip(seconds).map(|(operation, s)| measured(operation, s)).collect(),
        totals: Some(merge_totals()),
        void: None,
    }
}

fn void(engine: &str, round: u32) -> Run {
    Run { void: Some("killed".to_owned()), totals: None, points: Vec::new(), ..run(engine, round, [1.0; 4]) }
}

#[test]
fn merges_stand_beside_puts_and_gets_beside_gets() {
    let rows = summarise(&[run("aiodb-lsm", 1, [4.0, 2.0, 1.0, 0.5]), void("aiodb-lsm", 2)]);
    let of = |figure| rows[0].figures[&figure].median;
    assert_eq!((of(Figure::MergesPerS), of(Figure::PutsPerS), of(Figure::MergesToPuts)), (250.0, 500.0, 0.5));
    assert_eq!((of(Figure::SettledMergesPerS), of(Figure::SettledPutsPerS)), (125.0, 250.0));
    assert_eq!(of(Figure::SettledMergesToPuts), 0.5);
    assert_eq!((of(Figure::GetsOfMergedPerS), of(Figure::GetsOfPutPerS)), (1_000.0, 2_000.0));
    assert_eq!(of(Figure::GetsOfMergedToPut), 0.5);
    assert_eq!((of(Figure::CpuUsPerMerge), of(Figure::DeviceBytesPerPut)), (2.0, 64.0));
    assert_eq!(rows[0].void_rounds, 1);
}

#[test]
fn ratios_are_to_the_setting_with_the_most_merges() {
    let many = |engine, seconds| Run { case: Case { keys: 100, ..CASE }, ..run(engine, 1, [seconds; 4]) };
    let runs = [
        run("aiodb-lsm", 1, [1.0; 4]),
        run("rocksdb-direct", 1, [2.0; 4]),
        run("rocksdb-successive", 1, [5.0; 4]),
        run("redb-half-cache", 1, [40.0; 4]),
        many("aiodb-lsm", 1.0),
        many("rocksdb-successive", 3.0),
        void("lmdb-nordahead", 1),
    ];
    let ratios = ratios(&runs);
    let found: Vec<(&str, f64)> =
        ratios.iter().map(|ratio| (ratio.theirs.as_str(), ratio.figures[&Figure::MergesPerS].median)).collect();
    assert_eq!(found, [("redb-half-cache", 40.0), ("rocksdb-direct", 2.0), ("rocksdb-successive", 3.0)]);
}

#[test]
fn tables_have_a_line_for_each_row_and_say_what_is_not_known() {
    let mut unknown = run("rocksdb-direct", 1, [2.0; 4]);
    unknown.points.iter_mut().for_each(|measured| measured.settled_device_written_bytes = None);
    let runs = [run("aiodb-lsm", 1, [0.5; 4]), unknown, void("fjall-small-cache", 1)];
    let text = tables(&summarise(&runs));
    let lines = |name: &str| text.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
    assert_eq!(lines("aiodb-lsm").len(), 2, "rates and costs:\n{text}");
    assert!(lines("aiodb-lsm")[0].contains(" 2.0 ") && lines("aiodb-lsm")[1].contains(" 64.0 "), "{text}");
    assert!(lines("rocksdb-direct")[1].contains(" - "), "{text}");
    assert!(lines("fjall-small-cache")[0].contains(" - "), "{text}");
    let text = ratio_table(&ratios(&runs));
    assert!(text.lines().any(|line| line.contains("rocksdb-direct") && line.contains(" 4.00 ")), "{text}");
    assert!(!text.contains("fjall"), "nobody to compare with:\n{text}");
}

#[test]
fn each_kind_of_engine_says_once_how_it_adds() {
    let runs = [run("rocksdb-direct", 1, [1.0; 4]), run("rocksdb-successive", 1, [1.0; 4]), void("redb-half-cache", 1)];
    assert_eq!(ways_to_add(&runs), "A merge of rocksdb: by hand.\n");
}
