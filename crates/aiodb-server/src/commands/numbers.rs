//! Strings that are numbers.

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::Grouped;
use crate::command::{Command, Context, one_key};
use crate::entry::Entry;
use crate::long_double::LongDouble;
use crate::number::{integer_text, parse_integer};
use crate::refusal::{NOT_A_FLOAT, NOT_AN_INTEGER, OVERFLOW, words};
use crate::reply::{Answer, Reply};

const NUMBER: Family = Family::new("string", "@string").flags("write denyoom fast").keys(one_key("RW access update"));

pub(super) static COMMANDS: &[Command] = &[
    NUMBER.command("incr", 2, Grouped(incr), "1.0.0", "Increment the integer value of a key by one"),
    NUMBER.command("decr", 2, Grouped(decr), "1.0.0", "Decrement the integer value of a key by one"),
    NUMBER.command("incrby", 3, Grouped(incrby), "1.0.0", "Increment the integer value of a key by the given amount"),
    NUMBER.command("decrby", 3, Grouped(decrby), "1.0.0", "Decrement the integer value of a key by the given number"),
    NUMBER.command(
        "incrbyfloat",
        3,
        Grouped(incrbyfloat),
        "2.6.0",
        "Increment the float value of a key by the given amount",
    ),
];

fn incr(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    add(context, &arguments[1], 1)
}

fn decr(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    add(context, &arguments[1], -1)
}

fn incrby(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    add(context, &arguments[1], parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?)
}

fn decrby(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let amount = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    add(context, &arguments[1], amount.checked_neg().ok_or(words("ERR decrement would overflow"))?)
}

fn add(context: &mut Context<'_, '_>, name: &Bytes, amount: i64) -> Answer {
    let old = context.string(name)?.unwrap_or_else(|| Entry::lasting("0".into()));
    let number = parse_integer(&old.value).ok_or(NOT_AN_INTEGER)?;
    let sum = number.checked_add(amount).ok_or(OVERFLOW)?;
    context.put(name, Entry { value: integer_text(sum), ..old });
    Ok(Reply::Integer(sum))
}

fn incrbyfloat(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let old = context.string(&arguments[1])?.unwrap_or_else(|| Entry::lasting("0".into()));
    let number = LongDouble::parse(&old.value).ok_or(NOT_A_FLOAT)?;
    let amount = LongDouble::parse(&arguments[2]).ok_or(NOT_A_FLOAT)?;
    let sum = number.plus(&amount).text().ok_or(words("ERR increment would produce NaN or Infinity"))?;
    let value = Bytes::from(sum);
    context.put(&arguments[1], Entry { value: value.clone(), ..old });
    Ok(Reply::Bulk(value))
}
