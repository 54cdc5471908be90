//! What commands have in common whose clients wait.

use bytes::Bytes;

use crate::collection::Kind;
use crate::command::{Awaits, Context};
use crate::refusal::Refusal;
use crate::waiters::parse_timeout;

/// Waiting at all keys of a command; its last argument says how long.
pub(super) const fn at_each(kind: Kind) -> Awaits {
    Awaits { kind, most_keys: usize::MAX, timeout: last_argument }
}

/// Waiting at all keys of a command; its first argument says how long.
pub(super) const fn at_counted(kind: Kind) -> Awaits {
    Awaits { timeout: first_argument, ..at_each(kind) }
}

/// Waiting at the first key of a command; its last argument says how long.
pub(super) const fn at_first(kind: Kind) -> Awaits {
    Awaits { most_keys: 1, ..at_each(kind) }
}

pub(super) fn first_argument(arguments: &[Bytes]) -> &Bytes {
    &arguments[1]
}

pub(super) fn last_argument(arguments: &[Bytes]) -> &Bytes {
    &arguments[arguments.len() - 1]
}

/// Refuses a time that is none.
pub(super) fn check_timeout(context: &Context<'_, '_>, timeout: &Bytes) -> Result<(), Refusal> {
    parse_timeout(timeout, context.now_ms()).map(drop)
}
