//! CONFIG: the settings that mean here what they mean in Redis.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use aiodb::Durability;
use aiodb::io::memory::memory_bytes;
use bytes::Bytes;
use rustls::ServerConfig;

use super::family::Family;
use crate::channels::{MANY_WAITING, MOST_WAITING, PATIENCE};
use crate::command::Run::Alone;
use crate::command::{Command, Context, Server, is_word};
use crate::glob;
use crate::number::parse_integer;
use crate::refusal::{Refusal, SYNTAX, repeated, said};
use crate::reply::{Answer, OK, Reply};
use crate::request::MAX_STRING_BYTES;
use crate::settings::Change;
use crate::storage::{Side, Wish, shown};
use crate::tls::Tls;

const CONFIG: Family = Family::new("server", "");
const OF_CONFIG: Family =
    CONFIG.flags("admin noscript loading stale").complexity("O(N) where N is the number of settings");

pub(super) static COMMANDS: &[Command] = &[CONFIG.complexity("Depends on subcommand.").container(
    "config",
    "2.0.0",
    "A container for server configuration commands",
    &[
        OF_CONFIG.command("config|get", -3, Alone(get), "2.0.0", "Get the values of configuration parameters"),
        OF_CONFIG.command("config|set", -4, Alone(set), "2.0.0", "Set configuration parameters to the given values"),
        OF_CONFIG.command("config|resetstat", 2, Alone(resetstat), "2.0.0", "Reset the stats returned by INFO"),
    ],
)];

/// What a value may be.
#[derive(Clone, Copy)]
enum Takes {
    /// What Redis does not change while it runs either.
    Fixed,
    /// What only the start decides here: nothing but the value that it has.
    FromStart,
    /// As [`Takes::FromStart`], but then the files of TLS are read again.
    Certificate,
    Integer(i64, i64, fn(i64) -> Change),
    Flag(fn(bool) -> Change),
    Text(fn(String) -> Change),
    /// What the server may take of memory.
    Memory,
    /// What memory keeps of databases.
    Modes(Side),
}

struct Setting {
    name: &'static str,
    value: fn(&Server) -> String,
    takes: Takes,
}

const fn setting(name: &'static str, takes: Takes, value: fn(&Server) -> String) -> Setting {
    Setting { name, value, takes }
}

const SCRIPT_MS: Takes = Takes::Integer(0, i64::MAX, |time| Change::ScriptMs(time as u64));

static SETTINGS: [Setting; 33] = [
    setting("acl-pubsub-default", Takes::FromStart, |_| "resetchannels".into()),
    setting("aclfile", Takes::Fixed, |server| server.config.aclfile.display().to_string()),
    setting("acllog-max-len", Takes::Integer(0, i64::MAX, |number| Change::Denials(number as usize)), |server| {
        server.settings.denials().to_string()
    }),
    setting("appendfsync", Takes::FromStart, |server| appendfsync(server.keyspace.durability()).into()),
    setting("appendonly", Takes::FromStart, |_| "yes".into()),
    setting("bind", Takes::FromStart, |server| {
        let addresses: Vec<_> = server.config.bind.iter().map(ToString::to_string).collect();
        addresses.join(" ")
    }),
    setting("busy-reply-threshold", SCRIPT_MS, |server| server.settings.script_ms().to_string()),
    setting("client-output-buffer-limit", Takes::FromStart, |_| {
        let seconds = PATIENCE.as_secs();
        format!("normal 0 0 0 slave 0 0 0 pubsub {MOST_WAITING} {MANY_WAITING} {seconds}")
    }),
    setting("cluster-enabled", Takes::Fixed, |_| "no".into()),
    setting("databases", Takes::Fixed, |server| server.keyspace.databases().to_string()),
    setting("dir", Takes::FromStart, |server| server.config.dir.display().to_string()),
    setting("keys-mode", Takes::Modes(Side::Keys), |server| shown(Side::Keys, &server.keyspace.modes())),
    // Redis's former name of `busy-reply-threshold`.
    setting("lua-time-limit", SCRIPT_MS, |server| server.settings.script_ms().to_string()),
    setting("maxclients", Takes::Integer(1, u32::MAX as i64, |number| Change::Maxclients(number as usize)), |server| {
        server.settings.maxclients().to_string()
    }),
    setting("maxmemory", Takes::Memory, |server| maxmemory(server).to_string()),
    setting("maxmemory-policy", Takes::FromStart, |_| "noeviction".into()),
    // Nothing is rewritten, so nothing waits for that.
    setting("no-appendfsync-on-rewrite", Takes::FromStart, |_| "no".into()),
    setting("notify-keyspace-events", Takes::FromStart, |_| String::new()),
    setting("port", Takes::FromStart, |server| server.port.to_string()),
    setting("proto-max-bulk-len", Takes::FromStart, |_| MAX_STRING_BYTES.to_string()),
    setting("protected-mode", Takes::Flag(Change::ProtectedMode), |server| yes_or_no(server.settings.protected_mode())),
    setting("replica-read-only", Takes::FromStart, |_| "yes".into()),
    setting("requirepass", Takes::Text(Change::Requirepass), |server| server.settings.requirepass().to_string()),
    setting("save", Takes::FromStart, |_| String::new()),
    setting("slowlog-log-slower-than", Takes::Integer(-1, i64::MAX, Change::SlowerThanUs), |server| {
        server.settings.slower_than_us().to_string()
    }),
    setting("slowlog-max-len", Takes::Integer(0, i64::MAX, |number| Change::SlowCommands(number as usize)), |server| {
        server.settings.slow_commands().to_string()
    }),
    setting("timeout", Takes::FromStart, |_| "0".into()),
    setting("tls-auth-clients", Takes::FromStart, |server| server.config.tls_auth_clients.name().into()),
    setting("tls-ca-cert-file", Takes::Certificate, |server| server.config.tls_ca_cert_file.display().to_string()),
    setting("tls-cert-file", Takes::Certificate, |server| server.config.tls_cert_file.display().to_string()),
    setting("tls-key-file", Takes::Certificate, |server| server.config.tls_key_file.display().to_string()),
    setting("tls-port", Takes::FromStart, |server| server.config.tls_port.to_string()),
    setting("values-mode", Takes::Modes(Side::Values), |server| shown(Side::Values, &server.keyspace.modes())),
];

/// What the server may take of memory, in bytes; 0 where it does not matter.
pub(super) fn maxmemory(server: &Server) -> u64 {
    server.settings.division().server_bytes.unwrap_or(0)
}

/// Redis's name of a class.
pub(super) fn appendfsync(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "always",
        Durability::Interval(_) => "everysec",
        Durability::None => "no",
    }
}

fn yes_or_no(is_on: bool) -> String {
    if is_on { "yes" } else { "no" }.into()
}

fn get(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let patterns: Vec<_> = arguments[2..].iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
    let is_wanted = |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
    let wanted = SETTINGS.iter().filter(|setting| is_wanted(setting.name));
    let pair = |setting: &Setting| (Reply::text(setting.name), Reply::Bulk((setting.value)(context.server).into()));
    Ok(Reply::Map(wanted.map(pair).collect()))
}

/// All settings, or none if one of them cannot be.
fn set(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let (pairs, rest) = arguments[2..].as_chunks();
    if !rest.is_empty() {
        return Err(SYNTAX);
    }
    let mut settings: Vec<(&Setting, &Bytes)> = Vec::with_capacity(pairs.len());
    for [name, value] in pairs {
        let setting = SETTINGS.iter().find(|setting| is_word(name, setting.name)).ok_or_else(|| unknown(name))?;
        if matches!(setting.takes, Takes::Fixed) {
            return Err(failed(setting, "can't set immutable config"));
        }
        if settings.iter().any(|(other, _)| other.name == setting.name) {
            return Err(failed(setting, "duplicate parameter"));
        }
        settings.push((setting, value));
    }
    let changes = settings.into_iter().map(|(setting, value)| {
        let change = change(context.server, setting, value).map_err(|reason| failed(setting, &reason));
        Ok((setting, change?))
    });
    let changes = changes.collect::<Result<Vec<_>, Refusal>>()?;
    // Other changes are waited for, and the store, which waits for the device: another thread takes this thread's other connections.
    tokio::task::block_in_place(|| {
        let server = context.server;
        let _changing = server.settings.lock_changes();
        let certificates = read_certificates(server, &changes)?;
        change_store(server, &changes)?;
        // From here on nothing is refused.
        if let Some((tls, certificates)) = server.tls.as_ref().zip(certificates) {
            tls.show(certificates);
        }
        for (_, change) in changes {
            if let Change::Requirepass(password) = &change {
                server.acl.set_default_password(password);
            }
            server.settings.apply(change);
        }
        Ok(OK)
    })
}

/// What the files of TLS have now, if they are to be read again.
fn read_certificates(server: &Server, changes: &[(&Setting, Change)]) -> Result<Option<Arc<ServerConfig>>, Refusal> {
    let wanted = changes.iter().find(|(_, change)| *change == Change::Certificates);
    let read = wanted
        .filter(|_| server.tls.is_some())
        .map(|(setting, _)| Tls::read(&server.config).map_err(|error| failed(setting, &error.to_string())));
    read.transpose()
}

/// Tells the store of those settings that are its own: of all of them, or of none.
fn change_store(server: &Server, changes: &[(&Setting, Change)]) -> Result<(), Refusal> {
    let memory = changes.iter().find_map(|(setting, change)| match change {
        Change::Memory(wanted) => Some((setting, *wanted)),
        _ => None,
    });
    if let Some((setting, wanted)) = memory {
        server.keyspace.divide_memory(&wanted).map_err(|error| failed(setting, &error.to_string()))?;
    }
    let wishes = changes.iter().filter_map(|(setting, change)| match change {
        Change::Modes(wish) => Some((setting, wish)),
        _ => None,
    });
    if let Some((setting, _)) = wishes.clone().next() {
        let outcome = server.keyspace.set_modes(wishes.map(|(_, wish)| wish));
        if let Err(error) = outcome {
            if memory.is_some() {
                server.keyspace.divide_memory(&server.settings.division())?;
            }
            return Err(failed(setting, &error.to_string()));
        }
    }
    if let Some((_, wanted)) = memory {
        wanted.warning(memory_bytes()).iter().for_each(|warning| server.log.warn(warning));
        server.keyspace.stats().warnings.iter().for_each(|warning| server.log.warn(warning));
    }
    Ok(())
}

fn unknown(name: &[u8]) -> Refusal {
    let start = b"ERR Unknown option or number of arguments for CONFIG SET - '";
    Refusal::Bytes([start, repeated(name), b"'"].concat().into())
}

fn failed(setting: &Setting, reason: &str) -> Refusal {
    said(format!("ERR CONFIG SET failed (possibly related to argument '{}') - {reason}", setting.name))
}

fn change(server: &Server, setting: &Setting, value: &[u8]) -> Result<Change, String> {
    match setting.takes {
        Takes::Integer(least, most, change) => {
            let number = parse_integer(value).ok_or("argument couldn't be parsed into an integer")?;
            let is_right = (least..=most).contains(&number);
            is_right.then(|| change(number)).ok_or(format!("argument must be between {least} and {most} inclusive"))
        }
        Takes::Flag(change) if is_word(value, "yes") => Ok(change(true)),
        Takes::Flag(change) if is_word(value, "no") => Ok(change(false)),
        Takes::Flag(_) => Err("argument must be 'yes' or 'no'".into()),
        Takes::Text(change) => {
            let text = std::str::from_utf8(value).map_err(|_| "argument must be UTF-8")?;
            Ok(change(text.into()))
        }
        Takes::Memory => {
            let text = std::str::from_utf8(value).map_err(|_| "argument must be a memory value")?;
            let division = server.config.division_of(text);
            division.map(Change::Memory).map_err(|allowed| format!("argument must be {allowed}"))
        }
        Takes::Modes(side) => {
            let text = std::str::from_utf8(value).map_err(|_| "argument must be UTF-8")?;
            Wish::parse(side, text, server.keyspace.databases()).map(Change::Modes)
        }
        Takes::Fixed | Takes::FromStart | Takes::Certificate => match (setting.value)(server) {
            current if !current.as_bytes().eq_ignore_ascii_case(value) => {
                Err("only the start of the server decides it".into())
            }
            _ if matches!(setting.takes, Takes::Certificate) => Ok(Change::Certificates),
            _ => Ok(Change::Nothing),
        },
    }
}

fn resetstat(context: &mut Context<'_, '_>, _: &[Bytes]) -> Answer {
    context.server.statistics.counters().iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    Ok(OK)
}
