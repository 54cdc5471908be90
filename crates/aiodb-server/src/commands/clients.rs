//! CLIENT: the connections of the server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::connection::check_name;
use super::family::Family;
use crate::acl::{Acl, User};
use crate::client::{Client, Unblocked};
use crate::command::Run::Alone;
use crate::command::{Command, Context, count, is_word};
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, SYNTAX, words, wrong_number};
use crate::reply::{Answer, OK, Reply};

const CLIENT: Family = Family::new("connection", "");
const OWN: Family = CLIENT.categories("@connection").flags("noscript loading stale");
const ADMIN: Family = OWN.flags("admin noscript loading stale");

pub(super) static COMMANDS: &[Command] = &[CLIENT.complexity("Depends on subcommand.").container(
    "client",
    "2.4.0",
    "A container for client connection commands",
    &[
        OWN.command("client|id", 2, Alone(id), "5.0.0", "Returns the client ID for the current connection"),
        OWN.command("client|setname", 3, Alone(setname), "2.6.9", "Set the current connection name"),
        OWN.command("client|getname", 2, Alone(getname), "2.6.9", "Get the current connection name"),
        OWN.command("client|setinfo", 4, Alone(setinfo), "7.2.0", "Set client or connection specific info"),
        OWN.command("client|info", 2, Alone(info), "6.2.0", "Returns information about the current client connection."),
        ADMIN.command("client|list", -2, Alone(list), "2.4.0", "Get the list of client connections"),
        ADMIN.command("client|unblock", -3, Alone(unblock), "5.0.0", "Unblock a client blocked in a blocking command"),
        ADMIN.command(
            "client|no-evict",
            3,
            Alone(no_evict),
            "7.0.0",
            "Set client eviction mode for the current connection",
        ),
        ADMIN.command("client|kill", -3, Alone(kill), "2.4.0", "Kill the connection of a client"),
    ],
)];

fn id(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Integer(context.session.client.id as i64))
}

fn setname(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    check_name(&arguments[2])?;
    context.session.client.set_name(Bytes::copy_from_slice(&arguments[2]));
    Ok(OK)
}

fn getname(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::bulk_or_nil(Some(context.session.client.name()).filter(|name| !name.is_empty())))
}

/// Newer clients tell what they are. It is taken, so that they go on, and shown nowhere, as Redis 7.0 has no place for it.
fn setinfo(_: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (attribute, value) = (&arguments[2], &arguments[3]);
    if !is_word(attribute, "lib-name") && !is_word(attribute, "lib-ver") {
        return Err(Refusal::Bytes([b"ERR Unrecognized option '", &attribute[..], b"'"].concat().into()));
    }
    if !value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        let text = [&attribute[..], b" cannot contain spaces, newlines or special characters."].concat();
        return Err(Refusal::Bytes([b"ERR ", &text[..]].concat().into()));
    }
    Ok(OK)
}

fn info(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    Ok(Reply::Text(context.session.client.line()))
}

/// A type of clients.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientType {
    Ordinary,
    Listening,
    /// There are no replicas.
    Other,
}

impl ClientType {
    fn parse(word: &[u8]) -> Result<ClientType, Refusal> {
        if is_word(word, "normal") {
            Ok(ClientType::Ordinary)
        } else if is_word(word, "pubsub") {
            Ok(ClientType::Listening)
        } else if ["master", "replica", "slave"].iter().any(|other| is_word(word, other)) {
            Ok(ClientType::Other)
        } else {
            Err(Refusal::Bytes([b"ERR Unknown client type '", word, b"'"].concat().into()))
        }
    }

    fn of(client: &Client) -> ClientType {
        if client.listens() { ClientType::Listening } else { ClientType::Ordinary }
    }
}

fn list(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let mut clients = context.server.clients.all();
    match &arguments[2..] {
        [] => {}
        [word, kind] if is_word(word, "type") => {
            let kind = ClientType::parse(kind)?;
            clients.retain(|client| ClientType::of(client) == kind);
        }
        [word, ids @ ..] if is_word(word, "id") && !ids.is_empty() => {
            let mut wanted = Vec::with_capacity(ids.len());
            for id in ids {
                wanted.push(parse_integer(id).ok_or(words("ERR Invalid client ID"))?);
            }
            clients.retain(|client| wanted.contains(&(client.id as i64)));
        }
        _ => return Err(SYNTAX),
    }
    Ok(Reply::Text(clients.iter().map(|client| client.line()).collect()))
}

/// Which connections CLIENT KILL ends.
struct Filter<'a> {
    id: Option<i64>,
    address: Option<&'a Bytes>,
    local_address: Option<&'a Bytes>,
    kind: Option<ClientType>,
    user: Option<Arc<User>>,
    skips_own: bool,
}

impl<'a> Filter<'a> {
    const ALL: Filter<'static> =
        Filter { id: None, address: None, local_address: None, kind: None, user: None, skips_own: false };

    fn parse(options: &'a [Bytes], acl: &Acl) -> Result<Filter<'a>, Refusal> {
        let mut filter = Filter { skips_own: true, ..Filter::ALL };
        let (options, rest) = options.as_chunks();
        if !rest.is_empty() {
            return Err(SYNTAX);
        }
        for [option, value] in options {
            if is_word(option, "id") {
                let id = parse_integer(value).ok_or(words("ERR client-id should be greater than 0"))?;
                filter.id = Some(id).filter(|id| *id > 0);
                filter.id.ok_or(words("ERR client-id should be greater than 0"))?;
            } else if is_word(option, "type") {
                filter.kind = Some(ClientType::parse(value)?);
            } else if is_word(option, "addr") {
                filter.address = Some(value);
            } else if is_word(option, "laddr") {
                filter.local_address = Some(value);
            } else if is_word(option, "user") {
                let unknown = || Refusal::Bytes([b"ERR No such user '", &value[..], b"'"].concat().into());
                filter.user = Some(acl.find(value).ok_or_else(unknown)?);
            } else if is_word(option, "skipme") {
                filter.skips_own = match value {
                    value if is_word(value, "yes") => true,
                    value if is_word(value, "no") => false,
                    _ => return Err(SYNTAX),
                };
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(filter)
    }

    fn names(&self, client: &Client, own_id: u64) -> bool {
        self.kind.is_none_or(|kind| ClientType::of(client) == kind)
            && self.id.is_none_or(|id| client.id as i64 == id)
            && self.address.is_none_or(|address| client.address.to_string().as_bytes() == &address[..])
            && self.local_address.is_none_or(|address| client.local_address.to_string().as_bytes() == &address[..])
            && self.user.as_ref().is_none_or(|user| Arc::ptr_eq(user, &client.user()))
            && !(self.skips_own && client.id == own_id)
    }
}

fn kill(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    // The old form has an address alone, and ends the client's own connection too.
    let is_old = arguments.len() == 3;
    let filter = match is_old {
        true => Filter { address: Some(&arguments[2]), ..Filter::ALL },
        false => Filter::parse(&arguments[2..], &context.server.acl)?,
    };
    let own_id = context.session.client.id;
    let all = context.server.clients.all();
    let named: Vec<&Arc<Client>> = all.iter().filter(|client| filter.names(client, own_id)).collect();
    named.iter().for_each(|client| context.end_client(client));
    match (is_old, named.len()) {
        (true, 0) => Err(words("ERR No such client")),
        (true, _) => Ok(OK),
        (false, killed) => Ok(count(killed)),
    }
}

fn unblock(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let how = match &arguments[3..] {
        [] => Unblocked::TimedOut,
        [reason] if is_word(reason, "timeout") => Unblocked::TimedOut,
        [reason] if is_word(reason, "error") => Unblocked::WithError,
        [_] => return Err(words("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
        _ => return Err(wrong_number(&arguments[1], "CLIENT")),
    };
    let id = parse_integer(&arguments[2]).ok_or(NOT_AN_INTEGER)?;
    let all = context.server.clients.all();
    let client = all.iter().find(|client| i64::try_from(client.id) == Ok(id));
    Ok(Reply::flag(client.is_some_and(|client| client.unblock(how))))
}

/// Redis keeps such a client when the memory of clients is bounded and short. Here it never is.
fn no_evict(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let stays = match &arguments[2] {
        word if is_word(word, "on") => true,
        word if is_word(word, "off") => false,
        _ => return Err(SYNTAX),
    };
    context.session.client.shown.stays.store(stays, Ordering::Relaxed);
    Ok(OK)
}
