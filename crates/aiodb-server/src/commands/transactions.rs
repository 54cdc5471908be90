//! Transactions: commands that are carried out together, and keys that must not have changed before.

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::{self, Alone};
use crate::command::{Command, Context, Reads, all_keys};
use crate::refusal::words;
use crate::reply::{Answer, OK};
use crate::session::Transaction;

const TRANSACTION: Family = Family::new("transactions", "@transaction");
const FAST: Family = TRANSACTION.flags("noscript loading stale fast allow_busy");
const EXEC: Family = TRANSACTION.flags("noscript loading stale skip_slowlog");
const WATCH: Family = FAST.keys(all_keys(1, "RO")).reads(Reads::Never);

const WATCHES: &str = "Watch the given keys to determine execution of the MULTI/EXEC block";

pub(super) static COMMANDS: &[Command] = &[
    FAST.command("multi", 1, Alone(multi), "1.2.0", "Mark the start of a transaction block"),
    EXEC.command("exec", 1, Run::Exec, "1.2.0", "Execute all commands issued after MULTI"),
    FAST.command("discard", 1, Alone(discard), "2.0.0", "Discard all commands issued after MULTI"),
    WATCH.command("watch", -2, Run::Watch, "2.2.0", WATCHES),
    FAST.command("unwatch", 1, Alone(unwatch), "2.2.0", "Forget about all watched keys"),
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
