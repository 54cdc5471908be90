//! Hashes: fields with values under one key. An element's name is the field.

use bytes::Bytes;

use super::family::Family;
use super::random;
use super::scanning::{self, Page};
use crate::collection::{Kind, Span};
use crate::command::Run::{Grouped, Ranged};
use crate::command::{Command, Context, Opened, count, one_key};
use crate::long_double::LongDouble;
use crate::number::{integer_text, parse_integer};
use crate::refusal::{NOT_A_FLOAT, NOT_AN_INTEGER, OVERFLOW, Refusal, said, words};
use crate::reply::{Answer, OK, Reply};

const HASH: Family = Family::new("hash", "@hash");
const READ_FAST: Family = HASH.flags("readonly fast");
const WRITE_FAST: Family = HASH.flags("write denyoom fast");

const EACH: &str = "O(N) where N is the number of fields";
const SET: Family = WRITE_FAST.keys(one_key("RW update")).members(2, -1, 2).complexity(EACH);
const SET_NEW: Family = WRITE_FAST.keys(one_key("RW insert")).members(2, 2, 1);
const ADD: Family = WRITE_FAST.keys(one_key("RW access update")).members(2, 2, 1);
const DELETE: Family = HASH.flags("write fast").keys(one_key("RW delete")).members(2, -1, 1).complexity(EACH);
const GET: Family = READ_FAST.keys(one_key("RO access")).members(2, -1, 1);
const ASK: Family = READ_FAST.keys(one_key("RO")).members(2, 2, 1);
const LENGTH: Family = READ_FAST.keys(one_key("RO"));
const ALL: Family =
    HASH.flags("readonly").keys(one_key("RO access")).complexity("O(N) where N is the size of the hash.");

const SETNX_SUMMARY: &str = "Set the value of a hash field, only if the field does not exist";
const INCRBY_SUMMARY: &str = "Increment the integer value of a hash field by the given number";
const INCRBYFLOAT_SUMMARY: &str = "Increment the float value of a hash field by the given amount";
const SCAN_SUMMARY: &str = "Incrementally iterate hash fields and associated values";

pub(super) static COMMANDS: &[Command] = &[
    SET.command("hset", -4, Grouped(hset), "2.0.0", "Set the string value of a hash field"),
    SET.command("hmset", -4, Grouped(hmset), "2.0.0", "Set multiple hash fields to multiple values"),
    SET_NEW.command("hsetnx", 4, Grouped(hsetnx), "2.0.0", SETNX_SUMMARY),
    GET.command("hget", 3, Grouped(hget), "2.0.0", "Get the value of a hash field"),
    GET.complexity(EACH).command("hmget", -3, Grouped(hmget), "2.0.0", "Get the values of all the given hash fields"),
    DELETE.command("hdel", -3, Grouped(hdel), "2.0.0", "Delete one or more hash fields"),
    ASK.command("hexists", 3, Grouped(hexists), "2.0.0", "Determine if a hash field exists"),
    ASK.command("hstrlen", 3, Grouped(hstrlen), "3.2.0", "Get the length of the value of a hash field"),
    LENGTH.command("hlen", 2, Grouped(hlen), "2.0.0", "Get the number of fields in a hash"),
    ADD.command("hincrby", 4, Grouped(hincrby), "2.0.0", INCRBY_SUMMARY),
    ADD.command("hincrbyfloat", 4, Grouped(hincrbyfloat), "2.6.0", INCRBYFLOAT_SUMMARY),
    ALL.command("hgetall", 2, Ranged(hgetall), "2.0.0", "Get all the fields and values in a hash"),
    ALL.command("hkeys", 2, Ranged(hkeys), "2.0.0", "Get all the fields in a hash"),
    ALL.command("hvals", 2, Ranged(hvals), "2.0.0", "Get all the values in a hash"),
    ALL.command("hscan", -3, Ranged(hscan), "2.8.0", SCAN_SUMMARY),
    ALL.command("hrandfield", -2, Ranged(hrandfield), "6.2.0", "Get one or multiple random fields from a hash"),
];

/// Gives a field a value; whether it is new.
fn set(context: &mut Context<'_, '_>, hash: &mut Opened, field: &Bytes, value: Bytes) -> Result<bool, Refusal> {
    let is_new = context.space.elements.get(hash.owner(), field)?.is_none();
    context.space.elements.put(hash.owner(), field.clone(), value);
    hash.entry.value.count += u64::from(is_new);
    Ok(is_new)
}

/// How many of the fields that a command sets are new.
fn set_all(context: &mut Context<'_, '_>, arguments: &[Bytes], name: &str) -> Result<usize, Refusal> {
    let (pairs, []) = arguments[2..].as_chunks::<2>() else {
        return Err(said(format!("ERR wrong number of arguments for '{name}' command")));
    };
    let mut hash = context.collection_or_new(&arguments[1], Kind::Hash)?;
    let mut added = 0;
    for [field, value] in pairs {
        added += usize::from(set(context, &mut hash, field, value.clone())?);
    }
    context.store(hash);
    Ok(added)
}

fn hset(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(count(set_all(context, arguments, "hset")?))
}

fn hmset(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    set_all(context, arguments, "hmset")?;
    Ok(OK)
}

fn hsetnx(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut hash = context.collection_or_new(&arguments[1], Kind::Hash)?;
    if context.space.elements.get(hash.owner(), &arguments[2])?.is_some() {
        return Ok(Reply::flag(false));
    }
    set(context, &mut hash, &arguments[2], arguments[3].clone())?;
    context.store(hash);
    Ok(Reply::flag(true))
}

/// The value of a field of a hash that may be missing.
fn get(context: &mut Context<'_, '_>, hash: Option<&Opened>, field: &Bytes) -> Result<Option<Bytes>, Refusal> {
    hash.map_or(Ok(None), |hash| context.space.elements.get(hash.owner(), field))
}

fn hget(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let hash = context.look_up_collection(&arguments[1], Kind::Hash)?;
    Ok(Reply::bulk_or_nil(get(context, hash.as_ref(), &arguments[2])?))
}

fn hmget(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let hash = context.look_up_collection(&arguments[1], Kind::Hash)?;
    let mut values = Vec::with_capacity(arguments.len() - 2);
    for field in &arguments[2..] {
        values.push(Reply::bulk_or_nil(get(context, hash.as_ref(), field)?));
    }
    Ok(Reply::Array(values))
}

fn hdel(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(mut hash) = context.collection(&arguments[1], Kind::Hash)? else { return Ok(count(0)) };
    let mut deleted = 0;
    for field in &arguments[2..] {
        if context.space.elements.get(hash.owner(), field)?.is_some() {
            context.space.elements.delete(hash.owner(), field.clone());
            deleted += 1;
        }
    }
    if deleted > 0 {
        hash.entry.value.count -= deleted;
        context.store(hash);
    }
    Ok(count(deleted as usize))
}

fn hexists(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let hash = context.look_up_collection(&arguments[1], Kind::Hash)?;
    Ok(Reply::flag(get(context, hash.as_ref(), &arguments[2])?.is_some()))
}

fn hstrlen(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let hash = context.look_up_collection(&arguments[1], Kind::Hash)?;
    Ok(count(get(context, hash.as_ref(), &arguments[2])?.map_or(0, |value| value.len())))
}

fn hlen(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(count(context.look_up_collection(&arguments[1], Kind::Hash)?.map_or(0, |hash| hash.count())))
}

fn hincrby(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let amount = parse_integer(&arguments[3]).ok_or(NOT_AN_INTEGER)?;
    let mut hash = context.collection_or_new(&arguments[1], Kind::Hash)?;
    let number = match context.space.elements.get(hash.owner(), &arguments[2])? {
        None => 0,
        Some(value) => parse_integer(&value).ok_or(words("ERR hash value is not an integer"))?,
    };
    let sum = number.checked_add(amount).ok_or(OVERFLOW)?;
    set(context, &mut hash, &arguments[2], integer_text(sum))?;
    context.store(hash);
    Ok(Reply::Integer(sum))
}

fn hincrbyfloat(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let amount = LongDouble::parse(&arguments[3]).ok_or(NOT_A_FLOAT)?;
    if amount == LongDouble::Infinite {
        return Err(words("ERR value is NaN or Infinity"));
    }
    let mut hash = context.collection_or_new(&arguments[1], Kind::Hash)?;
    let old = context.space.elements.get(hash.owner(), &arguments[2])?.unwrap_or_else(|| "0".into());
    let number = LongDouble::parse(&old).ok_or(words("ERR hash value is not a float"))?;
    let sum = number.plus(&amount).text().ok_or(words("ERR increment would produce NaN or Infinity"))?;
    let sum = Bytes::from(sum);
    set(context, &mut hash, &arguments[2], sum.clone())?;
    context.store(hash);
    Ok(Reply::Bulk(sum))
}

/// Replies made of all fields with their values.
fn all<T>(
    context: &mut Context<'_, '_>,
    name: &Bytes,
    span: &Span,
    make: impl Fn(&[u8], &[u8]) -> T,
) -> Result<Vec<T>, Refusal> {
    let Some(hash) = context.look_up_collection(name, Kind::Hash)? else { return Ok(Vec::new()) };
    let mut replies = Vec::new();
    context.space.elements.visit(hash.owner(), span, |field, value| {
        replies.push(make(field, value));
        true
    })?;
    Ok(replies)
}

fn hgetall(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let pair = |field: &[u8], value: &[u8]| (Reply::copied(field), Reply::copied(value));
    Ok(Reply::Map(all(context, &arguments[1], &Span::ALL, pair)?))
}

fn hkeys(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::Array(all(context, &arguments[1], &Span::NAMES, |field, _| Reply::copied(field))?))
}

fn hvals(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::Array(all(context, &arguments[1], &Span::ALL, |_, value| Reply::copied(value))?))
}

fn hscan(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let cursor = scanning::parse_cursor(&arguments[2])?;
    let hash = context.look_up_collection(&arguments[1], Kind::Hash)?;
    let Page { next, elements } = scanning::page(context, hash.as_ref(), cursor, &arguments[3..], Span::ALL)?;
    let found = elements.into_iter().flat_map(|(field, value)| [Reply::Bulk(field), Reply::Bulk(value)]);
    Ok(scanning::reply(next, found.collect()))
}

fn hrandfield(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(wanted) = arguments.get(2) else {
        let Some(hash) = context.look_up_collection(&arguments[1], Kind::Hash)? else { return Ok(Reply::Nil) };
        let drawn = random::draw(context, &hash, &Span::NAMES, 1)?;
        return Ok(Reply::bulk_or_nil(drawn.into_iter().next().map(|(field, _)| field)));
    };
    let (wanted, with_values) = random::parse_count(wanted, &arguments[3..], "withvalues")?;
    let Some(hash) = context.look_up_collection(&arguments[1], Kind::Hash)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let drawn = random::draw(context, &hash, if with_values { &Span::ALL } else { &Span::NAMES }, wanted)?;
    let pairs = drawn.into_iter().map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value)));
    Ok(random::reply(context, pairs, with_values))
}
