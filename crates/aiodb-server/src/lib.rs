//! The engine behind the Redis protocol: what `aiodb serve` runs.
//!
//! A request goes through `request` (bytes to arguments), `admission` (which command, and may it run), `execution` (lock,
//! read, run, write, wait) and `reply` (back to bytes). Each command stands once, in `commands/`. Only `keyspace` knows
//! the engine, and only its public interface.

mod acl;
mod admission;
mod changes;
mod channels;
mod client;
mod collection;
mod command;
mod commands;
mod config;
mod connection;
mod database;
mod elements;
mod entry;
mod entry_cache;
mod execution;
mod expiring;
mod expiry;
mod failures;
mod figures;
mod flusher;
mod gets;
mod glob;
mod key_names;
mod keyspace;
mod loading;
mod locks;
mod log;
mod long_double;
mod monitoring;
mod number;
mod packed;

mod refusal;
mod reply;
mod request;
mod saves;
mod scan_cursors;
mod score;
mod scripts;
mod server;
mod session;
mod settings;
mod sizes;
mod slow_log;
mod space;
mod storage;
mod stream;
mod sweeper;
mod tls;
mod waiters;
mod walk;
mod watch;

pub use config::{Config, ConfigError, ENVIRONMENT_PREFIX, Layer, LogFormat, TlsClients};
pub use loading::{Event, LoadError, Loaded, load};
pub use log::{Level, LogLine};
pub use server::{ServeError, serve};
