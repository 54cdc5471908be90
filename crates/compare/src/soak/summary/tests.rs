use super::{Figure, best_settings, ratio_table, ratios, tables};
use crate::class::Class;
use crate::points::tests::points;
use crate::soak::measure::Run;
use crate::soak::plan::{Case, Load};
use crate::soak::settings::named;
use crate::summary::summarise;
use crate::totals::tests::totals;

const CASE: Case = Case { value_bytes: 25, class: Class::Interval };

/// A run of an engine in points with these rates.
fn run(engine: &str, round: u32, rates: &[f64]) -> Run {
    Run {
        engine: engine.to_owned(),
        family: named(engine).unwrap().family(),
        case: CASE,
        load: Load::Full,
        due_puts_per_s: None,
        round,
        memory_limit_bytes: None,
        points: points(rates),
        totals: Some(totals()),
        void: None,
    }
}

fn void(engine: &str, round: u32) -> Run {
    Run { void: Some("killed".to_owned()), totals: None, ..run(engine, round, &[1e9]) }
}

#[test]
fn a_row_has_the_median_of_its_rounds_and_leaves_void_ones_out() {
    let runs = [
        run("aiodb-lsm", 1, &[200.0, 100.0]),
        run("aiodb-lsm", 2, &[400.0, 200.0]),
        run("aiodb-lsm", 3, &[600.0, 300.0]),
        void("aiodb-lsm", 4),
        void("fjall-default", 1),
    ];
    let rows = summarise(&runs);
    assert_eq!(rows.iter().map(|row| row.engine.as_str()).collect::<Vec<_>>(), ["aiodb-lsm", "fjall-default"]);
    let of = |figure| rows[0].figures[&figure];
    let mean = of(Figure::MeanPutsPerS);
    assert_eq!((mean.min, mean.median, mean.max), (150.0, 300.0, 450.0));
    assert_eq!(of(Figure::WorstPutsPerS).min, 100.0);
    assert_eq!(of(Figure::LastToFirst).median, 0.5);
    assert_eq!(of(Figure::DeviceToUserBytes).median, 100_000.0 / (1_000.0 * 50.0));
    assert_eq!(of(Figure::CpuUsPerPut).median, 2_000.0);
    assert_eq!((rows[0].void_rounds, rows[1].void_rounds), (1, 1));
    assert!(rows[1].figures.is_empty());
}

#[test]
fn ratios_are_to_the_best_setting_of_each_rival_and_paired_by_round() {
    let runs = [
        run("aiodb-lsm", 1, &[400.0, 300.0]),
        run("rocksdb-level", 1, &[150.0, 50.0]),
        run("rocksdb-default", 1, &[30.0, 30.0]),
        run("fjall-default", 1, &[10.0, 10.0]),
        run("rocksdb-level", 2, &[300.0, 100.0]),
        run("aiodb-lsm", 2, &[400.0, 200.0]),
        void("rocksdb-default", 2),
    ];
    let ratios = ratios(&runs);
    let theirs: Vec<&str> = ratios.iter().map(|ratio| ratio.paired.theirs.as_str()).collect();
    assert_eq!(theirs, ["fjall-default", "rocksdb-level"]);
    let last = ratios[1].paired.figures[&Figure::LastTenthPutsPerS];
    assert_eq!((last.min, last.max), (2.0, 6.0));
    let worst = ratios[1].worst_to_their_mean.unwrap();
    assert_eq!((worst.min, worst.max), (1.0, 3.0), "200 to 200, 300 to 100");
    assert_eq!(ratios[0].paired.figures[&Figure::MeanPutsPerS].median, 35.0, "only the first round has both");
}

#[test]
fn there_is_no_ratio_to_nothing() {
    let ratios = ratios(&[run("aiodb-lsm", 1, &[4.0, 4.0]), run("rocksdb-level", 1, &[2.0, 0.0])]);
    assert_eq!(ratios[0].paired.figures[&Figure::MeanPutsPerS].median, 4.0);
    assert!(!ratios[0].paired.figures.contains_key(&Figure::WorstPutsPerS), "theirs stood still");
}

#[test]
fn loads_and_cases_are_not_mixed() {
    let half = |engine, rate| Run { load: Load::Half, ..run(engine, 1, &[rate]) };
    let sync = |engine, rate| Run { case: Case { class: Class::Sync, ..CASE }, ..run(engine, 1, &[rate]) };
    let runs = [
        run("aiodb-lsm", 1, &[8.0]),
        run("rocksdb-level", 1, &[4.0]),
        half("aiodb-lsm", 3.0),
        half("rocksdb-level", 1.0),
        sync("aiodb-lsm", 5.0),
        sync("rocksdb-level", 1.0),
    ];
    assert_eq!(summarise(&runs).len(), 6);
    let mut means: Vec<f64> =
        ratios(&runs).iter().map(|ratio| ratio.paired.figures[&Figure::MeanPutsPerS].median).collect();
    means.sort_by(f64::total_cmp);
    assert_eq!(means, [2.0, 3.0, 5.0]);
}

#[test]
fn the_setting_with_the_highest_mean_goes_on() {
    let engines: Vec<_> = ["rocksdb-level", "rocksdb-universal", "blobdb-level", "fjall-default", "fjall-no-filters"]
        .iter()
        .map(|name| named(name).unwrap())
        .collect();
    let swept = [
        run("rocksdb-level", 1, &[9.0, 1.0]),
        run("rocksdb-universal", 1, &[6.0, 6.0]),
        run("blobdb-level", 1, &[3.0]),
        void("fjall-default", 1),
        void("fjall-no-filters", 1),
    ];
    assert_eq!(best_settings(&swept, CASE, &engines), ["rocksdb-universal", "blobdb-level", "fjall-default"]);
}

#[test]
fn tables_have_a_line_for_each_row_and_say_what_is_not_known() {
    let mut unknown = run("rocksdb-level", 1, &[100.0]);
    unknown.totals.as_mut().unwrap().settled_device_written_bytes = None;
    let runs = [run("aiodb-lsm", 1, &[2_500.0]), unknown, void("fjall-default", 1)];
    let text = tables(&summarise(&runs));
    let lines = |name: &str| text.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
    assert_eq!(lines("aiodb-lsm").len(), 2, "rates and costs:\n{text}");
    assert!(lines("aiodb-lsm")[0].contains(" 2.5 "), "one round has no ends:\n{text}");
    assert!(lines("rocksdb-level")[1].contains(" - "), "{text}");
    assert!(lines("fjall-default")[0].contains(" - "), "{text}");
    let text = ratio_table(&ratios(&runs));
    assert!(text.lines().any(|line| line.contains("rocksdb-level") && line.contains(" 25.00 ")), "{text}");
    assert!(!text.contains("fjall"), "nobody to compare with:\n{text}");
}
