//! Sets made of sets: intersections, unions, differences. What comes out is gathered in memory.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::family::Family;
use crate::collection::{Kind, Span};
use crate::command::Run::Ranged;
use crate::command::{Command, Context, Keys, NO_KEYS, Opened, all_keys, count, is_word};
use crate::number::parse_integer;
use crate::refusal::{Refusal, SYNTAX, words};
use crate::reply::{Answer, Reply};

const SET: Family =
    Family::new("set", "@set").complexity("O(N) where N is the total number of elements in all given sets.");
const READ: Family = SET.flags("readonly").keys(all_keys(1, "RO access"));
const STORED: Keys = Keys { others: "RO access", ..all_keys(1, "OW update") };
const STORE: Family = SET.flags("write denyoom").keys(STORED);
const COUNTED: Keys = Keys { counted_at: 1, flags: "RO access", ..NO_KEYS };
const SIZE: Family = SET.flags("readonly movablekeys").keys(COUNTED);

const INTER_STORE_SUMMARY: &str = "Intersect multiple sets and store the resulting set in a key";
const INTER_CARD_SUMMARY: &str = "Intersect multiple sets and return the cardinality of the result";
const UNION_STORE_SUMMARY: &str = "Add multiple sets and store the resulting set in a key";
const DIFF_STORE_SUMMARY: &str = "Subtract multiple sets and store the resulting set in a key";

pub(super) static COMMANDS: &[Command] = &[
    READ.command("sinter", -2, Ranged(sinter), "1.0.0", "Intersect multiple sets"),
    // Redis says so of this one.
    STORE.keys(Keys { flags: "RW update", ..STORED }).command(
        "sinterstore",
        -3,
        Ranged(sinterstore),
        "1.0.0",
        INTER_STORE_SUMMARY,
    ),
    SIZE.command("sintercard", -3, Ranged(sintercard), "7.0.0", INTER_CARD_SUMMARY),
    READ.command("sunion", -2, Ranged(sunion), "1.0.0", "Add multiple sets"),
    STORE.command("sunionstore", -3, Ranged(sunionstore), "1.0.0", UNION_STORE_SUMMARY),
    READ.command("sdiff", -2, Ranged(sdiff), "1.0.0", "Subtract multiple sets"),
    STORE.command("sdiffstore", -3, Ranged(sdiffstore), "1.0.0", DIFF_STORE_SUMMARY),
];

/// A set with so many times as many members is asked for each one, a smaller one is gone through.
const MUCH_LARGER: usize = 32;

type Members = BTreeSet<Bytes>;
type Operation = fn(&Context<'_, '_>, &[Option<Opened>]) -> Result<Members, Refusal>;

/// The sets of keys; a missing one is none.
fn open(context: &mut Context<'_, '_>, names: &[Bytes]) -> Result<Vec<Option<Opened>>, Refusal> {
    names.iter().map(|name| context.look_up_collection(name, Kind::Set)).collect()
}

fn visit(context: &Context<'_, '_>, set: &Opened, mut each: impl FnMut(&[u8])) -> Result<(), Refusal> {
    context.space.elements.visit(set.owner(), &Span::MEMBERS, |member, _| {
        each(member);
        true
    })
}

fn members(context: &Context<'_, '_>, set: &Opened) -> Result<Members, Refusal> {
    let mut members = Members::new();
    visit(context, set, |member| members.extend([Bytes::copy_from_slice(member)]))?;
    Ok(members)
}

/// Those of `members` that are in a set.
fn shared(context: &Context<'_, '_>, members: Members, set: &Opened) -> Result<Members, Refusal> {
    let mut found = Members::new();
    if set.count() / MUCH_LARGER > members.len() {
        for member in members {
            if context.space.elements.contains(set.owner(), &member)? {
                found.insert(member);
            }
        }
    } else {
        visit(context, set, |member| found.extend(members.get(member).cloned()))?;
    }
    Ok(found)
}

fn intersection(context: &Context<'_, '_>, sets: &[Option<Opened>]) -> Result<Members, Refusal> {
    let Some(mut sets) = sets.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() else { return Ok(Members::new()) };
    sets.sort_by_key(|set| set.count());
    let mut left = members(context, sets[0])?;
    for set in &sets[1..] {
        left = shared(context, left, set)?;
    }
    Ok(left)
}

fn union(context: &Context<'_, '_>, sets: &[Option<Opened>]) -> Result<Members, Refusal> {
    let mut all = Members::new();
    for set in sets.iter().flatten() {
        visit(context, set, |member| {
            if !all.contains(member) {
                all.insert(Bytes::copy_from_slice(member));
            }
        })?;
    }
    Ok(all)
}

fn difference(context: &Context<'_, '_>, sets: &[Option<Opened>]) -> Result<Members, Refusal> {
    let Some(first) = &sets[0] else { return Ok(Members::new()) };
    let mut left = members(context, first)?;
    for set in sets[1..].iter().flatten() {
        for member in shared(context, left.clone(), set)? {
            left.remove(&member);
        }
    }
    Ok(left)
}

fn answer(context: &mut Context<'_, '_>, arguments: &[Bytes], operation: Operation) -> Answer {
    let sets = open(context, &arguments[1..])?;
    Ok(Reply::Set(operation(context, &sets)?.into_iter().map(Reply::Bulk).collect()))
}

fn store(context: &mut Context<'_, '_>, arguments: &[Bytes], operation: Operation) -> Answer {
    let sets = open(context, &arguments[2..])?;
    let members = operation(context, &sets)?;
    let size = members.len();
    if members.is_empty() {
        if context.get(&arguments[1])?.is_some() {
            context.delete(&arguments[1]);
        }
        return Ok(count(0));
    }
    let mut set = context.new_collection(&arguments[1], Kind::Set)?;
    for member in members {
        context.space.elements.put(set.owner(), member, Bytes::new());
    }
    set.entry.value.count = size as u64;
    context.store(set);
    Ok(count(size))
}

fn sinter(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, intersection)
}

fn sinterstore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    store(context, arguments, intersection)
}

fn sunion(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, union)
}

fn sunionstore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    store(context, arguments, union)
}

fn sdiff(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, difference)
}

fn sdiffstore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    store(context, arguments, difference)
}

fn sintercard(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let keys = parse_integer(&arguments[1]).and_then(|keys| usize::try_from(keys).ok()).filter(|keys| *keys > 0);
    let keys = keys.ok_or(words("ERR numkeys should be greater than 0"))?;
    if keys > arguments.len() - 2 {
        return Err(words("ERR Number of keys can't be greater than number of args"));
    }
    let (names, mut options) = arguments[2..].split_at(keys);
    let mut limit = 0;
    while let [option, rest @ ..] = options {
        let [value, rest @ ..] = rest else { return Err(SYNTAX) };
        if !is_word(option, "limit") {
            return Err(SYNTAX);
        }
        let number = parse_integer(value).and_then(|number| usize::try_from(number).ok());
        limit = number.ok_or(words("ERR LIMIT can't be negative"))?;
        options = rest;
    }
    let sets = open(context, names)?;
    let size = intersection(context, &sets)?.len();
    Ok(count(if limit == 0 { size } else { size.min(limit) }))
}
