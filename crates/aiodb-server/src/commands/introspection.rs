//! COMMAND: what the server can do.

use bytes::Bytes;

use super::family::Family;
use crate::command::Run::Grouped;
use crate::command::{Command, Context, Keys, count};
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
    if arguments.len() > 2 {
        return Err(crate::refusal::SYNTAX);
    }
    Ok(Reply::Array(context.server.table.commands().iter().map(|command| Reply::text(command.name)).collect()))
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
        Reply::Set(categories(command)),
        Reply::Array(Vec::new()),
        Reply::Array(key_specifications(&command.keys)),
        Reply::Array(command.subcommands.iter().map(describe).collect()),
    ])
}

fn words(text: &'static str) -> Vec<Reply> {
    text.split(' ').filter(|word| !word.is_empty()).map(Reply::Simple).collect()
}

/// Redis's order of the groups of commands in its ACL.
const CATEGORIES: [&str; 15] = [
    "@keyspace",
    "@read",
    "@write",
    "@set",
    "@sortedset",
    "@list",
    "@hash",
    "@string",
    "@pubsub",
    "@admin",
    "@fast",
    "@slow",
    "@blocking",
    "@dangerous",
    "@connection",
];

fn categories(command: &Command) -> Vec<Reply> {
    let is_in = |category: &str| match category {
        // A script may do anything, whatever it says.
        "@read" => command.has_flag("readonly") && !command.name.starts_with("eval"),
        "@write" => command.is_write(),
        "@admin" if command.has_flag("admin") => true,
        "@fast" => command.has_flag("fast"),
        "@slow" => !command.has_flag("fast"),
        "@blocking" => command.has_flag("blocking"),
        "@pubsub" => command.has_flag("pubsub"),
        "@dangerous" if command.has_flag("admin") => true,
        other => command.categories.split(' ').any(|category| category == other),
    };
    CATEGORIES
        .into_iter()
        .chain(["@transaction", "@scripting"])
        .filter(|category| is_in(category))
        .map(Reply::Simple)
        .collect()
}

/// Where the keys are, as newer clients ask for it.
fn key_specifications(keys: &Keys) -> Vec<Reply> {
    if keys.first == 0 && keys.counted_at == 0 {
        return Vec::new();
    }
    let text = Reply::text;
    let pairs =
        |kind, specification| Reply::Map(vec![(text("type"), text(kind)), (text("spec"), Reply::Map(specification))]);
    // Of a command with keys of both sorts only the first are said.
    let is_counted = keys.first == 0;
    let first = if is_counted { keys.counted_at as i64 } else { keys.first };
    let begin = pairs("index", vec![(text("index"), Reply::Integer(first))]);
    // The last key counts from the first one.
    let last = if keys.last < 0 { keys.last } else { keys.last - keys.first };
    let number = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
    let counted = || number.map(|(name, number)| (text(name), Reply::Integer(number))).to_vec();
    let range = pairs(
        "range",
        vec![
            (text("lastkey"), Reply::Integer(last)),
            (text("keystep"), Reply::Integer(keys.step)),
            (text("limit"), Reply::Integer(0)),
        ],
    );
    let find = if is_counted { pairs("keynum", counted()) } else { range };
    vec![Reply::Map(vec![
        (text("flags"), Reply::Set(words(keys.flags))),
        (text("begin_search"), begin),
        (text("find_keys"), find),
    ])]
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
