//! Times at which keys expire, as commands give them.

use std::num::NonZeroU64;

use bytes::Bytes;

use crate::command::{Context, is_word};
use crate::entry::Entry;
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, said};

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    InSeconds,
    InMilliseconds,
    AtSecond,
    AtMillisecond,
}

impl Moment {
    /// What an option of SET or GETEX means.
    pub(crate) fn of_option(option: &[u8]) -> Option<Moment> {
        let names = [
            ("ex", Moment::InSeconds),
            ("px", Moment::InMilliseconds),
            ("exat", Moment::AtSecond),
            ("pxat", Moment::AtMillisecond),
        ];
        names.into_iter().find(|(name, _)| is_word(option, name)).map(|(_, moment)| moment)
    }

    /// Milliseconds since 1970; `None` if there are no numbers for it.
    pub(crate) fn in_ms(self, time: i64, now_ms: u64) -> Option<i64> {
        let time_ms = match self {
            Moment::InSeconds | Moment::AtSecond => time.checked_mul(1000)?,
            Moment::InMilliseconds | Moment::AtMillisecond => time,
        };
        match self {
            Moment::InSeconds | Moment::InMilliseconds => time_ms.checked_add(now_ms as i64),
            Moment::AtSecond | Moment::AtMillisecond => Some(time_ms),
        }
    }

    /// Reads the time that SET and its like give; it must not be 0 or less.
    pub(crate) fn parse(self, time: &[u8], command: &str, now_ms: u64) -> Result<NonZeroU64, Refusal> {
        let time = parse_integer(time).ok_or(NOT_AN_INTEGER)?;
        let at = Some(time).filter(|time| *time > 0).and_then(|time| self.in_ms(time, now_ms));
        at.and_then(|at| NonZeroU64::new(at as u64)).ok_or_else(|| invalid(command))
    }
}

/// The refusal of a time.
pub(crate) fn invalid(command: &str) -> Refusal {
    said(format!("ERR invalid expire time in '{command}' command"))
}

/// Gives a key, which has this entry, a time at which it expires.
pub(crate) fn set(context: &mut Context<'_, '_>, name: &Bytes, entry: Entry, expires_ms: Option<NonZeroU64>) {
    context.put(name, Entry { expires_ms, ..entry });
}
