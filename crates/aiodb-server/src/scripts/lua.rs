//! The state of Lua in which scripts run, and its bounds in memory and time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use mlua::{Function, HookTriggers, Lua, LuaOptions, MultiValue, StdLib, Table, Value, VmState};

use super::values::{from_lua, number_of, to_lua};
use super::{bits, bounded, json};
use crate::refusal::{Refusal, one_line, said};
use crate::reply::{Protocol, Reply};

/// Memory of the state, with all that its scripts keep, at most.
const MOST_BYTES: usize = 256 << 20;

/// A state that has more than this after a run is not used again.
const MANY_BYTES: usize = 64 << 20;

/// Compiled scripts of a state, at most.
const MOST_SCRIPTS: usize = 4096;

/// Instructions between two looks at whether the script is to stop.
const INSTRUCTIONS: u32 = 10_000;

/// What scripts see.
const PREPARE: &str = include_str!("prepare.lua");

/// How errors call a script.
const CHUNK: &str = "@user_script";

/// The version of Redis whose scripts these are.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// What a script is given.
pub(crate) struct Run<'a> {
    pub(crate) keys: &'a [Bytes],
    pub(crate) arguments: &'a [Bytes],
    pub(crate) commands: &'a mut (dyn Commands + 'a),
}

/// What becomes of the commands of a script.
pub(crate) trait Commands {
    /// Carries out a command, for the version of the protocol that the script has chosen. `None` ends the script.
    fn carry_out(&mut self, arguments: Vec<Bytes>, protocol: Protocol) -> Option<Reply>;

    /// Whether the client may carry out a command; `None` if there is no such command.
    fn allow(&self, arguments: Vec<Bytes>) -> Option<bool>;
}

/// The error of a command that a script meets.
#[derive(Debug, thiserror::Error)]
#[error("{}", String::from_utf8_lossy(.0))]
struct Problem(Bytes);

impl From<Problem> for mlua::Error {
    fn from(problem: Problem) -> mlua::Error {
        mlua::Error::external(problem)
    }
}

/// The name of a script: the SHA-1 of its text in hexadecimal.
pub(crate) fn name_of(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}

/// Which script runs, and which is to stop. Each has a number of its own, so that whoever wants to stop one does not stop the next.
#[derive(Default)]
pub(crate) struct Stops {
    /// Odd while a script runs, whose number it is.
    number: AtomicU64,
    /// The number of the last script that was to stop.
    stopped: AtomicU64,
}

impl Stops {
    /// A script begins, or ends.
    pub(crate) fn turn(&self) {
        self.number.fetch_add(1, Ordering::SeqCst);
    }

    /// The number of the script that runs.
    pub(crate) fn running(&self) -> Option<u64> {
        Some(self.number.load(Ordering::SeqCst)).filter(|number| number % 2 == 1)
    }

    /// Stops the script of this number, if it runs still.
    pub(crate) fn stop(&self, number: u64) {
        self.stopped.fetch_max(number, Ordering::SeqCst);
    }

    /// Whether the script that runs is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.running() == Some(self.stopped.load(Ordering::SeqCst))
    }
}

/// A state of Lua.
pub(crate) struct Engine {
    lua: Lua,
    /// Runs a script.
    run: Function,
    /// Lua's own, for numbers.
    format: Function,
    compiled: HashMap<String, Function>,
    stops: Arc<Stops>,
}

/// How a script ended.
pub(crate) enum Outcome {
    Reply(Reply),
    /// Another client has ended it, or the store failed under it.
    Stopped(String),
}

impl Engine {
    /// A state whose scripts end when `stops` says so.
    pub(crate) fn new(stops: &Arc<Stops>) -> Result<Engine, Refusal> {
        Engine::prepare(stops).map_err(|error| said(format!("ERR Lua does not start: {error}").replace('\n', " ")))
    }

    fn prepare(stops: &Arc<Stops>) -> mlua::Result<Engine> {
        let lua = Lua::new_with(StdLib::TABLE | StdLib::STRING | StdLib::MATH, LuaOptions::default())?;
        lua.set_memory_limit(MOST_BYTES)?;
        let shared = Arc::clone(stops);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS), move |_, _| {
            match shared.is_stopped() {
                true => Err(mlua::Error::runtime("the script is stopped")),
                false => Ok(VmState::Continue),
            }
        })?;
        bounded::bound_libraries(&lua)?;
        let host = host(&lua, stops)?;
        let format = lua.globals().get::<Table>("string")?.get("format")?;
        let run = lua.load(PREPARE).set_name("=redis").call(host)?;
        Ok(Engine { lua, run, format, compiled: HashMap::new(), stops: Arc::clone(stops) })
    }

    /// Whether the state may be used again.
    pub(crate) fn is_good(&self) -> bool {
        self.compiled.len() < MOST_SCRIPTS && self.lua.used_memory() < MANY_BYTES
    }

    /// Compiles a script, if it is not compiled yet.
    pub(crate) fn compile(&mut self, name: &str, text: &[u8]) -> Result<(), Refusal> {
        if self.compiled.contains_key(name) {
            return Ok(());
        }
        if text.first() == Some(&27) {
            return Err(said("ERR Error compiling script (new function): only text is compiled".into()));
        }
        // Nothing keeps the chunk's name while Lua parses it.
        self.lua.gc_stop();
        let compiled = self.lua.load(text).set_name(CHUNK).set_mode(mlua::ChunkMode::Text).into_function();
        self.lua.gc_restart();
        let wrong = |error: mlua::Error| {
            let message = match error {
                mlua::Error::SyntaxError { message, .. } => message,
                error => error.to_string(),
            };
            said(format!("ERR Error compiling script (new function): {message}").replace('\n', " "))
        };
        self.compiled.insert(name.into(), compiled.map_err(wrong)?);
        Ok(())
    }

    /// Runs a script that is compiled.
    pub(crate) fn run(&mut self, name: &str, run: Run<'_>) -> Result<Outcome, Refusal> {
        let outcome = self.try_run(name, run);
        if self.lua.used_memory() > MANY_BYTES {
            // A failure shows in the memory that is still used.
            let _ = self.lua.gc_collect();
        }
        let (is_right, reply) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => (false, Reply::Error(one_line(format!("ERR {error}").as_bytes()))),
        };
        match reply {
            Reply::Error(line) if !is_right && self.is_stopped() => {
                Ok(Outcome::Stopped(String::from_utf8_lossy(&line).into_owned()))
            }
            reply => Ok(Outcome::Reply(reply)),
        }
    }

    fn try_run(&self, name: &str, run: Run<'_>) -> mlua::Result<(bool, Reply)> {
        let lua = &self.lua;
        let script = &self.compiled[name];
        let list = |values: &[Bytes]| {
            let table = lua.create_table()?;
            for (at, value) in values.iter().enumerate() {
                table.raw_set(at + 1, lua.create_string(value)?)?;
            }
            Ok::<_, mlua::Error>(table)
        };
        let (keys, arguments) = (list(run.keys)?, list(run.arguments)?);
        lua.set_app_data(Protocol::Resp2);
        let commands = RefCell::new(run.commands);
        lua.scope(|scope| {
            let protected_call = scope.create_function(|lua: &Lua, arguments: MultiValue| {
                let reply = self.carry_out(&commands, lua, arguments)?;
                to_lua(lua, reply, protocol_of(lua))
            })?;
            let call = scope.create_function(|lua: &Lua, arguments: MultiValue| {
                match self.carry_out(&commands, lua, arguments)? {
                    Reply::Error(line) => Err(Problem(line).into()),
                    reply => to_lua(lua, reply, protocol_of(lua)),
                }
            })?;
            let check = scope.create_function(|_, arguments: MultiValue| {
                let texts = self.texts(arguments)?.map_err(Problem)?;
                let is_allowed = commands.borrow().allow(texts);
                is_allowed.ok_or_else(|| problem("ERR Invalid command passed to redis.acl_check_cmd()"))
            })?;
            let results: MultiValue = self.run.call((script, keys, arguments, call, protected_call, check))?;
            let mut results = results.into_iter();
            let mut next = || results.next().unwrap_or(Value::Nil);
            match next() {
                Value::Boolean(true) => Ok((true, from_lua(next(), protocol_of(lua))?)),
                _ => Ok((false, Reply::Error(described(name, self.is_stopped(), next(), next(), next())))),
            }
        })
    }

    /// The arguments of a command, or what is wrong with them.
    fn texts(&self, arguments: MultiValue) -> mlua::Result<Result<Vec<Bytes>, Bytes>> {
        if arguments.is_empty() {
            return Ok(Err("ERR Please specify at least one argument for this redis lib call".into()));
        }
        let mut texts = Vec::with_capacity(arguments.len());
        for argument in arguments {
            texts.push(match argument {
                Value::String(text) => Bytes::copy_from_slice(&text.as_bytes()),
                Value::Integer(number) => number.to_string().into(),
                Value::Number(number) => {
                    self.format.call::<mlua::String>(("%.17g", number))?.as_bytes().to_vec().into()
                }
                _ => {
                    return Ok(Err("ERR Lua redis lib command arguments must be strings or integers".into()));
                }
            });
        }
        Ok(Ok(texts))
    }

    /// Carries out a command of the script.
    fn carry_out(
        &self,
        commands: &RefCell<&mut (dyn Commands + '_)>,
        lua: &Lua,
        arguments: MultiValue,
    ) -> mlua::Result<Reply> {
        let texts = match self.texts(arguments)? {
            Ok(texts) => texts,
            Err(line) => return Ok(Reply::Error(line)),
        };
        let reply = commands.borrow_mut().carry_out(texts, protocol_of(lua));
        reply.ok_or_else(|| {
            self.stops.running().into_iter().for_each(|number| self.stops.stop(number));
            mlua::Error::runtime("the script is stopped")
        })
    }

    fn is_stopped(&self) -> bool {
        self.stops.is_stopped()
    }
}

/// The version of the protocol that the script has chosen.
fn protocol_of(lua: &Lua) -> Protocol {
    lua.app_data_ref::<Protocol>().map_or(Protocol::Resp2, |protocol| *protocol)
}

/// The error of a script, with where it happened.
fn described(name: &str, is_stopped: bool, message: Value, source: Value, line: Value) -> Bytes {
    let text = |value: &Value| value.as_string().map(|text| text.as_bytes().to_vec());
    let mut error = match is_stopped {
        true => b"ERR Script killed by user with SCRIPT KILL.".to_vec(),
        false => text(&message).unwrap_or_else(|| b"ERR unknown error".to_vec()),
    };
    if let (Some(source), Some(line)) = (text(&source), line.as_integer()) {
        error.extend([format!(" script: {name}, on ").as_bytes(), &source, format!(":{line}.").as_bytes()].concat());
    }
    one_line(&error)
}

/// The functions that scripts have from this program.
fn host(lua: &Lua, stops: &Arc<Stops>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    let shared = Arc::clone(stops);
    host.set("is_stopped", lua.create_function(move |_, ()| Ok(shared.is_stopped()))?)?;
    host.set("sha1hex", lua.create_function(sha1hex)?)?;
    host.set("log", lua.create_function(log)?)?;
    host.set("setresp", lua.create_function(setresp)?)?;
    host.set("text", lua.create_function(text_of)?)?;
    host.set("place", lua.create_function(|lua, ()| Ok(place(lua)))?)?;
    host.set("bit", bits::library(lua)?)?;
    host.set("cjson", json::library(lua)?)?;
    host.set("version", REDIS_VERSION)?;
    host.set("version_number", version_number(REDIS_VERSION))?;
    Ok(host)
}

/// A byte each for the parts of a version.
fn version_number(version: &str) -> u32 {
    version.split('.').filter_map(|part| part.parse::<u32>().ok()).fold(0, |number, part| number << 8 | part)
}

/// Where the script is: its own innermost function that is being carried out.
fn place(lua: &Lua) -> (Option<String>, Option<usize>) {
    for level in 1.. {
        let found = lua.inspect_stack(level, |frame| {
            let source = frame.source();
            let is_own = source.what != "C" && source.source.as_deref() != Some("=redis");
            is_own.then(|| (source.source.map(|source| source.into_owned()), frame.current_line()))
        });
        match found {
            None => break,
            Some(Some(found)) => return found,
            Some(None) => {}
        }
    }
    (None, None)
}

fn problem(text: &'static str) -> mlua::Error {
    Problem(text.into()).into()
}

fn sha1hex(lua: &Lua, arguments: MultiValue) -> mlua::Result<String> {
    match &arguments.iter().collect::<Vec<_>>()[..] {
        [one] => {
            let text = lua.coerce_string((*one).clone())?;
            Ok(name_of(&text.map(|text| text.as_bytes().to_vec()).unwrap_or_default()))
        }
        _ => Err(problem("ERR wrong number of arguments")),
    }
}

/// A line of a script for the operator; what is less than a notice is for nobody.
fn log(lua: &Lua, arguments: MultiValue) -> mlua::Result<()> {
    let mut arguments = arguments.into_iter();
    let level = arguments.next();
    if arguments.len() == 0 {
        return Err(problem("ERR redis.log() requires two arguments or more."));
    }
    let level =
        level.and_then(|level| number_of(&level)).ok_or(problem("ERR First argument must be a number (log level)."))?;
    if !(0.0..=3.0).contains(&level) {
        return Err(problem("ERR Invalid debug level."));
    }
    let mut words = Vec::new();
    for argument in arguments {
        words.extend(lua.coerce_string(argument)?.map(|word| word.to_string_lossy()));
    }
    if level >= 2.0 {
        // Nothing of the script depends on it.
        let _ = writeln!(std::io::stderr(), "aiodb: script: {}", words.join(" ").replace(['\r', '\n'], " "));
    }
    Ok(())
}

fn setresp(lua: &Lua, arguments: MultiValue) -> mlua::Result<()> {
    let mut versions = arguments.iter().map(number_of);
    let protocol = match (arguments.len(), versions.next().flatten()) {
        (1, Some(2.0)) => Protocol::Resp2,
        (1, Some(3.0)) => Protocol::Resp3,
        (1, _) => return Err(problem("ERR RESP version must be 2 or 3.")),
        _ => return Err(problem("ERR redis.setresp() requires one argument.")),
    };
    lua.set_app_data(protocol);
    Ok(())
}

/// The text of an error of this program, and whether it is one that a client would get; nothing of other values.
fn text_of(lua: &Lua, value: Value) -> mlua::Result<(Option<mlua::String>, bool)> {
    let Value::Error(error) = value else { return Ok((None, false)) };
    let mut cause = &*error;
    while let mlua::Error::CallbackError { cause: inner, .. } = cause {
        cause = inner;
    }
    if let Some(Problem(line)) = cause.downcast_ref::<Problem>() {
        return Ok((Some(lua.create_string(line)?), true));
    }
    let text = match cause {
        mlua::Error::RuntimeError(text) | mlua::Error::MemoryError(text) => text.clone(),
        other => other.to_string(),
    };
    // As Lua says it of its own functions.
    let text = match place(lua) {
        (Some(source), Some(line)) => format!("{}:{line}: {text}", source.trim_start_matches('@')),
        _ => text,
    };
    Ok((Some(lua.create_string(text)?), false))
}
