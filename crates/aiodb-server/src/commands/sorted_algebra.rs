//! Sorted sets made of sorted sets and sets: unions, intersections, differences. What comes out is gathered in memory.

use std::collections::HashMap;

use bytes::Bytes;

use super::family::Family;
use super::sorted_ranges::store;
use super::sorted_sets::{SORTED, reply, stored_score};
use crate::collection::{Kind, Span};
use crate::command::Run::Ranged;
use crate::command::{Command, Context, Keys, NO_KEYS, Opened, count, is_word, one_key};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, said, words};
use crate::reply::Answer;
use crate::score::parse_score;

const EACH: Family = SORTED.complexity("O(N*log(N)) where N is the total number of elements in all given sets.");
const COUNTED: Keys = Keys { counted_at: 1, flags: "RO access", ..NO_KEYS };
const READ: Family = EACH.flags("readonly movablekeys").keys(COUNTED);
const STORED: Keys = Keys { counted_at: 2, others: "RO access", ..one_key("OW update") };
const STORE: Family = EACH.flags("write denyoom movablekeys").keys(STORED);

const UNION_STORE_SUMMARY: &str = "Add multiple sorted sets and store the resulting sorted set in a new key";
const INTER_STORE_SUMMARY: &str = "Intersect multiple sorted sets and store the resulting sorted set in a new key";
const INTER_CARD_SUMMARY: &str = "Intersect multiple sorted sets and return the cardinality of the result";
const DIFF_STORE_SUMMARY: &str = "Subtract multiple sorted sets and store the resulting sorted set in a new key";

pub(super) static COMMANDS: &[Command] = &[
    READ.command("zunion", -3, Ranged(zunion), "6.2.0", "Add multiple sorted sets"),
    READ.command("zinter", -3, Ranged(zinter), "6.2.0", "Intersect multiple sorted sets"),
    READ.command("zdiff", -3, Ranged(zdiff), "6.2.0", "Subtract multiple sorted sets"),
    READ.command("zintercard", -3, Ranged(zintercard), "7.0.0", INTER_CARD_SUMMARY),
    STORE.command("zunionstore", -4, Ranged(zunionstore), "2.0.0", UNION_STORE_SUMMARY),
    STORE.command("zinterstore", -4, Ranged(zinterstore), "2.0.0", INTER_STORE_SUMMARY),
    STORE.command("zdiffstore", -4, Ranged(zdiffstore), "6.2.0", DIFF_STORE_SUMMARY),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// What becomes of the scores that a member has in several sets.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Least,
    Greatest,
}

impl Aggregate {
    fn parse(word: &[u8]) -> Option<Aggregate> {
        let words = [("sum", Aggregate::Sum), ("min", Aggregate::Least), ("max", Aggregate::Greatest)];
        words.into_iter().find(|(name, _)| is_word(word, name)).map(|(_, aggregate)| aggregate)
    }

    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            Aggregate::Sum => number_or_zero(left + right),
            Aggregate::Least => {
                if right < left {
                    right
                } else {
                    left
                }
            }
            Aggregate::Greatest => {
                if right > left {
                    right
                } else {
                    left
                }
            }
        }
    }
}

/// Infinity and its opposite make zero, as does zero times either.
fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// What follows the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Reply,
    Stored,
    Size,
}

/// A set of which something is made, with its weight; a missing one is none.
struct Source {
    opened: Option<Opened>,
    weight: f64,
}

impl Source {
    fn size(&self) -> usize {
        self.opened.as_ref().map_or(0, Opened::count)
    }

    /// Members with their scores; those of a set have 1.
    fn members(&self, context: &Context<'_, '_>) -> Result<Vec<(Bytes, f64)>, Refusal> {
        let Some(opened) = &self.opened else { return Ok(Vec::new()) };
        let kind = opened.entry.value.kind;
        let span = if kind == Kind::Set { Span::NAMES } else { Span::by_member() };
        let (mut members, mut outcome) = (Vec::with_capacity(opened.count()), Ok(()));
        context.space.elements.visit(opened.owner(), &span, |name, value| {
            let score = if kind == Kind::Set { Ok(1.0) } else { stored_score(value) };
            match score {
                Ok(score) => members.push((kind.member_of(&Bytes::copy_from_slice(name)), score)),
                Err(refusal) => outcome = Err(refusal),
            }
            outcome.is_ok()
        })?;
        outcome.map(|()| members)
    }
}

/// What a command asks for.
struct Query {
    sources: Vec<Source>,
    aggregate: Aggregate,
    with_scores: bool,
    /// 0 for all.
    limit: usize,
}

impl Query {
    /// Reads the arguments from the number of keys on, and opens the sets.
    fn open(
        context: &mut Context<'_, '_>,
        name: &[u8],
        arguments: &[Bytes],
        operation: Operation,
        wanted: Wanted,
    ) -> Result<Query, Refusal> {
        let keys = parse_integer(&arguments[0]).ok_or(NOT_AN_INTEGER)?;
        if keys < 1 {
            let name = String::from_utf8_lossy(name).to_lowercase();
            return Err(said(format!("ERR at least 1 input key is needed for '{name}' command")));
        }
        let keys = usize::try_from(keys).ok().filter(|keys| *keys < arguments.len()).ok_or(SYNTAX)?;
        let (names, options) = arguments[1..].split_at(keys);
        let mut sources = Vec::with_capacity(keys);
        for name in names {
            let opened = context.look_up_one_of(name, &[Kind::SortedSet, Kind::Set])?;
            sources.push(Source { opened, weight: 1.0 });
        }
        let mut query = Query { sources, aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
        query.read_options(options, operation, wanted)?;
        Ok(query)
    }

    fn read_options(&mut self, mut options: &[Bytes], operation: Operation, wanted: Wanted) -> Result<(), Refusal> {
        let has_scores = operation != Operation::Difference && wanted != Wanted::Size;
        while let [option, rest @ ..] = options {
            options = rest;
            if has_scores && is_word(option, "weights") && rest.len() >= self.sources.len() {
                let (weights, rest) = rest.split_at(self.sources.len());
                for (source, weight) in self.sources.iter_mut().zip(weights) {
                    source.weight = parse_score(weight).ok_or(words("ERR weight value is not a float"))?;
                }
                options = rest;
            } else if wanted == Wanted::Reply && is_word(option, "withscores") {
                self.with_scores = true;
            } else {
                let [value, rest @ ..] = rest else { return Err(SYNTAX) };
                if has_scores && is_word(option, "aggregate") {
                    self.aggregate = Aggregate::parse(value).ok_or(SYNTAX)?;
                } else if wanted == Wanted::Size && is_word(option, "limit") {
                    let number = parse_integer(value).and_then(|number| usize::try_from(number).ok());
                    self.limit = number.ok_or(words("ERR LIMIT can't be negative"))?;
                } else {
                    return Err(SYNTAX);
                }
                options = rest;
            }
        }
        Ok(())
    }

    /// What comes out, in the order of scores.
    fn find(mut self, context: &Context<'_, '_>, operation: Operation) -> Result<Vec<(Bytes, f64)>, Refusal> {
        if operation != Operation::Difference {
            // Scores are added in this order, too.
            self.sources.sort_by_key(Source::size);
        }
        let is_nothing = match operation {
            Operation::Union => false,
            Operation::Intersection | Operation::Difference => self.sources[0].size() == 0,
        };
        if is_nothing {
            return Ok(Vec::new());
        }
        let weight = self.sources[0].weight;
        let first = self.sources[0].members(context)?.into_iter();
        let mut found: HashMap<Bytes, f64> =
            first.map(|(member, score)| (member, number_or_zero(score * weight))).collect();
        for source in &self.sources[1..] {
            let members = source.members(context)?.into_iter();
            match operation {
                Operation::Union => members.for_each(|(member, score)| {
                    let score = number_or_zero(score * source.weight);
                    found.entry(member).and_modify(|sum| *sum = self.aggregate.of(*sum, score)).or_insert(score);
                }),
                Operation::Intersection => {
                    let shared = members.filter_map(|(member, score)| {
                        let sum = *found.get(&member)?;
                        Some((member, self.aggregate.of(sum, score * source.weight)))
                    });
                    found = shared.collect();
                }
                Operation::Difference => members.for_each(|(member, _)| {
                    found.remove(&member);
                }),
            }
        }
        let mut found: Vec<_> = found.into_iter().collect();
        // The zero below zero is where zero is.
        found.sort_unstable_by(|(left, low), (right, high)| (low + 0.0).total_cmp(&(high + 0.0)).then(left.cmp(right)));
        Ok(found)
    }
}

fn answer(context: &mut Context<'_, '_>, arguments: &[Bytes], operation: Operation) -> Answer {
    let query = Query::open(context, &arguments[0], &arguments[1..], operation, Wanted::Reply)?;
    let with_scores = query.with_scores;
    let found = query.find(context, operation)?;
    Ok(reply(context, found, with_scores))
}

fn store_all(context: &mut Context<'_, '_>, arguments: &[Bytes], operation: Operation) -> Answer {
    let query = Query::open(context, &arguments[0], &arguments[2..], operation, Wanted::Stored)?;
    let found = query.find(context, operation)?;
    store(context, &arguments[1], found)
}

fn zunion(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Operation::Union)
}

fn zinter(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Operation::Intersection)
}

fn zdiff(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    answer(context, arguments, Operation::Difference)
}

fn zintercard(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let query = Query::open(context, &arguments[0], &arguments[1..], Operation::Intersection, Wanted::Size)?;
    let limit = query.limit;
    let size = query.find(context, Operation::Intersection)?.len();
    Ok(count(if limit == 0 { size } else { size.min(limit) }))
}

fn zunionstore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    store_all(context, arguments, Operation::Union)
}

fn zinterstore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    store_all(context, arguments, Operation::Intersection)
}

fn zdiffstore(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    store_all(context, arguments, Operation::Difference)
}
