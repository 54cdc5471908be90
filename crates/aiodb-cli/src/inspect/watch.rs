//! `aiodb stat --watch`: what another process's store is doing, from its metrics file.

use crate::error::CliError;
use crate::output::Output;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The file is written every second: an older one is that of a process that has died.
const STALE_AFTER: Duration = Duration::from_secs(5);

/// One reading of the file: the values of all samples but buckets, in the file's order, by name and labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    written: SystemTime,
    samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    kind: Kind,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Gauge,
    Counter,
    Sum,
    Count,
}

/// Shows the metrics every `period`, `times` times or until the process is stopped.
pub fn watch(path: &Path, period: Duration, times: Option<u64>, output: &Output) -> Result<(), CliError> {
    let mut before: Option<Reading> = None;
    let mut shown = 0;
    while times.is_none_or(|times| shown < times) {
        if shown > 0 {
            std::thread::sleep(period);
        }
        let now = Reading::of(path)?;
        let rows = now.rows(before.as_ref());
        output.result(&to_json(&rows), &to_text(&rows))?;
        // Two looks at the same writing would show rates of zero.
        if before.as_ref().is_none_or(|before| before.written < now.written) {
            before = Some(now);
        }
        shown += 1;
    }
    Ok(())
}

/// A line of the display: `per_s` is the rate of a counter or a histogram's values, `mean` the mean of those new ones.
#[derive(Debug, PartialEq)]
struct Row {
    name: String,
    value: f64,
    per_s: Option<f64>,
    mean: Option<f64>,
}

impl Reading {
    fn of(path: &Path) -> Result<Reading, CliError> {
        let refused = |reason: String| CliError::Input { name: path.display().to_string(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => refused(
                "there are no metrics: no process has the store open, or it does not set Options::metrics_file \
                 (plain `stat` shows a store that nobody has open)"
                    .into(),
            ),
            _ => refused(format!("cannot be read: {error}")),
        })?;
        let written = std::fs::metadata(path).and_then(|metadata| metadata.modified());
        let written = written.map_err(|error| refused(format!("cannot be looked at: {error}")))?;
        if let Some(age) = written.elapsed().ok().filter(|age| *age > STALE_AFTER) {
            let age = age.as_secs();
            return Err(refused(format!(
                "these metrics are {age} s old: the process that had the store open has died; `aiodb stat` opens it"
            )));
        }
        let samples = parse(&text).ok_or_else(|| refused("these are not metrics of a store".into()))?;
        Ok(Reading { written, samples })
    }

    fn rows(&self, before: Option<&Reading>) -> Vec<Row> {
        let seconds = before
            .and_then(|before| self.written.duration_since(before.written).ok())
            .map(|time| time.as_secs_f64())
            .filter(|seconds| *seconds > 0.0);
        let growth = |sample: &Sample| {
            let earlier = before?.samples.iter().find(|earlier| earlier.name == sample.name)?;
            // A store that was opened again counts from zero.
            (earlier.value <= sample.value).then_some(sample.value - earlier.value)
        };
        let mut rows = Vec::new();
        let mut sum = None;
        for sample in &self.samples {
            let grown = growth(sample);
            let per_s = grown.zip(seconds).map(|(grown, seconds)| grown / seconds);
            let row = |per_s, mean| Row { name: sample.name.clone(), value: sample.value, per_s, mean };
            match sample.kind {
                Kind::Gauge => rows.push(row(None, None)),
                Kind::Counter => rows.push(row(per_s, None)),
                // The sum of a histogram stands before its count.
                Kind::Sum => sum = grown,
                Kind::Count => {
                    let mean = sum.take().zip(grown).and_then(|(sum, count)| (count > 0.0).then_some(sum / count));
                    rows.push(row(per_s, mean));
                }
            }
        }
        rows
    }
}

/// The samples of a text in Prometheus' format; `None` if it is none.
fn parse(text: &str) -> Option<Vec<Sample>> {
    let (mut samples, mut kind) = (Vec::new(), "");
    for line in text.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            kind = family.split(' ').nth(1)?;
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ')?;
            let bare = name.split('{').next()?;
            let kind = match kind {
                "histogram" if bare.ends_with("_bucket") => continue,
                "histogram" if bare.ends_with("_sum") => Kind::Sum,
                "histogram" => Kind::Count,
                "counter" => Kind::Counter,
                _ => Kind::Gauge,
            };
            let name = name.strip_prefix("aiodb_")?.to_string();
            samples.push(Sample { name: plain(&name, kind), kind, value: value.parse().ok()? });
        }
    }
    (!samples.is_empty()).then_some(samples)
}

/// A sample's name for people: without the parts that only tell its kind.
fn plain(name: &str, kind: Kind) -> String {
    match kind {
        Kind::Counter => name.replacen("_total", "", 1),
        Kind::Count => name.replacen("_count", "", 1),
        Kind::Sum | Kind::Gauge => name.to_string(),
    }
}

fn to_json(rows: &[Row]) -> Value {
    let one = |row: &Row| json!({"value": row.value, "per_s": row.per_s, "mean": row.mean});
    Value::Object(rows.iter().map(|row| (row.name.clone(), one(row))).collect::<Map<_, _>>())
}

fn to_text(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  {:>18}  {:>14}  {:>14}\n", "metric", "value", "per second", "mean of new");
    for row in rows {
        let cell = |number: Option<f64>| number.map_or(String::new(), short);
        let (per_s, mean) = (cell(row.per_s), cell(row.mean));
        let line = format!("{:width$}  {:>18}  {per_s:>14}  {mean:>14}", row.name, short(row.value));
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text + "\n"
}

/// Whole numbers as they are, others with four significant digits.
fn short(number: f64) -> String {
    if number == number.trunc() && number.abs() < 1e15 {
        return format!("{number}");
    }
    let digits = (3 - number.abs().log10().floor() as i32).clamp(0, 12) as usize;
    format!("{number:.digits$}")
}

#[cfg(test)]
mod tests;
