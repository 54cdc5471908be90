//! Transactions: commands that are carried out together, and keys that must not have changed before.

use bytes::Bytes;

use crate::command::{Command, Context, Keys, NO_KEYS, Reads, Run, all_keys, documented};
use crate::refusal::words;
use crate::reply::{Answer, OK};
use crate::session::Transaction;

const fn transaction(
    name: &'static str,
    arity: i64,
    flags: &'static str,
    keys: Keys,
    run: Run,
    since: &'static str,
    summary: &'static str,
) -> Command {
    Command {
        name,
        arity,
        flags,
        categories: "@transaction",
        keys,
        reads: Reads::Never,
        run,
        documentation: documented("transactions", since, "O(1)", summary),
        subcommands: &[],
    }
}

const FAST: &str = "noscript loading stale fast allow_busy";

pub(super) static COMMANDS: &[Command] = &[
    transaction("multi", 1, FAST, NO_KEYS, Run::Alone(multi), "1.2.0", "Mark the start of a transaction block"),
    transaction(
        "exec",
        1,
        "noscript loading stale skip_slowlog",
        NO_KEYS,
        Run::Exec,
        "1.2.0",
        "Execute all commands issued after MULTI",
    ),
    transaction("discard", 1, FAST, NO_KEYS, Run::Alone(discard), "2.0.0", "Discard all commands issued after MULTI"),
    transaction(
        "watch",
        -2,
        FAST,
        all_keys(1, "RO"),
        Run::Watch,
        "2.2.0",
        "Watch the given keys to determine execution of the MULTI/EXEC block",
    ),
    transaction("unwatch", 1, FAST, NO_KEYS, Run::Alone(unwatch), "2.2.0", "Forget about all watched keys"),
];

fn multi(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    if context.session.transaction.is_some() {
        return Err(words("ERR MULTI calls can not be nested"));
    }
    context.session.transaction = Some(Transaction::default());
    context.session.show_transaction();
    Ok(OK)
}

fn discard(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    if context.session.transaction.take().is_none() {
        return Err(words("ERR DISCARD without MULTI"));
    }
    context.session.show_transaction();
    unwatch(context, &[])
}

fn unwatch(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    context.server.keyspace.watchers.remove(std::mem::take(&mut context.session.watch));
    Ok(OK)
}
