//! What is measured, how long and how often.

use super::Options;
use crate::class::Class;
use crate::ranks::Pattern;
use crate::records::KEY_BYTES;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The options with their defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is overwritten, one after the other.
    pub cases: Vec<Case>,
    /// Bytes of all keys and values in a store.
    pub live_bytes: u64,
    /// How many times the live data is overwritten.
    pub times: f64,
    /// Threads that overwrite.
    pub writers: u32,
    /// The time after which a run is over all the same.
    pub most_time: Duration,
    /// The length of a point.
    pub point: Duration,
    /// Memory of each measured process, page cache included.
    pub memory_bytes: u64,
    /// How often every engine is measured, in turn.
    pub rounds: u32,
}

/// What is overwritten, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Case {
    /// Bytes of each value.
    pub value_bytes: usize,
    /// How overwrites are spread over records.
    pub pattern: Pattern,
    /// What an overwrite has survived when it is acknowledged.
    pub class: Class,
}

/// For people.
impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "values of {} bytes, {}, {}", self.value_bytes, self.pattern, self.class)
    }
}

impl Plan {
    /// What the command line asks for.
    pub fn of(options: &Options) -> Plan {
        let pick = |whole, quick| if options.quick { quick } else { whole };
        let cases = options.value_bytes.iter().flat_map(|&value_bytes| {
            options.pattern.iter().flat_map(move |&pattern| {
                let value_bytes = value_bytes as usize;
                options.durability.iter().map(move |&class| Case { value_bytes, pattern, class })
            })
        });
        Plan {
            cases: cases.collect(),
            live_bytes: options.live_bytes.unwrap_or(pick(1 << 30, 64 << 20)),
            times: options.overwrites,
            writers: options.writers,
            most_time: Duration::from_secs(options.max_seconds.unwrap_or(pick(1_800, 8))),
            point: Duration::from_millis(options.point_ms.unwrap_or(pick(10_000, 1_000))),
            memory_bytes: options.memory.unwrap_or(pick(256 << 20, 128 << 20)),
            rounds: options.rounds.unwrap_or(if options.quick { 1 } else { 3 }),
        }
    }

    /// Records in a store of a case.
    pub fn records(&self, case: Case) -> u64 {
        (self.live_bytes / (KEY_BYTES + case.value_bytes) as u64).max(1)
    }

    /// Overwrites after which a run of a case is over.
    pub fn overwrites(&self, case: Case) -> u64 {
        ((self.records(case) as f64 * self.times) as u64).max(1)
    }
}

/// How many times the live data is overwritten.
pub fn times(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times: &f64| *times > 0.0 && *times <= 1e6);
    times.ok_or_else(|| "give a number above 0, up to 1000000".to_owned())
}

/// The live data, with room for some records of any size.
pub fn live_bytes(text: &str) -> Result<u64, String> {
    match crate::memory::parse_bytes(text)? {
        bytes if (LEAST_LIVE_BYTES..=MOST_LIVE_BYTES).contains(&bytes) => Ok(bytes),
        _ => Err(format!("give a size from {} MiB to {} TiB", LEAST_LIVE_BYTES >> 20, MOST_LIVE_BYTES >> 40)),
    }
}

const LEAST_LIVE_BYTES: u64 = 1 << 20;
const MOST_LIVE_BYTES: u64 = 1 << 44;

#[cfg(test)]
mod tests;
