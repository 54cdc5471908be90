//! Tables for people and JSON for programs.

use crate::error::{Error, Result};
use crate::host::{self, Disk, Host};
use crate::store::Point;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Where a report comes from. The fields stand in the report itself.
#[derive(Debug, Serialize)]
pub struct Origin {
    /// The command line.
    pub command: Vec<String>,
    /// The source tree's commit, if it was started in one.
    pub commit: Option<String>,
    /// The machine.
    pub host: Host,
}

impl Origin {
    /// This run, which measures this disk.
    pub fn of(disk: &Disk) -> Result<Origin> {
        Ok(Origin { command: std::env::args().collect(), commit: host::commit(), host: Host::describe(disk)? })
    }
}

/// Everything that one run of `durable-puts` measured.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine, and what was run there.
    #[serde(flatten)]
    pub origin: Origin,
    /// What an acknowledgement means.
    pub durability: &'static str,
    /// Bytes of the preloaded records by bytes of main memory.
    pub data_to_memory: f64,
    /// What every engine ran with, by its name.
    pub settings: BTreeMap<String, Value>,
    /// The points of the sweep, round by round; empty without one.
    pub sweep: Vec<Vec<Point>>,
    /// The points of the comparison, round by round.
    pub rounds: Vec<Vec<Point>>,
    /// The comparison in figures.
    pub summary: Vec<Row>,
}

/// One engine at one number of writers, over all rounds.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Concurrent writers.
    pub writers: u32,
    /// The engine's name.
    pub engine: String,
    /// Seconds of puts in all rounds together.
    pub write_seconds: f64,
    /// Acknowledged puts per second, while putting.
    pub puts_per_second: Spread,
    /// The same with the catching up in the time.
    pub settled_puts_per_second: Spread,
    /// Our puts per second with our catching up by the best rival's without its own, paired by round. None for rivals.
    pub strict_ratio: Option<Spread>,
    /// The same with the catching up of both sides in the time.
    pub settled_ratio: Option<Spread>,
    /// Median latency in microseconds.
    pub p50_us: Spread,
    /// 99 % of the puts took at most this long.
    pub p99_us: Spread,
    /// 99.9 % of them.
    pub p999_us: Spread,
    /// Processor time of the process per put, in microseconds, with the catching up.
    pub settled_cpu_us_per_put: Spread,
    /// Bytes written to the device per byte of key and value, with the catching up.
    pub device_bytes_per_user_byte: Option<Spread>,
}

/// The middle and the ends of what the rounds measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median; of an even number of rounds, the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// None if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Some(Spread { median, min, max })
    }

    /// The median with the ends, all times a scale.
    pub fn text(self, scale: f64, decimals: usize) -> String {
        let Spread { median, min, max } = self;
        format!("{:.decimals$} ({:.decimals$}-{:.decimals$})", median * scale, min * scale, max * scale)
    }
}

/// One row for each number of writers and engine, in the order in which they were measured.
pub fn summarise(rounds: &[Vec<Point>], rivals: &[String]) -> Vec<Row> {
    let Some(first) = rounds.first() else { return Vec::new() };
    let mut keys: Vec<(u32, &str)> = first.iter().map(|point| (point.writers, point.engine.as_str())).collect();
    keys.sort_by_key(|&(writers, _)| writers);
    keys.into_iter().filter_map(|(writers, engine)| row(rounds, rivals, writers, engine)).collect()
}

fn row(rounds: &[Vec<Point>], rivals: &[String], writers: u32, engine: &str) -> Option<Row> {
    let own: Vec<&Point> =
        rounds.iter().flatten().filter(|point| point.writers == writers && point.engine == engine).collect();
    let spread = |figure: fn(&Point) -> f64| Spread::of(own.iter().map(|point| figure(point)));
    let is_rival = rivals.iter().any(|rival| rival == engine);
    let ratio = |figure: fn(&Point) -> f64| {
        let of_round = |points: &Vec<Point>| {
            let at = |point: &&Point| point.writers == writers;
            let ours = points.iter().filter(at).find(|point| point.engine == engine)?;
            let best = points.iter().filter(at).filter(|point| rivals.contains(&point.engine)).map(figure);
            Some(ours.settled_puts_per_second / best.max_by(f64::total_cmp)?)
        };
        if is_rival { None } else { Spread::of(rounds.iter().filter_map(of_round)) }
    };
    Some(Row {
        writers,
        engine: engine.to_owned(),
        write_seconds: own.iter().map(|point| point.write_seconds).sum(),
        puts_per_second: spread(|point| point.puts_per_second)?,
        settled_puts_per_second: spread(|point| point.settled_puts_per_second)?,
        strict_ratio: ratio(|point| point.puts_per_second),
        settled_ratio: ratio(|point| point.settled_puts_per_second),
        p50_us: spread(|point| point.p50_us as f64)?,
        p99_us: spread(|point| point.p99_us as f64)?,
        p999_us: spread(|point| point.p999_us as f64)?,
        settled_cpu_us_per_put: spread(|point| point.settled_cpu_us_per_put)?,
        device_bytes_per_user_byte: Spread::of(own.iter().filter_map(|point| point.device_bytes_per_user_byte)),
    })
}

impl Report {
    /// The comparison as a Markdown table; spreads are the smallest and largest of the rounds.
    pub fn table(&self) -> String {
        let headers = [
            "writers",
            "engine",
            "K puts/s",
            "K puts/s, caught up",
            "ratio to best rival",
            "ratio, both caught up",
            "p50 us",
            "p99 us",
            "p99.9 us",
            "CPU us/put",
            "device/user bytes",
        ];
        let optional = |spread: Option<Spread>| spread.map_or("-".to_owned(), |spread| spread.text(1.0, 2));
        let rows = self.summary.iter().map(|row| {
            vec![
                row.writers.to_string(),
                row.engine.clone(),
                row.puts_per_second.text(1e-3, 1),
                row.settled_puts_per_second.text(1e-3, 1),
                optional(row.strict_ratio),
                optional(row.settled_ratio),
                format!("{:.0}", row.p50_us.median),
                format!("{:.0}", row.p99_us.median),
                format!("{:.0}", row.p999_us.median),
                format!("{:.1}", row.settled_cpu_us_per_put.median),
                row.device_bytes_per_user_byte.map_or("-".to_owned(), |spread| format!("{:.1}", spread.median)),
            ]
        });
        let mut text = table(&headers, rows.collect());
        text.push_str("\nRatio to best rival: our clock includes the catching up, the rival's does not.\n");
        for (engine, seconds) in self.seconds_by_engine() {
            text.push_str(&format!("{engine}: {seconds:.0} s of puts.\n"));
        }
        text
    }

    fn seconds_by_engine(&self) -> BTreeMap<&str, f64> {
        let mut seconds = BTreeMap::new();
        for row in &self.summary {
            *seconds.entry(row.engine.as_str()).or_default() += row.write_seconds;
        }
        seconds
    }
}

/// Writes a report as JSON, if a file for it was asked for.
pub fn write_json(report: &impl Serialize, path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let text = serde_json::to_string_pretty(report).expect("a report has only string keys");
    fs::write(path, text + "\n").map_err(Error::io("write", path))
}

/// An error if something was not measured: each with the reason.
pub fn check_complete(not_measured: &[String]) -> Result<()> {
    if not_measured.is_empty() {
        return Ok(());
    }
    Err(Error::Request(format!("not everything was measured: {}", not_measured.join("; "))))
}

/// What stands below the tables: which measurements are void and why, each by its place, and what every engine ran with.
pub fn notes<'a>(
    measurements: impl Iterator<Item = (String, Option<&'a String>)>,
    settings: &BTreeMap<String, Value>,
) -> String {
    let void = measurements.filter_map(|(place, void)| Some(format!("\nVoid: {place}: {}", void?)));
    let settings = settings.iter().map(|(engine, settings)| format!("\n{engine}: {settings}"));
    void.chain(settings).collect()
}

/// The sweep as a Markdown table: thousands of puts per second, one column for each number of writers.
pub fn sweep_table(rounds: &[Vec<Point>]) -> String {
    let mut by_engine: Vec<(String, Vec<Row>)> = Vec::new();
    let mut writers = Vec::new();
    for row in summarise(rounds, &[]) {
        if writers.last() != Some(&row.writers) {
            writers.push(row.writers);
        }
        match by_engine.iter_mut().find(|(engine, _)| *engine == row.engine) {
            Some((_, rows)) => rows.push(row),
            None => by_engine.push((row.engine.clone(), vec![row])),
        }
    }
    let lines = by_engine.into_iter().map(|(engine, rows)| {
        let cell = |&number: &u32| {
            let row = rows.iter().find(|row| row.writers == number);
            row.map_or("-".to_owned(), |row| row.puts_per_second.text(1e-3, 1))
        };
        std::iter::once(engine).chain(writers.iter().map(cell)).collect()
    });
    let labels: Vec<String> = writers.iter().map(|number| format!("K puts/s at {number}")).collect();
    let headers: Vec<&str> = std::iter::once("setting").chain(labels.iter().map(String::as_str)).collect();
    table(&headers, lines.collect())
}

/// One point in one line, for a person who watches.
pub fn point_line(point: &Point) -> String {
    format!(
        "{}: {} writers, {:.1} K puts/s, p50 {} us, p99 {} us, p99.9 {} us, {:.1} us CPU, caught up after {:.1} s",
        point.engine,
        point.writers,
        point.puts_per_second / 1e3,
        point.p50_us,
        point.p99_us,
        point.p999_us,
        point.cpu_us_per_put,
        point.catch_up_seconds,
    )
}

/// A Markdown table.
pub fn table(headers: &[&str], rows: Vec<Vec<String>>) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].len());
        cells.chain([headers[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..headers.len()).map(width).collect();
    let line = |cells: &[String]| {
        let padded = cells.iter().zip(&widths).map(|(cell, &width)| format!(" {cell:<width$} |"));
        format!("|{}\n", padded.collect::<String>())
    };
    let head: Vec<String> = headers.iter().map(|&header| header.to_owned()).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    [head, rule].iter().chain(&rows).map(|cells| line(cells)).collect()
}

#[cfg(test)]
pub(crate) mod tests;
