//! Strings: whole values, and parts of them.

use std::num::NonZeroU64;

use bytes::{Bytes, BytesMut};

use crate::command::{Command, Context, Keys, Reads, Run, all_keys, count, documented, is_word, one_key};
use crate::entry::Entry;
use crate::expiry::{self, Moment};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, TOO_LONG, said, words};
use crate::reply::{Answer, OK, Reply};
use crate::request::MAX_STRING_BYTES;

const fn string(
    name: &'static str,
    arity: i64,
    flags: &'static str,
    keys: Keys,
    reads: Reads,
    handler: crate::command::Handler,
    documentation: crate::command::Documentation,
) -> Command {
    Command {
        name,
        arity,
        flags,
        categories: "@string",
        keys,
        reads,
        run: Run::Grouped(handler),
        documentation,
        subcommands: &[],
    }
}

const fn doc(since: &'static str, complexity: &'static str, summary: &'static str) -> crate::command::Documentation {
    documented("string", since, complexity, summary)
}

const RO: Keys = one_key("RO access");
const RW: Keys = one_key("RW access update");
const OW: Keys = one_key("OW update");
const INSERT: Keys = one_key("OW insert");

pub(super) static COMMANDS: &[Command] = &[
    string("get", 2, "readonly fast", RO, Reads::Always, get, doc("1.0.0", "O(1)", "Get the value of a key")),
    string(
        "set",
        -3,
        "write denyoom",
        one_key("RW access update variable_flags"),
        Reads::If(set_reads),
        set,
        doc("1.0.0", "O(1)", "Set the string value of a key"),
    ),
    string(
        "setex",
        4,
        "write denyoom",
        OW,
        Reads::Never,
        setex,
        doc("2.0.0", "O(1)", "Set the value and expiration of a key"),
    ),
    string(
        "psetex",
        4,
        "write denyoom",
        OW,
        Reads::Never,
        psetex,
        doc("2.6.0", "O(1)", "Set the value and expiration in milliseconds of a key"),
    ),
    string(
        "setnx",
        3,
        "write denyoom fast",
        INSERT,
        Reads::Always,
        setnx,
        doc("1.0.0", "O(1)", "Set the value of a key, only if the key does not exist"),
    ),
    string(
        "mget",
        -2,
        "readonly fast",
        all_keys(1, "RO access"),
        Reads::Always,
        mget,
        doc("1.0.0", "O(N) where N is the number of keys to retrieve.", "Get the values of all the given keys"),
    ),
    string(
        "mset",
        -3,
        "write denyoom",
        all_keys(2, "OW update"),
        Reads::Never,
        mset,
        doc("1.0.1", "O(N) where N is the number of keys to set.", "Set multiple keys to multiple values"),
    ),
    string(
        "msetnx",
        -3,
        "write denyoom",
        all_keys(2, "OW insert"),
        Reads::Always,
        msetnx,
        doc(
            "1.0.1",
            "O(N) where N is the number of keys to set.",
            "Set multiple keys to multiple values, only if none of the keys exist",
        ),
    ),
    string(
        "getset",
        3,
        "write denyoom fast",
        RW,
        Reads::Always,
        getset,
        doc("1.0.0", "O(1)", "Set the string value of a key and return its old value"),
    ),
    string(
        "getdel",
        2,
        "write fast",
        one_key("RW access delete"),
        Reads::Always,
        getdel,
        doc("6.2.0", "O(1)", "Get the value of a key and delete the key"),
    ),
    string(
        "getex",
        -2,
        "write fast",
        RW,
        Reads::Always,
        getex,
        doc("6.2.0", "O(1)", "Get the value of a key and optionally set its expiration"),
    ),
    string(
        "append",
        3,
        "write denyoom fast",
        one_key("RW insert"),
        Reads::Always,
        append,
        doc("2.0.0", "O(N) where N is the length of the whole value", "Append a value to a key"),
    ),
    string(
        "strlen",
        2,
        "readonly fast",
        one_key("RO"),
        Reads::Always,
        strlen,
        doc("2.2.0", "O(1)", "Get the length of the value stored in a key"),
    ),
    string(
        "getrange",
        4,
        "readonly",
        RO,
        Reads::Always,
        getrange,
        doc("2.4.0", "O(N) where N is the length of the whole value", "Get a substring of the string stored at a key"),
    ),
    string(
        "substr",
        4,
        "readonly",
        RO,
        Reads::Always,
        getrange,
        doc("1.0.0", "O(N) where N is the length of the whole value", "Get a substring of the string stored at a key"),
    ),
    string(
        "setrange",
        4,
        "write denyoom",
        one_key("RW update"),
        Reads::Always,
        setrange,
        doc(
            "2.2.0",
            "O(N) where N is the length of the whole value",
            "Overwrite part of a string at key starting at the specified offset",
        ),
    ),
];

fn get(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::bulk_or_nil(context.look_up(&arguments[1])?.map(|entry| entry.value)))
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

fn set(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let options = StringOptions::parse(&arguments[3..], true)?;
    let expires_ms = options.expires.map(|(unit, time)| unit.parse(time, "set", context.now_ms())).transpose()?;
    let is_conditional = options.only_absent || options.only_present;
    let old = if is_conditional || options.get || options.keep { context.get(&arguments[1])? } else { None };
    let is_refused = options.only_absent && old.is_some() || options.only_present && old.is_none();
    let reply = match (options.get, is_refused) {
        (true, _) => Reply::bulk_or_nil(old.as_ref().map(|entry| entry.value.clone())),
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
        values.push(Reply::bulk_or_nil(context.look_up(name)?.map(|entry| entry.value)));
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
    let old = context.look_up(&arguments[1])?;
    context.put(&arguments[1], Entry::lasting(arguments[2].clone()));
    Ok(Reply::bulk_or_nil(old.map(|entry| entry.value)))
}

fn getdel(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let old = context.look_up(&arguments[1])?;
    if old.is_some() {
        context.delete(&arguments[1]);
    }
    Ok(Reply::bulk_or_nil(old.map(|entry| entry.value)))
}

fn getex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let options = StringOptions::parse(&arguments[2..], false)?;
    let Some(entry) = context.look_up(&arguments[1])? else { return Ok(Reply::Nil) };
    let value = entry.value.clone();
    let expires_ms: Option<NonZeroU64> =
        options.expires.map(|(unit, time)| unit.parse(time, "getex", context.now_ms())).transpose()?;
    if expires_ms.is_some() {
        expiry::set(context, &arguments[1], entry, expires_ms);
    } else if options.persist && entry.expires_ms.is_some() {
        context.put(&arguments[1], Entry::lasting(entry.value));
    }
    Ok(Reply::Bulk(value))
}

fn append(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(old) = context.get(&arguments[1])? else {
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
    Ok(count(context.look_up(&arguments[1])?.map_or(0, |entry| entry.value.len())))
}

fn getrange(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let start = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let end = parse_integer(&arguments[3]).ok_or(NOT_AN_INTEGER)?;
    let value = context.look_up(&arguments[1])?.map(|entry| entry.value).unwrap_or_default();
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
    let (old, part) = (context.get(&arguments[1])?, &arguments[3]);
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
