//! Scripts: several commands at one moment, and what is computed from them.

use bytes::Bytes;

use super::family::Family;
use crate::acl::{Denial, Place};
use crate::admission::{denial, find};
use crate::command::Run::{Alone, Script};
use crate::command::{Call, Command, Context, Keys, NO_KEYS, is_word};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, said, words};
use crate::reply::{Answer, OK, Protocol, Reply};
use crate::scripts::{Commands, Run, Scripts};

const COUNTED: Keys = Keys { counted_at: 2, flags: "RW access update", ..NO_KEYS };
const SCRIPTING: Family = Family::new("scripting", "@scripting").complexity("Depends on the script that is executed.");
const EVAL: Family = SCRIPTING.flags("noscript stale skip_monitor no_mandatory_keys movablekeys").keys(COUNTED);
const EVAL_RO: Family = SCRIPTING
    .flags("readonly noscript stale skip_monitor no_mandatory_keys movablekeys")
    .keys(Keys { flags: "RO access", ..COUNTED });
const SCRIPT: Family = SCRIPTING.categories("").complexity("Depends on subcommand.");
const OF_SCRIPT: Family =
    SCRIPTING.flags("noscript").complexity("O(N) where N is the number of scripts, or their length");

pub(super) static COMMANDS: &[Command] = &[
    EVAL.command("eval", -3, Script(eval), "2.6.0", "Execute a Lua script server side"),
    EVAL.command("evalsha", -3, Script(evalsha), "2.6.0", "Execute a Lua script server side"),
    EVAL_RO.command("eval_ro", -3, Script(eval_ro), "7.0.0", "Execute a read-only Lua script server side"),
    EVAL_RO.command("evalsha_ro", -3, Script(evalsha_ro), "7.0.0", "Execute a read-only Lua script server side"),
    SCRIPT.container(
        "script",
        "2.6.0",
        "A container for Lua scripts management commands",
        &[
            OF_SCRIPT.flags("noscript stale").command(
                "script|load",
                3,
                Script(load),
                "2.6.0",
                "Load the specified Lua script into the script cache.",
            ),
            OF_SCRIPT.command(
                "script|exists",
                -3,
                Alone(exists),
                "2.6.0",
                "Check existence of scripts in the script cache.",
            ),
            OF_SCRIPT.command(
                "script|flush",
                -2,
                Script(flush),
                "2.6.0",
                "Remove all the scripts from the script cache.",
            ),
            OF_SCRIPT.flags("noscript allow_busy").command(
                "script|kill",
                2,
                Alone(kill),
                "2.6.0",
                "Kill the script currently in execution.",
            ),
        ],
    ),
];

const NO_SCRIPT: Refusal = words("NOSCRIPT No matching script. Please use EVAL.");

/// Bytes that the commands of a script may be given, and answer: all of it may be in memory until the script has ended.
const MOST_BYTES: usize = 512 << 20;

/// What each argument or reply takes besides.
const PART_BYTES: usize = 64;

fn eval(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    run(context, arguments, None, false)
}

fn eval_ro(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    run(context, arguments, None, true)
}

fn evalsha(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let name = known_name(&arguments[1])?;
    run(context, arguments, Some(name), false)
}

fn evalsha_ro(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let name = known_name(&arguments[1])?;
    run(context, arguments, Some(name), true)
}

fn known_name(name: &[u8]) -> Result<String, Refusal> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() == 40).ok_or(NO_SCRIPT)?;
    Ok(name.to_ascii_lowercase())
}

/// Runs the script of this name, or the one that the arguments have.
fn run(context: &mut Context<'_, '_>, arguments: &[Bytes], name: Option<String>, only_reads: bool) -> Answer {
    let keys = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let rest = &arguments[3..];
    if keys > rest.len() as i64 {
        return Err(words("ERR Number of keys can't be greater than number of args"));
    }
    let keys = usize::try_from(keys).map_err(|_| words("ERR Number of keys can't be negative"))?;
    let (keys, arguments_of_script) = rest.split_at(keys);
    let scripts = &context.server.scripts;
    let (name, text) = match name {
        None => (Scripts::name(&arguments[1]), arguments[1].clone()),
        Some(name) => {
            let text = scripts.text(&name).ok_or(NO_SCRIPT)?;
            (name, text)
        }
    };
    let (code, has_no_writes) = Scripts::parse(&text)?;
    let (database, protocol) = (context.session.database, context.session.protocol);
    let mut called = Called { context, only_reads: only_reads || has_no_writes, bytes: 0, failure: None };
    let run = Run { keys, arguments: arguments_of_script, commands: &mut called };
    let outcome = scripts.run(&name, &text, &code, run);
    let Called { context, failure, .. } = called;
    context.session.protocol = protocol;
    context.session.select(database);
    match failure {
        Some(failure) => Err(failure),
        None => outcome,
    }
}

/// The commands of a script.
struct Called<'a, 'b, 'c> {
    context: &'a mut Context<'b, 'c>,
    only_reads: bool,
    /// What they were given and have answered.
    bytes: usize,
    /// Why nothing of what the script does may be written.
    failure: Option<Refusal>,
}

impl Commands for Called<'_, '_, '_> {
    fn carry_out(&mut self, arguments: Vec<Bytes>, protocol: Protocol) -> Option<Reply> {
        self.bytes += arguments.iter().map(|argument| argument.len() + PART_BYTES).sum::<usize>();
        self.context.session.protocol = protocol;
        let reply = match self.answer(arguments) {
            Err(refusal) if refusal.undoes_all() => {
                self.failure = Some(refusal);
                return None;
            }
            answer => Reply::from(answer),
        };
        self.bytes += reply.bytes(PART_BYTES);
        if self.bytes > MOST_BYTES {
            let reason = format!("ERR the script's commands take and answer more than {MOST_BYTES} bytes");
            self.failure = Some(Refusal::Stopped(reason));
            return None;
        }
        Some(reply)
    }

    fn allow(&self, arguments: Vec<Bytes>) -> Option<bool> {
        let command = find(self.context.server, &arguments).ok()?;
        Some(self.context.session.user.rules().check(&command.attempt(&arguments)).is_ok())
    }
}

impl Called<'_, '_, '_> {
    fn answer(&mut self, arguments: Vec<Bytes>) -> Answer {
        let unknown = |_| words("ERR Unknown Redis command called from script");
        let command = find(self.context.server, &arguments).map_err(unknown)?;
        if !command.takes(arguments.len()) {
            return Err(words("ERR Wrong number of args calling Redis command from script"));
        }
        let handler = command.run.handler().filter(|_| !command.has_flag("noscript"));
        let handler = handler.ok_or(words("ERR This Redis command is not allowed from script"))?;
        if let Some(denial) = denial(self.context.server, self.context.session, command, &arguments, Place::Script) {
            return Err(words(match denial {
                Denial::Command => "ERR The user executing the script can't run this command or subcommand",
                Denial::Key(_) => {
                    "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments"
                }
                Denial::Channel(_) => {
                    "ERR The user executing the script can't publish to the channel mentioned in the command"
                }
            }));
        }
        if self.only_reads && command.is_write {
            return Err(words("ERR Write commands are not allowed from read-only scripts."));
        }
        let call = Call { command, arguments };
        self.context.server.statistics.commands.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        handler(self.context, &call.arguments)
    }
}

fn load(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let name = context.server.scripts.load(&arguments[2])?;
    Ok(Reply::Bulk(name.into()))
}

fn exists(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let is_known = |name: &Bytes| known_name(name).is_ok_and(|name| context.server.scripts.text(&name).is_some());
    Ok(Reply::Array(arguments[2..].iter().map(|name| Reply::flag(is_known(name))).collect()))
}

/// Takes constant time, so that both words mean the same.
fn flush(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match &arguments[2..] {
        [] => {}
        [word] if is_word(word, "async") || is_word(word, "sync") => {}
        _ => return Err(said("ERR SCRIPT FLUSH only support SYNC|ASYNC option".into())),
    }
    context.server.scripts.flush();
    Ok(OK)
}

fn kill(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    context.server.scripts.stop()?;
    Ok(OK)
}
