//! Why a command was not carried out, in Redis's words.

use std::borrow::Cow;

use bytes::Bytes;

/// A failure that a client is told.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// The text of the error, with its code.
    Words(Cow<'static, str>),
    /// The text of an error that repeats bytes of the client.
    Bytes(Bytes),
    /// The engine refused or failed.
    Engine(aiodb::Error),
    /// A script was ended before its end.
    Stopped(String),
    /// A stored value is not what this server writes.
    Foreign {
        /// What is wrong with it.
        reason: String,
    },
}

impl Refusal {
    /// Whether it is about one stored record, whose bytes are not those of an entry.
    pub(crate) fn is_of_record(&self) -> bool {
        matches!(self, Refusal::Foreign { .. } | Refusal::Engine(aiodb::Error::Corruption { .. }))
    }

    /// Whether it is about one stored record, which cannot be read: as [`Refusal::is_of_record`], or the device fails where it lies.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Refusal::Engine(error) => is_unreadable(error),
            refusal => refusal.is_of_record(),
        }
    }
}

/// Whether a read failed for what it was to read: what is stored there is damaged, or the device fails there. What the system lacks for a
/// while, as memory, says nothing of that.
pub(crate) fn is_unreadable(error: &aiodb::Error) -> bool {
    matches!(error, aiodb::Error::Corruption { .. } | aiodb::Error::Io { .. }) && !error.is_passing()
}

/// Bytes of a client that an error repeats, at most.
pub(crate) const MAX_REPEATED_BYTES: usize = 128;

/// What is wrong with an argument or a value.
pub(crate) const NOT_AN_INTEGER: Refusal = words("ERR value is not an integer or out of range");
pub(crate) const NOT_POSITIVE: Refusal = words("ERR value is out of range, must be positive");
pub(crate) const NOT_A_FLOAT: Refusal = words("ERR value is not a valid float");
pub(crate) const SYNTAX: Refusal = words("ERR syntax error");
pub(crate) const NO_SUCH_KEY: Refusal = words("ERR no such key");
pub(crate) const WRONG_TYPE: Refusal = words("WRONGTYPE Operation against a key holding the wrong kind of value");
pub(crate) const OVERFLOW: Refusal = words("ERR increment or decrement would overflow");
pub(crate) const TOO_LONG: Refusal = words("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

/// A refusal with a fixed text.
pub(crate) const fn words(text: &'static str) -> Refusal {
    Refusal::Words(Cow::Borrowed(text))
}

/// A refusal with a text of its own.
pub(crate) fn said(text: String) -> Refusal {
    Refusal::Words(Cow::Owned(text))
}

/// A refusal of a subcommand that repeats it.
pub(crate) fn wrong_number(subcommand: &[u8], container: &str) -> Refusal {
    let start = b"ERR unknown subcommand or wrong number of arguments for '";
    Refusal::Bytes([start, repeated(subcommand), format!("'. Try {container} HELP.").as_bytes()].concat().into())
}

/// What an error repeats of a client's bytes.
pub(crate) fn repeated(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_REPEATED_BYTES)]
}

/// A text as it goes to the client in one line.
pub(crate) fn one_line(text: &[u8]) -> Bytes {
    text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}

impl From<aiodb::Error> for Refusal {
    fn from(error: aiodb::Error) -> Refusal {
        Refusal::Engine(error)
    }
}

impl Refusal {
    /// Whether a command met it in the middle of what it does, so that nothing of that is to be written: the store failed, or
    /// refused a key, or a script was stopped.
    pub(crate) fn undoes_all(&self) -> bool {
        matches!(self, Refusal::Engine(_) | Refusal::Foreign { .. } | Refusal::Stopped(_))
    }

    /// The error as it goes to the client: one line.
    pub(crate) fn line(&self) -> Bytes {
        match self {
            Refusal::Words(Cow::Borrowed(text)) => Bytes::from_static(text.as_bytes()),
            Refusal::Words(Cow::Owned(text)) | Refusal::Stopped(text) => one_line(text.as_bytes()),
            Refusal::Bytes(text) => one_line(text),
            Refusal::Foreign { reason } => one_line(format!("ERR the stored value {reason}").as_bytes()),
            // Redis has this code for a disk to which it cannot write.
            Refusal::Engine(
                error @ (aiodb::Error::DiskFull { .. } | aiodb::Error::StoreFull { .. } | aiodb::Error::Failed { .. }),
            ) => one_line(format!("MISCONF {error}").as_bytes()),
            Refusal::Engine(error) => one_line(format!("ERR {error}").as_bytes()),
        }
    }
}
