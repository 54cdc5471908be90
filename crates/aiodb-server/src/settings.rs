//! Settings that CONFIG SET changes while the server runs.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::config::{Config, Division};
use crate::storage::Wish;

/// Redis's own: commands that take longer, in microseconds, are kept in SLOWLOG, the last so many of them.
const SLOWER_THAN_US: i64 = 10_000;
const SLOW_COMMANDS: usize = 128;

/// Redis's own: so many denials are kept for ACL LOG.
const DENIALS: usize = 128;

/// Redis's own: for so long, in milliseconds, clients wait for a script.
const SCRIPT_MS: u64 = 5000;

/// What counts now. The start's settings come from [`Config`].
pub(crate) struct Settings {
    maxclients: AtomicUsize,
    protected_mode: AtomicBool,
    requirepass: Mutex<Arc<str>>,
    /// Below zero nothing is kept.
    slower_than_us: AtomicI64,
    slow_commands: AtomicUsize,
    denials: AtomicUsize,
    script_ms: AtomicU64,
    division: Mutex<Division>,
    changing: Mutex<()>,
}

/// A setting with a new value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Maxclients(usize),
    ProtectedMode(bool),
    Requirepass(String),
    SlowerThanUs(i64),
    SlowCommands(usize),
    Denials(usize),
    ScriptMs(u64),
    /// Memory is divided so.
    Memory(Division),
    /// The store has the modes of databases.
    Modes(Wish),
    /// The files of TLS are read again.
    Certificates,
    /// It has this value already.
    Nothing,
}

impl Settings {
    /// Those of the start, with memory divided so.
    pub(crate) fn new(config: &Config, division: Division) -> Settings {
        Settings {
            maxclients: AtomicUsize::new(config.maxclients),
            protected_mode: AtomicBool::new(config.protected_mode),
            requirepass: Mutex::new(config.requirepass.as_str().into()),
            slower_than_us: AtomicI64::new(SLOWER_THAN_US),
            slow_commands: AtomicUsize::new(SLOW_COMMANDS),
            denials: AtomicUsize::new(DENIALS),
            script_ms: AtomicU64::new(SCRIPT_MS),
            division: Mutex::new(division),
            changing: Mutex::default(),
        }
    }

    pub(crate) fn maxclients(&self) -> usize {
        self.maxclients.load(Ordering::Relaxed)
    }

    pub(crate) fn protected_mode(&self) -> bool {
        self.protected_mode.load(Ordering::Relaxed)
    }

    /// The password as it was set; empty for none. What counts is in the rules of the default user.
    pub(crate) fn requirepass(&self) -> Arc<str> {
        Arc::clone(&self.requirepass.lock().expect("no code panics while it holds the password"))
    }

    pub(crate) fn slower_than_us(&self) -> i64 {
        self.slower_than_us.load(Ordering::Relaxed)
    }

    pub(crate) fn slow_commands(&self) -> usize {
        self.slow_commands.load(Ordering::Relaxed)
    }

    /// Denials that are kept for ACL LOG.
    pub(crate) fn denials(&self) -> usize {
        self.denials.load(Ordering::Relaxed)
    }

    /// How long a script may run before other clients are told so; 0 is for ever.
    pub(crate) fn script_ms(&self) -> u64 {
        self.script_ms.load(Ordering::Relaxed)
    }

    /// How memory is divided.
    pub(crate) fn division(&self) -> Division {
        *self.division.lock().expect("no code panics while it holds the division")
    }

    /// Held while settings change, and the store, users and TLS with them: one change after the other.
    pub(crate) fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().expect("no code panics while it changes settings")
    }

    pub(crate) fn apply(&self, change: Change) {
        match change {
            Change::Maxclients(number) => self.maxclients.store(number, Ordering::Relaxed),
            Change::ProtectedMode(is_on) => self.protected_mode.store(is_on, Ordering::Relaxed),
            Change::Requirepass(password) => {
                *self.requirepass.lock().expect("no code panics while it holds the password") = password.into();
            }
            Change::SlowerThanUs(time) => self.slower_than_us.store(time, Ordering::Relaxed),
            Change::SlowCommands(number) => self.slow_commands.store(number, Ordering::Relaxed),
            Change::Denials(number) => self.denials.store(number, Ordering::Relaxed),
            Change::ScriptMs(time) => self.script_ms.store(time, Ordering::Relaxed),
            Change::Memory(division) => {
                *self.division.lock().expect("no code panics while it holds the division") = division;
            }
            // The store has them, and TLS.
            Change::Modes(_) | Change::Certificates | Change::Nothing => {}
        }
    }
}
