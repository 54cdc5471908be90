//! INFO: what the server is and does.

use std::sync::atomic::{AtomicU64, Ordering};

use aiodb::{Durability, TableModes};
use bytes::Bytes;

use super::configuration::{appendfsync, maxmemory};
use super::family::Family;
use crate::channels::Topic;
use crate::command::{Command, Context, Run, is_word, now_ms};
use crate::refusal::Refusal;
use crate::reply::{Answer, Reply};
use crate::scripts::REDIS_VERSION;
use crate::storage::Shares;

const INFO: Family = Family::new("server", "@dangerous").flags("loading stale");

pub(super) static COMMANDS: &[Command] =
    &[INFO.command("info", -1, Run::Whole(info), "1.0.0", "Get information and statistics about the server")];

type Lines = Vec<(String, String)>;
type Section = fn(&Context<'_, '_>) -> Result<Lines, Refusal>;

const SECTIONS: [(&str, Section); 10] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Storage", storage),
    ("Persistence", persistence),
    ("Stats", statistics),
    ("Replication", replication),
    ("CPU", processor),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
];

fn info(context: &mut Context<'_, '_>, arguments: &[Bytes]) -> Answer {
    let wanted = &arguments[1..];
    let every = |word: &Bytes| ["all", "default", "everything"].iter().any(|every| is_word(word, every));
    let mut text = String::new();
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|word| every(word) || is_word(word, name)) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            text.push_str(&format!("# {name}\r\n"));
            for (field, value) in section(context)? {
                text.push_str(&format!("{field}:{value}\r\n"));
            }
        }
    }
    Ok(Reply::Text(text))
}

fn line(name: &str, value: impl ToString) -> (String, String) {
    (name.to_string(), value.to_string())
}

fn server(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let server = context.server;
    let uptime = server.started.elapsed().as_secs();
    Ok(vec![
        line("redis_version", REDIS_VERSION),
        line("aiodb_version", env!("CARGO_PKG_VERSION")),
        line("redis_mode", "standalone"),
        line("os", std::env::consts::OS),
        line("arch_bits", usize::BITS),
        line("multiplexing_api", "epoll"),
        line("process_id", std::process::id()),
        line("run_id", &server.run_id),
        line("tcp_port", if server.port == 0 { server.config.tls_port } else { server.port }),
        line("server_time_usec", now_ms() * 1000),
        line("uptime_in_seconds", uptime),
        line("uptime_in_days", uptime / 86_400),
    ])
}

fn clients(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    Ok(vec![
        line("connected_clients", context.server.clients.count()),
        line("maxclients", context.server.settings.maxclients()),
        line("blocked_clients", context.server.keyspace.waiters.count()),
    ])
}

fn memory(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let (resident, peak) = (status_bytes(&status, "VmRSS:"), status_bytes(&status, "VmHWM:"));
    let human = |bytes: u64| format!("{:.2}M", bytes as f64 / (1 << 20) as f64);
    Ok(vec![
        line("used_memory", resident),
        line("used_memory_human", human(resident)),
        line("used_memory_rss", resident),
        line("used_memory_peak", peak),
        line("used_memory_peak_human", human(peak)),
        line("used_memory_peak_perc", format!("{:.2}%", resident as f64 / peak.max(1) as f64 * 100.0)),
        line("aiodb_cache_bytes", context.server.settings.division().cache_bytes),
        line("maxmemory", maxmemory(context.server)),
        line("maxmemory_policy", "noeviction"),
    ])
}

/// What memory has of the store, and what merges of its index are behind.
fn storage(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let keyspace = &context.server.keyspace;
    let stats = keyspace.stats();
    let (of_databases, of_all) = keyspace.shares(&stats.tables);
    let mut lines = vec![
        line("aiodb_memory_budget_bytes", stats.memory.budget_bytes),
        line("aiodb_memory_used_bytes", stats.memory.used_bytes()),
        line("aiodb_memory_full_seconds", seconds(stats.memory_full_seconds)),
        line("aiodb_disk_full_seconds", seconds(stats.disk_full_seconds)),
        line("aiodb_keys_in_memory", share(of_all.keys)),
        line("aiodb_values_in_memory", share(of_all.values)),
        line("aiodb_runs", stats.runs),
        line("aiodb_runs_above_bound", stats.runs_above_bound),
        line("aiodb_merge_debt_bytes", stats.merge_debt_bytes),
    ];
    for (database, (modes, shares)) in keyspace.modes().into_iter().zip(of_databases).enumerate() {
        if shares == Shares::default() && modes == TableModes::default() {
            continue;
        }
        let (keys, values) = (modes.keys.name(), modes.values.name());
        let shares = format!("keys_in_memory={},values_in_memory={}", share(shares.keys), share(shares.values));
        lines.push(line(&format!("aiodb_db{database}"), format!("keys_mode={keys},values_mode={values},{shares}")));
    }
    for (number, warning) in stats.warnings.iter().enumerate() {
        lines.push(line(&format!("aiodb_warning_{number}"), warning.replace(['\r', '\n'], " ")));
    }
    Ok(lines)
}

/// As Redis shows a time that there is none of.
fn seconds(until: Option<u64>) -> String {
    until.map_or_else(|| "-1".into(), |seconds| seconds.to_string())
}

/// A share from 0 to 1; empty where it is not known.
fn share(share: Option<f64>) -> String {
    share.map_or_else(String::new, |share| format!("{share:.4}"))
}

/// A figure of the process's memory; 0 where the system does not tell.
fn status_bytes(status: &str, name: &str) -> u64 {
    let figure = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = figure.and_then(|text| text.split_whitespace().next()).and_then(|number| number.parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes << 10)
}

fn persistence(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let stats = context.server.keyspace.stats();
    let durability = context.server.keyspace.durability();
    let (class, policy) = (class_name(durability), appendfsync(durability));
    let saves = context.server.saves.shown();
    let status = if stats.trouble.is_none() { "ok" } else { "err" };
    let mut lines = vec![
        line("loading", 0),
        line("aiodb_durability", class),
        line("aiodb_appendfsync", policy),
        line("aof_enabled", 1),
        line("aof_last_write_status", status),
        line("aof_current_size", stats.segments_in_use * stats.segment_bytes),
        line("rdb_bgsave_in_progress", u8::from(saves.is_running.load(Ordering::Relaxed))),
        line("rdb_last_save_time", saves.last_s.load(Ordering::Relaxed)),
        line("rdb_last_bgsave_status", if saves.has_failed.load(Ordering::Relaxed) { "err" } else { "ok" }),
        line("rdb_last_bgsave_time_sec", saves.took_s.load(Ordering::Relaxed)),
        line("rdb_saves", saves.count.load(Ordering::Relaxed)),
        line("aiodb_segments_in_use", stats.segments_in_use),
        line("aiodb_segments_free", stats.segments_free),
        line("aiodb_live_bytes", stats.live_bytes),
        line("aiodb_log_bytes_written", stats.log_bytes_written),
    ];
    lines.extend(stats.trouble.map(|trouble| line("aiodb_trouble", trouble.replace(['\r', '\n'], " "))));
    Ok(lines)
}

fn class_name(durability: Durability) -> String {
    match durability {
        Durability::Sync => "sync".into(),
        Durability::Interval(interval) => format!("interval:{}", interval.as_millis()),
        Durability::None => "none".into(),
    }
}

fn statistics(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let statistics = &context.server.statistics;
    let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(vec![
        line("total_connections_received", number(&statistics.connections)),
        line("total_commands_processed", number(&statistics.commands)),
        line("total_net_input_bytes", number(&statistics.input_bytes)),
        line("total_net_output_bytes", number(&statistics.output_bytes)),
        line("rejected_connections", number(&statistics.rejected_connections)),
        line("aiodb_failed_handshakes", number(&statistics.failed_handshakes)),
        line("keyspace_hits", number(&statistics.hits)),
        line("keyspace_misses", number(&statistics.misses)),
        line("pubsub_channels", context.server.channels.different(Topic::Channel)),
        line("pubsub_patterns", context.server.channels.different(Topic::Pattern)),
        line("total_error_replies", number(&statistics.errors)),
    ])
}

fn replication(_: &Context<'_, '_>) -> Result<Lines, Refusal> {
    Ok(vec![line("role", "master"), line("connected_slaves", 0)])
}

fn processor(_: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the process, in brackets, may have spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // The kernel counts in hundredths of a second for programs.
    let seconds = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0) / 100.0;
    Ok(vec![line("used_cpu_sys", format!("{:.6}", seconds(12))), line("used_cpu_user", format!("{:.6}", seconds(11)))])
}

fn cluster(_: &Context<'_, '_>) -> Result<Lines, Refusal> {
    Ok(vec![line("cluster_enabled", 0)])
}

/// The databases that have keys. One whose keys cannot be counted does not hide the others.
fn keyspace(context: &Context<'_, '_>) -> Result<Lines, Refusal> {
    let keyspace = &context.server.keyspace;
    let mut lines = Vec::new();
    for database in 0..keyspace.databases() {
        match keyspace.size(database, now_ms()) {
            Ok(0) => {}
            Ok(keys) => lines.push(line(&format!("db{database}"), format!("keys={keys}"))),
            Err(refusal) => {
                let reason = String::from_utf8_lossy(&refusal.line()).into_owned();
                lines.push(line(&format!("aiodb_uncounted_db{database}"), reason));
            }
        }
    }
    Ok(lines)
}
