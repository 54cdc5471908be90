//! Commands on lists whose clients wait until there is an element.

use bytes::Bytes;

use super::family::Family;
use super::lists::{ENDS, End, LIST, move_one, names_popped, pop, pop_named};
use super::pop_of::PopOf;
use super::waiting::{at_counted, at_each, at_first, check_timeout, first_argument, last_argument};
use crate::collection::{Collection, Kind};
use crate::command::Run::Blocking;
use crate::command::{Command, Context, Keys, NO_KEYS, one_key};
use crate::reply::{Answer, Reply};

const ANY: Keys = Keys { first: 1, last: -2, ..one_key("RW access delete") };
const POP: Family =
    LIST.flags("write noscript blocking").keys(ANY).complexity("O(N) where N is the number of provided keys.");
const COUNTED: Keys = Keys { counted_at: 2, flags: "RW access delete", ..NO_KEYS };
const POP_OF: Family = LIST
    .flags("write blocking movablekeys")
    .keys(COUNTED)
    .complexity("O(N+M) where N is the number of provided keys and M is the number of elements returned.");
const BETWEEN: Keys = Keys { last: 2, others: "RW insert", ..one_key("RW access delete") };
const MOVE: Family = LIST.flags("write denyoom noscript blocking").keys(BETWEEN);

const BLPOP_SUMMARY: &str = "Remove and get the first element in a list, or block until one is available";
const BRPOP_SUMMARY: &str = "Remove and get the last element in a list, or block until one is available";
const BLMPOP_SUMMARY: &str = "Pop elements from a list, or block until one is available";
const BLMOVE_SUMMARY: &str =
    "Pop an element from a list, push it to another list and return it; or block until one is available";
const BRPOPLPUSH_SUMMARY: &str =
    "Pop an element from a list, push it to another list and return it; or block until one is available";

pub(super) static COMMANDS: &[Command] = &[
    POP.ahead(first).command("blpop", -3, Blocking(blpop, at_each(Kind::List)), "2.0.0", BLPOP_SUMMARY),
    POP.ahead(last).command("brpop", -3, Blocking(brpop, at_each(Kind::List)), "2.0.0", BRPOP_SUMMARY),
    POP_OF.command("blmpop", -5, Blocking(blmpop, at_counted(Kind::List)), "7.0.0", BLMPOP_SUMMARY),
    MOVE.command("blmove", 6, Blocking(blmove, at_first(Kind::List)), "6.2.0", BLMOVE_SUMMARY),
    MOVE.ahead(last).command("brpoplpush", 4, Blocking(brpoplpush, at_first(Kind::List)), "2.2.0", BRPOPLPUSH_SUMMARY),
];

fn first(_: &[Bytes], list: &mut Collection) -> Vec<Bytes> {
    names_popped(list, End::First, 1)
}

fn last(_: &[Bytes], list: &mut Collection) -> Vec<Bytes> {
    names_popped(list, End::Last, 1)
}

fn pop_any(context: &mut Context<'_, '_>, arguments: &[Bytes], end: End) -> Answer {
    check_timeout(context, last_argument(arguments))?;
    for name in &arguments[1..arguments.len() - 1] {
        if let Some(mut list) = context.awaited_collection(name, Kind::List)? {
            let popped = pop(context, &mut list, end, 1)?;
            context.store(list);
            return Ok(Reply::Array([name.clone()].into_iter().chain(popped).map(Reply::Bulk).collect()));
        }
    }
    Ok(Reply::NilArray)
}

fn blpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_any(context, arguments, End::First)
}

fn brpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_any(context, arguments, End::Last)
}

fn blmpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let PopOf { names, is_last, most } = PopOf::parse(&arguments[2..], ENDS)?;
    check_timeout(context, first_argument(arguments))?;
    for name in names {
        if let Some(list) = context.awaited_collection(name, Kind::List)? {
            return pop_named(context, name, list, End::of(is_last), most);
        }
    }
    Ok(Reply::NilArray)
}

fn move_awaited(context: &mut Context<'_, '_>, arguments: &[Bytes], ends: [End; 2]) -> Answer {
    check_timeout(context, last_argument(arguments))?;
    match context.awaited_collection(&arguments[1], Kind::List)? {
        None => Ok(Reply::Nil),
        Some(source) => move_one(context, source, &arguments[2], ends),
    }
}

fn blmove(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let ends = [End::parse(&arguments[3])?, End::parse(&arguments[4])?];
    move_awaited(context, arguments, ends)
}

fn brpoplpush(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    move_awaited(context, arguments, [End::Last, End::First])
}
