//! What a load says at its end.

use super::input::Entry;
use crate::error::CliError;
use crate::progress::rate;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;

/// How much was done, and how quickly.
pub fn done(verb: &str, count: u64, what: &str, bytes: u64, place: &str, elapsed: Duration) -> String {
    let (counted, bytes, seconds) = (HumanCount(count), BinaryBytes(bytes), elapsed.as_secs_f64());
    format!("{verb} {counted} {what} ({bytes}) {place} in {seconds:.1} s, {}\n", rate(count, what, elapsed))
}

/// Why a load ended.
pub enum Ended {
    /// The input ended.
    Complete,
    /// A signal asked it to stop.
    Interrupted,
    /// It could not go on.
    Failed(CliError),
}

/// What a load has done. Valid as a report only once the store has been synced.
pub struct Report {
    /// Records put.
    pub records: u64,
    /// Lines (for CSV: records) that hold no record.
    pub bad_lines: u64,
    /// The first of them, with line number and reason.
    pub shown: Vec<(u64, String)>,
    bytes: u64,
    lines_done: u64,
    /// Whether a load that has not come to its end has left nothing.
    is_nothing: bool,
}

impl Report {
    /// Nothing done yet but `skip_lines` left out.
    pub fn new(skip_lines: u64) -> Report {
        Report { records: 0, bad_lines: 0, shown: Vec::new(), bytes: 0, lines_done: skip_lines, is_nothing: false }
    }

    /// Counts a record.
    pub fn loaded(&mut self, entry: &Entry) {
        self.records += 1;
        self.bytes += (entry.key.len() + entry.value.len()) as u64;
    }

    /// All lines up to `number` are dealt with.
    pub fn lines_done(&mut self, number: u64) {
        self.lines_done = number;
    }

    /// The load was whole or nothing, and has not come to its end.
    pub fn nothing_stays(&mut self) {
        (self.records, self.bytes, self.is_nothing) = (0, 0, true);
    }

    /// For programs.
    pub fn to_json(&self, ended: &Ended, elapsed: Duration) -> Value {
        let shown: Vec<Value> =
            self.shown.iter().map(|(line, reason)| json!({"line": line, "reason": reason})).collect();
        json!({
            "ended": match ended {
                Ended::Complete => "complete",
                Ended::Interrupted => "interrupted",
                Ended::Failed(_) => "failed",
            },
            "records_loaded": self.records,
            "bytes_loaded": self.bytes,
            "lines_done": self.lines_done,
            "bad_lines": self.bad_lines,
            "bad_lines_shown": shown,
            "elapsed_ms": elapsed.as_millis() as u64,
        })
    }

    /// For people.
    pub fn to_text(&self, ended: &Ended, elapsed: Duration, table: &str) -> String {
        let mut text = done("loaded", self.records, "records", self.bytes, &format!("into table `{table}`"), elapsed);
        if self.bad_lines > 0 {
            let hidden = self.bad_lines - self.shown.len() as u64;
            let more = if hidden > 0 { format!(", {} of them not shown", HumanCount(hidden)) } else { String::new() };
            let _ = writeln!(text, "skipped {} bad lines{more}", HumanCount(self.bad_lines));
        }
        let stopped = match ended {
            Ended::Complete => return text,
            Ended::Interrupted => "interrupted",
            Ended::Failed(_) => "stopped by an error",
        };
        if self.is_nothing {
            let _ = writeln!(
                text,
                "{stopped} after line {}: nothing was loaded, and no table was made",
                HumanCount(self.lines_done)
            );
            return text;
        }
        let _ = writeln!(
            text,
            "{stopped} after line {}; to go on: the same command and input with --skip-lines {}",
            HumanCount(self.lines_done),
            self.lines_done
        );
        text
    }
}

#[cfg(test)]
mod tests;
