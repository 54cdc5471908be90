use super::*;
use crate::bench::outcome::tests::outcome;

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
