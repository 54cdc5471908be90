//! The charts of long runs, one point a stretch.

use crate::bench::report::axis::{Axis, compact, compact_bytes, extent};
use crate::bench::report::chart::{Chart, Look, Point, Reference, Series};
use crate::bench::report::paper;
use crate::bench::rows::churn::{self, ChurnRow, ChurnStretch};
use crate::bench::rows::soak::{self, SoakRow};

/// The charts of `bench soak`.
pub(super) fn soak(rows: &[SoakRow]) -> Vec<Chart> {
    vec![inserts_by_keys(rows), longest_by_keys(rows)]
}

/// The stretches of each run over the keys that the store then had.
fn by_keys(rows: &[SoakRow], y: impl Fn(&SoakRow) -> f64) -> Vec<Series> {
    let point = |row: &SoakRow| Point { x: row.keys as f64, y: y(row), range: None };
    let series = soak::runs(rows).enumerate().map(|(rank, run)| Series {
        name: format!("index {}, {}", run[0].index, run[0].durability),
        look: Look::Ours(rank),
        points: run.iter().map(point).collect(),
    });
    series.collect()
}

fn keys_axis(rows: &[SoakRow]) -> Axis {
    let (_, most) = extent(rows.iter().map(|row| row.keys as f64));
    Axis::linear("keys in the store", 0.0, most, compact)
}

/// How a soak is read: what was put, by how many, with how much memory.
fn soak_caption(rows: &[SoakRow]) -> String {
    let Some(row) = rows.first() else { return String::new() };
    let memory = row
        .memory_limit_bytes
        .map_or("no limit of memory".to_owned(), |bytes| format!("{} of memory", compact_bytes(bytes as f64)));
    let (key_bytes, value_bytes) = (row.key_bytes, row.value_bytes);
    format!("keys of {key_bytes} B, values of {value_bytes} B, {} writers, {memory}", row.writers)
}

fn inserts_by_keys(rows: &[SoakRow]) -> Chart {
    let reference = |name: &str, y| Reference { name: name.to_owned(), look: Look::Paper, y };
    let references = vec![
        reference("okuyama, keys in memory", paper::OKUYAMA_IN_MEMORY_PER_S),
        reference("okuyama, keys beyond memory", paper::OKUYAMA_BEYOND_PER_S),
    ];
    // A stretch without any put is drawn at the bottom of the axis.
    let (_, most) = extent(rows.iter().map(|row| row.puts_per_s));
    Chart {
        title: "Puts per second against the keys in the store".to_owned(),
        caption: format!("{}; one point a stretch; logarithmic rates", soak_caption(rows)),
        x: keys_axis(rows),
        y: Axis::log("puts per second", paper::OKUYAMA_BEYOND_PER_S, most, compact),
        series: by_keys(rows, |row| row.puts_per_s),
        references,
    }
}

fn longest_by_keys(rows: &[SoakRow]) -> Chart {
    let (least, most) = extent(rows.iter().map(|row| row.longest_us / 1000.0).filter(|ms| *ms > 0.0));
    Chart {
        title: "The longest put of each stretch".to_owned(),
        caption: format!("{}; logarithmic times", soak_caption(rows)),
        x: keys_axis(rows),
        y: Axis::log("milliseconds", least, most, compact),
        series: by_keys(rows, |row| row.longest_us / 1000.0),
        references: Vec::new(),
    }
}

/// The charts of `bench churn`.
pub(super) fn churn(rows: &[ChurnRow]) -> Vec<Chart> {
    let stretches = churn::stretches(rows);
    let Some(first) = stretches.first() else { return Vec::new() };
    let load = &first.load;
    let caption = format!(
        "{} records, keys of {} B, values of {} B, durability {}, {} writers; one point a stretch",
        compact(load.records as f64),
        load.key_bytes,
        load.value_bytes,
        load.durability,
        load.writers
    );
    let (_, last) = extent(stretches.iter().map(|row| row.times_overwritten()));
    let chart = |title: &str, label: &str, y: fn(&ChurnStretch) -> f64, format: fn(f64) -> String| {
        let (_, most) = extent(stretches.iter().map(|row| y(row)));
        Chart {
            title: title.to_owned(),
            caption: caption.clone(),
            x: Axis::linear("times that the live data was overwritten", 0.0, last, compact),
            y: Axis::linear(label, 0.0, most, format),
            series: by_times(&stretches, y),
            references: Vec::new(),
        }
    };
    vec![
        chart("Overwrites per second", "overwrites per second", |row| row.overwrites_per_s, compact),
        chart(
            "Space for the live data",
            "bytes of files per live byte",
            |row| row.space,
            |space| format!("{space:.1}"),
        ),
    ]
}

/// The stretches of each run over how much was overwritten.
fn by_times(stretches: &[&ChurnStretch], y: impl Fn(&ChurnStretch) -> f64) -> Vec<Series> {
    let point = |row: &&ChurnStretch| Point { x: row.times_overwritten(), y: y(row), range: None };
    let runs = stretches.chunk_by(|one, other| one.load == other.load).enumerate();
    let series = runs.map(|(rank, run)| Series {
        name: run[0].load.in_words(),
        look: Look::Ours(rank),
        points: run.iter().map(point).collect(),
    });
    series.collect()
}
