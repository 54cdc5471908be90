//! Sets: members under one key. An element's name is the member; it has no value.

use bytes::Bytes;

use super::family::Family;
use super::random;
use super::scanning::{self, Page};
use crate::collection::{Kind, Span};
use crate::command::Run::{Grouped, Ranged};
use crate::command::{Command, Context, Keys, Opened, count, one_key};
use crate::number::parse_integer;
use crate::refusal::{NOT_POSITIVE, Refusal, SYNTAX};
use crate::reply::{Answer, Reply};

const SET: Family = Family::new("set", "@set");
const READ_FAST: Family = SET.flags("readonly fast");
const WRITE_FAST: Family = SET.flags("write fast");

const EACH: &str = "O(N) where N is the number of members";
const ADD: Family = SET.flags("write denyoom fast").keys(one_key("RW insert")).members(2, -1, 1).complexity(EACH);
const REMOVE: Family = WRITE_FAST.keys(one_key("RW delete")).members(2, -1, 1).complexity(EACH);
const ASK: Family = READ_FAST.keys(one_key("RO")).members(2, 2, 1);
const ASK_EACH: Family = READ_FAST.keys(one_key("RO access")).members(2, -1, 1).complexity(EACH);
const SIZE: Family = READ_FAST.keys(one_key("RO"));
const ALL: Family = SET.flags("readonly").keys(one_key("RO access")).complexity("O(N) where N is the set cardinality.");
const POP: Family = WRITE_FAST.keys(one_key("RW access delete")).complexity(EACH);
const BETWEEN: Keys = Keys { last: 2, others: "RW insert", ..one_key("RW access delete") };
const MOVE: Family = WRITE_FAST.keys(BETWEEN).members(3, 3, 1);

const POP_SUMMARY: &str = "Remove and return one or multiple random members from a set";
const ASK_EACH_SUMMARY: &str = "Returns the membership associated with the given elements for a set";
const RANDOM_SUMMARY: &str = "Get one or multiple random members from a set";

pub(super) static COMMANDS: &[Command] = &[
    ADD.command("sadd", -3, Grouped(sadd), "1.0.0", "Add one or more members to a set"),
    REMOVE.command("srem", -3, Grouped(srem), "1.0.0", "Remove one or more members from a set"),
    ASK.command("sismember", 3, Grouped(sismember), "1.0.0", "Determine if a given value is a member of a set"),
    ASK_EACH.command("smismember", -3, Grouped(smismember), "6.2.0", ASK_EACH_SUMMARY),
    SIZE.command("scard", 2, Grouped(scard), "1.0.0", "Get the number of members in a set"),
    ALL.command("smembers", 2, Ranged(smembers), "1.0.0", "Get all the members in a set"),
    POP.command("spop", -2, Ranged(spop), "1.0.0", POP_SUMMARY),
    ALL.command("srandmember", -2, Ranged(srandmember), "1.0.0", RANDOM_SUMMARY),
    MOVE.command("smove", 4, Grouped(smove), "1.0.0", "Move a member from one set to another"),
    ALL.command("sscan", -3, Ranged(sscan), "2.8.0", "Incrementally iterate Set elements"),
];

/// Adds a member; whether it is new.
pub(super) fn add(context: &mut Context<'_, '_>, set: &mut Opened, member: &Bytes) -> Result<bool, Refusal> {
    let is_new = context.space.elements.get(set.owner(), member)?.is_none();
    if is_new {
        context.space.elements.put(set.owner(), member.clone(), Bytes::new());
        set.entry.value.count += 1;
    }
    Ok(is_new)
}

/// Takes a member out; whether it was there.
fn remove(context: &mut Context<'_, '_>, set: &mut Opened, member: &Bytes) -> Result<bool, Refusal> {
    let is_there = context.space.elements.get(set.owner(), member)?.is_some();
    if is_there {
        context.space.elements.delete(set.owner(), member.clone());
        set.entry.value.count -= 1;
    }
    Ok(is_there)
}

fn sadd(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut set = context.collection_or_new(&arguments[1], Kind::Set)?;
    let mut added = 0;
    for member in &arguments[2..] {
        added += usize::from(add(context, &mut set, member)?);
    }
    if added > 0 {
        context.store(set);
    }
    Ok(count(added))
}

fn srem(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(mut set) = context.collection(&arguments[1], Kind::Set)? else { return Ok(count(0)) };
    let mut removed = 0;
    for member in &arguments[2..] {
        removed += usize::from(remove(context, &mut set, member)?);
    }
    if removed > 0 {
        context.store(set);
    }
    Ok(count(removed))
}

/// Whether each of these is a member of a set that may be missing.
fn memberships(context: &mut Context<'_, '_>, name: &Bytes, members: &[Bytes]) -> Result<Vec<Reply>, Refusal> {
    let set = context.look_up_collection(name, Kind::Set)?;
    let mut replies = Vec::with_capacity(members.len());
    for member in members {
        let is_member = match &set {
            None => false,
            Some(set) => context.space.elements.get(set.owner(), member)?.is_some(),
        };
        replies.push(Reply::flag(is_member));
    }
    Ok(replies)
}

fn sismember(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(memberships(context, &arguments[1], &arguments[2..])?.remove(0))
}

fn smismember(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::Array(memberships(context, &arguments[1], &arguments[2..])?))
}

fn scard(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(count(context.look_up_collection(&arguments[1], Kind::Set)?.map_or(0, |set| set.count())))
}

fn smembers(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(set) = context.look_up_collection(&arguments[1], Kind::Set)? else { return Ok(Reply::Set(Vec::new())) };
    let mut members = Vec::with_capacity(set.count());
    context.space.elements.visit(set.owner(), &Span::MEMBERS, |member, _| {
        members.push(Reply::copied(member));
        true
    })?;
    Ok(Reply::Set(members))
}

fn spop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let wanted = match &arguments[2..] {
        [] => None,
        [wanted] => Some(parse_integer(wanted).filter(|wanted| *wanted >= 0).ok_or(NOT_POSITIVE)?),
        _ => return Err(SYNTAX),
    };
    let Some(mut set) = context.collection(&arguments[1], Kind::Set)? else {
        return Ok(wanted.map_or(Reply::Nil, |_| Reply::Set(Vec::new())));
    };
    let size = set.count();
    let drawn = random::draw(context, &set, &Span::NAMES, wanted.unwrap_or(1))?;
    let members = drawn.into_iter().map(|(member, _)| member).collect::<Vec<_>>();
    if members.len() == size {
        context.delete(&arguments[1]);
    } else if !members.is_empty() {
        for member in &members {
            context.space.elements.delete(set.owner(), member.clone());
        }
        set.entry.value.count -= members.len() as u64;
        context.store(set);
    }
    let mut replies = members.into_iter().map(Reply::Bulk);
    Ok(if wanted.is_some() { Reply::Set(replies.collect()) } else { replies.next().unwrap_or(Reply::Nil) })
}

fn srandmember(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let wanted = match &arguments[2..] {
        [] => None,
        [wanted] => Some(random::parse_count(wanted, &[], "")?.0),
        _ => return Err(SYNTAX),
    };
    let Some(set) = context.look_up_collection(&arguments[1], Kind::Set)? else {
        return Ok(wanted.map_or(Reply::Nil, |_| Reply::Array(Vec::new())));
    };
    let drawn = random::draw(context, &set, &Span::NAMES, wanted.unwrap_or(1))?;
    let mut replies = drawn.into_iter().map(|(member, _)| Reply::Bulk(member));
    Ok(if wanted.is_some() { Reply::Array(replies.collect()) } else { replies.next().unwrap_or(Reply::Nil) })
}

fn smove(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (from, to, member) = (&arguments[1], &arguments[2], &arguments[3]);
    let Some(mut source) = context.collection(from, Kind::Set)? else { return Ok(Reply::flag(false)) };
    context.collection(to, Kind::Set)?;
    if from == to {
        return Ok(Reply::flag(context.space.elements.get(source.owner(), member)?.is_some()));
    }
    if !remove(context, &mut source, member)? {
        return Ok(Reply::flag(false));
    }
    context.store(source);
    let mut target = context.collection_or_new(to, Kind::Set)?;
    if add(context, &mut target, member)? {
        context.store(target);
    }
    Ok(Reply::flag(true))
}

fn sscan(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let cursor = scanning::parse_cursor(&arguments[2])?;
    let set = context.look_up_collection(&arguments[1], Kind::Set)?;
    let Page { next, elements } = scanning::page(context, set.as_ref(), cursor, &arguments[3..], Span::NAMES)?;
    Ok(scanning::reply(next, elements.into_iter().map(|(member, _)| Reply::Bulk(member)).collect()))
}
