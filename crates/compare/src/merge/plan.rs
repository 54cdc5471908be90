//! What is measured, how long and how often.

use super::Options;
use crate::class::Class;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The options with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is measured, one after the other.
    pub cases: Vec<Case>,
    /// How long each kind of operation is measured in a run.
    pub duration: Duration,
    /// Memory of each measured process, page cache included.
    pub memory_bytes: u64,
    /// How often every engine is measured, in turn.
    pub rounds: u32,
}

/// On which keys, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Case {
    /// Keys, of which each operation takes one at random.
    pub keys: u64,
    /// Threads that merge, put or get.
    pub writers: u32,
    /// What a merge or a put has survived when it is acknowledged.
    pub class: Class,
}

/// For people.
impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { keys, writers, class } = self;
        write!(formatter, "{keys} keys, {writers} threads, {class}")
    }
}

impl Plan {
    /// What the command line asks for.
    pub fn of(options: &Options) -> Plan {
        let cases = options.keys.iter().flat_map(|&keys| {
            options
                .writers
                .iter()
                .flat_map(move |&writers| options.durability.iter().map(move |&class| Case { keys, writers, class }))
        });
        let seconds = options.seconds.unwrap_or(if options.quick { 1.0 } else { 5.0 });
        Plan {
            cases: cases.collect(),
            duration: Duration::from_secs_f64(seconds),
            memory_bytes: options.memory.unwrap_or(256 << 20),
            rounds: options.rounds.unwrap_or(if options.quick { 1 } else { 5 }),
        }
    }
}

/// A length of time.
pub fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "give a number from 0.01 to 3600".to_owned())
}

#[cfg(test)]
mod tests;
