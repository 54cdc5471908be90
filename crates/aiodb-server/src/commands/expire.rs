//! When keys expire.

use std::num::NonZeroU64;

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::Grouped;
use crate::command::{Command, Context, is_word, one_key};
use crate::entry::Entry;
use crate::expiry::{self, Moment};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, words};
use crate::reply::{Answer, Reply};

const KEY: Family = Family::new("generic", "@keyspace");
const SET: Family = KEY.flags("write fast").keys(one_key("RW update"));
const GET: Family = KEY.flags("readonly fast").keys(one_key("RO access"));

const AT_MS: &str = "Set the expiration for a key as a UNIX timestamp specified in milliseconds";
const TIME_MS: &str = "Get the expiration Unix timestamp for a key in milliseconds";

pub(super) static COMMANDS: &[Command] = &[
    SET.command("expire", -3, Grouped(expire), "1.0.0", "Set a key's time to live in seconds"),
    SET.command("pexpire", -3, Grouped(pexpire), "2.6.0", "Set a key's time to live in milliseconds"),
    SET.command("expireat", -3, Grouped(expireat), "1.2.0", "Set the expiration for a key as a UNIX timestamp"),
    SET.command("pexpireat", -3, Grouped(pexpireat), "2.6.0", AT_MS),
    SET.command("persist", 2, Grouped(persist), "2.2.0", "Remove the expiration from a key"),
    GET.command("ttl", 2, Grouped(ttl), "1.0.0", "Get the time to live for a key in seconds"),
    GET.command("pttl", 2, Grouped(pttl), "2.6.0", "Get the time to live for a key in milliseconds"),
    GET.command("expiretime", 2, Grouped(expiretime), "7.0.0", "Get the expiration Unix timestamp for a key"),
    GET.command("pexpiretime", 2, Grouped(pexpiretime), "7.0.0", TIME_MS),
];

fn expire(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_expiry(context, arguments, Moment::InSeconds, "expire")
}

fn pexpire(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_expiry(context, arguments, Moment::InMilliseconds, "pexpire")
}

fn expireat(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_expiry(context, arguments, Moment::AtSecond, "expireat")
}

fn pexpireat(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_expiry(context, arguments, Moment::AtMillisecond, "pexpireat")
}

/// Under which conditions a time is set.
#[derive(Default)]
struct Conditions {
    none_yet: bool,
    some_already: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn parse(options: &[Bytes]) -> Result<Conditions, Refusal> {
        let mut conditions = Conditions::default();
        for option in options {
            match option {
                option if is_word(option, "nx") => conditions.none_yet = true,
                option if is_word(option, "xx") => conditions.some_already = true,
                option if is_word(option, "gt") => conditions.later = true,
                option if is_word(option, "lt") => conditions.earlier = true,
                option => {
                    return Err(Refusal::Bytes([b"ERR Unsupported option ", &option[..]].concat().into()));
                }
            }
        }
        let Conditions { none_yet, some_already, later, earlier } = conditions;
        if none_yet && (some_already || later || earlier) {
            return Err(words("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if later && earlier {
            return Err(words("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether a time may come in the place of another; none is later than all.
    fn allow(&self, at: i64, old: Option<NonZeroU64>) -> bool {
        let old = old.map(|old| old.get() as i64);
        !(self.none_yet && old.is_some()
            || self.some_already && old.is_none()
            || self.later && old.is_none_or(|old| at <= old)
            || self.earlier && old.is_some_and(|old| at >= old))
    }
}

fn set_expiry(context: &mut Context<'_, '_>, arguments: &[Bytes], unit: Moment, name: &str) -> Answer {
    let conditions = Conditions::parse(&arguments[3..])?;
    let time = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let at = unit.in_ms(time, context.now_ms()).ok_or_else(|| expiry::invalid(name))?;
    let Some(entry) = context.get(&arguments[1])? else { return Ok(Reply::flag(false)) };
    if !conditions.allow(at, entry.expires_ms) {
        return Ok(Reply::flag(false));
    }
    match NonZeroU64::new(at.max(0) as u64) {
        Some(at) => expiry::set(context, &arguments[1], entry, Some(at)),
        None => context.delete(&arguments[1]),
    }
    Ok(Reply::flag(true))
}

fn persist(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(entry) = context.get(&arguments[1])?.filter(|entry| entry.expires_ms.is_some()) else {
        return Ok(Reply::flag(false));
    };
    context.put(&arguments[1], Entry { expires_ms: None, ..entry });
    Ok(Reply::flag(true))
}

fn ttl(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    tell_expiry(context, &arguments[1], |at, now| (at - now + 500) / 1000)
}

fn pttl(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    tell_expiry(context, &arguments[1], |at, now| at - now)
}

fn expiretime(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    tell_expiry(context, &arguments[1], |at, _| at.saturating_add(500) / 1000)
}

fn pexpiretime(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    tell_expiry(context, &arguments[1], |at, _| at)
}

fn tell_expiry(context: &mut Context<'_, '_>, name: &Bytes, tell: impl Fn(i64, i64) -> i64) -> Answer {
    let now = context.now_ms() as i64;
    Ok(Reply::Integer(match context.look_up(name)? {
        None => -2,
        Some(entry) => entry.expires_ms.map_or(-1, |at| tell(at.get() as i64, now)),
    }))
}
