//! Scripts: those that are known, and the one that runs. They share one state of Lua, so one runs at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bytes::Bytes;

use crate::refusal::{Refusal, said, words};
use crate::reply::Reply;

mod bits;
mod bounded;
mod json;
mod lua;
mod values;

pub(crate) use self::lua::{Commands, REDIS_VERSION, Run};
use self::lua::{Engine, Outcome, Stops};

/// Bytes of the scripts that are known, at most. Those that only EVAL has brought go when there are more.
const MOST_BYTES: usize = 64 << 20;

/// What the first line of a script may say. All but the first mean nothing here.
const FLAGS: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

/// What SCRIPT KILL says when there is nothing to be ended.
const NOTHING_RUNS: Refusal = words("NOTBUSY No scripts in execution right now.");

/// All scripts of a server.
pub(crate) struct Scripts {
    known: Mutex<Known>,
    engine: Mutex<Option<Engine>>,
    running: Running,
}

#[derive(Default)]
struct Known {
    scripts: HashMap<String, Script>,
    bytes: usize,
}

#[derive(Clone)]
struct Script {
    text: Bytes,
    /// Whether SCRIPT LOAD has brought it.
    is_loaded: bool,
}

/// What others can see and do while a script runs.
struct Running {
    created: Instant,
    /// When the script began, in milliseconds since `created`, and one more; 0 while none runs.
    since_ms: AtomicU64,
    stops: Arc<Stops>,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        let running = Running { created: Instant::now(), since_ms: AtomicU64::new(0), stops: Arc::default() };
        Scripts { known: Mutex::default(), engine: Mutex::default(), running }
    }

    /// The name of a script: the SHA-1 of its text in hexadecimal.
    pub(crate) fn name(text: &[u8]) -> String {
        lua::name_of(text)
    }

    /// What Lua is to read of a script, and whether its first line, `#!lua flags=...`, says that it only reads.
    pub(crate) fn parse(text: &Bytes) -> Result<(Bytes, bool), Refusal> {
        if !text.starts_with(b"#!") {
            return Ok((text.clone(), false));
        }
        let end = text.iter().position(|byte| *byte == b'\n').ok_or(words("ERR Invalid script shebang"))?;
        let line = String::from_utf8_lossy(&text[..end]);
        let mut words = line.split_ascii_whitespace();
        let engine = words.next().unwrap_or_default();
        if engine != "#!lua" {
            return Err(said(format!("ERR Unexpected engine in script shebang: {engine}")));
        }
        let mut only_reads = false;
        for word in words {
            let flags = word.strip_prefix("flags=");
            let flags = flags.ok_or_else(|| said(format!("ERR Unknown lua shebang option: {word}")))?;
            for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
                only_reads |= flag == "no-writes";
                if !FLAGS.contains(&flag) {
                    return Err(said(format!("ERR Unexpected flag in script shebang: {flag}")));
                }
            }
        }
        // The line stays, empty, so that those below keep their numbers.
        Ok((text.slice(end..), only_reads))
    }

    /// The text of a script that is known.
    pub(crate) fn text(&self, name: &str) -> Option<Bytes> {
        self.lock().scripts.get(name).map(|script| script.text.clone())
    }

    /// Makes a script known; `is_loaded` says that it must stay. The text is one that can be compiled.
    fn keep(&self, name: &str, text: &Bytes, is_loaded: bool) -> Result<(), Refusal> {
        let mut known = self.lock();
        if let Some(script) = known.scripts.get_mut(name) {
            script.is_loaded |= is_loaded;
            return Ok(());
        }
        if known.bytes + text.len() > MOST_BYTES {
            known.scripts.retain(|_, script| script.is_loaded);
            known.bytes = known.scripts.values().map(|script| script.text.len()).sum();
        }
        if known.bytes + text.len() > MOST_BYTES {
            return match is_loaded {
                true => Err(said(format!("ERR scripts take {MOST_BYTES} bytes already: see SCRIPT FLUSH"))),
                false => Ok(()),
            };
        }
        known.bytes += text.len();
        // The text must not keep what it came in.
        known.scripts.insert(name.into(), Script { text: Bytes::copy_from_slice(text), is_loaded });
        Ok(())
    }

    /// Compiles a script and makes it known for good.
    pub(crate) fn load(&self, text: &Bytes) -> Result<String, Refusal> {
        let name = Scripts::name(text);
        let (code, _) = Scripts::parse(text)?;
        self.with_engine(|engine| engine.compile(&name, &code))?;
        self.keep(&name, text, true)?;
        Ok(name)
    }

    /// Forgets all scripts.
    pub(crate) fn flush(&self) {
        *self.lock() = Known::default();
        *self.lock_engine() = None;
    }

    /// Runs a script, of whose text Lua reads `code`. The thread may wait for the device. As for all that works with Lua, the caller has a claim
    /// on everything: a thread that waits for a script is one that others may need.
    pub(crate) fn run(&self, name: &str, text: &Bytes, code: &Bytes, run: Run<'_>) -> Result<Reply, Refusal> {
        self.with_engine(|engine| {
            engine.compile(name, code)?;
            self.keep(name, text, false)?;
            let running = self.running.begin();
            let outcome = engine.run(name, run);
            drop(running);
            match outcome? {
                Outcome::Reply(reply) => Ok(reply),
                Outcome::Stopped(message) => Err(Refusal::Stopped(message)),
            }
        })
    }

    /// Works with the state of Lua, which is made anew when it was too full to go on with.
    fn with_engine<T>(&self, work: impl FnOnce(&mut Engine) -> Result<T, Refusal>) -> Result<T, Refusal> {
        let mut place = self.lock_engine();
        let mut engine = match place.take() {
            Some(engine) => engine,
            None => Engine::new(&self.running.stops)?,
        };
        let outcome = work(&mut engine);
        *place = Some(engine).filter(Engine::is_good);
        outcome
    }

    /// Whether a script has run for longer than this; never, if it is 0.
    pub(crate) fn is_busy(&self, most_ms: u64) -> bool {
        most_ms > 0 && self.running.milliseconds().is_some_and(|ms| ms > most_ms)
    }

    /// Ends the script that runs. Nothing of what it has changed is written.
    pub(crate) fn stop(&self) -> Result<(), Refusal> {
        let number = self.running.stops.running().ok_or(NOTHING_RUNS)?;
        self.running.stops.stop(number);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("no code panics while it holds the scripts")
    }

    fn lock_engine(&self) -> MutexGuard<'_, Option<Engine>> {
        // After a panic the state is gone, and the next one is new.
        self.engine.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Running {
    /// A script runs until what this returns is dropped.
    fn begin(&self) -> impl Drop {
        self.stops.turn();
        self.since_ms.store(self.created.elapsed().as_millis() as u64 + 1, Ordering::SeqCst);
        Ended(self)
    }

    /// How long the script has run that runs.
    fn milliseconds(&self) -> Option<u64> {
        let since = self.since_ms.load(Ordering::SeqCst).checked_sub(1)?;
        Some((self.created.elapsed().as_millis() as u64).saturating_sub(since))
    }
}

/// The end of a script, also by a panic.
struct Ended<'a>(&'a Running);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.since_ms.store(0, Ordering::SeqCst);
        self.0.stops.turn();
    }
}

#[cfg(test)]
mod tests;
