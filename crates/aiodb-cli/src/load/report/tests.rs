use super::{Ended, Report};
use crate::error::CliError;
use crate::load::input::Entry;
use std::time::Duration;

const ELAPSED: Duration = Duration::from_millis(2500);

fn report() -> Report {
    let mut report = Report::new(100);
    report.loaded(&Entry { key: vec![0; 24], value: vec![0; 1000] });
    report.loaded(&Entry { key: vec![0; 24], value: vec![0; 1000] });
    report
}

#[test]
fn a_complete_load_says_how_much_it_loaded() {
    let text = report().to_text(&Ended::Complete, ELAPSED, "default");
    assert_eq!(text, "loaded 2 records (2.00 KiB) into table `default` in 2.5 s, 0 records/s\n");
    let json = report().to_json(&Ended::Complete, ELAPSED);
    assert_eq!(json["ended"], "complete");
    assert_eq!(json["records_loaded"], 2);
    assert_eq!(json["bytes_loaded"], 2048);
    assert_eq!(json["elapsed_ms"], 2500);
}

#[test]
fn a_stopped_load_says_where_to_go_on() {
    let mut report = report();
    for ended in [Ended::Interrupted, Ended::Failed(CliError::Usage(String::new()))] {
        let text = report.to_text(&ended, ELAPSED, "default");
        assert!(text.contains("--skip-lines 100\n"), "no line is done, the left out ones stay left out: {text}");
    }
    report.lines_done(1234);
    assert!(report.to_text(&Ended::Interrupted, ELAPSED, "default").contains("interrupted after line 1,234; "));
    assert_eq!(report.to_json(&Ended::Interrupted, ELAPSED)["lines_done"], 1234);
}

#[test]
fn bad_lines_that_were_not_shown_are_counted() {
    let mut report = report();
    report.bad_lines = 5;
    report.shown = vec![(7, "seven".into()), (9, "nine".into())];
    let text = report.to_text(&Ended::Complete, ELAPSED, "default");
    assert!(text.contains("skipped 5 bad lines, 3 of them not shown"), "{text}");
    let json = report.to_json(&Ended::Complete, ELAPSED);
    assert_eq!(json["bad_lines"], 5);
    assert_eq!(json["bad_lines_shown"][1]["line"], 9);
}
