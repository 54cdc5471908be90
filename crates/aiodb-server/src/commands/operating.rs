//! Backups, and the end of the server.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::{Alone, Grouped, Whole};
use crate::command::{Command, Context, is_word};
use crate::refusal::{SYNTAX, words};
use crate::reply::{Answer, OK, Reply};

const SERVER: Family = Family::new("server", "@dangerous");
const SAVE: Family = SERVER.flags("admin noscript no_async_loading no_multi").complexity("O(N) where N is what is new");
const BACKGROUND: Family = SERVER.flags("admin noscript no_async_loading");
const LAST: Family = SERVER.categories("@admin @dangerous").flags("loading stale fast");
const SHUTDOWN: Family = SERVER.flags("admin noscript loading stale no_multi allow_busy");

pub(super) static COMMANDS: &[Command] = &[
    SAVE.command("save", 1, Whole(save), "1.0.0", "Synchronously save the dataset to disk"),
    BACKGROUND.command("bgsave", -1, Alone(bgsave), "1.0.0", "Asynchronously save the dataset to disk"),
    LAST.command(
        "lastsave",
        1,
        Grouped(lastsave),
        "1.0.0",
        "Get the UNIX time stamp of the last successful save to disk",
    ),
    SHUTDOWN.command(
        "shutdown",
        -1,
        Alone(shutdown),
        "1.0.0",
        "Synchronously save the dataset to disk and then shut down the server",
    ),
];

fn save(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    context.server.keyspace.save(&context.server.saves)?;
    Ok(OK)
}

fn bgsave(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match &arguments[1..] {
        [] => {}
        [word] if is_word(word, "schedule") => {}
        _ => return Err(SYNTAX),
    }
    context.server.keyspace.save_in_background(&context.server.saves)?;
    Ok(Reply::Simple("Background saving started"))
}

fn lastsave(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Integer(context.server.saves.shown().last_s.load(Ordering::Relaxed) as i64))
}

/// Ends the server as SIGTERM does. Whatever the words say, nothing is lost that was acknowledged; there is no reply.
fn shutdown(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (mut saves, mut aborts) = (None, false);
    for word in &arguments[1..] {
        let says = match word {
            word if is_word(word, "save") => Some(true),
            word if is_word(word, "nosave") => Some(false),
            word if is_word(word, "now") || is_word(word, "force") => None,
            word if is_word(word, "abort") => {
                aborts = true;
                None
            }
            _ => return Err(SYNTAX),
        };
        if says.is_some() && saves.is_some_and(|saves| Some(saves) != says) {
            return Err(SYNTAX);
        }
        saves = says.or(saves);
    }
    if aborts {
        return Err(if arguments.len() > 2 { SYNTAX } else { words("ERR No shutdown in progress.") });
    }
    context.session.is_ending = true;
    context.server.shutdown.notify_one();
    Ok(Reply::Several(Vec::new()))
}
