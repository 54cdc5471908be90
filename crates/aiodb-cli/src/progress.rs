//! How far a long command has come: a bar on a terminal, a line every few seconds elsewhere, nothing for programs.

use crate::output::Output;
use indicatif::{BinaryBytes, HumanCount, HumanDuration, ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// A terminal is redrawn at most this often.
const REDRAW: Duration = Duration::from_millis(100);
/// A log gets a line at most this often.
const LINE: Duration = Duration::from_secs(5);

/// Reports progress measured in bytes.
pub struct Progress {
    form: Form,
    started: Instant,
    next: Instant,
}

enum Form {
    Bar(ProgressBar),
    Lines,
    Silent,
}

impl Progress {
    /// Progress towards `total_bytes`, where the total is known.
    pub fn new(output: &Output, total_bytes: Option<u64>) -> Progress {
        let form = match (output.is_json(), output.has_terminal()) {
            (true, _) => Form::Silent,
            (false, true) => Form::Bar(bar(total_bytes)),
            (false, false) => Form::Lines,
        };
        let started = Instant::now();
        let first = if matches!(form, Form::Bar(_)) { REDRAW } else { LINE };
        Progress { form, started, next: started + first }
    }

    /// The time since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Says that `done_bytes` are done; `more` is what else is worth knowing. Cheap when it is not time to say so.
    pub fn update(&mut self, done_bytes: u64, total_bytes: Option<u64>, more: impl FnOnce(Duration) -> String) {
        let now = Instant::now();
        if now < self.next || matches!(self.form, Form::Silent) {
            return;
        }
        let elapsed = now - self.started;
        match &self.form {
            Form::Bar(bar) => {
                if let Some(total_bytes) = total_bytes {
                    bar.set_length(total_bytes);
                }
                bar.set_message(format!(", {}", more(elapsed)));
                bar.set_position(done_bytes);
                self.next = now + REDRAW;
            }
            Form::Lines => {
                eprintln!("{}", line(done_bytes, total_bytes, elapsed, &more(elapsed)));
                self.next = now + LINE;
            }
            Form::Silent => {}
        }
    }

    /// A message on a line of its own, above the bar.
    pub fn note(&self, message: &str) {
        match &self.form {
            Form::Bar(bar) => bar.suspend(|| eprintln!("{message}")),
            Form::Lines => eprintln!("{message}"),
            Form::Silent => {}
        }
    }

    /// Clears the bar, so that the result stands alone.
    pub fn finish(&self) {
        if let Form::Bar(bar) = &self.form {
            bar.finish_and_clear();
        }
    }
}

fn bar(total_bytes: Option<u64>) -> ProgressBar {
    let template = match total_bytes {
        Some(_) => "{bar:30} {percent:>3} %  {binary_bytes} of {binary_total_bytes}{msg}, {eta} left",
        None => "{spinner} {binary_bytes}{msg}",
    };
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    total_bytes.map_or_else(ProgressBar::no_length, ProgressBar::new).with_style(style)
}

fn line(done_bytes: u64, total_bytes: Option<u64>, elapsed: Duration, more: &str) -> String {
    match total_bytes {
        Some(total) if total > 0 && done_bytes > 0 => {
            let left = elapsed.mul_f64(total.saturating_sub(done_bytes) as f64 / done_bytes as f64);
            format!(
                "{} of {} ({} %), {more}, {} left",
                BinaryBytes(done_bytes),
                BinaryBytes(total),
                done_bytes * 100 / total,
                HumanDuration(left)
            )
        }
        _ => format!("{}, {more}", BinaryBytes(done_bytes)),
    }
}

/// `12,345 lines/s`.
pub fn rate(count: u64, unit: &str, elapsed: Duration) -> String {
    format!("{} {unit}/s", HumanCount((count as f64 / elapsed.as_secs_f64().max(0.001)) as u64))
}

#[cfg(test)]
mod tests;
