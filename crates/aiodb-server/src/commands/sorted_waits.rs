//! Commands on sorted sets whose clients wait until there is a member.

use bytes::Bytes;

use super::family::Family;
use super::pop_of::PopOf;
use super::sorted_sets::{ENDS, SORTED, pop, pop_named};
use super::waiting::{at_counted, at_each, check_timeout, first_argument, last_argument};
use crate::collection::Kind;
use crate::command::Run::Blocking;
use crate::command::{Command, Context, Keys, NO_KEYS, one_key};
use crate::reply::{Answer, Reply};

const ANY: Keys = Keys { first: 1, last: -2, ..one_key("RW access delete") };
const EACH: &str = "O(N) where N is the number of provided keys.";
const POP: Family = SORTED.flags("write noscript blocking fast").keys(ANY).complexity(EACH);
const COUNTED: Keys = Keys { counted_at: 2, flags: "RW access delete", ..NO_KEYS };
const POP_OF: Family = SORTED
    .flags("write blocking movablekeys")
    .keys(COUNTED)
    .complexity("O(N+M) where N is the number of provided keys and M is the number of members returned.");

const LOWEST_SUMMARY: &str =
    "Remove and return the member with the lowest score from one or more sorted sets, or block until one is available";
const HIGHEST_SUMMARY: &str =
    "Remove and return the member with the highest score from one or more sorted sets, or block until one is available";
const POP_OF_SUMMARY: &str = "Remove and return members with scores in a sorted set or block until one is available";

pub(super) static COMMANDS: &[Command] = &[
    POP.command("bzpopmin", -3, Blocking(bzpopmin, at_each(Kind::SortedSet)), "5.0.0", LOWEST_SUMMARY),
    POP.command("bzpopmax", -3, Blocking(bzpopmax, at_each(Kind::SortedSet)), "5.0.0", HIGHEST_SUMMARY),
    POP_OF.command("bzmpop", -5, Blocking(bzmpop, at_counted(Kind::SortedSet)), "7.0.0", POP_OF_SUMMARY),
];

fn pop_any(context: &mut Context<'_, '_>, arguments: &[Bytes], is_last: bool) -> Answer {
    check_timeout(context, last_argument(arguments))?;
    for name in &arguments[1..arguments.len() - 1] {
        if let Some(sorted) = context.awaited_collection(name, Kind::SortedSet)? {
            let popped = pop(context, sorted, is_last, 1)?.into_iter();
            let parts = popped.flat_map(|(member, score)| [Reply::Bulk(member), Reply::Double(score)]);
            return Ok(Reply::Array([Reply::Bulk(name.clone())].into_iter().chain(parts).collect()));
        }
    }
    Ok(Reply::NilArray)
}

fn bzpopmin(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_any(context, arguments, false)
}

fn bzpopmax(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_any(context, arguments, true)
}

fn bzmpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let PopOf { names, is_last, most } = PopOf::parse(&arguments[2..], ENDS)?;
    check_timeout(context, first_argument(arguments))?;
    for name in names {
        if let Some(sorted) = context.awaited_collection(name, Kind::SortedSet)? {
            return pop_named(context, name, sorted, is_last, most);
        }
    }
    Ok(Reply::NilArray)
}
