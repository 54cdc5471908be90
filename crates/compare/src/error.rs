//! What can go wrong in a comparison, in words for the person who started it.

use std::fmt::Display;
use std::io;
use std::path::PathBuf;

/// The result of a step of a comparison.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a comparison ended without a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An engine refused an operation.
    #[error("{engine} could not {action}: {reason}")]
    Engine {
        /// The engine's name.
        engine: String,
        /// What was asked of it.
        action: &'static str,
        /// Its own message.
        reason: String,
    },
    /// A record that the engine had acknowledged is not what it returns.
    #[error(
        "{engine} acknowledged record {index} of sequence {sequence} and then returned {found}: its figures are void"
    )]
    Lost {
        /// The engine's name.
        engine: String,
        /// The sequence of [`crate::records::Records`].
        sequence: u64,
        /// The record in the sequence.
        index: u64,
        /// What came back.
        found: &'static str,
    },
    /// What was asked for cannot be done here.
    #[error("{0}")]
    Request(String),
    /// The operating system refused an operation on a file.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err` on an engine's own errors.
    pub fn engine<E: Display>(engine: &str, action: &'static str) -> impl FnOnce(E) -> Error {
        move |error| Error::Engine { engine: engine.to_owned(), action, reason: error.to_string() }
    }

    /// For `map_err` on the operating system's errors.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { action, path, source }
    }
}
