//! Durability classes of puts, the same for every engine.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The time of class `interval`.
pub const INTERVAL: Duration = Duration::from_secs(1);

/// What a put that is acknowledged has survived. In every class that is the death of the process: the log was handed to
/// the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A power cut too.
    Sync,
    /// A power cut too, once [`INTERVAL`] has passed.
    Interval,
    /// Nothing else.
    None,
}

/// The name in options, tables and files.
impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Class::Sync => "sync",
            Class::Interval => "interval",
            Class::None => "none",
        })
    }
}
