//! Whole databases: going through their keys, counting and emptying them.

use bytes::Bytes;

use super::family::Family;
use super::random;
use super::scanning::{self, ScanOptions};
use crate::command::Run::Whole;
use crate::command::{Command, Context, is_word};
use crate::glob;
use crate::refusal::{Refusal, SYNTAX};
use crate::reply::{Answer, OK, Reply};

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

fn scan(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let cursor = scanning::parse_cursor(&arguments[1])?;
    let options = ScanOptions::parse(&arguments[2..], true)?;
    let after = scanning::place(context, cursor)?;
    let names = context.space.names(context.session.database, after.as_deref(), options.most, |_| true)?;
    let next = match names.last() {
        Some(last) if names.len() == options.most => context.server.cursors.remember(last.clone()),
        _ => 0,
    };
    let mut found = Vec::new();
    for name in names.into_iter().filter(|name| options.matches(name)) {
        let is_wanted = match options.kind {
            None => true,
            Some(kind) => context.get(&name)?.is_some_and(|entry| is_word(kind, entry.type_name())),
        };
        found.extend(is_wanted.then_some(Reply::Bulk(name)));
    }
    Ok(scanning::reply(next, found))
}

fn randomkey(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let database = context.session.database;
    let first = context.space.names(database, None, 1, |_| true)?;
    let (Some(first), last) = (first.first(), context.server.keyspace.last_name(database)?) else {
        return Ok(Reply::Nil);
    };
    let place = random::between(first, &last.unwrap_or_default());
    let steps = fastrand::usize(1..=random::STEPS);
    let mut names = context.space.names(database, Some(&place), steps, |_| true)?;
    if names.is_empty() {
        names = context.space.names(database, None, steps, |_| true)?;
    }
    Ok(Reply::bulk_or_nil(names.pop()))
}

fn dbsize(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Integer(context.space.count(context.session.database)? as i64))
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
