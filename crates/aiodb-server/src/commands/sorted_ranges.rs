//! Sorted sets: parts of them, by rank, by score and by the order of members.

use std::ops::Bound;

use bytes::Bytes;

use super::family::Family;
use super::sorted_sets::{SORTED, reply, set, take};
use crate::collection::{Kind, Span, ranked_member};
use crate::command::Run::Ranged;
use crate::command::{Command, Context, Keys, Opened, count, is_word, one_key};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words};
use crate::reply::{Answer, Reply};
use crate::score::parse_limit;

const BY_RANK: &str = "O(N) where N is how far the last one is from the nearer end";
const EACH: &str = "O(log(N)+M) with N the number of elements in the sorted set and M those in the range";
const RANGE: Family = SORTED.flags("readonly").keys(one_key("RO access")).complexity(EACH);
const COUNT: Family = SORTED.flags("readonly fast").keys(one_key("RO access")).complexity(EACH);
const REMOVE: Family = SORTED.flags("write").keys(one_key("RW delete")).complexity(EACH);
const BETWEEN: Keys = Keys { last: 2, others: "RO access", ..one_key("OW update") };
const STORE: Family = SORTED.flags("write denyoom").keys(BETWEEN).complexity(EACH);

const RANGE_SUMMARY: &str = "Return a range of members in a sorted set";
const REVERSE_SUMMARY: &str =
    "Return a range of members in a sorted set, by index, with scores ordered from high to low";
const SCORES_SUMMARY: &str = "Return a range of members in a sorted set, by score";
const REVERSE_SCORES_SUMMARY: &str =
    "Return a range of members in a sorted set, by score, with scores ordered from high to low";
const NAMES_SUMMARY: &str = "Return a range of members in a sorted set, by lexicographical range";
const REVERSE_NAMES_SUMMARY: &str =
    "Return a range of members in a sorted set, by lexicographical range, ordered from higher to lower strings.";
const COUNT_NAMES_SUMMARY: &str = "Count the number of members in a sorted set between a given lexicographical range";
const REMOVE_RANKS_SUMMARY: &str = "Remove all members in a sorted set within the given indexes";
const REMOVE_SCORES_SUMMARY: &str = "Remove all members in a sorted set within the given scores";
const REMOVE_NAMES_SUMMARY: &str = "Remove all members in a sorted set between the given lexicographical range";

pub(super) static COMMANDS: &[Command] = &[
    RANGE.complexity(BY_RANK).command("zrange", -4, Ranged(zrange), "1.2.0", RANGE_SUMMARY),
    RANGE.complexity(BY_RANK).command("zrevrange", -4, Ranged(zrevrange), "1.2.0", REVERSE_SUMMARY),
    RANGE.command("zrangebyscore", -4, Ranged(zrangebyscore), "1.0.5", SCORES_SUMMARY),
    RANGE.command("zrevrangebyscore", -4, Ranged(zrevrangebyscore), "2.2.0", REVERSE_SCORES_SUMMARY),
    RANGE.command("zrangebylex", -4, Ranged(zrangebylex), "2.8.9", NAMES_SUMMARY),
    RANGE.command("zrevrangebylex", -4, Ranged(zrevrangebylex), "2.8.9", REVERSE_NAMES_SUMMARY),
    STORE.command(
        "zrangestore",
        -5,
        Ranged(zrangestore),
        "6.2.0",
        "Store a range of members from sorted set into another key",
    ),
    COUNT.command(
        "zcount",
        4,
        Ranged(zcount),
        "2.0.0",
        "Count the members in a sorted set with scores within the given values",
    ),
    COUNT.command("zlexcount", 4, Ranged(zlexcount), "2.8.9", COUNT_NAMES_SUMMARY),
    REMOVE.complexity(BY_RANK).command("zremrangebyrank", 4, Ranged(zremrangebyrank), "2.0.0", REMOVE_RANKS_SUMMARY),
    REMOVE.command("zremrangebyscore", 4, Ranged(zremrangebyscore), "1.2.0", REMOVE_SCORES_SUMMARY),
    REMOVE.command("zremrangebylex", 4, Ranged(zremrangebylex), "2.8.9", REMOVE_NAMES_SUMMARY),
];

/// What a range goes by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Name,
}

/// A range of members.
enum Range {
    /// From one index to another, both included; they count from the end if they are negative.
    Ranks(i64, i64),
    Scores(Bound<f64>, Bound<f64>),
    Names(Names),
}

impl Range {
    /// Reads the least and the greatest that are in a range.
    fn parse(by: By, min: &Bytes, max: &Bytes) -> Result<Range, Refusal> {
        match by {
            By::Rank => {
                let index = |text| parse_integer(text).ok_or(NOT_AN_INTEGER);
                Ok(Range::Ranks(index(min)?, index(max)?))
            }
            By::Score => {
                let limit = |text| parse_limit(text).ok_or(words("ERR min or max is not a float"));
                Ok(Range::Scores(limit(min)?, limit(max)?))
            }
            By::Name => {
                let limit = |text| Limit::parse(text).ok_or(words("ERR min or max not valid string range item"));
                Ok(Range::Names(Names { min: limit(min)?, max: limit(max)? }))
            }
        }
    }
}

/// A range of members by themselves. Redis says what it means for members with the same score only; for others this does what it
/// does in its small sorted sets: to begin at the first one that is not before the range, and to end before the first one behind it.
struct Names {
    min: Limit,
    max: Limit,
}

/// An end of a range of members by themselves.
enum Limit {
    /// Before all.
    Least,
    /// After all.
    Greatest,
    Included(Bytes),
    Excluded(Bytes),
}

impl Limit {
    fn parse(text: &Bytes) -> Option<Limit> {
        match &text[..] {
            b"-" => Some(Limit::Least),
            b"+" => Some(Limit::Greatest),
            [b'[', ..] => Some(Limit::Included(text.slice(1..))),
            [b'(', ..] => Some(Limit::Excluded(text.slice(1..))),
            _ => None,
        }
    }

    /// As an end of the members of one score; `None` for an end beyond the other end of all.
    fn bound(&self, open: &Limit) -> Option<Bound<&[u8]>> {
        match self {
            Limit::Included(member) => Some(Bound::Included(member)),
            Limit::Excluded(member) => Some(Bound::Excluded(member)),
            limit => (std::mem::discriminant(limit) == std::mem::discriminant(open)).then_some(Bound::Unbounded),
        }
    }
}

impl Names {
    fn is_from(&self, member: &[u8]) -> bool {
        match &self.min {
            Limit::Least => true,
            Limit::Greatest => false,
            Limit::Included(min) => member >= &min[..],
            Limit::Excluded(min) => member > &min[..],
        }
    }

    fn is_to(&self, member: &[u8]) -> bool {
        match &self.max {
            Limit::Least => false,
            Limit::Greatest => true,
            Limit::Included(max) => member <= &max[..],
            Limit::Excluded(max) => member < &max[..],
        }
    }

    /// Whether no member can be in it.
    fn is_empty(&self) -> bool {
        match (&self.min, &self.max) {
            (Limit::Greatest, _) | (_, Limit::Least) => true,
            (Limit::Included(min), Limit::Included(max)) => min > max,
            (Limit::Included(min) | Limit::Excluded(min), Limit::Included(max) | Limit::Excluded(max)) => min >= max,
            _ => false,
        }
    }
}

/// Members of a span by rank with their scores, for as long as `visit` wants more.
fn visit_span(
    context: &Context<'_, '_>,
    sorted: &Opened,
    span: &Span,
    mut visit: impl FnMut(&[u8], f64) -> bool,
) -> Result<(), Refusal> {
    let each = |name: &[u8], _: &[u8]| ranked_member(name).is_none_or(|(member, score)| visit(member, score));
    context.space.elements.visit(sorted.owner(), span, each)
}

/// The first member with its score, or the last one.
fn end_of(context: &Context<'_, '_>, sorted: &Opened, is_backward: bool) -> Result<Option<(Bytes, f64)>, Refusal> {
    let mut end = None;
    visit_span(context, sorted, &Span { is_backward, ..Span::by_rank() }, |member, score| {
        end = Some((Bytes::copy_from_slice(member), score));
        false
    })?;
    Ok(end)
}

/// Members of a range with their scores, in this or the opposite order, for as long as `visit` wants more.
fn visit(
    context: &Context<'_, '_>,
    sorted: &Opened,
    range: &Range,
    is_backward: bool,
    visit: impl FnMut(&[u8], f64) -> bool,
) -> Result<(), Refusal> {
    match range {
        Range::Ranks(start, stop) => visit_ranks(context, sorted, [*start, *stop], is_backward, visit),
        Range::Scores(min, max) => {
            visit_span(context, sorted, &Span { is_backward, ..Span::of_scores(*min, *max) }, visit)
        }
        Range::Names(names) => visit_names(context, sorted, names, is_backward, visit),
    }
}

fn visit_ranks(
    context: &Context<'_, '_>,
    sorted: &Opened,
    [start, stop]: [i64; 2],
    is_backward: bool,
    mut visit: impl FnMut(&[u8], f64) -> bool,
) -> Result<(), Refusal> {
    let length = sorted.count() as i64;
    let from_start = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
    let (start, end) = (from_start(start).max(0), from_start(stop).saturating_add(1).clamp(0, length));
    if start >= end {
        return Ok(());
    }
    // From the nearer end: what comes from the other one must be turned around.
    let is_turned = start > length - end;
    let (skipped, wanted) = (if is_turned { length - end } else { start } as usize, (end - start) as usize);
    let (mut looked_at, mut found) = (0, Vec::new());
    let span = Span { is_backward: is_backward != is_turned, ..Span::by_rank() };
    visit_span(context, sorted, &span, |member, score| {
        looked_at += 1;
        if looked_at > skipped && is_turned {
            found.push((Bytes::copy_from_slice(member), score));
        } else if looked_at > skipped && !visit(member, score) {
            return false;
        }
        looked_at < skipped + wanted
    })?;
    for (member, score) in found.iter().rev() {
        if !visit(member, *score) {
            break;
        }
    }
    Ok(())
}

fn visit_names(
    context: &Context<'_, '_>,
    sorted: &Opened,
    names: &Names,
    is_backward: bool,
    mut visit: impl FnMut(&[u8], f64) -> bool,
) -> Result<(), Refusal> {
    let (first, last) = (end_of(context, sorted, false)?, end_of(context, sorted, true)?);
    let (Some((first, low)), Some((last, high))) = (first, last) else { return Ok(()) };
    if names.is_empty() || !names.is_from(&last) || !names.is_to(&first) {
        return Ok(());
    }
    let span = match (names.min.bound(&Limit::Least), names.max.bound(&Limit::Greatest)) {
        (Some(min), Some(max)) if low == high => Span::of_members(low, min, max),
        _ => Span::by_rank(),
    };
    let mut has_begun = false;
    visit_span(context, sorted, &Span { is_backward, ..span }, |member, score| {
        let (is_from, is_to) = (names.is_from(member), names.is_to(member));
        let (is_near, is_far) = if is_backward { (is_to, is_from) } else { (is_from, is_to) };
        has_begun |= is_near;
        !has_begun || is_far && visit(member, score)
    })
}

/// What ZRANGE and its like are asked for.
struct Query {
    range: Range,
    is_backward: bool,
    with_scores: bool,
    offset: i64,
    /// All if it is negative.
    most: i64,
}

impl Query {
    /// Reads the arguments from the least of the range on. `by` and `is_backward` are what the command's name says, if it does.
    fn parse(
        arguments: &[Bytes],
        mut by: Option<By>,
        mut is_backward: Option<bool>,
        may_ask_scores: bool,
    ) -> Result<Query, Refusal> {
        let (mut with_scores, mut offset, mut most) = (false, 0, -1);
        let mut options = &arguments[2..];
        while let [option, rest @ ..] = options {
            options = rest;
            match (option, rest) {
                (option, _) if may_ask_scores && is_word(option, "withscores") => with_scores = true,
                (option, [first, second, rest @ ..]) if is_word(option, "limit") => {
                    let number = |text| parse_integer(text).ok_or(NOT_AN_INTEGER);
                    (offset, most) = (number(first)?, number(second)?);
                    options = rest;
                }
                (option, _) if is_backward.is_none() && is_word(option, "rev") => is_backward = Some(true),
                (option, _) if by.is_none() && is_word(option, "bylex") => by = Some(By::Name),
                (option, _) if by.is_none() && is_word(option, "byscore") => by = Some(By::Score),
                _ => return Err(SYNTAX),
            }
        }
        let (by, is_backward) = (by.unwrap_or(By::Rank), is_backward.unwrap_or(false));
        if most != -1 && by == By::Rank {
            return Err(words("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX"));
        }
        if with_scores && by == By::Name {
            return Err(words("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let is_turned = is_backward && by != By::Rank;
        let (min, max) = if is_turned { (&arguments[1], &arguments[0]) } else { (&arguments[0], &arguments[1]) };
        let range = Range::parse(by, min, max)?;
        // One without LIMIT may still have its offset, which means nothing by rank.
        let offset = if by == By::Rank { 0 } else { offset };
        Ok(Query { range, is_backward, with_scores, offset, most })
    }

    /// The members that are asked for, with their scores.
    fn find(&self, context: &Context<'_, '_>, sorted: &Opened) -> Result<Vec<(Bytes, f64)>, Refusal> {
        let mut found = Vec::new();
        if self.offset < 0 || self.most == 0 {
            return Ok(found);
        }
        let (mut skipped, most) = (0, u64::try_from(self.most).unwrap_or(u64::MAX));
        visit(context, sorted, &self.range, self.is_backward, |member, score| {
            if skipped < self.offset {
                skipped += 1;
                return true;
            }
            found.push((Bytes::copy_from_slice(member), score));
            (found.len() as u64) < most
        })?;
        Ok(found)
    }
}

fn answer(context: &mut Context<'_, '_>, arguments: &[Bytes], by: Option<By>, is_backward: Option<bool>) -> Answer {
    let query = Query::parse(&arguments[2..], by, is_backward, true)?;
    let Some(sorted) = context.look_up_collection(&arguments[1], Kind::SortedSet)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let found = query.find(context, &sorted)?;
    Ok(reply(context, found, query.with_scores))
}

fn zrange(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, None, None)
}

fn zrevrange(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Some(By::Rank), Some(true))
}

fn zrangebyscore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Some(By::Score), Some(false))
}

fn zrevrangebyscore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Some(By::Score), Some(true))
}

fn zrangebylex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Some(By::Name), Some(false))
}

fn zrevrangebylex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Some(By::Name), Some(true))
}

/// Puts members with scores under a key, in the place of what it has; without any it has nothing. How many there are.
pub(super) fn store(context: &mut Context<'_, '_>, name: &Bytes, members: Vec<(Bytes, f64)>) -> Answer {
    let size = members.len();
    if members.is_empty() {
        if context.get(name)?.is_some() {
            context.delete(name);
        }
        return Ok(count(0));
    }
    let mut sorted = context.new_collection(name, Kind::SortedSet)?;
    for (member, score) in members {
        set(context, &mut sorted, &member, None, score);
    }
    context.store(sorted);
    Ok(count(size))
}

fn zrangestore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let query = Query::parse(&arguments[3..], None, None, false)?;
    let found = match context.look_up_collection(&arguments[2], Kind::SortedSet)? {
        None => Vec::new(),
        Some(sorted) => query.find(context, &sorted)?,
    };
    store(context, &arguments[1], found)
}

fn count_in(context: &mut Context<'_, '_>, arguments: &[Bytes], by: By) -> Answer {
    let range = Range::parse(by, &arguments[2], &arguments[3])?;
    let Some(sorted) = context.look_up_collection(&arguments[1], Kind::SortedSet)? else { return Ok(count(0)) };
    let mut size = 0;
    visit(context, &sorted, &range, false, |_, _| {
        size += 1;
        true
    })?;
    Ok(count(size))
}

fn zcount(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    count_in(context, arguments, By::Score)
}

fn zlexcount(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    count_in(context, arguments, By::Name)
}

fn remove(context: &mut Context<'_, '_>, arguments: &[Bytes], by: By) -> Answer {
    let range = Range::parse(by, &arguments[2], &arguments[3])?;
    let Some(mut sorted) = context.collection(&arguments[1], Kind::SortedSet)? else { return Ok(count(0)) };
    let mut found = Vec::new();
    visit(context, &sorted, &range, false, |member, score| {
        found.push((Bytes::copy_from_slice(member), score));
        true
    })?;
    for (member, score) in &found {
        take(context, &mut sorted, member, *score);
    }
    if !found.is_empty() {
        context.store(sorted);
    }
    Ok(count(found.len()))
}

fn zremrangebyrank(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    remove(context, arguments, By::Rank)
}

fn zremrangebyscore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    remove(context, arguments, By::Score)
}

fn zremrangebylex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    remove(context, arguments, By::Name)
}
