//! How the memory of a server is divided among its caches, its connections and the engine.

use aiodb::io::memory::memory_bytes;

/// Less than this is no use: memtables and buffers alone may take it.
const LEAST_MEMORY: u64 = 256 << 20;

/// Connections, their replies and scripts have one part in so many of the memory.
const CONNECTIONS_SHARE: u64 = 8;

/// Values have one part in so many of the memory, unless their cache has a size of its own.
const CACHE_SHARE: u64 = 4;

/// The engine has one part in so many of the memory, however large a cache is asked for.
const LEAST_ENGINE_SHARE: u64 = 4;

/// The most that the cache has unless more is asked for.
pub(super) const MOST_USUAL_CACHE_BYTES: u64 = 1 << 30;

/// Bytes for the cache where so much memory can be had: an eighth, within a bound.
pub(super) fn usual_cache_bytes(memory: u64) -> u64 {
    (memory / 8).min(MOST_USUAL_CACHE_BYTES)
}

/// How memory is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// What the server may take, in bytes; `None` where it does not matter.
    pub(crate) server_bytes: Option<u64>,
    /// What values have of that, or of what there is.
    pub(crate) cache_bytes: u64,
    /// The budget of the engine; where it is `None` the engine decides.
    pub(crate) engine_bytes: Option<u64>,
}

impl Division {
    /// Divides so much among the engine and caches of a size that was chosen, or else a usual one.
    pub(super) fn of(server_bytes: Option<u64>, chosen_cache_bytes: Option<u64>) -> Division {
        let usual = || match server_bytes {
            Some(bytes) => bytes / CACHE_SHARE,
            None => usual_cache_bytes(memory_bytes()),
        };
        let cache_bytes = chosen_cache_bytes.unwrap_or_else(usual);
        Division { server_bytes, cache_bytes, engine_bytes: server_bytes.map(|bytes| engine_bytes(bytes, cache_bytes)) }
    }

    /// What an operator should know where this process may have so many bytes.
    pub(crate) fn warning(&self, machine_bytes: u64) -> Option<String> {
        let wanted = self.server_bytes.filter(|wanted| *wanted > machine_bytes)?;
        Some(format!(
            "maxmemory is {} MiB, and this process may have {} MiB of memory: it may be killed",
            wanted >> 20,
            machine_bytes >> 20
        ))
    }
}

/// What entries and small collections have of a cache of so many bytes; the engine has the rest.
pub(crate) fn parts_of_cache(cache_bytes: u64) -> (u64, u64) {
    (cache_bytes / 2, cache_bytes / 4)
}

/// Memory that the server may take, in bytes, as `maxmemory` says it; `None` where it does not matter. An error says what is allowed.
pub(super) fn server_bytes(maxmemory: &str) -> Result<Option<u64>, String> {
    match parse_memory(maxmemory) {
        Some(0) => Ok(None),
        Some(bytes) if bytes >= LEAST_MEMORY => Ok(Some(bytes)),
        _ => Err(format!("0, or at least {}mb, as a number of bytes or with a unit: 512mb, 2gb", LEAST_MEMORY >> 20)),
    }
}

/// The budget of the engine, in bytes: what the server's own caches and connections leave of so much memory.
fn engine_bytes(memory: u64, cache_bytes: u64) -> u64 {
    let (entry_bytes, packed_bytes) = parts_of_cache(cache_bytes);
    memory
        .saturating_sub(entry_bytes + packed_bytes)
        .saturating_sub(memory / CONNECTIONS_SHARE)
        .max(memory / LEAST_ENGINE_SHARE)
}

/// A number of bytes in Redis's words: `1k` is 1,000, `1kb` is 1,024, and so for `m` and `g`, in any letters.
fn parse_memory(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let units =
        [("kb", 1 << 10), ("mb", 1 << 20), ("gb", 1 << 30), ("k", 1_000), ("m", 1_000_000), ("g", 1_000_000_000)];
    let with_unit = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, unit) = with_unit.unwrap_or((text.strip_suffix('b').unwrap_or(&text), 1u64));
    number.parse::<u64>().ok()?.checked_mul(unit)
}
