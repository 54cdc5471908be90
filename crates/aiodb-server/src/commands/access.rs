//! ACL: users, what they may do, and what was denied.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::family::Family;
use crate::acl::{CATEGORIES, Denial, Selector, User, category_of, has_spaces};
use crate::admission::find;
use crate::channels::Topic;
use crate::command::Run::Alone;
use crate::command::{Command, Context, count, is_word};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, repeated, said, words, wrong_number};
use crate::reply::{Answer, OK, Reply};

const ACL: Family = Family::new("server", "");
const OPEN: Family = ACL.flags("noscript loading stale");
const ADMIN: Family = ACL.flags("admin noscript loading stale");
const EACH: Family = ADMIN.complexity("O(N) where N is the number of users.");
const RULES: Family = ADMIN.complexity("O(N) where N is the number of rules.");
const CAT: Family = OPEN.complexity("O(1) since the categories and commands are a fixed set.");
const LOG: Family = ADMIN.complexity("O(N) with N being the number of entries shown.");

pub(super) static COMMANDS: &[Command] = &[ACL.complexity("Depends on subcommand.").container(
    "acl",
    "6.0.0",
    "A container for Access List Control commands",
    &[
        CAT.command("acl|cat", -2, Alone(cat), "6.0.0", "List the ACL categories or the commands inside a category"),
        EACH.command("acl|deluser", -3, Alone(deluser), "6.0.0", "Remove the specified ACL users"),
        ADMIN.command(
            "acl|dryrun",
            -4,
            Alone(dryrun),
            "7.0.0",
            "Returns whether the user can execute the given command",
        ),
        OPEN.command("acl|genpass", -2, Alone(genpass), "6.0.0", "Generate a pseudorandom secure password"),
        RULES.command("acl|getuser", 3, Alone(getuser), "6.0.0", "Get the rules for a specific ACL user"),
        ACL.flags("loading stale").command("acl|help", 2, Alone(help), "6.0.0", "Show helpful text"),
        EACH.command("acl|list", 2, Alone(list), "6.0.0", "List the current ACL rules in ACL config file format"),
        EACH.command("acl|load", 2, Alone(load), "6.0.0", "Reload the ACLs from the configured ACL file"),
        LOG.command("acl|log", -2, Alone(log), "6.0.0", "List latest events denied because of ACLs in place"),
        EACH.command("acl|save", 2, Alone(save), "6.0.0", "Save the current ACL rules in the configured ACL file"),
        RULES.command("acl|setuser", -3, Alone(setuser), "6.0.0", "Modify or create the rules for a specific ACL user"),
        EACH.command("acl|users", 2, Alone(users), "6.0.0", "List the username of all the configured ACL rules"),
        OPEN.command("acl|whoami", 2, Alone(whoami), "6.0.0", "Return the name of the user of the current connection"),
    ],
)];

const NO_FILE: Refusal = words(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER command and \
     then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store users in the Redis \
     configuration.",
);

/// Redis's own: bits of a password that is made for a user, and at most.
const PASSWORD_BITS: i64 = 256;
const MOST_PASSWORD_BITS: i64 = 4096;

/// Entries of ACL LOG that are shown if nobody says how many.
const LOG_ENTRIES: i64 = 10;

const HELP: &[&str] = &[
    "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CAT [<category>]",
    "    List all commands that belong to <category>, or all command categories",
    "    when no category is specified.",
    "DELUSER <username> [<username> ...]",
    "    Delete a list of users.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Returns whether the user can execute the given command without executing the command.",
    "GETUSER <username>",
    "    Get the user's details.",
    "GENPASS [<bits>]",
    "    Generate a secure 256-bit user password. The optional `bits` argument can",
    "    be used to specify a different size.",
    "LIST",
    "    Show users details in config file format.",
    "LOAD",
    "    Reload users from the ACL file.",
    "LOG [<count> | RESET]",
    "    Show the ACL log entries.",
    "SAVE",
    "    Save the current config to the ACL file.",
    "SETUSER <username> <attribute> [<attribute> ...]",
    "    Create or modify a user with the specified attributes.",
    "USERS",
    "    List all the registered usernames.",
    "WHOAMI",
    "    Return the current connection username.",
    "HELP",
    "    Prints this help.",
];

fn cat(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match &arguments[2..] {
        [] => Ok(Reply::Array(CATEGORIES.iter().map(|category| Reply::text(&category[1..])).collect())),
        [name] => {
            let unknown = || Refusal::Bytes([b"ERR Unknown category '", repeated(name), b"'"].concat().into());
            let category = category_of(name).ok_or_else(unknown)?;
            let commands = context.server.acl.catalog().category(category);
            Ok(Reply::Array(commands.map(|command| Reply::text(command.name)).collect()))
        }
        _ => Err(wrong_number(&arguments[1], "ACL")),
    }
}

fn whoami(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Bulk(context.session.user.name.clone()))
}

fn users(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Array(context.server.acl.all().iter().map(|user| Reply::Bulk(user.name.clone())).collect()))
}

fn list(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let acl = &context.server.acl;
    Ok(Reply::Array(acl.all().iter().map(|user| Reply::Bulk(acl.line(user))).collect()))
}

fn getuser(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let Some(user) = context.server.acl.find(&arguments[2]) else { return Ok(Reply::Nil) };
    let rules = user.rules();
    let describe = |selector: &Selector| {
        let commands = selector.command_rules(context.server.acl.catalog());
        let joined = |rules: Vec<Bytes>| Reply::Bulk(rules.join(&b' ').into());
        vec![
            (Reply::text("commands"), Reply::Bulk(commands.into())),
            (Reply::text("keys"), joined(selector.key_rules())),
            (Reply::text("channels"), joined(selector.channel_rules())),
        ]
    };
    let mut selectors = rules.selectors().map(describe);
    let root = selectors.next().into_iter().flatten();
    let flags = rules.flags().into_iter().map(Reply::text).collect();
    let passwords = rules.hashes().map(|hash| Reply::Bulk(hash.into())).collect();
    let mut pairs =
        vec![(Reply::text("flags"), Reply::Set(flags)), (Reply::text("passwords"), Reply::Array(passwords))];
    pairs.extend(root);
    pairs.push((Reply::text("selectors"), Reply::Array(selectors.map(Reply::Map).collect())));
    Ok(Reply::Map(pairs))
}

fn setuser(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let name = &arguments[2];
    if has_spaces(name) {
        return Err(words("ERR Usernames can't contain spaces or null characters"));
    }
    // Names and patterns of rules are copied.
    let changed = context.server.acl.change(name, &arguments[3..]);
    let user = changed.map_err(|error| Refusal::Bytes([b"ERR ", &error.text()[..]].concat().into()))?;
    end_listening(context, &user);
    Ok(OK)
}

/// Ends the connections of a user that listen to what it may no longer hear.
fn end_listening(context: &mut Context<'_, '_>, user: &Arc<User>) {
    let rules = user.rules();
    let subscriptions = context.server.channels.of_clients(|client| Arc::ptr_eq(&client.user(), user));
    for (client, topic, name) in subscriptions {
        if !rules.allow_channel(&name, topic == Topic::Pattern) {
            context.end_client(&client);
        }
    }
}

fn deluser(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let acl = &context.server.acl;
    if arguments[2..].iter().any(|name| *name == acl.default_user().name) {
        return Err(words("ERR The 'default' user cannot be removed"));
    }
    let deleted: Vec<Arc<User>> = arguments[2..].iter().filter_map(|name| acl.delete(name)).collect();
    end_clients(context, &deleted);
    Ok(count(deleted.len()))
}

/// Ends all connections of users that are gone.
fn end_clients(context: &mut Context<'_, '_>, gone: &[Arc<User>]) {
    for client in context.server.clients.all() {
        let user = client.user();
        if gone.iter().any(|gone| Arc::ptr_eq(gone, &user)) {
            context.end_client(&client);
        }
    }
}

fn file<'a>(context: &Context<'a, '_>) -> Result<&'a Path, Refusal> {
    context.server.acl.file().ok_or(NO_FILE)
}

fn load(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let (server, path) = (context.server, file(context)?);
    let gone = tokio::task::block_in_place(|| server.acl.load(path, &server.settings.requirepass()));
    let gone = gone.map_err(|errors| said(format!("ERR {errors}")))?;
    end_clients(context, &gone);
    end_listening(context, server.acl.default_user());
    Ok(OK)
}

fn save(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let (server, path) = (context.server, file(context)?);
    let saved = tokio::task::block_in_place(|| server.acl.save(path));
    saved.map_err(|cause| {
        said(format!("ERR There was an error trying to save the ACLs: {}: {cause}", path.display()))
    })?;
    Ok(OK)
}

fn genpass(_: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let bits = match &arguments[2..] {
        [] => PASSWORD_BITS,
        [bits] => parse_integer(bits).ok_or(NOT_AN_INTEGER)?,
        _ => return Err(wrong_number(&arguments[1], "ACL")),
    };
    if !(1..=MOST_PASSWORD_BITS).contains(&bits) {
        return Err(said(format!(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to \
             {MOST_PASSWORD_BITS}"
        )));
    }
    let digits = (bits as usize).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    getrandom::fill(&mut random).map_err(|error| said(format!("ERR the system gives no random numbers: {error}")))?;
    let mut password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    Ok(Reply::Bulk(password.into()))
}

fn log(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let denials = &context.server.acl.denials;
    let most = match &arguments[2..] {
        [] => LOG_ENTRIES,
        [word] if is_word(word, "reset") => {
            denials.clear();
            return Ok(OK);
        }
        [number] => parse_integer(number).ok_or(NOT_AN_INTEGER)?,
        _ => return Err(wrong_number(&arguments[1], "ACL")),
    };
    let entries = denials.latest(usize::try_from(most).unwrap_or(0)).into_iter().map(|entry| {
        Reply::Map(vec![
            (Reply::text("count"), Reply::Integer(entry.count)),
            (Reply::text("reason"), Reply::text(entry.denied.reason)),
            (Reply::text("context"), Reply::text(entry.denied.place.name())),
            (Reply::text("object"), Reply::Bulk(entry.denied.object)),
            (Reply::text("username"), Reply::Bulk(entry.denied.user)),
            (Reply::text("age-seconds"), Reply::Double(entry.at.elapsed().as_millis() as f64 / 1000.0)),
            (Reply::text("client-info"), Reply::Bulk(entry.client.trim_end().to_string().into())),
        ])
    });
    Ok(Reply::Array(entries.collect()))
}

/// What a user could do, who does not do it: nothing is noted.
fn dryrun(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let quoted = |start: &str, name: &[u8], end: &str| Bytes::from([start.as_bytes(), name, end.as_bytes()].concat());
    let refused = |start: &str, name: &[u8]| Refusal::Bytes(quoted(start, name, "' not found"));
    let user = context.server.acl.find(&arguments[2]).ok_or_else(|| refused("ERR User '", &arguments[2]))?;
    let request = arguments[3..].to_vec();
    let command = find(context.server, &request).map_err(|_| refused("ERR Command '", &request[0]))?;
    if !command.takes(request.len()) {
        return Err(said(format!("ERR wrong number of arguments for '{}' command", command.name)));
    }
    let to_access = "This user has no permissions to access the '";
    Ok(match user.rules().check(&command.attempt(&request)) {
        Ok(()) => OK,
        Err(Denial::Command) => {
            let start = "This user has no permissions to run the '";
            Reply::Bulk(quoted(start, command.name.as_bytes(), "' command"))
        }
        Err(Denial::Key(at)) => Reply::Bulk(quoted(to_access, &request[at], "' key")),
        Err(Denial::Channel(at)) => Reply::Bulk(quoted(to_access, &request[at], "' channel")),
    })
}

fn help(_: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Array(HELP.iter().copied().map(Reply::Simple).collect()))
}
