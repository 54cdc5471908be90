use super::{Figure, ratio_table, ratios, tables};
use crate::churn::child::tests::{churn_points, churn_totals};
use crate::churn::measure::Run;
use crate::churn::plan::Case;
use crate::churn::settings::named;
use crate::class::Class;
use crate::ranks::Pattern;
use crate::summary::summarise;

const CASE: Case = Case { value_bytes: 975, pattern: Pattern::Uniform, class: Class::Interval };

/// A run of an engine in points with these rates.
fn run(engine: &str, round: u32, rates: &[f64]) -> Run {
    Run {
        engine: engine.to_owned(),
        family: named(engine).unwrap().family(),
        case: CASE,
        round,
        memory_limit_bytes: None,
        points: churn_points(rates),
        totals: Some(churn_totals()),
        void: None,
    }
}

fn void(engine: &str, round: u32) -> Run {
    Run { void: Some("killed".to_owned()), totals: None, ..run(engine, round, &[1e9]) }
}

#[test]
fn space_is_by_live_data_and_device_bytes_by_what_was_overwritten() {
    let rows = summarise(&[run("aiodb-lsm", 1, &[200.0, 100.0]), void("aiodb-lsm", 2)]);
    let of = |figure| rows[0].figures[&figure].median;
    assert_eq!((of(Figure::SpaceBefore), of(Figure::MostSpace), of(Figure::SpaceAtRest)), (1.25, 2.0, 1.875));
    assert_eq!((of(Figure::DeviceToUserBytes), of(Figure::TimesOverwritten)), (0.1, 25.0));
    assert_eq!((of(Figure::MeanOverwritesPerS), of(Figure::WorstOverwritesPerS)), (150.0, 100.0));
    assert_eq!(of(Figure::SettledOverwritesPerS), 1_000.0 / 23.0, "twenty seconds, and three of catching up");
    assert_eq!(of(Figure::CpuUsPerOverwrite), 2_000.0);
    assert_eq!(rows[0].void_rounds, 1);
}

#[test]
fn ratios_are_within_a_pattern_and_to_the_fastest_setting_of_each_rival() {
    let zipf = |engine, rate| Run { case: Case { pattern: Pattern::Zipf, ..CASE }, ..run(engine, 1, &[rate]) };
    let runs = [
        run("aiodb-lsm", 1, &[600.0]),
        run("rocksdb-universal", 1, &[200.0]),
        run("rocksdb-level", 1, &[100.0]),
        run("lmdb-nordahead", 1, &[10.0]),
        zipf("aiodb-lsm", 50.0),
        zipf("rocksdb-level", 10.0),
        void("redb-half-cache", 1),
    ];
    let ratios = ratios(&runs);
    let found: Vec<(&str, f64)> =
        ratios.iter().map(|ratio| (ratio.theirs.as_str(), ratio.figures[&Figure::MeanOverwritesPerS].median)).collect();
    assert_eq!(found, [("lmdb-nordahead", 60.0), ("rocksdb-universal", 3.0), ("rocksdb-level", 5.0)]);
}

#[test]
fn tables_have_a_line_for_each_row_and_say_what_is_not_known() {
    let mut unknown = run("rocksdb-level", 1, &[100.0]);
    unknown.totals.as_mut().unwrap().totals.settled_device_written_bytes = None;
    let runs = [run("aiodb-lsm", 1, &[2_500.0]), unknown, void("fjall-default", 1)];
    let text = tables(&summarise(&runs));
    let lines = |name: &str| text.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
    assert_eq!(lines("aiodb-lsm").len(), 2, "rates and costs:\n{text}");
    assert!(lines("aiodb-lsm")[0].contains(" 2.5 ") && lines("aiodb-lsm")[1].contains(" 1.88 "), "{text}");
    assert!(lines("rocksdb-level")[1].contains(" - "), "{text}");
    assert!(lines("fjall-default")[0].contains(" - "), "{text}");
    let text = ratio_table(&ratios(&runs));
    assert!(text.lines().any(|line| line.contains("rocksdb-level") && line.contains(" 25.00 ")), "{text}");
    assert!(!text.contains("fjall"), "nobody to compare with:\n{text}");
}
