//! What becomes of a request before it is carried out: which command it is, and whether it may be.

use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::acl::{Denial, Denied, Place};
use crate::command::{Call, Command, Run, Server};
use crate::refusal::{MAX_REPEATED_BYTES, Refusal, repeated, said, words};
use crate::reply::Reply;
use crate::request::{MAX_REQUEST_BYTES, Request};
use crate::session::Session;

/// Commands that MULTI does not keep for EXEC.
const NEVER_QUEUED: [&str; 6] = ["exec", "discard", "multi", "watch", "quit", "reset"];

/// Commands of a client that has subscriptions and speaks RESP2.
const WHILE_LISTENING: [&str; 7] = ["subscribe", "unsubscribe", "psubscribe", "punsubscribe", "ping", "quit", "reset"];

/// A request that was looked at.
pub(crate) enum Admitted {
    /// To be carried out.
    Call(Call),
    /// Answered already.
    Answered(Reply),
}

/// Finds the command of a request, refuses what is wrong, and keeps what waits for EXEC.
pub(crate) fn admit(server: &Server, session: &mut Session, request: Request) -> Admitted {
    let command = match check(server, session, &request) {
        Ok(command) => command,
        Err(refusal) => {
            server.statistics.errors.fetch_add(1, Ordering::Relaxed);
            if let Some(transaction) = &mut session.transaction {
                transaction.is_refused = true;
            }
            return Admitted::Answered(Err(refusal).into());
        }
    };
    session.client.note(command.name);
    let call = Call { command, arguments: request };
    match &mut session.transaction {
        Some(transaction) if !NEVER_QUEUED.contains(&command.name) => {
            transaction.bytes += call.bytes() + call.arguments.len() * size_of::<Bytes>();
            if transaction.bytes > MAX_REQUEST_BYTES {
                session.is_ending = true;
                return Admitted::Answered(Err(words("ERR the transaction is too large")).into());
            }
            // The arguments must not keep what they came in.
            let arguments = call.arguments.iter().map(|argument| Bytes::copy_from_slice(argument)).collect();
            transaction.requests.push(arguments);
            session.show_transaction();
            Admitted::Answered(Reply::Simple("QUEUED"))
        }
        _ => Admitted::Call(call),
    }
}

fn check(server: &Server, session: &Session, request: &Request) -> Result<&'static Command, Refusal> {
    let command = find(server, request)?;
    if !command.takes(request.len()) {
        return Err(said(format!("ERR wrong number of arguments for '{}' command", command.name)));
    }
    if session.must_log_in(&server.acl) && !command.has_flag("no_auth") {
        return Err(words("NOAUTH Authentication required."));
    }
    if session.transaction.is_some() && command.has_flag("no_multi") {
        return Err(words("ERR Command not allowed inside a transaction"));
    }
    let place = if session.transaction.is_some() { Place::Transaction } else { Place::Toplevel };
    match denial(server, session, command, request, place) {
        None => {}
        Some(Denial::Command) => {
            return Err(said(format!("NOPERM this user has no permissions to run the '{}' command", command.name)));
        }
        Some(Denial::Key(_)) => {
            return Err(words("NOPERM this user has no permissions to access one of the keys used as arguments"));
        }
        Some(Denial::Channel(_)) => {
            return Err(words("NOPERM this user has no permissions to access one of the channels used as arguments"));
        }
    }
    if server.scripts.is_busy(server.settings.script_ms()) && !command.has_flag("allow_busy") {
        let text = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
        return Err(words(text));
    }
    if session.only_listens() && !WHILE_LISTENING.contains(&command.name) {
        return Err(said(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
            command.name
        )));
    }
    Ok(command)
}

/// What the client's user may not do of a command, which is noted for ACL LOG.
pub(crate) fn denial(
    server: &Server,
    session: &Session,
    command: &Command,
    arguments: &[Bytes],
    place: Place,
) -> Option<Denial> {
    if session.user.may_all() {
        return None;
    }
    let denial = session.user.rules().check(&command.attempt(arguments)).err()?;
    let (reason, object) = match denial {
        Denial::Command => ("command", Bytes::from_static(command.name.as_bytes())),
        Denial::Key(at) => ("key", arguments[at].clone()),
        Denial::Channel(at) => ("channel", arguments[at].clone()),
    };
    let denied = Denied { reason, place, object, user: session.user.name.clone() };
    server.acl.denials.add(denied, session.client.line(), server.settings.denials());
    Some(denial)
}

/// The command, or subcommand, that a request names.
pub(crate) fn find(server: &Server, request: &Request) -> Result<&'static Command, Refusal> {
    let command = server.table.find(&request[0]).filter(|command| !command.name.contains('|'));
    let command = command.ok_or_else(|| unknown_command(request))?;
    let Some(subcommand) = request.get(1).filter(|_| !command.subcommands.is_empty()) else {
        // Without any it is the container itself, which may be a command too.
        return Ok(command);
    };
    let found = command.subcommands.iter().find(|other| {
        let name = other.name.split_once('|').map_or(other.name, |(_, name)| name);
        subcommand.eq_ignore_ascii_case(name.as_bytes())
    });
    found.ok_or_else(|| {
        let help = format!("'. Try {} HELP.", command.name.to_ascii_uppercase());
        Refusal::Bytes([b"ERR unknown subcommand '", repeated(subcommand), help.as_bytes()].concat().into())
    })
}

/// What Redis says of a command that it does not have.
fn unknown_command(request: &Request) -> Refusal {
    // As in C, what follows a zero byte is not shown.
    fn shown(bytes: &[u8], most: usize) -> &[u8] {
        let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        &bytes[..bytes.len().min(most)]
    }
    let mut arguments: Vec<u8> = Vec::new();
    for argument in &request[1..] {
        if arguments.len() >= MAX_REPEATED_BYTES {
            break;
        }
        let most = MAX_REPEATED_BYTES - arguments.len();
        arguments.extend([b"'", shown(argument, most), b"' "].concat());
    }
    let name = shown(&request[0], MAX_REPEATED_BYTES);
    Refusal::Bytes([b"ERR unknown command '", name, b"', with args beginning with: ", &arguments].concat().into())
}

/// Whether a call may be carried out together with others that a client has sent at once.
pub(crate) fn is_grouped(call: &Call) -> bool {
    matches!(call.command.run, Run::Grouped(_) | Run::Ranged(_))
}
