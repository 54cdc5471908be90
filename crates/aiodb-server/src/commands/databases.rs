//! Whole databases: going through their keys, counting and emptying them.

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::Whole;
use crate::command::{Command, Context, count, is_word};
use crate::glob;
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words};
use crate::reply::{Answer, OK, Reply};

/// Keys that SCAN looks at unless told otherwise.
const SCAN_COUNT: usize = 10;

/// Steps that RANDOMKEY goes on from where it lands, at most.
const RANDOM_STEPS: usize = 16;

const GENERIC: Family = Family::new("generic", "@keyspace");
const SERVER: Family = Family::new("server", "@keyspace");
const EVERY: &str = "O(N) with N being the number of keys in the database";

const KEYS: Family = GENERIC.flags("readonly").categories("@keyspace @dangerous").complexity(EVERY);
const SCAN: Family = GENERIC.flags("readonly").complexity("O(1) for every call.");
const RANDOM: Family = GENERIC.flags("readonly");
const SIZE: Family = SERVER.flags("readonly fast").complexity(EVERY);
const FLUSH: Family = SERVER.flags("write").categories("@keyspace @dangerous");

pub(super) static COMMANDS: &[Command] = &[
    KEYS.command("keys", 2, Whole(keys), "1.0.0", "Find all keys matching the given pattern"),
    SCAN.command("scan", -2, Whole(scan), "2.8.0", "Incrementally iterate the keys space"),
    RANDOM.command("randomkey", 1, Whole(randomkey), "1.0.0", "Return a random key from the keyspace"),
    SIZE.command("dbsize", 1, Whole(dbsize), "1.0.0", "Return the number of keys in the selected database"),
    FLUSH.command("flushdb", -1, Whole(flushdb), "1.0.0", "Remove all keys from the current database"),
    FLUSH.command("flushall", -1, Whole(flushall), "1.0.0", "Remove all keys from all databases"),
];

fn keys(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let pattern = &arguments[1];
    let wanted = |name: &[u8]| glob::matches(pattern, name);
    let names = context.space.names(context.session.database, None, usize::MAX, wanted)?;
    Ok(Reply::Array(names.into_iter().map(Reply::Bulk).collect()))
}

/// What a SCAN is to do.
struct ScanOptions<'a> {
    most: usize,
    pattern: Option<&'a Bytes>,
    kind: Option<&'a Bytes>,
}

impl<'a> ScanOptions<'a> {
    fn parse(options: &'a [Bytes]) -> Result<ScanOptions<'a>, Refusal> {
        let mut parsed = ScanOptions { most: SCAN_COUNT, pattern: None, kind: None };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or(SYNTAX)?;
            if is_word(option, "count") {
                let number = parse_integer(value).ok_or(NOT_AN_INTEGER)?;
                parsed.most = usize::try_from(number).ok().filter(|most| *most > 0).ok_or(SYNTAX)?;
            } else if is_word(option, "match") {
                parsed.pattern = Some(value);
            } else if is_word(option, "type") {
                parsed.kind = Some(value);
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(parsed)
    }
}

fn scan(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let cursor = std::str::from_utf8(&arguments[1]).ok().and_then(|text| text.parse::<u64>().ok());
    let cursor = cursor.ok_or(words("ERR invalid cursor"))?;
    let options = ScanOptions::parse(&arguments[2..])?;
    let forgotten = words("ERR this cursor is not known, or no longer: begin the scan again with cursor 0");
    let after = if cursor == 0 { None } else { Some(context.server.cursors.find(cursor).ok_or(forgotten)?) };
    let names = context.space.names(context.session.database, after.as_deref(), options.most, |_| true)?;
    let next = match names.last() {
        Some(last) if names.len() == options.most => context.server.cursors.remember(last.clone()),
        _ => 0,
    };
    let is_wanted = |name: &Bytes| {
        options.pattern.is_none_or(|pattern| glob::matches(pattern, name))
            && options.kind.is_none_or(|kind| is_word(kind, "string"))
    };
    let found = names.into_iter().filter(is_wanted).map(Reply::Bulk).collect();
    Ok(Reply::Array(vec![Reply::Bulk(next.to_string().into()), Reply::Array(found)]))
}

fn randomkey(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let database = context.session.database;
    let first = context.space.names(database, None, 1, |_| true)?;
    let (Some(first), last) = (first.first(), context.server.keyspace.last_name(database)?) else {
        return Ok(Reply::Nil);
    };
    // A place between the first and the last key, by their first bytes that differ.
    let last = last.unwrap_or_default();
    let shared = first.iter().zip(&last).take_while(|(left, right)| left == right).count();
    let from = first.get(shared).copied().unwrap_or(0);
    let to = last.get(shared).copied().unwrap_or(0).max(from);
    let mut place = first[..shared].to_vec();
    place.push(fastrand::u8(from..=to));
    place.extend(std::iter::repeat_with(|| fastrand::u8(..)).take(7));
    let steps = fastrand::usize(1..=RANDOM_STEPS);
    let mut names = context.space.names(database, Some(&place), steps, |_| true)?;
    if names.is_empty() {
        names = context.space.names(database, None, steps, |_| true)?;
    }
    Ok(Reply::bulk_or_nil(names.pop()))
}

fn dbsize(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(count(context.space.count(context.session.database)?))
}

fn flushdb(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    check_flush(arguments)?;
    context.space.clear(context.session.database)?;
    Ok(OK)
}

fn flushall(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    check_flush(arguments)?;
    for database in 0..context.server.keyspace.databases() {
        context.space.clear(database)?;
    }
    Ok(OK)
}

/// Databases are emptied in constant time, so that both words mean the same.
fn check_flush(arguments: &[Bytes]) -> Result<(), Refusal> {
    match &arguments[1..] {
        [] => Ok(()),
        [word] if is_word(word, "async") || is_word(word, "sync") => Ok(()),
        _ => Err(SYNTAX),
    }
}
