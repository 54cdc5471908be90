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
    let shown = &subcommand[..subcommand.len().min(128)];
    let start = b"ERR unknown subcommand or wrong number of arguments for '";
    Refusal::Bytes([start, shown, format!("'. Try {container} HELP.").as_bytes()].concat().into())
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
        let text = match self {
            Refusal::Words(Cow::Borrowed(text)) => return Bytes::from_static(text.as_bytes()),
            Refusal::Words(Cow::Owned(text)) => text.clone().into_bytes(),
            Refusal::Bytes(text) => text.to_vec(),
            Refusal::Stopped(text) => text.clone().into_bytes(),
            Refusal::Foreign { reason } => format!("ERR the stored value {reason}").into_bytes(),
            // Redis has this code for a disk to which it cannot write.
            Refusal::Engine(error @ (aiodb::Error::DiskFull { .. } | aiodb::Error::StoreFull { .. })) => {
                format!("MISCONF {error}").into_bytes()
            }
            Refusal::Engine(error @ aiodb::Error::Failed { .. }) => format!("MISCONF {error}").into_bytes(),
            Refusal::Engine(error) => format!("ERR {error}").into_bytes(),
        };
        text.into_iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }).collect()
    }
}
