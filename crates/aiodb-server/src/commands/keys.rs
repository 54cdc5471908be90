//! Keys, whatever is stored under them.

use bytes::Bytes;

use crate::command::{
    Command, Context, Documentation, Handler, Keys, Reads, Run, all_keys, count, documented, is_word, one_key,
};
use crate::locks::Key;
use crate::refusal::{NO_SUCH_KEY, Refusal, SYNTAX, words};
use crate::reply::{Answer, OK, Reply};

const fn keyspace(
    name: &'static str,
    arity: i64,
    flags: &'static str,
    keys: Keys,
    handler: Handler,
    documentation: Documentation,
) -> Command {
    Command {
        name,
        arity,
        flags,
        categories: "@keyspace",
        keys,
        reads: Reads::Always,
        run: Run::Grouped(handler),
        documentation,
        subcommands: &[],
    }
}

const fn doc(since: &'static str, complexity: &'static str, summary: &'static str) -> Documentation {
    documented("generic", since, complexity, summary)
}

const EACH: &str = "O(N) where N is the number of keys.";
const TWO: Keys = Keys { first: 1, last: 2, step: 1, flags: "RW access delete" };

pub(super) static COMMANDS: &[Command] = &[
    keyspace("del", -2, "write", all_keys(1, "RM delete"), del, doc("1.0.0", EACH, "Delete a key")),
    keyspace(
        "unlink",
        -2,
        "write fast",
        all_keys(1, "RM delete"),
        del,
        doc(
            "4.0.0",
            EACH,
            "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.",
        ),
    ),
    keyspace("exists", -2, "readonly fast", all_keys(1, "RO"), exists, doc("1.0.0", EACH, "Determine if a key exists")),
    keyspace(
        "touch",
        -2,
        "readonly fast",
        all_keys(1, "RO"),
        exists,
        doc("3.2.1", EACH, "Alters the last access time of a key(s). Returns the number of existing keys specified."),
    ),
    keyspace("type", 2, "readonly fast", one_key("RO"), kind, doc("1.0.0", "O(1)", "Determine the type stored at key")),
    keyspace("rename", 3, "write", TWO, rename, doc("1.0.0", "O(1)", "Rename a key")),
    keyspace(
        "renamenx",
        3,
        "write fast",
        TWO,
        renamenx,
        doc("1.0.0", "O(1)", "Rename a key, only if the new key does not exist"),
    ),
    Command {
        // Its second key may be in another database.
        run: Run::Whole(copy),
        ..keyspace(
            "copy",
            -3,
            "write denyoom",
            Keys { flags: "RW access update", ..TWO },
            copy,
            doc("6.2.0", "O(N) where N is the length of the value", "Copy a key"),
        )
    },
];

fn del(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut deleted = 0;
    for name in &arguments[1..] {
        if context.get(name)?.is_some() {
            context.delete(name);
            deleted += 1;
        }
    }
    Ok(count(deleted))
}

fn exists(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut found = 0;
    for name in &arguments[1..] {
        found += usize::from(context.look_up(name)?.is_some());
    }
    Ok(count(found))
}

fn kind(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::Simple(if context.look_up(&arguments[1])?.is_some() { "string" } else { "none" }))
}

fn rename(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    move_key(context, arguments, false)?;
    Ok(OK)
}

fn renamenx(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::flag(move_key(context, arguments, true)?))
}

/// Whether a key got another name.
fn move_key(context: &mut Context<'_, '_>, arguments: &[Bytes], only_free: bool) -> Result<bool, Refusal> {
    let (from, to) = (&arguments[1], &arguments[2]);
    let entry = context.get(from)?.ok_or(NO_SUCH_KEY)?;
    if from == to || only_free && context.get(to)?.is_some() {
        return Ok(false);
    }
    context.delete(from);
    context.put(to, entry);
    Ok(true)
}

fn copy(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (mut database, mut replace) = (context.session.database, false);
    let mut options = arguments[3..].iter();
    while let Some(option) = options.next() {
        if is_word(option, "replace") {
            replace = true;
        } else if is_word(option, "db") {
            database = context.database_of(options.next().ok_or(SYNTAX)?)?;
        } else {
            return Err(SYNTAX);
        }
    }
    let (from, to) = (context.key(&arguments[1]), Key { database, name: arguments[2].clone() });
    if from == to {
        return Err(words("ERR source and destination objects are the same"));
    }
    let Some(entry) = context.space.get(&from)? else { return Ok(Reply::flag(false)) };
    if context.space.contains(&to)? && !replace {
        return Ok(Reply::flag(false));
    }
    context.space.put(to, entry);
    Ok(Reply::flag(true))
}
