//! Sorted sets: members with scores, changed and asked one by one. A member lies in two rows, by itself and by its rank.

use bytes::Bytes;

use super::family::Family;
use super::pop_of::PopOf;
use super::random;
use super::scanning::{self, Page};
use crate::collection::{Collection, Kind, Span, member_name, ranked_member, ranked_name};
use crate::command::Run::{Grouped, Ranged};
use crate::command::{Command, Context, Keys, NO_KEYS, Opened, count, is_word, one_key};
use crate::number::parse_integer;
use crate::refusal::{NOT_A_FLOAT, NOT_POSITIVE, Refusal, SYNTAX, words};
use crate::reply::{Answer, Reply};
use crate::score::{parse_score, score_text};

pub(super) const SORTED: Family = Family::new("sorted-set", "@sortedset");
const READ: Family = SORTED.flags("readonly").keys(one_key("RO access"));
const READ_FAST: Family = SORTED.flags("readonly fast").keys(one_key("RO access"));

const EACH: &str = "O(N) where N is the number of members";
const ASK: Family = READ_FAST.members(2, 2, 1);
const SIZE: Family = SORTED.flags("readonly fast").keys(one_key("RO"));
const ASK_RANK: Family = ASK.complexity("O(N) where N is the rank");
const ADD: Family = SORTED.flags("write denyoom fast").keys(one_key("RW update")).ahead(added).complexity(EACH);
const INCREMENT: Family = SORTED.flags("write denyoom fast").keys(one_key("RW access update")).members(3, 3, 1);
const REMOVE: Family = SORTED.flags("write fast").keys(one_key("RW delete")).members(2, -1, 1).complexity(EACH);
const POP: Family = SORTED.flags("write fast").keys(one_key("RW access delete")).complexity(EACH);
const COUNTED: Keys = Keys { counted_at: 1, flags: "RW access delete", ..NO_KEYS };
const POP_OF: Family = SORTED.flags("write movablekeys").keys(COUNTED).complexity(EACH);

const ADD_SUMMARY: &str = "Add one or more members to a sorted set, or update its score if it already exists";
const INCREMENT_SUMMARY: &str = "Increment the score of a member in a sorted set";
const SCORES_SUMMARY: &str = "Get the score associated with the given members in a sorted set";
const SCORE_SUMMARY: &str = "Get the score associated with the given member in a sorted set";
const RANK_SUMMARY: &str = "Determine the index of a member in a sorted set";
const REVERSE_SUMMARY: &str = "Determine the index of a member in a sorted set, with scores ordered from high to low";
const LOWEST_SUMMARY: &str = "Remove and return members with the lowest scores in a sorted set";
const HIGHEST_SUMMARY: &str = "Remove and return members with the highest scores in a sorted set";
const POP_OF_SUMMARY: &str = "Remove and return members with scores in a sorted set";
const SCAN_SUMMARY: &str = "Incrementally iterate sorted sets elements and associated scores";
const RANDOM_SUMMARY: &str = "Get one or multiple random elements from a sorted set";

pub(super) static COMMANDS: &[Command] = &[
    ADD.command("zadd", -4, Grouped(zadd), "1.2.0", ADD_SUMMARY),
    INCREMENT.command("zincrby", 4, Grouped(zincrby), "1.2.0", INCREMENT_SUMMARY),
    REMOVE.command("zrem", -3, Grouped(zrem), "1.2.0", "Remove one or more members from a sorted set"),
    ASK.command("zscore", 3, Grouped(zscore), "1.2.0", SCORE_SUMMARY),
    READ_FAST.members(2, -1, 1).complexity(EACH).command("zmscore", -3, Grouped(zmscore), "6.2.0", SCORES_SUMMARY),
    SIZE.command("zcard", 2, Grouped(zcard), "1.2.0", "Get the number of members in a sorted set"),
    ASK_RANK.command("zrank", 3, Ranged(zrank), "2.0.0", RANK_SUMMARY),
    ASK_RANK.command("zrevrank", 3, Ranged(zrevrank), "2.0.0", REVERSE_SUMMARY),
    POP.command("zpopmin", -2, Ranged(zpopmin), "5.0.0", LOWEST_SUMMARY),
    POP.command("zpopmax", -2, Ranged(zpopmax), "5.0.0", HIGHEST_SUMMARY),
    POP_OF.command("zmpop", -4, Ranged(zmpop), "7.0.0", POP_OF_SUMMARY),
    READ.complexity(EACH).command("zscan", -3, Ranged(zscan), "2.8.0", SCAN_SUMMARY),
    READ.complexity(EACH).command("zrandmember", -2, Ranged(zrandmember), "6.2.0", RANDOM_SUMMARY),
];

/// The words for the ends of a sorted set.
pub(super) const ENDS: [&str; 2] = ["min", "max"];

/// What is wrong with a sum of scores.
const NOT_A_NUMBER: Refusal = words("ERR resulting score is not a number (NaN)");

/// The score that is stored with a member.
pub(super) fn stored_score(value: &[u8]) -> Result<f64, Refusal> {
    let wrong = |_| Refusal::Foreign { reason: "of a member is no score".into() };
    Ok(f64::from_le_bytes(value.try_into().map_err(wrong)?))
}

/// The score of a member.
fn score(context: &mut Context<'_, '_>, sorted: &Opened, member: &[u8]) -> Result<Option<f64>, Refusal> {
    let value = context.space.elements.get(sorted.owner(), &member_name(member))?;
    value.map(|value| stored_score(&value)).transpose()
}

/// Gives a member a score, in the place of the one that it has.
pub(super) fn set(context: &mut Context<'_, '_>, sorted: &mut Opened, member: &[u8], old: Option<f64>, score: f64) {
    // The zero below zero is zero, as in Redis's small sorted sets.
    let score = score + 0.0;
    let (owner, elements) = (sorted.owner(), &mut context.space.elements);
    match old {
        Some(old) => elements.delete(owner, ranked_name(old, member)),
        None => sorted.entry.value.count += 1,
    }
    elements.put(owner, ranked_name(score, member), Bytes::new());
    elements.put(owner, member_name(member), Bytes::copy_from_slice(&score.to_le_bytes()));
}

/// Takes a member with this score out.
pub(super) fn take(context: &mut Context<'_, '_>, sorted: &mut Opened, member: &[u8], score: f64) {
    let (owner, elements) = (sorted.owner(), &mut context.space.elements);
    elements.delete(owner, ranked_name(score, member));
    elements.delete(owner, member_name(member));
    sorted.entry.value.count -= 1;
}

/// The reply to a client that asked for members, and maybe for their scores.
pub(super) fn reply(context: &Context<'_, '_>, members: Vec<(Bytes, f64)>, with_scores: bool) -> Reply {
    let pairs = members.into_iter().map(|(member, score)| (Reply::Bulk(member), Reply::Double(score)));
    random::reply(context, pairs, with_scores)
}

/// The options of ZADD.
#[derive(Default)]
struct AddOptions {
    only_new: bool,
    only_old: bool,
    greater: bool,
    less: bool,
    counts_changed: bool,
    increments: bool,
}

impl AddOptions {
    /// Reads options; the scores and members come behind them.
    fn parse(arguments: &[Bytes]) -> Result<(AddOptions, &[Bytes]), Refusal> {
        let mut options = AddOptions::default();
        let mut rest = arguments;
        while let [option, others @ ..] = rest {
            match option {
                option if is_word(option, "nx") => options.only_new = true,
                option if is_word(option, "xx") => options.only_old = true,
                option if is_word(option, "gt") => options.greater = true,
                option if is_word(option, "lt") => options.less = true,
                option if is_word(option, "ch") => options.counts_changed = true,
                option if is_word(option, "incr") => options.increments = true,
                _ => break,
            }
            rest = others;
        }
        if rest.is_empty() || rest.len() % 2 == 1 {
            return Err(SYNTAX);
        }
        let AddOptions { only_new, only_old, greater, less, increments, .. } = options;
        if only_new && only_old {
            return Err(words("ERR XX and NX options at the same time are not compatible"));
        }
        if only_new && (greater || less) || greater && less {
            return Err(words("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if increments && rest.len() > 2 {
            return Err(words("ERR INCR option supports a single increment-element pair"));
        }
        Ok((options, rest))
    }

    /// The score that a member gets; `None` if it keeps what it has.
    fn score_for(&self, old: Option<f64>, given: f64) -> Result<Option<f64>, Refusal> {
        let Some(old) = old else { return Ok(Some(given).filter(|_| !self.only_old)) };
        let new = if self.increments { old + given } else { given };
        if self.only_new {
            return Ok(None);
        }
        if new.is_nan() {
            return Err(NOT_A_NUMBER);
        }
        Ok(Some(new).filter(|new| !(self.less && *new >= old || self.greater && *new <= old)))
    }
}

/// The elements whose scores ZADD must know.
fn added(arguments: &[Bytes], _: &mut Collection) -> Vec<Bytes> {
    let pairs = AddOptions::parse(&arguments[2..]).map_or(&[][..], |(_, pairs)| pairs);
    pairs.iter().skip(1).step_by(2).map(|member| member_name(member)).collect()
}

fn zadd(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (options, pairs) = AddOptions::parse(&arguments[2..])?;
    add(context, &arguments[1], &options, pairs)
}

fn zincrby(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let options = AddOptions { increments: true, ..AddOptions::default() };
    add(context, &arguments[1], &options, &arguments[2..])
}

fn add(context: &mut Context<'_, '_>, name: &Bytes, options: &AddOptions, pairs: &[Bytes]) -> Answer {
    let scores: Option<Vec<f64>> = pairs.iter().step_by(2).map(|score| parse_score(score)).collect();
    let scores = scores.ok_or(NOT_A_FLOAT)?;
    let mut sorted = match context.collection(name, Kind::SortedSet)? {
        Some(sorted) => sorted,
        None if options.only_old => return Ok(if options.increments { Reply::Nil } else { count(0) }),
        None => context.new_collection(name, Kind::SortedSet)?,
    };
    let (mut added, mut updated, mut last) = (0, 0, None);
    for (given, member) in scores.into_iter().zip(pairs.iter().skip(1).step_by(2)) {
        let old = score(context, &sorted, member)?;
        let Some(new) = options.score_for(old, given)? else { continue };
        last = Some(new);
        if old != last {
            set(context, &mut sorted, member, old, new);
            added += usize::from(old.is_none());
            updated += usize::from(old.is_some());
        }
    }
    if added + updated > 0 {
        context.store(sorted);
    }
    Ok(match (options.increments, last) {
        (true, score) => score.map_or(Reply::Nil, Reply::Double),
        (false, _) => count(if options.counts_changed { added + updated } else { added }),
    })
}

fn zrem(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(mut sorted) = context.collection(&arguments[1], Kind::SortedSet)? else { return Ok(count(0)) };
    let mut removed = 0;
    for member in &arguments[2..] {
        if let Some(score) = score(context, &sorted, member)? {
            take(context, &mut sorted, member, score);
            removed += 1;
        }
    }
    if removed > 0 {
        context.store(sorted);
    }
    Ok(count(removed))
}

/// The scores of members of a sorted set that may be missing.
fn scores(context: &mut Context<'_, '_>, name: &Bytes, members: &[Bytes]) -> Result<Vec<Reply>, Refusal> {
    let sorted = context.look_up_collection(name, Kind::SortedSet)?;
    let mut replies = Vec::with_capacity(members.len());
    for member in members {
        let score = match &sorted {
            None => None,
            Some(sorted) => score(context, sorted, member)?,
        };
        replies.push(score.map_or(Reply::Nil, Reply::Double));
    }
    Ok(replies)
}

fn zscore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(scores(context, &arguments[1], &arguments[2..])?.remove(0))
}

fn zmscore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::Array(scores(context, &arguments[1], &arguments[2..])?))
}

fn zcard(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(count(context.look_up_collection(&arguments[1], Kind::SortedSet)?.map_or(0, |sorted| sorted.count())))
}

/// The index of a member, from the lowest score on or from the highest.
fn rank(context: &mut Context<'_, '_>, arguments: &[Bytes], is_backward: bool) -> Answer {
    let Some(sorted) = context.look_up_collection(&arguments[1], Kind::SortedSet)? else { return Ok(Reply::Nil) };
    let Some(score) = score(context, &sorted, &arguments[2])? else { return Ok(Reply::Nil) };
    let wanted = ranked_name(score, &arguments[2]);
    let mut index = 0;
    context.space.elements.visit(sorted.owner(), &Span { is_backward, ..Span::by_rank() }, |name, _| {
        let is_it = name == &wanted[..];
        index += usize::from(!is_it);
        !is_it
    })?;
    Ok(count(index))
}

fn zrank(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    rank(context, arguments, false)
}

fn zrevrank(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    rank(context, arguments, true)
}

/// Takes members with the lowest scores, or the highest: so many, or all that there are.
pub(super) fn pop(
    context: &mut Context<'_, '_>,
    mut sorted: Opened,
    is_last: bool,
    most: u64,
) -> Result<Vec<(Bytes, f64)>, Refusal> {
    let mut popped: Vec<(Bytes, f64)> = Vec::new();
    if most > 0 {
        let ranks = Span { is_backward: is_last, ..Span::by_rank() };
        context.space.elements.visit(sorted.owner(), &ranks, |name, _| {
            popped.extend(ranked_member(name).map(|(member, score)| (Bytes::copy_from_slice(member), score)));
            (popped.len() as u64) < most
        })?;
        for (member, score) in &popped {
            take(context, &mut sorted, member, *score);
        }
        context.store(sorted);
    }
    Ok(popped)
}

fn pop_all(context: &mut Context<'_, '_>, arguments: &[Bytes], is_last: bool) -> Answer {
    let wanted = match &arguments[2..] {
        [] => None,
        [wanted] => Some(parse_integer(wanted).filter(|wanted| *wanted >= 0).ok_or(NOT_POSITIVE)? as u64),
        _ => return Err(SYNTAX),
    };
    let popped = match context.collection(&arguments[1], Kind::SortedSet)? {
        None => Vec::new(),
        Some(sorted) => pop(context, sorted, is_last, wanted.unwrap_or(1))?,
    };
    if wanted.is_some() {
        return Ok(reply(context, popped, true));
    }
    // Of one there is no pair of its own, in either version of the protocol.
    let parts = popped.into_iter().flat_map(|(member, score)| [Reply::Bulk(member), Reply::Double(score)]);
    Ok(Reply::Array(parts.collect()))
}

fn zpopmin(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_all(context, arguments, false)
}

fn zpopmax(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_all(context, arguments, true)
}

fn zmpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let PopOf { names, is_last, most } = PopOf::parse(&arguments[1..], ENDS)?;
    for name in names {
        if let Some(sorted) = context.collection(name, Kind::SortedSet)? {
            return pop_named(context, name, sorted, is_last, most);
        }
    }
    Ok(Reply::NilArray)
}

/// Takes members at an end, and answers with their key, too.
pub(super) fn pop_named(
    context: &mut Context<'_, '_>,
    name: &Bytes,
    sorted: Opened,
    is_last: bool,
    most: u64,
) -> Answer {
    let popped = pop(context, sorted, is_last, most)?.into_iter();
    let pairs = popped.map(|(member, score)| Reply::Array(vec![Reply::Bulk(member), Reply::Double(score)]));
    Ok(Reply::Array(vec![Reply::Bulk(name.clone()), Reply::Array(pairs.collect())]))
}

fn zscan(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let cursor = scanning::parse_cursor(&arguments[2])?;
    let sorted = context.look_up_collection(&arguments[1], Kind::SortedSet)?;
    let Page { next, elements } = scanning::page(context, sorted.as_ref(), cursor, &arguments[3..], Span::by_member())?;
    let mut found = Vec::with_capacity(2 * elements.len());
    for (member, value) in elements {
        found.extend([Reply::Bulk(member), Reply::Bulk(score_text(stored_score(&value)?))]);
    }
    Ok(scanning::reply(next, found))
}

fn zrandmember(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let wanted = match arguments.get(2) {
        None => None,
        Some(wanted) => Some(random::parse_count(wanted, &arguments[3..], "withscores")?),
    };
    let Some(sorted) = context.look_up_collection(&arguments[1], Kind::SortedSet)? else {
        return Ok(wanted.map_or(Reply::Nil, |_| Reply::Array(Vec::new())));
    };
    let (most, with_scores) = wanted.unwrap_or((1, false));
    let mut drawn = Vec::new();
    for (name, value) in random::draw(context, &sorted, &Span::by_member(), most)? {
        drawn.push((Kind::SortedSet.member_of(&name), stored_score(&value)?));
    }
    if wanted.is_none() {
        return Ok(drawn.pop().map_or(Reply::Nil, |(member, _)| Reply::Bulk(member)));
    }
    Ok(reply(context, drawn, with_scores))
}
