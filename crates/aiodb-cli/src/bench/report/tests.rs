use super::*;
use crate::bench::outcome::tests::outcome;
use crate::bench::rows::churn::{ChurnLoad, ChurnRow, ChurnStretch};

#[test]
fn a_page_stands_alone() {
    let page = page(&[outcome()]);
    for wanted in ["<svg", "prefers-color-scheme", "aiodb bench copy-size", "0123456789ab", "&lt;angle&gt;", "<td"] {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
    for unwanted in ["<script", "http://", "https://", "<link", "@import", "NaN"] {
        assert!(!page.contains(unwanted), "{unwanted} is in the page");
    }
}

#[test]
fn a_report_merges_the_results_beside_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let report = dir.path().join("report.html");
    outcome().save_into(&results_beside(&report)).expect("saved");
    let mut later = outcome();
    later.environment.date_utc = "2026-01-03T00:00:00Z".to_owned();
    later.save_into(&results_beside(&report)).expect("saved");
    render(&report).expect("drawn");
    let page = std::fs::read_to_string(&report).expect("written");
    assert_eq!(page.matches("<section").count(), 2);
}

#[test]
fn costs_are_drawn_for_each_size_of_value_and_rate() {
    let row = |value_bytes: u64, data_bytes: f64| CostRow {
        value_bytes,
        data_bytes,
        gets_per_s: 1000.0,
        memory_gets_per_s_per_core: 1.0,
        memory_nodes: 1.0,
        memory_bytes: 1.0,
        memory_bound: serde_json::from_str("\"memory\"").expect("a bound"),
        memory_usd: 4000.0,
        ssd_gets_per_s_per_device: 1.0,
        ssd_nodes: 1.0,
        ssd_devices: 1.0,
        ssd_memory_bytes: 1.0,
        ssd_bound: serde_json::from_str("\"device_reads\"").expect("a bound"),
        ssd_usd: 1000.0,
        ssd_to_memory_usd: 0.25,
        crossing_gets_per_s: None,
    };
    let rows = Rows::Cost(vec![row(1024, 1e9), row(1024, 1e12), row(4096, 1e9)]);
    let page = page(&[Outcome { rows, ..outcome() }]);
    assert_eq!(page.matches("<strong>Cost against size of the data").count(), 2, "one for each size of value");
    assert!(page.contains("25.0 %") && page.contains("all in memory, LMDB"), "{page}");
}

#[test]
fn overwrites_are_drawn_over_how_often_the_data_was_overwritten() {
    use crate::bench::rows::churn::tests::{end, load, stretch};
    let other = |row: ChurnStretch| ChurnStretch { load: ChurnLoad { pattern: "uniform".to_owned(), ..load() }, ..row };
    let stretches = [stretch(1, 800.0, 70.0), stretch(2, 200.0, 900.0)];
    let run = ChurnRow::Run(ChurnRun::of(load(), &stretches, end()));
    let others = stretches.clone().map(|row| ChurnRow::Stretch(other(row)));
    let rows = stretches.map(ChurnRow::Stretch).into_iter().chain([run]).chain(others).collect();
    let page = page(&[Outcome { rows: Rows::Churn(rows), ..outcome() }]);
    assert_eq!(page.matches("<strong>Overwrites per second").count(), 1);
    assert_eq!(page.matches("<strong>Space for the live data").count(), 1);
    assert!(page.contains("lsm zipf") && page.contains("lsm uniform"), "both runs are in the legend");
    assert!(page.contains("<b>2.50</b>bytes written by the disk for each that was overwritten: lsm zipf"), "{page}");
    assert!(page.contains("<b>1.70</b>times the live data") && page.contains("<b>0.40</b>of the mean rate"), "{page}");
    assert!(!page.contains("NaN"));
}

#[test]
fn counters_have_a_figure_for_each_point_and_no_chart() {
    let rows = Rows::Merge(vec![crate::bench::rows::merge::tests::row()]);
    let page = page(&[Outcome { rows, ..outcome() }]);
    assert!(page.contains("<b>0.90</b>merges for each put: hash, none, 1 key, 8 writers"), "{page}");
    assert!(!page.contains("<svg"));
}
