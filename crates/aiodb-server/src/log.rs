//! What the server tells of itself: a line at a time, as text for people and with fields for programs.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::Client;
use crate::slow_log::{Sent, Waits};

/// Lines about slow commands in so long a time, at most. Where all are slow, a line for each would be most of what the server does.
const MOST_SLOW: u32 = 3;
const TOGETHER: Duration = Duration::from_secs(10);

/// Time between two lines about clients that speak HTTP, at least.
const BETWEEN_HTTP: Duration = Duration::from_secs(60);

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What happens as it should.
    Info,
    /// What somebody should look at.
    Warning,
}

impl Level {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Info => "info",
            Level::Warning => "warning",
        }
    }
}

/// A line.
#[derive(Clone, Debug)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// What it is about, in one word for programs.
    pub event: &'static str,
    /// What people read.
    pub message: String,
    /// What programs read: an object of JSON. Durations are in microseconds.
    pub fields: Value,
}

/// Where lines go.
pub(crate) struct Log {
    write: Box<dyn Fn(&LogLine) + Send + Sync>,
    slow: Mutex<Slow>,
    /// When the last line about HTTP was.
    http: Mutex<Option<Instant>>,
}

/// How many slow commands there were lately.
struct Slow {
    /// When the time began of which `told` lines are.
    begun: Instant,
    told: u32,
    /// Those of which no line says anything, since the last one that says how many.
    untold: u64,
}

impl Log {
    pub(crate) fn new(write: impl Fn(&LogLine) + Send + Sync + 'static) -> Log {
        let slow = Slow { begun: Instant::now(), told: 0, untold: 0 };
        Log { write: Box::new(write), slow: Mutex::new(slow), http: Mutex::default() }
    }

    /// Tells of the server as a whole.
    pub(crate) fn say(&self, message: &str) {
        self.tell(Level::Info, message);
    }

    /// Tells of what somebody should look at.
    pub(crate) fn warn(&self, message: &str) {
        self.tell(Level::Warning, message);
    }

    fn tell(&self, level: Level, message: &str) {
        (self.write)(&LogLine { level, event: "server", message: message.into(), fields: json!({}) });
    }

    /// Tells of a command that took long, unless there are too many of them; then how many are not told of.
    pub(crate) fn slow(&self, client: &Client, command: Sent<'_>, took: Duration, waits: &Waits) {
        let Some(untold) = self.lock().next(Instant::now()) else { return };
        let us = |duration: Duration| duration.as_micros() as u64;
        let Waits { reads, read, flush } = *waits;
        let mut message = format!(
            "slow command: {} with {} arguments from {} took {took:.1?}: {reads} reads of the device {read:.1?}, flush {flush:.1?}",
            command.name,
            command.arguments.len().saturating_sub(1),
            client.address,
        );
        if untold > 0 {
            message += &format!("; {untold} more are not told of");
        }
        let fields = json!({
            "command": command.name,
            "arguments": command.arguments.len().saturating_sub(1),
            "client": client.address.to_string(),
            "took_us": us(took),
            "device_reads": reads,
            "device_wait_us": us(read),
            "flush_wait_us": us(flush),
            "untold": untold,
        });
        (self.write)(&LogLine { level: Level::Warning, event: "slow_command", message, fields });
    }

    /// Tells of a client that speaks HTTP, unless there was one lately.
    pub(crate) fn http(&self, client: &Client) {
        let mut last = self.http.lock().expect("no code panics while it holds the time");
        if last.is_none_or(|last| last.elapsed() >= BETWEEN_HTTP) {
            *last = Some(Instant::now());
            drop(last);
            self.warn(&format!(
                "the client at {} sent POST or Host:, and its connection was ended: a web page may be trying to have a browser send commands \
                 to this server",
                client.address
            ));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slow> {
        self.slow.lock().expect("no code panics while it holds the count")
    }
}

impl Slow {
    /// Whether a slow command is told of; and of how many before it was not.
    fn next(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.begun) >= TOGETHER {
            (self.begun, self.told) = (now, 0);
        }
        if self.told == MOST_SLOW {
            self.untold += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests;
