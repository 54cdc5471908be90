//! What is measured, how long and how often.

use super::Options;
use crate::class::Class;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The options with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is put, one after the other.
    pub cases: Vec<Case>,
    /// Threads that put.
    pub writers: u32,
    /// Whether they wait for the engine.
    pub rate: Option<Rate>,
    /// Keys after which a run is over.
    pub keys: u64,
    /// The time after which it is over all the same.
    pub most_time: Duration,
    /// The same in the sweep.
    pub most_sweep_time: Duration,
    /// The length of a point.
    pub point: Duration,
    /// Memory of each measured process, page cache included.
    pub memory_bytes: u64,
    /// How often every engine is measured, in turn.
    pub rounds: u32,
}

/// What is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Case {
    /// Bytes of each value.
    pub value_bytes: usize,
    /// What a put has survived when it is acknowledged.
    pub class: Class,
}

/// A rate at which puts are due, whatever the engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Half of what the same threads reached on the same engine as fast as they could.
    Half,
    /// So many per second of all threads together.
    PutsPerSecond(u32),
}

/// How a run's writers put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Each as fast as it can.
    Full,
    /// At [`Rate::Half`].
    Half,
    /// At [`Rate::PutsPerSecond`].
    PutsPerSecond(u32),
}

/// For people.
impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "values of {} bytes, {}", self.value_bytes, self.class)
    }
}

/// The name used in tables.
impl fmt::Display for Load {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Full => formatter.write_str("full"),
            Load::Half => formatter.write_str("half"),
            Load::PutsPerSecond(rate) => write!(formatter, "{rate}/s"),
        }
    }
}

impl Plan {
    /// What the command line asks for.
    pub fn of(options: &Options) -> Plan {
        let pick = |whole, quick| if options.quick { quick } else { whole };
        let seconds = |option: Option<u64>, whole, quick| Duration::from_secs(option.unwrap_or(pick(whole, quick)));
        let classes = |value_bytes: &u32| {
            let value_bytes = *value_bytes as usize;
            options.durability.iter().map(move |&class| Case { value_bytes, class })
        };
        Plan {
            cases: options.value_bytes.iter().flat_map(classes).collect(),
            writers: options.writers,
            rate: options.rate,
            keys: options.keys.unwrap_or(pick(50_000_000, 10_000_000)),
            most_time: seconds(options.max_seconds, 3600, 40),
            most_sweep_time: seconds(options.sweep_seconds, 300, 20),
            point: Duration::from_millis(options.point_ms.unwrap_or(pick(10_000, 2_000))),
            memory_bytes: options.memory.unwrap_or(pick(512 << 20, 256 << 20)),
            rounds: options.rounds.unwrap_or(if options.quick { 1 } else { 3 }),
        }
    }
}

/// `half`, or a number of puts per second.
pub fn rate(text: &str) -> Result<Rate, String> {
    match text.parse() {
        _ if text == "half" => Ok(Rate::Half),
        Ok(0) | Err(_) => Err("give `half` or a number of puts per second".to_owned()),
        Ok(number) => Ok(Rate::PutsPerSecond(number)),
    }
}

#[cfg(test)]
mod tests;
