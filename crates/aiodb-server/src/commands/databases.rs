//! Whole databases: going through their keys, counting and emptying them.

use bytes::Bytes;

use crate::command::{Command, Context, Documentation, Handler, NO_KEYS, Reads, Run, count, documented, is_word};
use crate::glob;
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words};
use crate::reply::{Answer, OK, Reply};

/// Keys that SCAN looks at unless told otherwise.
const SCAN_COUNT: usize = 10;

/// Steps that RANDOMKEY goes on from where it lands, at most.
const RANDOM_STEPS: usize = 16;

const fn whole(
    name: &'static str,
    arity: i64,
    flags: &'static str,
    categories: &'static str,
    handler: Handler,
    documentation: Documentation,
) -> Command {
    Command {
        name,
        arity,
        flags,
        categories,
        keys: NO_KEYS,
        reads: Reads::Never,
        run: Run::Whole(handler),
        documentation,
        subcommands: &[],
    }
}

const fn doc(
    group: &'static str,
    since: &'static str,
    complexity: &'static str,
    summary: &'static str,
) -> Documentation {
    documented(group, since, complexity, summary)
}

const EVERY: &str = "O(N) with N being the number of keys in the database";

pub(super) static COMMANDS: &[Command] = &[
    whole(
        "keys",
        2,
        "readonly",
        "@keyspace @dangerous",
        keys,
        doc("generic", "1.0.0", EVERY, "Find all keys matching the given pattern"),
    ),
    whole(
        "scan",
        -2,
        "readonly",
        "@keyspace",
        scan,
        doc("generic", "2.8.0", "O(1) for every call.", "Incrementally iterate the keys space"),
    ),
    whole(
        "randomkey",
        1,
        "readonly",
        "@keyspace",
        randomkey,
        doc("generic", "1.0.0", "O(1)", "Return a random key from the keyspace"),
    ),
    whole(
        "dbsize",
        1,
        "readonly fast",
        "@keyspace",
        dbsize,
        doc("server", "1.0.0", EVERY, "Return the number of keys in the selected database"),
    ),
    whole(
        "flushdb",
        -1,
        "write",
        "@keyspace @dangerous",
        flushdb,
        doc("server", "1.0.0", "O(1)", "Remove all keys from the current database"),
    ),
    whole(
        "flushall",
        -1,
        "write",
        "@keyspace @dangerous",
        flushall,
        doc("server", "1.0.0", "O(1)", "Remove all keys from all databases"),
    ),
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
