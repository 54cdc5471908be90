//! Elements of lists by what they are: where one is, and changes in the middle. Both go through the list.

use std::ops::Range;

use bytes::Bytes;

use super::family::Family;
use super::lists::{LIST, visit};
use crate::collection::{Kind, position_name};
use crate::command::Run::Ranged;
use crate::command::{Command, Context, Opened, count, is_word, one_key};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words};
use crate::reply::{Answer, Reply};

const ALL: Family = LIST.complexity("O(N) where N is the length of the list");
const FIND: Family = ALL.flags("readonly").keys(one_key("RO access"));
const INSERT: Family = ALL.flags("write denyoom").keys(one_key("RW insert"));
const REMOVE: Family = ALL.flags("write").keys(one_key("RW delete"));

const LINSERT_SUMMARY: &str = "Insert an element before or after another element in a list";

pub(super) static COMMANDS: &[Command] = &[
    FIND.command("lpos", -3, Ranged(lpos), "6.0.6", "Return the index of matching elements on a list"),
    INSERT.command("linsert", 5, Ranged(linsert), "2.2.0", LINSERT_SUMMARY),
    REMOVE.command("lrem", 4, Ranged(lrem), "1.0.0", "Remove elements from a list"),
];

/// What LPOS looks for.
struct Search {
    rank: i64,
    /// `None` for one index, 0 for all.
    count: Option<usize>,
    /// 0 for all.
    most: usize,
}

impl Search {
    fn parse(mut options: &[Bytes]) -> Result<Search, Refusal> {
        let mut search = Search { rank: 1, count: None, most: 0 };
        let not_negative = |value: &Bytes| parse_integer(value).and_then(|number| usize::try_from(number).ok());
        while let [option, rest @ ..] = options {
            let [value, rest @ ..] = rest else { return Err(SYNTAX) };
            if is_word(option, "rank") {
                search.rank = parse_integer(value).ok_or(NOT_AN_INTEGER)?;
                if search.rank == 0 {
                    return Err(words(
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... \
                         or use negative to start from the end of the list",
                    ));
                }
            } else if is_word(option, "count") {
                search.count = Some(not_negative(value).ok_or(words("ERR COUNT can't be negative"))?);
            } else if is_word(option, "maxlen") {
                search.most = not_negative(value).ok_or(words("ERR MAXLEN can't be negative"))?;
            } else {
                return Err(SYNTAX);
            }
            options = rest;
        }
        Ok(search)
    }
}

fn lpos(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let search = Search::parse(&arguments[3..])?;
    let list = context.look_up_collection(&arguments[1], Kind::List)?;
    let (mut found, mut matches, mut looked_at) = (Vec::new(), 0, 0);
    // The least number of all has no opposite; Redis takes it for -1.
    let rank = if search.rank < 0 { search.rank.checked_neg().unwrap_or(1) } else { search.rank };
    let wanted = search.count.map_or(1, |count| if count == 0 { usize::MAX } else { count });
    if let Some(list) = &list {
        let length = list.count() as i64;
        visit(context, list, 0..length, search.rank < 0, |index, element| {
            looked_at += 1;
            if element == &arguments[2][..] {
                matches += 1;
                if matches >= rank {
                    found.push(Reply::Integer(index));
                }
            }
            found.len() < wanted && looked_at != search.most
        })?;
    }
    Ok(if search.count.is_some() { Reply::Array(found) } else { found.pop().unwrap_or(Reply::Nil) })
}

/// Gives a part of a list, from an index to before another, these elements instead. What follows, or what goes before if that is
/// less, gets other positions.
fn replace(
    context: &mut Context<'_, '_>,
    list: &mut Opened,
    range: Range<i64>,
    elements: Vec<Bytes>,
) -> Result<(), Refusal> {
    let (length, owner, old_first) = (list.count() as i64, list.owner(), list.entry.value.first);
    let growth = elements.len() as i64 - (range.end - range.start);
    let moves_front = growth != 0 && range.start < length - range.end;
    let (first, kept) = match (moves_front, growth) {
        (true, _) => (old_first - growth, 0..range.start),
        (false, 0) => (old_first, 0..0),
        (false, _) => (old_first, range.end..length),
    };
    let mut moved = Vec::new();
    visit(context, list, kept, false, |index, element| {
        moved.push((index, Bytes::copy_from_slice(element)));
        true
    })?;
    let place = |index: i64| if moves_front { first + index } else { first + index + growth };
    let elements = elements.into_iter().enumerate().map(|(at, element)| (first + range.start + at as i64, element));
    let moved = moved.into_iter().map(|(index, element)| (place(index), element));
    for (position, element) in elements.chain(moved) {
        context.space.elements.put(owner, position_name(position), element);
    }
    // Positions that are of the list no longer.
    let freed = if moves_front { old_first..first } else { old_first + length + growth..old_first + length };
    for position in freed {
        context.space.elements.delete(owner, position_name(position));
    }
    list.entry.value.first = first;
    list.entry.value.count = (length + growth) as u64;
    Ok(())
}

fn linsert(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let sides = [("before", 0), ("after", 1)];
    let side = sides.into_iter().find(|(name, _)| is_word(&arguments[2], name)).ok_or(SYNTAX)?.1;
    let Some(mut list) = context.collection(&arguments[1], Kind::List)? else { return Ok(count(0)) };
    let mut pivot = None;
    visit(context, &list, 0..list.count() as i64, false, |index, element| {
        pivot = (element == &arguments[3][..]).then_some(index);
        pivot.is_none()
    })?;
    let Some(pivot) = pivot else { return Ok(Reply::Integer(-1)) };
    let at = pivot + side;
    replace(context, &mut list, at..at, vec![arguments[4].clone()])?;
    let length = list.count();
    context.store(list);
    Ok(count(length))
}

fn lrem(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let wanted = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let Some(mut list) = context.collection(&arguments[1], Kind::List)? else { return Ok(count(0)) };
    let most = if wanted == 0 { u64::MAX } else { wanted.unsigned_abs() };
    let mut found = Vec::new();
    visit(context, &list, 0..list.count() as i64, wanted < 0, |index, element| {
        if element == &arguments[3][..] {
            found.push(index);
        }
        (found.len() as u64) < most
    })?;
    let (Some(from), Some(to)) = (found.iter().min().copied(), found.iter().max().copied()) else {
        return Ok(count(0));
    };
    if found.len() == list.count() {
        context.delete(&arguments[1]);
        return Ok(count(found.len()));
    }
    found.sort_unstable();
    let mut between = Vec::new();
    visit(context, &list, from..to + 1, false, |index, element| {
        if found.binary_search(&index).is_err() {
            between.push(Bytes::copy_from_slice(element));
        }
        true
    })?;
    replace(context, &mut list, from..to + 1, between)?;
    context.store(list);
    Ok(count(found.len()))
}
