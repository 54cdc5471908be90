//! Lists: elements in an order, under one key. An element's name is its position: positions follow each other without gaps, and
//! grow at both ends.

use std::ops::Range;

use bytes::Bytes;

use super::family::Family;
use super::pop_of::PopOf;
use crate::collection::{Collection, Kind, Span, position_name};
use crate::command::Run::{Grouped, Ranged};
use crate::command::{Command, Context, Keys, NO_KEYS, Opened, count, is_word, one_key};
use crate::entry::Entry;
use crate::number::parse_integer;
use crate::refusal::{NO_SUCH_KEY, NOT_AN_INTEGER, NOT_POSITIVE, Refusal, SYNTAX, said, words};
use crate::reply::{Answer, OK, Reply};

pub(super) const LIST: Family = Family::new("list", "@list");
const EACH: &str = "O(N) where N is the number of elements";
const READ: Family = LIST.flags("readonly").keys(one_key("RO access"));
const LENGTH: Family = LIST.flags("readonly fast").keys(one_key("RO"));
const PUSH: Family = LIST.flags("write denyoom fast").keys(one_key("RW insert")).complexity(EACH);
const POP: Family = LIST.flags("write fast").keys(one_key("RW access delete")).ahead(popped).complexity(EACH);
const COUNTED: Keys = Keys { counted_at: 1, flags: "RW access delete", ..NO_KEYS };
const POP_OF: Family = LIST.flags("write movablekeys").keys(COUNTED).ahead(popped_of).complexity(EACH);
const BETWEEN: Keys = Keys { last: 2, others: "RW insert", ..one_key("RW access delete") };
const MOVE: Family = LIST.flags("write denyoom").keys(BETWEEN).ahead(moved);
const SET: Family = LIST.flags("write denyoom").keys(one_key("RW update"));
const TRIM: Family =
    LIST.flags("write").keys(one_key("RW delete")).complexity("O(N) where N is the number of elements that stay or go");

const LPUSHX_SUMMARY: &str = "Prepend an element to a list, only if the list exists";
const RPUSHX_SUMMARY: &str = "Append an element to a list, only if the list exists";
const LMPOP_SUMMARY: &str = "Pop elements from a list";
const LMOVE_SUMMARY: &str = "Pop an element from a list, push it to another list and return it";
const RPOPLPUSH_SUMMARY: &str = "Remove the last element in a list, prepend it to another list and return it";

pub(super) static COMMANDS: &[Command] = &[
    PUSH.command("lpush", -3, Grouped(lpush), "1.0.0", "Prepend one or multiple elements to a list"),
    PUSH.command("rpush", -3, Grouped(rpush), "1.0.0", "Append one or multiple elements to a list"),
    PUSH.command("lpushx", -3, Grouped(lpushx), "2.2.0", LPUSHX_SUMMARY),
    PUSH.command("rpushx", -3, Grouped(rpushx), "2.2.0", RPUSHX_SUMMARY),
    POP.command("lpop", -2, Grouped(lpop), "1.0.0", "Remove and get the first elements in a list"),
    POP.command("rpop", -2, Grouped(rpop), "1.0.0", "Remove and get the last elements in a list"),
    POP_OF.command("lmpop", -4, Grouped(lmpop), "7.0.0", LMPOP_SUMMARY),
    MOVE.command("lmove", 5, Grouped(lmove), "6.2.0", LMOVE_SUMMARY),
    MOVE.command("rpoplpush", 3, Grouped(rpoplpush), "1.2.0", RPOPLPUSH_SUMMARY),
    LENGTH.command("llen", 2, Grouped(llen), "1.0.0", "Get the length of a list"),
    READ.ahead(indexed).command("lindex", 3, Grouped(lindex), "1.0.0", "Get an element from a list by its index"),
    READ.complexity(EACH).command("lrange", 4, Ranged(lrange), "1.0.0", "Get a range of elements from a list"),
    SET.command("lset", 4, Grouped(lset), "1.0.0", "Set the value of an element in a list by its index"),
    TRIM.command("ltrim", 4, Ranged(ltrim), "1.0.0", "Trim a list to the specified range"),
];

/// So many elements are taken from a list by their names, which are read ahead; for more it is gone through.
const FEW: u64 = 64;

/// The words for the ends of a list.
pub(super) const ENDS: [&str; 2] = ["left", "right"];

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    First,
    Last,
}

impl End {
    pub(super) fn parse(word: &[u8]) -> Result<End, Refusal> {
        ENDS.iter().position(|end| is_word(word, end)).map(|at| End::of(at == 1)).ok_or(SYNTAX)
    }

    pub(super) fn of(is_last: bool) -> End {
        if is_last { End::Last } else { End::First }
    }

    /// The end that LPOP and its like mean by their names.
    fn of_name(name: &[u8]) -> End {
        if name.first().is_some_and(|letter| letter.eq_ignore_ascii_case(&b'l')) { End::First } else { End::Last }
    }

    /// Where so many elements at this end lie.
    fn positions(self, list: &Collection, many: u64) -> Range<i64> {
        let (first, end) = (list.first, list.first + list.count as i64);
        match self {
            End::First => first..first + many as i64,
            End::Last => end - many as i64..end,
        }
    }

    /// Leaves so many elements at this end out of a list.
    fn cut(self, list: &mut Collection, many: u64) {
        list.count -= many;
        if self == End::First {
            list.first += many as i64;
        }
    }
}

/// The name of the element with this index, which counts from the end if it is negative.
fn name_at(list: &Collection, index: i64) -> Option<Bytes> {
    let index = if index < 0 { index.checked_add(list.count as i64)? } else { index };
    (0..list.count as i64).contains(&index).then(|| position_name(list.first + index))
}

/// The names of elements that are popped one by one.
pub(super) fn names_popped(list: &mut Collection, end: End, wanted: u64) -> Vec<Bytes> {
    let many = wanted.min(list.count);
    let positions = if many <= FEW { end.positions(list, many) } else { 0..0 };
    end.cut(list, many);
    positions.map(position_name).collect()
}

fn popped(arguments: &[Bytes], list: &mut Collection) -> Vec<Bytes> {
    let wanted = arguments.get(2).map_or(Some(1), |wanted| parse_integer(wanted));
    let wanted = wanted.and_then(|wanted| u64::try_from(wanted).ok()).unwrap_or(0);
    names_popped(list, End::of_name(&arguments[0]), wanted)
}

fn popped_of(arguments: &[Bytes], list: &mut Collection) -> Vec<Bytes> {
    PopOf::parse(&arguments[1..], ENDS).map_or(Vec::new(), |pop| names_popped(list, End::of(pop.is_last), pop.most))
}

fn moved(arguments: &[Bytes], list: &mut Collection) -> Vec<Bytes> {
    let end = arguments.get(3).map_or(Ok(End::Last), |word| End::parse(word));
    end.map_or(Vec::new(), |end| names_popped(list, end, 1))
}

fn indexed(arguments: &[Bytes], list: &mut Collection) -> Vec<Bytes> {
    parse_integer(&arguments[2]).and_then(|index| name_at(list, index)).into_iter().collect()
}

/// A list without one of its elements.
fn lost() -> Refusal {
    Refusal::Foreign { reason: "of an element of the list is missing".into() }
}

/// Adds an element at an end.
fn push(context: &mut Context<'_, '_>, list: &mut Opened, end: End, element: Bytes) {
    let owner = list.owner();
    let list = &mut list.entry.value;
    list.count += 1;
    if end == End::First {
        list.first -= 1;
    }
    let position = end.positions(list, 1).start;
    context.space.elements.put(owner, position_name(position), element);
}

/// Takes elements at an end, the outermost first: so many, or all that there are.
pub(super) fn pop(
    context: &mut Context<'_, '_>,
    list: &mut Opened,
    end: End,
    wanted: u64,
) -> Result<Vec<Bytes>, Refusal> {
    let (owner, many) = (list.owner(), wanted.min(list.entry.value.count));
    let positions = end.positions(&list.entry.value, many);
    let names: Vec<Bytes> = positions.clone().map(position_name).collect();
    let mut elements = Vec::with_capacity(names.len());
    if many <= FEW {
        for name in &names {
            elements.extend(context.space.elements.get(owner, name)?);
        }
    } else {
        let all = Span::of_positions(positions, false);
        context.space.elements.visit(owner, &all, |_, element| {
            elements.push(Bytes::copy_from_slice(element));
            true
        })?;
    }
    if elements.len() as u64 != many {
        return Err(lost());
    }
    if end == End::Last {
        elements.reverse();
    }
    names.into_iter().for_each(|name| context.space.elements.delete(owner, name));
    end.cut(&mut list.entry.value, many);
    Ok(elements)
}

fn push_all(context: &mut Context<'_, '_>, arguments: &[Bytes], end: End, only_present: bool) -> Answer {
    let mut list = match context.collection(&arguments[1], Kind::List)? {
        Some(list) => list,
        None if only_present => return Ok(count(0)),
        None => context.new_collection(&arguments[1], Kind::List)?,
    };
    for element in &arguments[2..] {
        push(context, &mut list, end, element.clone());
    }
    let length = list.count();
    context.store(list);
    Ok(count(length))
}

fn lpush(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    push_all(context, arguments, End::First, false)
}

fn rpush(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    push_all(context, arguments, End::Last, false)
}

fn lpushx(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    push_all(context, arguments, End::First, true)
}

fn rpushx(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    push_all(context, arguments, End::Last, true)
}

fn pop_all(context: &mut Context<'_, '_>, arguments: &[Bytes], end: End, name: &str) -> Answer {
    let wanted = match &arguments[2..] {
        [] => None,
        [wanted] => Some(parse_integer(wanted).filter(|wanted| *wanted >= 0).ok_or(NOT_POSITIVE)?),
        _ => return Err(said(format!("ERR wrong number of arguments for '{name}' command"))),
    };
    let Some(mut list) = context.collection(&arguments[1], Kind::List)? else {
        return Ok(wanted.map_or(Reply::Nil, |_| Reply::NilArray));
    };
    let popped = pop(context, &mut list, end, wanted.unwrap_or(1) as u64)?;
    if !popped.is_empty() {
        context.store(list);
    }
    let mut popped = popped.into_iter().map(Reply::Bulk);
    Ok(if wanted.is_some() { Reply::Array(popped.collect()) } else { popped.next().unwrap_or(Reply::Nil) })
}

fn lpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_all(context, arguments, End::First, "lpop")
}

fn rpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    pop_all(context, arguments, End::Last, "rpop")
}

fn lmpop(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let PopOf { names, is_last, most } = PopOf::parse(&arguments[1..], ENDS)?;
    for name in names {
        if let Some(list) = context.collection(name, Kind::List)? {
            return pop_named(context, name, list, End::of(is_last), most);
        }
    }
    Ok(Reply::NilArray)
}

/// Takes elements at an end of a list, and answers with its key, too.
pub(super) fn pop_named(context: &mut Context<'_, '_>, name: &Bytes, mut list: Opened, end: End, most: u64) -> Answer {
    let popped = pop(context, &mut list, end, most)?;
    context.store(list);
    let popped = Reply::Array(popped.into_iter().map(Reply::Bulk).collect());
    Ok(Reply::Array(vec![Reply::Bulk(name.clone()), popped]))
}

/// Takes an element at an end of a list and puts it at one of another, or of the same.
pub(super) fn move_one(
    context: &mut Context<'_, '_>,
    mut source: Opened,
    to: &Bytes,
    [from_end, to_end]: [End; 2],
) -> Answer {
    context.collection(to, Kind::List)?;
    let Some(element) = pop(context, &mut source, from_end, 1)?.pop() else { return Ok(Reply::Nil) };
    let mut target = if source.key.name == *to {
        source
    } else {
        context.store(source);
        context.collection_or_new(to, Kind::List)?
    };
    push(context, &mut target, to_end, element.clone());
    context.store(target);
    Ok(Reply::Bulk(element))
}

fn lmove(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (from_end, to_end) = (End::parse(&arguments[3])?, End::parse(&arguments[4])?);
    match context.look_up_collection(&arguments[1], Kind::List)? {
        None => Ok(Reply::Nil),
        Some(source) => move_one(context, source, &arguments[2], [from_end, to_end]),
    }
}

fn rpoplpush(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match context.look_up_collection(&arguments[1], Kind::List)? {
        None => Ok(Reply::Nil),
        Some(source) => move_one(context, source, &arguments[2], [End::Last, End::First]),
    }
}

fn llen(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(count(context.look_up_collection(&arguments[1], Kind::List)?.map_or(0, |list| list.count())))
}

fn lindex(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(list) = context.look_up_collection(&arguments[1], Kind::List)? else { return Ok(Reply::Nil) };
    let index = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let Some(name) = name_at(&list.entry.value, index) else { return Ok(Reply::Nil) };
    let element = context.space.elements.get(list.owner(), &name)?;
    Ok(Reply::Bulk(element.ok_or_else(lost)?))
}

fn lset(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let list = context.collection(&arguments[1], Kind::List)?.ok_or(NO_SUCH_KEY)?;
    let index = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let name = name_at(&list.entry.value, index).ok_or(words("ERR index out of range"))?;
    context.space.elements.put(list.owner(), name, arguments[3].clone());
    context.store(list);
    Ok(OK)
}

/// The indexes from the first to before the second that two arguments mean in a list of this length.
fn range_of(arguments: &[Bytes], length: usize) -> Result<Range<i64>, Refusal> {
    let index = |argument: &Bytes| {
        let index = parse_integer(argument).ok_or(NOT_AN_INTEGER)?;
        Ok::<_, Refusal>(if index < 0 { index.saturating_add(length as i64) } else { index })
    };
    let (start, stop) = (index(&arguments[0])?, index(&arguments[1])?);
    let (start, end) = (start.max(0), stop.saturating_add(1).clamp(0, length as i64));
    Ok(start.min(end)..end)
}

/// Elements with their indexes, as far as `visit` wants more.
pub(super) fn visit(
    context: &Context<'_, '_>,
    list: &Opened,
    range: Range<i64>,
    is_backward: bool,
    mut visit: impl FnMut(i64, &[u8]) -> bool,
) -> Result<(), Refusal> {
    let first = list.entry.value.first;
    let span = Span::of_positions(first + range.start..first + range.end, is_backward);
    let mut index = if is_backward { range.end - 1 } else { range.start };
    context.space.elements.visit(list.owner(), &span, |_, element| {
        let goes_on = visit(index, element);
        index += if is_backward { -1 } else { 1 };
        goes_on
    })
}

fn lrange(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    range_of(&arguments[2..], 0)?;
    let Some(list) = context.look_up_collection(&arguments[1], Kind::List)? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let range = range_of(&arguments[2..], list.count())?;
    let mut found = Vec::new();
    visit(context, &list, range, false, |_, element| {
        found.push(Reply::copied(element));
        true
    })?;
    Ok(Reply::Array(found))
}

fn ltrim(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    range_of(&arguments[2..], 0)?;
    let Some(mut list) = context.collection(&arguments[1], Kind::List)? else { return Ok(OK) };
    let (length, first) = (list.count() as i64, list.entry.value.first);
    let range = range_of(&arguments[2..], list.count())?;
    let kept = range.end - range.start;
    if kept == 0 {
        context.delete(&arguments[1]);
    } else if kept < length - kept {
        let shorter = take_out(context, &list, range)?;
        context.store(shorter);
    } else {
        for index in (0..range.start).chain(range.end..length) {
            context.space.elements.delete(list.owner(), position_name(first + index));
        }
        (list.entry.value.first, list.entry.value.count) = (first + range.start, kept as u64);
        context.store(list);
    }
    Ok(OK)
}

/// A list of a few of another's elements, in its place: the other one goes as a whole.
fn take_out(context: &mut Context<'_, '_>, list: &Opened, range: Range<i64>) -> Result<Opened, Refusal> {
    let mut kept = Vec::new();
    visit(context, list, range, false, |_, element| {
        kept.push(Bytes::copy_from_slice(element));
        true
    })?;
    let value = context.space.new_collection(list.key.database, Kind::List)?;
    let mut shorter = Opened { key: list.key.clone(), entry: Entry { value, expires_ms: list.entry.expires_ms } };
    kept.into_iter().for_each(|element| push(context, &mut shorter, End::Last, element));
    Ok(shorter)
}
