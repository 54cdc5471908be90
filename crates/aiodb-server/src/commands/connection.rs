//! The connection itself: who the client is, what it speaks, which database it has chosen.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::family::Family;
use crate::acl::{Denied, Place};
use crate::command::Run::{Alone, Grouped};
use crate::command::{Command, Context, is_word};
use crate::number::parse_integer;
use crate::refusal::{Refusal, SYNTAX, words};
use crate::reply::{Answer, OK, Protocol, Reply};
use crate::scripts::REDIS_VERSION;

const CONNECTION: Family = Family::new("connection", "@connection");
const STALE: Family = CONNECTION.flags("loading stale fast");
const OPEN: Family = CONNECTION.flags("noscript loading stale fast no_auth allow_busy");
const TIME: Family = Family::new("server", "").flags("loading stale fast");

pub(super) static COMMANDS: &[Command] = &[
    CONNECTION.flags("fast").command("ping", -1, Grouped(ping), "1.0.0", "Ping the server"),
    STALE.command("echo", 2, Grouped(echo), "1.0.0", "Echo the given string"),
    OPEN.command("quit", -1, Alone(quit), "1.0.0", "Close the connection"),
    OPEN.command("reset", 1, Alone(reset), "6.2.0", "Reset the connection"),
    OPEN.command("auth", -2, Alone(auth), "1.0.0", "Authenticate to the server"),
    OPEN.command("hello", -1, Alone(hello), "6.0.0", "Handshake with Redis"),
    STALE.command("select", 2, Alone(select), "1.0.0", "Change the selected database for the current connection"),
    TIME.command("time", 1, Grouped(time), "2.6.0", "Return the current server time"),
];

fn ping(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    match &arguments[1..] {
        // As a message, which such a client can read.
        rest @ ([] | [_]) if context.session.only_listens() => {
            Ok(Reply::Array(vec![Reply::text("pong"), Reply::Bulk(rest.first().cloned().unwrap_or_default())]))
        }
        [] => Ok(Reply::Simple("PONG")),
        [message] => Ok(Reply::Bulk(message.clone())),
        _ => Err(words("ERR wrong number of arguments for 'ping' command")),
    }
}

fn echo(_: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    Ok(Reply::Bulk(arguments[1].clone()))
}

fn quit(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    context.session.is_ending = true;
    Ok(OK)
}

fn reset(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let session = &mut *context.session;
    session.transaction = None;
    session.show_transaction();
    context.server.keyspace.watchers.remove(std::mem::take(&mut session.watch));
    session.subscriptions.end(&context.server.channels, &session.client);
    session.select(0);
    session.speak(Protocol::Resp2);
    session.client.set_name(Bytes::new());
    session.client.shown.stays.store(false, Ordering::Relaxed);
    session.log_out(&context.server.acl);
    Ok(Reply::Simple("RESET"))
}

fn auth(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (user, password) = match &arguments[1..] {
        [_] if context.server.acl.needs_no_password() => {
            return Err(words(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        [password] => (context.server.acl.default_user().name.clone(), password),
        [user, password] => (user.clone(), password),
        _ => return Err(SYNTAX),
    };
    authenticate(context, &arguments[0], user, password)?;
    Ok(OK)
}

/// The client is this user from now on, if the password is right.
fn authenticate(context: &mut Context<'_, '_>, command: &Bytes, user: Bytes, password: &[u8]) -> Result<(), Refusal> {
    let (server, session) = (context.server, &mut *context.session);
    if let Some(user) = server.acl.authenticate(&user, password) {
        session.log_in(user);
        return Ok(());
    }
    let place = if session.is_executing { Place::Transaction } else { Place::Toplevel };
    let denied = Denied { reason: "auth", place, object: command.clone(), user };
    server.acl.denials.add(denied, session.client.line(), server.settings.denials());
    Err(words("WRONGPASS invalid username-password pair or user is disabled."))
}

fn hello(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut rest = arguments[1..].iter();
    let mut protocol = context.session.protocol;
    if let Some(version) = rest.next() {
        protocol = match parse_integer(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(words("NOPROTO unsupported protocol version")),
            None => return Err(words("ERR Protocol version is not an integer or out of range")),
        };
    }
    let (mut login, mut name) = (None, None);
    while let Some(option) = rest.next() {
        let wrong = || Refusal::Bytes([b"ERR Syntax error in HELLO option '", &option[..], b"'"].concat().into());
        if is_word(option, "auth") && rest.len() >= 2 {
            login = rest.next().zip(rest.next());
        } else if is_word(option, "setname") && rest.len() >= 1 {
            name = rest.next();
            check_name(name.expect("just seen"))?;
        } else {
            return Err(wrong());
        }
    }
    if let Some((user, password)) = login {
        authenticate(context, &arguments[0], user.clone(), password)?;
    }
    if !context.session.is_known {
        return Err(words(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option \
             can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        context.session.client.set_name(Bytes::copy_from_slice(name));
    }
    context.session.speak(protocol);
    let id = context.session.client.id as i64;
    Ok(Reply::Map(vec![
        (Reply::text("server"), Reply::text("redis")),
        (Reply::text("version"), Reply::text(REDIS_VERSION)),
        (Reply::text("proto"), Reply::Integer(protocol.number())),
        (Reply::text("id"), Reply::Integer(id)),
        (Reply::text("mode"), Reply::text("standalone")),
        (Reply::text("role"), Reply::text("master")),
        (Reply::text("modules"), Reply::Array(Vec::new())),
    ]))
}

/// Refuses names that would break the lines of CLIENT LIST.
pub(super) fn check_name(name: &[u8]) -> Result<(), Refusal> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    Err(words("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn select(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let database = context.database_of(&arguments[1])?;
    context.session.select(database);
    Ok(OK)
}

fn time(_: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = |number: u64| Reply::Bulk(number.to_string().into());
    Ok(Reply::Array(vec![text(now.as_secs()), text(u64::from(now.subsec_micros()))]))
}
