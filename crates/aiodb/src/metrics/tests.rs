use super::{Histogram, Metrics, TableMetrics};
use crate::{StorageMode, TableModes};

fn metrics() -> Metrics {
    let times = Histogram::default();
    for time_ns in [900, 1024, 1025, 5_000_000, 1 << 40] {
        times.record(time_ns);
    }
    let shares = Histogram::default();
    shares.record(55);
    Metrics {
        lookups: 12,
        get_read_wait_ns: times.snapshot(),
        write_wait_ns: times.snapshot(),
        victim_live_percent: shares.snapshot(),
        segments_free: 7,
        recovery_ms: 1500,
        memory_full_seconds: Some(61),
        tables: vec![TableMetrics {
            name: "of \"two words\"".into(),
            modes: TableModes { keys: StorageMode::Memory, values: StorageMode::Auto },
            keys_in_memory: Some(0.25),
            runs: Some(9),
            merge_debt_bytes: Some(0),
            value_hits: 8,
            ..TableMetrics::default()
        }],
        ..Metrics::default()
    }
}

#[test]
fn the_text_is_what_prometheus_reads() {
    let text = metrics().to_prometheus();
    for lines in [
        "# HELP aiodb_lookups_total Keys looked up in an index.\n# TYPE aiodb_lookups_total counter\naiodb_lookups_total 12\n",
        "# TYPE aiodb_segments gauge\naiodb_segments{state=\"in_use\"} 0\naiodb_segments{state=\"free\"} 7\n",
        "aiodb_recovery_seconds 1.5\n",
        "# TYPE aiodb_write_wait_seconds histogram\naiodb_write_wait_seconds_bucket{le=\"0.000001024\"} 2\n\
         aiodb_write_wait_seconds_bucket{le=\"0.000002048\"} 3\n",
        "aiodb_write_wait_seconds_bucket{le=\"+Inf\"} 5\naiodb_write_wait_seconds_sum 1099.516630725\n\
         aiodb_write_wait_seconds_count 5\n",
        "aiodb_read_wait_seconds_bucket{path=\"get\",le=\"+Inf\"} 5\naiodb_read_wait_seconds_sum{path=\"get\"} 1099",
        "# TYPE aiodb_memory_full_seconds gauge\naiodb_memory_full_seconds 61\n",
        "# TYPE aiodb_disk_full_seconds gauge\n# HELP aiodb_table_modes ",
        "aiodb_table_modes{table=\"of \\\"two words\\\"\",keys=\"memory\",values=\"auto\"} 1\n",
        "aiodb_table_keys_in_memory_ratio{table=\"of \\\"two words\\\"\"} 0.25\n",
        "# TYPE aiodb_table_values_in_memory_ratio gauge\n# HELP",
        "# TYPE aiodb_table_runs gauge\naiodb_table_runs{table=\"of \\\"two words\\\"\"} 9\n",
        "# TYPE aiodb_table_run_bytes gauge\n# HELP",
        "aiodb_table_merge_debt_bytes{table=\"of \\\"two words\\\"\"} 0\n",
        "# TYPE aiodb_table_value_hits_total counter\naiodb_table_value_hits_total{table=\"of \\\"two words\\\"\"} 8\n",
        "aiodb_reclaim_live_ratio_bucket{le=\"0.4\"} 0\naiodb_reclaim_live_ratio_bucket{le=\"0.64\"} 1\n",
    ] {
        assert!(text.contains(lines), "{lines}\nis missing in\n{text}");
    }
}

#[test]
fn parts_of_memory_have_labels_of_their_names() {
    for (label, (name, _)) in super::prometheus::PART_LABELS.into_iter().zip(metrics().memory.parts()) {
        assert_eq!(label, format!("part=\"{name}\""));
    }
}

/// Each line is a comment or `name{labels} number`, each sample follows the TYPE line of its family, and buckets grow.
#[test]
fn every_line_has_the_form_of_the_format() {
    let text = metrics().to_prometheus();
    assert!(text.ends_with('\n'));
    let (mut family, mut kind, mut bucket) = ("", "", 0.0);
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (word, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            match word {
                "HELP" => assert!(rest.ends_with('.') && !rest.contains('\\'), "{line}"),
                "TYPE" => (family, kind) = (name, rest),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (sample, number) = line.rsplit_once(' ').unwrap();
        let number: f64 = number.parse().unwrap_or_else(|_| panic!("{line}"));
        let name = sample.split('{').next().unwrap();
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} belongs to {family}"));
        match kind {
            "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
            _ => assert_eq!(suffix, "", "{line}"),
        }
        assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
        if suffix == "_bucket" {
            assert!(number >= bucket, "{line} is below the bucket before");
            bucket = number;
        } else {
            bucket = 0.0;
        }
    }
}

#[test]
fn the_documentation_names_every_metric() {
    let documentation = include_str!("../../../../docs/operations.md");
    for family in metrics().families() {
        let name = format!("`aiodb_{}`", family.name);
        assert!(documentation.contains(&name), "docs/operations.md does not explain {name}");
    }
}
