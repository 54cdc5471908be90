//! What a command is, and what it has to work with.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::acl::{Acl, Attempt, CATEGORIES, Catalog};
use crate::channels::Channels;
use crate::client::{Client, Clients};
use crate::collection::{Collection, Kind, Owner};
use crate::config::Config;
use crate::entry::{Entry, Value};
pub(crate) use crate::key_names::{ChannelNames, Keys, NO_KEYS, all_keys, one_key};
use crate::keyspace::Keyspace;
use crate::locks::{Database, Key};
use crate::log::Log;
use crate::number::parse_integer;
use crate::refusal::{NOT_AN_INTEGER, Refusal, WRONG_TYPE, said, words};
use crate::reply::{Answer, Reply};
use crate::saves::Saves;
use crate::scan_cursors::ScanCursors;
use crate::scripts::Scripts;
use crate::session::Session;
use crate::settings::Settings;
use crate::slow_log::SlowLog;
use crate::space::Space;
use crate::tls::Tls;

/// All that there is to know of a command: COMMAND answers from it, and the server goes by it.
pub(crate) struct Command {
    /// In small letters; of a subcommand with its container's name before a `|`.
    pub(crate) name: &'static str,
    /// How many arguments there are, with the name; at least so many if it is negative.
    pub(crate) arity: i64,
    /// As in Redis, with spaces between them.
    pub(crate) flags: &'static str,
    /// Whether it may change its keys.
    pub(crate) is_write: bool,
    /// The groups of Redis's ACL that the flags do not tell.
    pub(crate) categories: &'static str,
    pub(crate) keys: Keys,
    pub(crate) channels: ChannelNames,
    /// Arguments that name elements of the collections of its keys: they are read before the command runs.
    pub(crate) members: Keys,
    /// Names elements of its first key's collection that no argument names: they are read, too.
    pub(crate) ahead: Option<Ahead>,
    pub(crate) reads: Reads,
    pub(crate) run: Run,
    pub(crate) documentation: Documentation,
    pub(crate) subcommands: &'static [Command],
}

/// Whether the values of the keys are read before the command runs.
#[derive(Clone, Copy)]
pub(crate) enum Reads {
    Always,
    Never,
    /// Depends on the arguments.
    If(fn(&[Bytes]) -> bool),
}

/// How a command is carried out. It gets all arguments, with its name.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// With keys that its arguments name; together with others of its kind that a client has sent at once.
    Grouped(Handler),
    /// As [`Run::Grouped`], on a thread that may wait for the device: it goes through elements of collections.
    Ranged(Handler),
    /// As [`Run::Grouped`], but by itself: the client waits while the answer is nothing. In a transaction nobody waits.
    Blocking(Handler, Awaits),
    /// By itself: it changes the connection.
    Alone(Handler),
    /// By itself, on a thread that may wait for the device: it goes through databases.
    Whole(Handler),
    /// By itself, and with nobody else changing anything, on a thread that may wait for the device: it may have any key, and has the state of
    /// Lua, of which there is one.
    Script(Handler),
    /// It only has subcommands.
    Container,
    Exec,
    Watch,
}

impl Run {
    /// What carries out a command with others; some cannot be.
    pub(crate) fn handler(self) -> Option<Handler> {
        match self {
            Run::Grouped(handler) | Run::Ranged(handler) | Run::Blocking(handler, _) => Some(handler),
            Run::Alone(handler) | Run::Whole(handler) | Run::Script(handler) => Some(handler),
            Run::Container | Run::Exec | Run::Watch => None,
        }
    }
}

/// The names of the elements that a command needs of a collection, which is then as the command leaves it: what comes after it in
/// a pipeline needs others.
pub(crate) type Ahead = fn(&[Bytes], &mut Collection) -> Vec<Bytes>;

/// What a client waits for.
#[derive(Clone, Copy)]
pub(crate) struct Awaits {
    pub(crate) kind: Kind,
    /// So many of the command's keys, the first ones.
    pub(crate) most_keys: usize,
    /// The argument that says for how long.
    pub(crate) timeout: fn(&[Bytes]) -> &Bytes,
}

pub(crate) type Handler = fn(&mut Context<'_, '_>, &[Bytes]) -> Answer;

/// What COMMAND DOCS says.
pub(crate) struct Documentation {
    pub(crate) summary: &'static str,
    pub(crate) since: &'static str,
    pub(crate) group: &'static str,
    pub(crate) complexity: &'static str,
}

impl Command {
    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|other| other == flag)
    }

    /// Whether its arguments say which elements it needs.
    pub(crate) fn names_elements(&self) -> bool {
        self.members.first > 0 || self.ahead.is_some()
    }

    /// Whether so many arguments, with the name, are right.
    pub(crate) fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        if self.arity < 0 { count >= -self.arity } else { count == self.arity }
    }

    /// Whether it is in a category of Redis's ACL, as `@keyspace`.
    pub(crate) fn is_in(&self, category: &str) -> bool {
        match category {
            // A script may do anything, whatever it says.
            "@read" => self.has_flag("readonly") && !self.name.starts_with("eval"),
            "@write" => self.is_write,
            "@admin" | "@dangerous" if self.has_flag("admin") => true,
            "@fast" => self.has_flag("fast"),
            "@slow" => !self.has_flag("fast"),
            "@blocking" => self.has_flag("blocking"),
            "@pubsub" => self.has_flag("pubsub"),
            other => self.categories.split(' ').any(|category| category == other),
        }
    }

    /// What a client wants that sends the command, as the rules of its user see it.
    pub(crate) fn attempt<'a>(&self, arguments: &'a [Bytes]) -> Attempt<'a> {
        let channels = match self.channels {
            ChannelNames::None => 0..0,
            ChannelNames::First => 1..arguments.len().min(2),
            ChannelNames::All | ChannelNames::Patterns => 1..arguments.len(),
        };
        Attempt {
            command: self.name,
            is_for_all: self.has_flag("no_auth"),
            arguments,
            keys: self.keys.uses(arguments),
            channels,
            are_patterns: self.channels == ChannelNames::Patterns,
        }
    }
}

/// A command with its arguments, of which the first is its name.
pub(crate) struct Call {
    pub(crate) command: &'static Command,
    pub(crate) arguments: Vec<Bytes>,
}

impl Call {
    pub(crate) fn reads(&self) -> bool {
        match self.command.reads {
            Reads::Always => true,
            Reads::Never => false,
            Reads::If(does) => does(&self.arguments),
        }
    }

    /// Whether elements of collections are read for it, or may be.
    pub(crate) fn reads_elements(&self) -> bool {
        self.command.names_elements() || matches!(self.command.run, Run::Ranged(_))
    }

    /// Whether its arguments say all keys that it may read or change.
    pub(crate) fn names_keys(&self) -> bool {
        matches!(self.command.run, Run::Grouped(_) | Run::Ranged(_) | Run::Blocking(..))
    }

    /// Bytes of the arguments.
    pub(crate) fn bytes(&self) -> usize {
        self.arguments.iter().map(Bytes::len).sum()
    }
}

/// All commands.
pub(crate) struct Table {
    commands: Vec<&'static Command>,
    by_name: HashMap<&'static str, &'static Command>,
}

impl Table {
    pub(crate) fn new(families: &[&'static [Command]]) -> Table {
        let commands: Vec<_> = families.iter().flat_map(|family| family.iter()).collect();
        let every = commands.iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands));
        let by_name: HashMap<_, _> = every.map(|command| (command.name, command)).collect();
        Table { commands, by_name }
    }

    /// Commands without their subcommands.
    pub(crate) fn commands(&self) -> &[&'static Command] {
        &self.commands
    }

    /// What rules of users may name.
    pub(crate) fn catalog(&self) -> Catalog {
        let every = self.commands.iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands));
        Catalog::new(every.map(|command| (command.name, CATEGORIES.map(|category| command.is_in(category)))))
    }

    /// The command, or subcommand (`client|id`), of a name in any letters.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Command> {
        let name = std::str::from_utf8(name).ok()?;
        self.by_name.get(name).or_else(|| self.by_name.get(&*name.to_ascii_lowercase())).copied()
    }
}

/// What all connections share.
pub(crate) struct Server {
    pub(crate) config: Config,
    pub(crate) keyspace: Keyspace,
    pub(crate) acl: Acl,
    pub(crate) tls: Option<Tls>,
    pub(crate) clients: Clients,
    pub(crate) channels: Channels,
    pub(crate) cursors: ScanCursors,
    pub(crate) statistics: Statistics,
    pub(crate) settings: Settings,
    pub(crate) slow_log: SlowLog,
    pub(crate) log: Log,
    pub(crate) saves: Saves,
    pub(crate) scripts: Scripts,
    /// Told when a client wants the server to end.
    pub(crate) shutdown: Notify,
    pub(crate) table: Table,
    pub(crate) started: Instant,
    /// 40 hexadecimal digits, anew with each start.
    pub(crate) run_id: String,
    pub(crate) port: u16,
}

/// What INFO counts.
#[derive(Default)]
pub(crate) struct Statistics {
    pub(crate) connections: AtomicU64,
    pub(crate) rejected_connections: AtomicU64,
    /// Connections to the port with TLS that did not come about.
    pub(crate) failed_handshakes: AtomicU64,
    /// Commands that were carried out, with those of transactions.
    pub(crate) commands: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) input_bytes: AtomicU64,
    pub(crate) output_bytes: AtomicU64,
}

impl Statistics {
    /// All of them.
    pub(crate) fn counters(&self) -> [&AtomicU64; 9] {
        let Statistics {
            connections,
            rejected_connections,
            failed_handshakes,
            commands,
            errors,
            hits,
            misses,
            input_bytes,
            output_bytes,
        } = self;
        [
            connections,
            rejected_connections,
            failed_handshakes,
            commands,
            errors,
            hits,
            misses,
            input_bytes,
            output_bytes,
        ]
    }
}

/// What a command works with.
pub(crate) struct Context<'a, 's> {
    pub(crate) server: &'a Server,
    pub(crate) session: &'a mut Session,
    pub(crate) space: &'a mut Space<'s>,
}

impl Context<'_, '_> {
    /// A key of the chosen database.
    pub(crate) fn key(&self, name: &Bytes) -> Key {
        self.session.key(name)
    }

    /// The database of a number that a client gives.
    pub(crate) fn database_of(&self, number: &[u8]) -> Result<Database, Refusal> {
        let number = parse_integer(number).ok_or(NOT_AN_INTEGER)?;
        if i32::try_from(number).is_err() {
            return Err(said(format!("ERR value is out of range, value must between {} and {}", i32::MIN, i32::MAX)));
        }
        let database = Database::try_from(number).ok().filter(|number| *number < self.server.keyspace.databases());
        database.ok_or(words("ERR DB index is out of range"))
    }

    /// Ends a connection; the client's own goes on until it has the reply.
    pub(crate) fn end_client(&mut self, client: &Client) {
        match client.id == self.session.client.id {
            true => self.session.is_ending = true,
            false => client.kill(),
        }
    }

    /// The entry of a key of the chosen database.
    pub(crate) fn get(&mut self, name: &Bytes) -> Result<Option<Entry>, Refusal> {
        let key = self.key(name);
        self.space.get(&key)
    }

    /// The string of a key of the chosen database; other values are refused.
    pub(crate) fn string(&mut self, name: &Bytes) -> Result<Option<Entry<Bytes>>, Refusal> {
        self.get(name)?.map(string_of).transpose()
    }

    /// [`Context::string`] that counts whether there was one.
    pub(crate) fn look_up_string(&mut self, name: &Bytes) -> Result<Option<Entry<Bytes>>, Refusal> {
        self.look_up(name)?.map(string_of).transpose()
    }

    /// The collection of a key of the chosen database; values of another kind are refused.
    pub(crate) fn collection(&mut self, name: &Bytes, kind: Kind) -> Result<Option<Opened>, Refusal> {
        let entry = self.get(name)?;
        self.opened(name, &[kind], entry)
    }

    /// [`Context::collection`] that counts whether there was one.
    pub(crate) fn look_up_collection(&mut self, name: &Bytes, kind: Kind) -> Result<Option<Opened>, Refusal> {
        self.look_up_one_of(name, &[kind])
    }

    /// [`Context::look_up_collection`] of any of these kinds.
    pub(crate) fn look_up_one_of(&mut self, name: &Bytes, kinds: &[Kind]) -> Result<Option<Opened>, Refusal> {
        let entry = self.look_up(name)?;
        self.opened(name, kinds, entry)
    }

    fn opened(&self, name: &Bytes, kinds: &[Kind], entry: Option<Entry>) -> Result<Option<Opened>, Refusal> {
        let Some(Entry { value, expires_ms }) = entry else { return Ok(None) };
        match value {
            Value::Collection(value) if kinds.contains(&value.kind) => {
                Ok(Some(Opened { key: self.key(name), entry: Entry { value, expires_ms } }))
            }
            _ => Err(WRONG_TYPE),
        }
    }

    /// [`Context::collection`] for a command that waits: none while another client has waited longer, or what has come in
    /// the meantime is of another kind.
    pub(crate) fn awaited_collection(&mut self, name: &Bytes, kind: Kind) -> Result<Option<Opened>, Refusal> {
        let key = self.key(name);
        let waiting = self.session.waiting.as_ref();
        let (is_first, has_waited) = waiting.map_or((true, false), |waiting| {
            (self.server.keyspace.waiters.is_first(&key, &waiting.waiter), waiting.has_waited)
        });
        match self.collection(name, kind) {
            Err(Refusal::Words(_)) if has_waited => Ok(None),
            found => found.map(|found| found.filter(|_| is_first)),
        }
    }

    /// [`Context::collection`], or a new one.
    pub(crate) fn collection_or_new(&mut self, name: &Bytes, kind: Kind) -> Result<Opened, Refusal> {
        match self.collection(name, kind)? {
            Some(opened) => Ok(opened),
            None => self.new_collection(name, kind),
        }
    }

    /// A new collection, which replaces what is under a key when it is stored.
    pub(crate) fn new_collection(&mut self, name: &Bytes, kind: Kind) -> Result<Opened, Refusal> {
        let value = self.space.new_collection(self.session.database, kind)?;
        Ok(Opened { key: self.key(name), entry: Entry::lasting(value) })
    }

    /// Puts a collection under its key as it is now; one without elements takes the key away.
    pub(crate) fn store(&mut self, opened: Opened) {
        if opened.count() == 0 {
            self.space.elements.end(opened.owner());
            self.space.delete(opened.key);
        } else {
            self.space.put(opened.key, opened.entry.into());
        }
    }

    /// [`Context::get`] that counts whether there was one.
    pub(crate) fn look_up(&mut self, name: &Bytes) -> Result<Option<Entry>, Refusal> {
        let entry = self.get(name)?;
        let statistics = &self.server.statistics;
        let counter = if entry.is_some() { &statistics.hits } else { &statistics.misses };
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(entry)
    }

    pub(crate) fn put(&mut self, name: &Bytes, entry: impl Into<Entry>) {
        let key = self.key(name);
        self.space.put(key, entry.into());
    }

    pub(crate) fn delete(&mut self, name: &Bytes) {
        let key = self.key(name);
        self.space.delete(key);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.space.now_ms
    }
}

/// A collection that a command works on. What it changes of it counts when [`Context::store`] has it.
pub(crate) struct Opened {
    pub(crate) key: Key,
    pub(crate) entry: Entry<Collection>,
}

impl Opened {
    /// The collection as its elements know it.
    pub(crate) fn owner(&self) -> Owner {
        Owner { database: self.key.database, number: self.entry.value.number }
    }

    /// How many elements it has.
    pub(crate) fn count(&self) -> usize {
        self.entry.value.count as usize
    }
}

fn string_of(entry: Entry) -> Result<Entry<Bytes>, Refusal> {
    match entry.value {
        Value::String(value) => Ok(Entry { value, expires_ms: entry.expires_ms }),
        Value::Collection(_) => Err(WRONG_TYPE),
    }
}

/// The time in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// A number of things.
pub(crate) fn count(number: usize) -> Reply {
    Reply::Integer(number as i64)
}

/// Whether an argument is this word, in any letters.
pub(crate) fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}
