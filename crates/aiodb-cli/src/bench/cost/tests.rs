use clap::Parser;

use super::*;
use crate::bench::outcome::tests::outcome;

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    args: CostArgs,
}

fn parse(arguments: &[&str]) -> Result<CostArgs, clap::Error> {
    Cli::try_parse_from(["cost"].iter().chain(arguments)).map(|cli| cli.args)
}

fn queue_depth_row(index: &str, gets_per_s: f64) -> QueueDepthRow {
    let row = serde_json::json!({
        "index": index, "backend": "uring", "threads": 1, "depth_per_thread": 64, "pairs": 1, "data_bytes": 1,
        "resident_bytes": 1, "gets_per_s": gets_per_s, "gets_per_s_min": 1.0, "gets_per_s_max": 1.0,
        "gets_per_s_rounds": [], "ceiling": null, "ceiling_read_bytes": 4096, "ceiling_reads_per_s": null,
        "ceiling_reads_per_s_rounds": [], "ratio": null, "ratio_ci95_half_width": null, "ratio_min": null,
        "ratio_max": null, "rounds": 1, "marked_rounds": 0, "p50_us": 1.0, "p99_us": 1.0, "p999_us": 1.0,
        "latency_samples": 1, "cpu_us_per_get": 4.0, "fio_reads_per_s": null, "fio_cpu_us_per_read": null,
        "raw_reads_per_s": null, "raw_cpu_us_per_read": null, "device_reads_per_get": null,
    });
    serde_json::from_value(row).expect("a row of bench queue-depth")
}

fn copy_size_rows(rates: &[(usize, f64)]) -> Vec<CopySizeRow> {
    let Rows::CopySize(model) = outcome().rows else { panic!("the model is a result of copy-size") };
    let row = |&(copy_bytes, gets_per_s)| CopySizeRow { copy_bytes, gets_per_s, ..model[0].clone() };
    rates.iter().map(row).collect()
}

fn with(rows: Rows) -> Outcome {
    Outcome { rows, ..outcome() }
}

/// Results with the paper's figures.
fn paper() -> Vec<Outcome> {
    vec![
        with(Rows::CopySize(copy_size_rows(&[(4096, 256e3), (0, 1e6), (1024, 370e3)]))),
        with(Rows::QueueDepth(vec![queue_depth_row("lmdb", 370e3), queue_depth_row("lmdb", 375e3)])),
    ]
}

fn saved(outcomes: &[Outcome]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    outcomes.iter().for_each(|outcome| outcome.save_into(dir.path()).expect("saved"));
    dir
}

#[test]
fn the_best_point_and_the_latest_results_count() {
    let mut outcomes = paper();
    outcomes.push(with(Rows::QueueDepth(vec![queue_depth_row("lmdb", 100e3)])));
    let sources = Sources::among(&outcomes, IndexKind::Lmdb).expect("both are there");
    assert_eq!(sources.rates().device_gets_per_s, 100e3, "the last one is the latest");
    let sources = Sources::among(&outcomes[..2], IndexKind::Lmdb).expect("both are there");
    assert_eq!(sources.rates().device_gets_per_s, 375e3);
    assert_eq!(sources.rates().memory, [(0.0, 1e6), (1024.0, 370e3), (4096.0, 256e3)], "by size");
}

#[test]
fn what_is_missing_is_named_with_the_command_that_brings_it() {
    let paper = paper();
    let missing = |outcomes: &[Outcome], index| Sources::among(outcomes, index).expect_err("something is missing");
    assert_eq!(missing(&paper[..1], IndexKind::Lmdb), Missing::QueueDepth("lmdb"));
    assert_eq!(missing(&paper, IndexKind::Hash), Missing::QueueDepth("hash"));
    assert_eq!(missing(&paper[1..], IndexKind::Lmdb), Missing::CopySize);
    let one_size = [with(Rows::CopySize(copy_size_rows(&[(0, 1e6)]))), paper[1].clone()];
    assert_eq!(missing(&one_size, IndexKind::Lmdb), Missing::CopySize);
    let stopped = [paper[0].clone(), with(Rows::QueueDepth(vec![queue_depth_row("lmdb", 0.0)]))];
    assert_eq!(missing(&stopped, IndexKind::Lmdb), Missing::Absurd("queue-depth"));

    let dir = saved(&paper[..1]);
    let args = parse(&["--results", dir.path().to_str().expect("a plain path")]).expect("arguments");
    let error = run(&args).expect_err("no gets from a device").to_string();
    assert!(error.contains("aiodb bench queue-depth --index lmdb"), "{error}");
    assert!(error.contains(dir.path().to_str().expect("a plain path")), "{error}");
}

#[test]
fn a_missing_directory_of_results_is_named() {
    let args = parse(&["--results", "/no/such/results"]).expect("arguments");
    assert!(run(&args).expect_err("no directory").to_string().contains("/no/such/results"));
}

#[test]
fn absurd_amounts_are_refused() {
    for arguments in [
        ["--dram-usd-per-gb", "0"],
        ["--ssd-usd-per-gb", "-1"],
        ["--ssd-usd-per-gb", "NaN"],
        ["--gets-per-s", "inf"],
        ["--gets-per-s", "0"],
        ["--data-gb", "0"],
        ["--data-gb", "1e13"],
        ["--node-cores", "0"],
        ["--node-devices", "0"],
        ["--device-gb", "0"],
        ["--value-bytes", "0"],
        ["--ssd-space-factor", "0.9"],
        ["--index", "tree"],
    ] {
        assert!(parse(&[&format!("{}={}", arguments[0], arguments[1])]).is_err(), "{arguments:?}");
    }
    let less_than_a_pair = parse(&["--data-gb", "0.000001", "--value-bytes", "4096"]).expect("arguments");
    let error = requirements(&less_than_a_pair).expect_err("less than one pair");
    assert!(matches!(&error, CliError::Usage(text) if text.contains("--data-gb")), "{error}");
    let many = (1..=1001).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let many = parse(&["--data-gb", &many, "--gets-per-s", "1", "--value-bytes", "1"]).expect("arguments");
    assert!(requirements(&many).is_err());
}

#[test]
fn results_become_costs_with_their_assumptions() {
    let dir = saved(&paper());
    let arguments = ["--results", dir.path().to_str().expect("a plain path")];
    let sizes = ["--data-gb", "1,1000", "--gets-per-s", "100000", "--value-bytes", "4096"];
    let result = run(&parse(&[&arguments[..], &sizes].concat()).expect("arguments")).expect("costs");
    let Rows::Cost(rows) = &result.rows else { panic!("costs") };
    assert_eq!(rows.len(), 2);
    assert!(rows[0].ssd_usd > rows[0].memory_usd, "a gigabyte is cheaper in memory than on an SSD of its own");
    assert!(rows[1].ssd_usd < rows[1].memory_usd, "a terabyte is cheaper on SSD");
    assert_eq!(rows[0].crossing_gets_per_s, Some(1.0));
    assert_eq!((rows[1].ssd_nodes, rows[1].ssd_devices), (1.0, 1.0));
    assert!((rows[1].memory_gets_per_s_per_core - 256e3).abs() < 1e-3);
    // 1e12 / 4104 pairs with 64 bytes more each are a node's memory and a little: 1.016 TB of 1.024.
    assert_eq!(rows[1].memory_nodes, 1.0);
    let memory_gb = (1e12 + (1e12_f64 / 4104.0).ceil() * 64.0) / 1e9;
    assert!((rows[1].memory_usd - (3000.0 + memory_gb * 4.0)).abs() < 1e-6);
    let notes = result.notes.join("\n");
    for wanted in ["2025-06", "375,000 gets/s", "no copy on SSD", "one core of a processor"] {
        assert!(notes.contains(wanted), "{wanted} is not in {notes}");
    }
    assert!(crate::bench::rows::cost::table(rows).to_terminal().contains("SSD/memory"));
}

#[test]
fn other_benchmarks_can_be_asked_with_their_own_arguments() {
    let known: Result<CopySizeArgs, _> = parsed(["--pairs", "100"].iter().map(|text| text.as_ref()));
    assert!(known.is_ok());
    let unknown: Result<CopySizeArgs, _> = parsed(["--no-such-option"].iter().map(|text| text.as_ref()));
    assert!(unknown.is_err());
}
