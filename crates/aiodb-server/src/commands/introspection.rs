//! COMMAND: what the server can do.

use bytes::Bytes;

use super::family::Family;
use crate::acl::CATEGORIES;
use crate::command::Run::Grouped;
use crate::command::{Command, Context, Keys, count, is_word};
use crate::glob;
use crate::refusal::SYNTAX;
use crate::reply::{Answer, Reply};

const COMMAND: Family =
    Family::new("server", "@connection").flags("loading stale").complexity("O(N) where N is the number of commands");

pub(super) static COMMANDS: &[Command] = &[Command {
    subcommands: &[
        COMMAND.command("command|count", 2, Grouped(number), "2.8.13", "Get total number of Redis commands"),
        COMMAND.command("command|info", -2, Grouped(info), "2.8.13", "Get array of specific Redis command details"),
        COMMAND.command(
            "command|docs",
            -2,
            Grouped(docs),
            "7.0.0",
            "Get array of specific Redis command documentation",
        ),
        COMMAND.command("command|list", -2, Grouped(list), "7.0.0", "Get an array of Redis command names"),
    ],
    ..COMMAND.command("command", -1, Grouped(all), "2.8.13", "Get array of Redis command details")
}];

fn all(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Array(context.server.table.commands().iter().map(|command| describe(command)).collect()))
}

fn number(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(count(context.server.table.commands().len()))
}

fn list(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match &arguments[2..] {
        [] => Ok(names(context, |_| true)),
        [word, kind, wanted] if is_word(word, "filterby") => filtered(context, kind, wanted),
        _ => Err(SYNTAX),
    }
}

fn filtered(context: &Context<'_, '_>, kind: &[u8], wanted: &[u8]) -> Answer {
    if is_word(kind, "pattern") {
        let pattern = wanted.to_ascii_lowercase();
        Ok(names(context, |command| glob::matches(&pattern, command.name.as_bytes())))
    } else if is_word(kind, "aclcat") {
        let category = CATEGORIES.into_iter().find(|category| is_word(wanted, &category[1..]));
        Ok(names(context, |command| category.is_some_and(|category| command.is_in(category))))
    } else if is_word(kind, "module") {
        // There are no modules.
        Ok(names(context, |_| false))
    } else {
        Err(SYNTAX)
    }
}

/// The names of commands and of their subcommands.
fn names(context: &Context<'_, '_>, is_wanted: impl Fn(&Command) -> bool) -> Reply {
    let commands = context.server.table.commands().iter().flat_map(|command| {
        let alone: &Command = command;
        std::iter::once(alone).chain(command.subcommands)
    });
    Reply::Array(commands.filter(|command| is_wanted(command)).map(|command| Reply::text(command.name)).collect())
}

fn info(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    if arguments.len() == 2 {
        return all(context, arguments);
    }
    let find = |name: &Bytes| context.server.table.find(name).map_or(Reply::NilArray, describe);
    Ok(Reply::Array(arguments[2..].iter().map(find).collect()))
}

fn docs(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let table = &context.server.table;
    let wanted: Vec<&Command> = match &arguments[2..] {
        [] => table.commands().to_vec(),
        names => names.iter().filter_map(|name| table.find(name)).collect(),
    };
    Ok(Reply::Map(wanted.into_iter().map(|command| (Reply::text(command.name), document(command))).collect()))
}

/// A command as COMMAND INFO shows it.
fn describe(command: &Command) -> Reply {
    let Keys { first, last, step, .. } = command.keys;
    Reply::Array(vec![
        Reply::text(command.name),
        Reply::Integer(command.arity),
        Reply::Set(words(command.flags)),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(CATEGORIES.into_iter().filter(|category| command.is_in(category)).map(Reply::Simple).collect()),
        Reply::Array(Vec::new()),
        Reply::Array(key_specifications(&command.keys)),
        Reply::Array(command.subcommands.iter().map(describe).collect()),
    ])
}

fn words(text: &'static str) -> Vec<Reply> {
    text.split(' ').filter(|word| !word.is_empty()).map(Reply::Simple).collect()
}

/// Where the keys are, as newer clients ask for it: those of one place and use by one.
fn key_specifications(keys: &Keys) -> Vec<Reply> {
    let is_split = !keys.others.is_empty();
    let mut specifications = Vec::new();
    if keys.first > 0 {
        // The last key counts from the first one.
        let last = if keys.last < 0 { keys.last } else { keys.last - keys.first };
        let first_alone = is_split || keys.last == keys.first;
        specifications.push(in_range(keys.flags, keys.first, if first_alone { 0 } else { last }, keys.step));
        if is_split && keys.last != keys.first {
            let last = if keys.last < 0 { keys.last } else { last - 1 };
            specifications.push(in_range(keys.others, keys.first + 1, last, keys.step));
        }
    }
    if keys.counted_at > 0 {
        let flags = if is_split { keys.others } else { keys.flags };
        let numbers = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
        specifications.push(specification(flags, keys.counted_at as i64, "keynum", numbers));
    }
    specifications
}

fn in_range(flags: &'static str, first: i64, last: i64, step: i64) -> Reply {
    specification(flags, first, "range", [("lastkey", last), ("keystep", step), ("limit", 0)])
}

fn specification(flags: &'static str, first: i64, kind: &'static str, numbers: [(&'static str, i64); 3]) -> Reply {
    let text = Reply::text;
    let pairs =
        |kind, specification| Reply::Map(vec![(text("type"), text(kind)), (text("spec"), Reply::Map(specification))]);
    let numbers = numbers.map(|(name, number)| (text(name), Reply::Integer(number))).to_vec();
    Reply::Map(vec![
        (text("flags"), Reply::Set(words(flags))),
        (text("begin_search"), pairs("index", vec![(text("index"), Reply::Integer(first))])),
        (text("find_keys"), pairs(kind, numbers)),
    ])
}

/// A command as COMMAND DOCS shows it.
fn document(command: &Command) -> Reply {
    let documentation = &command.documentation;
    let mut pairs = vec![
        (Reply::text("summary"), Reply::text(documentation.summary)),
        (Reply::text("since"), Reply::text(documentation.since)),
        (Reply::text("group"), Reply::text(documentation.group)),
        (Reply::text("complexity"), Reply::text(documentation.complexity)),
    ];
    if !command.subcommands.is_empty() {
        let subcommands = command.subcommands.iter();
        let documented = subcommands.map(|command| (Reply::text(command.name), document(command))).collect();
        pairs.push((Reply::text("subcommands"), Reply::Map(documented)));
    }
    Reply::Map(pairs)
}
