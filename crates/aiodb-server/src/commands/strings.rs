//! Strings: whole values, and parts of them.

use std::num::NonZeroU64;

use bytes::{Bytes, BytesMut};

use super::family::Family;
use crate::command::Run::Grouped;
use crate::command::{Command, Context, Keys, Reads, all_keys, count, is_word, one_key};
use crate::entry::Entry;
use crate::expiry::Moment;
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, TOO_LONG, said, words};
use crate::reply::{Answer, OK, Reply};
use crate::request::MAX_STRING_BYTES;

const STRING: Family = Family::new("string", "@string");
const READ: Family = STRING.flags("readonly");
const READ_FAST: Family = STRING.flags("readonly fast");
const WRITE: Family = STRING.flags("write denyoom");
const WRITE_FAST: Family = STRING.flags("write denyoom fast");

/// They do not ask what was there.
const OVERWRITE: Family = WRITE.keys(one_key("OW update")).reads(Reads::Never);
const SET_KEY: Keys = Keys { varies: Some(set_flags), ..one_key("RW access update variable_flags") };
const SET: Family = WRITE.keys(SET_KEY).reads(Reads::If(set_reads));
const SET_NEW: Family = WRITE_FAST.keys(one_key("OW insert"));
const MGET: Family =
    READ_FAST.keys(all_keys(1, "RO access")).complexity("O(N) where N is the number of keys to retrieve.");
const MSET: Family = WRITE.complexity("O(N) where N is the number of keys to set.");
const MSET_ANY: Family = MSET.keys(all_keys(2, "OW update")).reads(Reads::Never);
const MSET_NEW: Family = MSET.keys(all_keys(2, "OW insert"));
const GETSET: Family = WRITE_FAST.keys(one_key("RW access update"));
const GETEX: Family = STRING.flags("write fast").keys(one_key("RW access update"));
const GETDEL: Family = STRING.flags("write fast").keys(one_key("RW access delete"));

const WHOLE: &str = "O(N) where N is the length of the whole value";
const APPEND: Family = WRITE_FAST.keys(one_key("RW insert")).complexity(WHOLE);
const RANGE: Family = READ.keys(one_key("RO access")).complexity(WHOLE);
const SETRANGE: Family = WRITE.keys(one_key("RW update")).complexity(WHOLE);

const SETNX_SUMMARY: &str = "Set the value of a key, only if the key does not exist";
const MSETNX_SUMMARY: &str = "Set multiple keys to multiple values, only if none of the keys exist";
const GETSET_SUMMARY: &str = "Set the string value of a key and return its old value";
const GETEX_SUMMARY: &str = "Get the value of a key and optionally set its expiration";
const GETRANGE_SUMMARY: &str = "Get a substring of the string stored at a key";
const SETRANGE_SUMMARY: &str = "Overwrite part of a string at key starting at the specified offset";

pub(super) static COMMANDS: &[Command] = &[
    READ_FAST.keys(one_key("RO access")).command("get", 2, Grouped(get), "1.0.0", "Get the value of a key"),
    SET.command("set", -3, Grouped(set), "1.0.0", "Set the string value of a key"),
    OVERWRITE.command("setex", 4, Grouped(setex), "2.0.0", "Set the value and expiration of a key"),
    OVERWRITE.command("psetex", 4, Grouped(psetex), "2.6.0", "Set the value and expiration in milliseconds of a key"),
    SET_NEW.command("setnx", 3, Grouped(setnx), "1.0.0", SETNX_SUMMARY),
    MGET.command("mget", -2, Grouped(mget), "1.0.0", "Get the values of all the given keys"),
    MSET_ANY.command("mset", -3, Grouped(mset), "1.0.1", "Set multiple keys to multiple values"),
    MSET_NEW.command("msetnx", -3, Grouped(msetnx), "1.0.1", MSETNX_SUMMARY),
    GETSET.command("getset", 3, Grouped(getset), "1.0.0", GETSET_SUMMARY),
    GETDEL.command("getdel", 2, Grouped(getdel), "6.2.0", "Get the value of a key and delete the key"),
    GETEX.command("getex", -2, Grouped(getex), "6.2.0", GETEX_SUMMARY),
    APPEND.command("append", 3, Grouped(append), "2.0.0", "Append a value to a key"),
    READ_FAST.keys(one_key("RO")).command(
        "strlen",
        2,
        Grouped(strlen),
        "2.2.0",
        "Get the length of the value stored in a key",
    ),
    RANGE.command("getrange", 4, Grouped(getrange), "2.4.0", GETRANGE_SUMMARY),
    RANGE.command("substr", 4, Grouped(getrange), "1.0.0", GETRANGE_SUMMARY),
    SETRANGE.command("setrange", 4, Grouped(setrange), "2.2.0", SETRANGE_SUMMARY),
];

fn get(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::bulk_or_nil(context.look_up_string(&arguments[1])?.map(|entry| entry.value)))
}

/// What the options of SET and GETEX say.
#[derive(Default)]
struct StringOptions<'a> {
    only_absent: bool,
    only_present: bool,
    get: bool,
    keep: bool,
    persist: bool,
    expires: Option<(Moment, &'a Bytes)>,
}

impl<'a> StringOptions<'a> {
    fn parse(options: &'a [Bytes], is_set: bool) -> Result<StringOptions<'a>, Refusal> {
        let mut parsed = StringOptions::default();
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let may_expire = |unit: Moment| {
                let same = parsed.expires.is_none_or(|(other, _)| other == unit);
                same && !parsed.keep && !parsed.persist
            };
            let plain = !parsed.keep && !parsed.persist && parsed.expires.is_none();
            if is_set && is_word(option, "nx") && !parsed.only_present {
                parsed.only_absent = true;
            } else if is_set && is_word(option, "xx") && !parsed.only_absent {
                parsed.only_present = true;
            } else if is_set && is_word(option, "get") {
                parsed.get = true;
            } else if is_set && is_word(option, "keepttl") && (plain || parsed.keep) {
                parsed.keep = true;
            } else if !is_set && is_word(option, "persist") && (plain || parsed.persist) {
                parsed.persist = true;
            } else {
                let unit = Moment::of_option(option).filter(|unit| may_expire(*unit)).ok_or(SYNTAX)?;
                parsed.expires = Some((unit, rest.next().ok_or(SYNTAX)?));
            }
        }
        Ok(parsed)
    }
}

/// A SET without such options need not know what was there.
fn set_reads(arguments: &[Bytes]) -> bool {
    let options = arguments.get(3..).unwrap_or_default();
    options.iter().any(|option| ["nx", "xx", "get", "keepttl"].iter().any(|word| is_word(option, word)))
}

/// What it shows of the old value counts as reading, a condition does not.
fn set_flags(arguments: &[Bytes]) -> &'static str {
    let shows_old = arguments.iter().skip(3).any(|option| is_word(option, "get"));
    if shows_old { "RW access update" } else { "OW update" }
}

fn set(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let options = StringOptions::parse(&arguments[3..], true)?;
    let expires_ms = options.expires.map(|(unit, time)| unit.parse(time, "set", context.now_ms())).transpose()?;
    let is_conditional = options.only_absent || options.only_present;
    let old = if is_conditional || options.get || options.keep { context.get(&arguments[1])? } else { None };
    let shown = if options.get { context.string(&arguments[1])?.map(|entry| entry.value) } else { None };
    let is_refused = options.only_absent && old.is_some() || options.only_present && old.is_none();
    let reply = match (options.get, is_refused) {
        (true, _) => Reply::bulk_or_nil(shown),
        (false, true) => Reply::Nil,
        (false, false) => OK,
    };
    if !is_refused {
        let kept = old.filter(|_| options.keep).and_then(|entry| entry.expires_ms);
        context.put(&arguments[1], Entry { value: arguments[2].clone(), expires_ms: expires_ms.or(kept) });
    }
    Ok(reply)
}

fn setex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_expiring(context, arguments, Moment::InSeconds, "setex")
}

fn psetex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_expiring(context, arguments, Moment::InMilliseconds, "psetex")
}

fn set_expiring(context: &mut Context<'_, '_>, arguments: &[Bytes], unit: Moment, name: &str) -> Answer {
    let expires_ms = unit.parse(&arguments[2], name, context.now_ms())?;
    context.put(&arguments[1], Entry { value: arguments[3].clone(), expires_ms: Some(expires_ms) });
    Ok(OK)
}

fn setnx(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let is_absent = context.get(&arguments[1])?.is_none();
    if is_absent {
        context.put(&arguments[1], Entry::lasting(arguments[2].clone()));
    }
    Ok(Reply::flag(is_absent))
}

fn mget(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut values = Vec::with_capacity(arguments.len() - 1);
    for name in &arguments[1..] {
        // What is no string counts as absent here.
        let string = context.look_up(name)?.and_then(Entry::string);
        values.push(Reply::bulk_or_nil(string));
    }
    Ok(Reply::Array(values))
}

/// Names and values of MSET and MSETNX.
fn pairs<'a>(arguments: &'a [Bytes], name: &str) -> Result<&'a [[Bytes; 2]], Refusal> {
    match arguments[1..].as_chunks() {
        (pairs, []) => Ok(pairs),
        _ => Err(said(format!("ERR wrong number of arguments for '{name}' command"))),
    }
}

fn mset(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    for [name, value] in pairs(arguments, "mset")? {
        context.put(name, Entry::lasting(value.clone()));
    }
    Ok(OK)
}

fn msetnx(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let pairs = pairs(arguments, "msetnx")?;
    for [name, _] in pairs {
        if context.get(name)?.is_some() {
            return Ok(Reply::flag(false));
        }
    }
    for [name, value] in pairs {
        context.put(name, Entry::lasting(value.clone()));
    }
    Ok(Reply::flag(true))
}

fn getset(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let old = context.look_up_string(&arguments[1])?;
    context.put(&arguments[1], Entry::lasting(arguments[2].clone()));
    Ok(Reply::bulk_or_nil(old.map(|entry| entry.value)))
}

fn getdel(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let old = context.look_up_string(&arguments[1])?;
    if old.is_some() {
        context.delete(&arguments[1]);
    }
    Ok(Reply::bulk_or_nil(old.map(|entry| entry.value)))
}

fn getex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let options = StringOptions::parse(&arguments[2..], false)?;
    let Some(entry) = context.look_up_string(&arguments[1])? else { return Ok(Reply::Nil) };
    let value = entry.value.clone();
    let expires_ms: Option<NonZeroU64> =
        options.expires.map(|(unit, time)| unit.parse(time, "getex", context.now_ms())).transpose()?;
    if expires_ms.is_some() {
        context.put(&arguments[1], Entry { expires_ms, ..entry });
    } else if options.persist && entry.expires_ms.is_some() {
        context.put(&arguments[1], Entry::lasting(entry.value));
    }
    Ok(Reply::Bulk(value))
}

fn append(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(old) = context.string(&arguments[1])? else {
        context.put(&arguments[1], Entry::lasting(arguments[2].clone()));
        return Ok(count(arguments[2].len()));
    };
    let length = old.value.len() + arguments[2].len();
    if length > MAX_STRING_BYTES {
        return Err(TOO_LONG);
    }
    let value = Bytes::from([&old.value[..], &arguments[2]].concat());
    context.put(&arguments[1], Entry { value, ..old });
    Ok(count(length))
}

fn strlen(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(count(context.look_up_string(&arguments[1])?.map_or(0, |entry| entry.value.len())))
}

fn getrange(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let start = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let end = parse_integer(&arguments[3]).ok_or(NOT_AN_INTEGER)?;
    let value = context.look_up_string(&arguments[1])?.map(|entry| entry.value).unwrap_or_default();
    let length = value.len() as i64;
    let from_end = |position: i64| if position < 0 { position.saturating_add(length).max(0) } else { position };
    let (first, last) = (from_end(start), from_end(end).min(length - 1));
    // Two places before the beginning are the same place, but not in the wrong order.
    let is_empty = first > last || start < 0 && end < 0 && start > end;
    Ok(Reply::Bulk(if is_empty { Bytes::new() } else { value.slice(first as usize..=last as usize) }))
}

fn setrange(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let offset = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| words("ERR offset is out of range"))?;
    let (old, part) = (context.string(&arguments[1])?, &arguments[3]);
    if part.is_empty() {
        return Ok(count(old.map_or(0, |entry| entry.value.len())));
    }
    let end = offset.checked_add(part.len()).filter(|end| *end <= MAX_STRING_BYTES).ok_or(TOO_LONG)?;
    let (old, expires_ms) = old.map_or((Bytes::new(), None), |entry| (entry.value, entry.expires_ms));
    let mut value = BytesMut::from(&old[..]);
    value.resize(old.len().max(end), 0);
    value[offset..end].copy_from_slice(part);
    let length = value.len();
    context.put(&arguments[1], Entry { value: value.freeze(), expires_ms });
    Ok(count(length))
}
