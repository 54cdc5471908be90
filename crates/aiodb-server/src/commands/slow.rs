//! SLOWLOG: commands that took long.

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::Grouped;
use crate::command::{Command, Context, count};
use crate::number::parse_integer;
use crate::refusal::{words, wrong_number};
use crate::reply::{Answer, OK, Reply};

const SLOWLOG: Family = Family::new("server", "");
const OF_SLOWLOG: Family = SLOWLOG.flags("admin loading stale").complexity("O(N) where N is the number of entries");

pub(super) static COMMANDS: &[Command] = &[SLOWLOG.complexity("Depends on subcommand.").container(
    "slowlog",
    "2.2.12",
    "A container for slow log commands",
    &[
        OF_SLOWLOG.command("slowlog|get", -2, Grouped(get), "2.2.12", "Get the slow log's entries"),
        OF_SLOWLOG.command("slowlog|len", 2, Grouped(len), "2.2.12", "Get the slow log's length"),
        OF_SLOWLOG.command("slowlog|reset", 2, Grouped(reset), "2.2.12", "Clear all entries from the slow log"),
    ],
)];

/// Entries that a client gets that does not say how many.
const ENTRIES: usize = 10;

fn get(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let most = match &arguments[2..] {
        [] => ENTRIES,
        [most] => match parse_integer(most) {
            Some(-1) => usize::MAX,
            Some(most) if most >= 0 => most as usize,
            _ => return Err(words("ERR count should be greater than or equal to -1")),
        },
        _ => return Err(wrong_number(&arguments[1], "SLOWLOG")),
    };
    let entries = context.server.slow_log.latest(most).into_iter().map(|entry| {
        Reply::Array(vec![
            Reply::Integer(entry.id),
            Reply::Integer(entry.at_s as i64),
            Reply::Integer(entry.took.as_micros() as i64),
            Reply::Array(entry.arguments.into_iter().map(Reply::Bulk).collect()),
            Reply::Bulk(entry.address.into()),
            Reply::Bulk(entry.client_name),
        ])
    });
    Ok(Reply::Array(entries.collect()))
}

fn len(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(count(context.server.slow_log.len()))
}

fn reset(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    context.server.slow_log.clear();
    Ok(OK)
}
