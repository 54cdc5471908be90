//! Keys, whatever is stored under them.

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::{Grouped, Whole};
use crate::command::{Command, Context, Keys, all_keys, count, is_word, one_key};
use crate::entry::Value;
use crate::locks::Key;
use crate::refusal::{NO_SUCH_KEY, Refusal, SYNTAX, words};
use crate::reply::{Answer, OK, Reply};

const KEY: Family = Family::new("generic", "@keyspace");
const EACH: Family = KEY.complexity("O(N) where N is the number of keys.");
const DELETE: Family = EACH.keys(all_keys(1, "RM delete"));
const FIND: Family = EACH.flags("readonly fast").keys(all_keys(1, "RO"));
const TYPE: Family = KEY.flags("readonly fast").keys(one_key("RO"));
const RENAME: Family = KEY.keys(two_keys("RW access delete", "OW update"));
const RENAME_NEW: Family = KEY.keys(two_keys("RW access delete", "OW insert"));
const COPY: Family = KEY
    .flags("write denyoom")
    .keys(two_keys("RO access", "OW update"))
    .complexity("O(N) where N is the length of the value");

const UNLINK: &str = "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.";
const TOUCH: &str = "Alters the last access time of a key(s). Returns the number of existing keys specified.";

const fn two_keys(flags: &'static str, others: &'static str) -> Keys {
    Keys { last: 2, others, ..one_key(flags) }
}

pub(super) static COMMANDS: &[Command] = &[
    DELETE.flags("write").command("del", -2, Grouped(del), "1.0.0", "Delete a key"),
    DELETE.flags("write fast").command("unlink", -2, Grouped(del), "4.0.0", UNLINK),
    FIND.command("exists", -2, Grouped(exists), "1.0.0", "Determine if a key exists"),
    FIND.command("touch", -2, Grouped(exists), "3.2.1", TOUCH),
    TYPE.command("type", 2, Grouped(kind), "1.0.0", "Determine the type stored at key"),
    RENAME.flags("write").command("rename", 3, Grouped(rename), "1.0.0", "Rename a key"),
    RENAME_NEW.flags("write fast").command(
        "renamenx",
        3,
        Grouped(renamenx),
        "1.0.0",
        "Rename a key, only if the new key does not exist",
    ),
    // Its second key may be in another database.
    COPY.command("copy", -3, Whole(copy), "6.2.0", "Copy a key"),
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
    Ok(Reply::Simple(context.look_up(&arguments[1])?.map_or("none", |entry| entry.type_name())))
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
    let Some(mut entry) = context.space.get(&from)? else { return Ok(Reply::flag(false)) };
    if context.space.contains(&to)? && !replace {
        return Ok(Reply::flag(false));
    }
    if let Value::Collection(collection) = &mut entry.value {
        *collection = context.space.copy_collection(from.database, *collection, database)?;
    }
    context.space.put(to, entry);
    Ok(Reply::flag(true))
}
