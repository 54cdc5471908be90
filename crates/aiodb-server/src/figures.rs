//! What the server counts, as Prometheus reads it; the engine's metrics come behind.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::channels::Topic;
use crate::command::Server;

/// A figure: its name without the prefix, its kind, its meaning, and its value.
type Figure = (&'static str, &'static str, &'static str, f64);

/// All figures of the server and of its store.
pub(crate) fn text(server: &Server) -> String {
    let mut text = String::new();
    for (name, kind, help, value) in figures(server) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "# HELP aiodb_server_{name} {help}\n# TYPE aiodb_server_{name} {kind}\naiodb_server_{name} {value}"
        );
    }
    text + &server.keyspace.metrics().to_prometheus()
}

fn figures(server: &Server) -> impl Iterator<Item = Figure> {
    [clients(server), commands(server), cache(server), store(server)].into_iter().flatten()
}

fn number(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}

fn clients(server: &Server) -> Vec<Figure> {
    let statistics = &server.statistics;
    vec![
        ("connected_clients", "gauge", "Connections.", server.clients.count() as f64),
        ("maxclients", "gauge", "Connections that there may be.", server.settings.maxclients() as f64),
        ("blocked_clients", "gauge", "Clients that wait for elements.", server.keyspace.waiters.count() as f64),
        ("connections_total", "counter", "Connections that clients made.", number(&statistics.connections)),
        ("rejected_connections_total", "counter", "Connections refused.", number(&statistics.rejected_connections)),
        (
            "failed_handshakes_total",
            "counter",
            "Connections with TLS that failed.",
            number(&statistics.failed_handshakes),
        ),
        ("input_bytes_total", "counter", "Bytes received.", number(&statistics.input_bytes)),
        ("output_bytes_total", "counter", "Bytes sent.", number(&statistics.output_bytes)),
        ("pubsub_channels", "gauge", "Channels with subscribers.", server.channels.different(Topic::Channel) as f64),
        ("pubsub_patterns", "gauge", "Patterns with subscribers.", server.channels.different(Topic::Pattern) as f64),
    ]
}

fn commands(server: &Server) -> Vec<Figure> {
    let statistics = &server.statistics;
    vec![
        ("commands_total", "counter", "Commands carried out.", number(&statistics.commands)),
        ("error_replies_total", "counter", "Errors that clients were told.", number(&statistics.errors)),
        ("keyspace_hits_total", "counter", "Keys that commands looked up and found.", number(&statistics.hits)),
        ("keyspace_misses_total", "counter", "Keys that they did not find.", number(&statistics.misses)),
        ("uptime_seconds", "gauge", "Time since the start.", server.started.elapsed().as_secs_f64()),
    ]
}

fn cache(server: &Server) -> Vec<Figure> {
    let counts = server.keyspace.cache_counts();
    vec![
        ("cached_keys", "gauge", "Keys whose entries are cached.", counts.keys as f64),
        ("cache_bytes", "gauge", "Memory that the cache of entries takes.", counts.bytes as f64),
        ("cache_hits_total", "counter", "Look-ups of keys that found an entry in the cache.", counts.hits as f64),
        ("cache_misses_total", "counter", "Look-ups that asked the engine.", counts.misses as f64),
    ]
}

fn store(server: &Server) -> Vec<Figure> {
    let saves = server.saves.shown();
    let is_writable = server.keyspace.stats().trouble.is_none();
    vec![
        ("writable", "gauge", "1 while the store takes writes, else 0.", f64::from(u8::from(is_writable))),
        ("backups_total", "counter", "Backups that went well.", number(&saves.count)),
        (
            "last_backup_failed",
            "gauge",
            "1 if the last backup failed, else 0.",
            f64::from(u8::from(saves.has_failed.load(Ordering::Relaxed))),
        ),
        (
            "last_backup_timestamp_seconds",
            "gauge",
            "When the last backup ended, or the server began, since 1970.",
            number(&saves.last_s),
        ),
    ]
}
