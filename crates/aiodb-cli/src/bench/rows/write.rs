//! The rows of `bench write`, and their tables.

use serde::{Deserialize, Serialize};

use crate::bench::table::{NONE, Table, bytes, decimal, whole};

/// One measured point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "series", rename_all = "snake_case")]
pub(crate) enum WriteRow {
    /// Puts into our store.
    Store(StoreWrites),
    /// Durable 4 KiB overwrites of the disk itself.
    Flush(DeviceFlushes),
    /// Large sequential writes of the disk itself.
    Sequential(DeviceSequential),
}

/// Puts by concurrent writers; rates are medians over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoreWrites {
    pub index: String,
    pub durability: String,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub writers: usize,
    /// The writers are futures of one thread, not threads.
    #[serde(default)]
    pub futures: bool,
    /// Keys in the store when the point began.
    pub keys_before: u64,
    pub puts: u64,
    pub rounds: usize,
    /// Until every put was acknowledged.
    pub puts_per_s_acked: f64,
    pub puts_per_s_acked_min: f64,
    pub puts_per_s_acked_max: f64,
    pub puts_per_s_acked_rounds: Vec<f64>,
    /// Until `sync` and `checkpoint` had returned as well: nothing is owed to the disk or the index any more.
    pub puts_per_s_caught_up: f64,
    /// Puts that shared one write to the log, on average.
    #[serde(default)]
    pub puts_per_batch: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub cpu_us_per_put: f64,
    /// Written by the disk until caught up, by all processes, over bytes of keys and values.
    pub device_bytes_per_user_byte: Option<f64>,
    /// The disk's own durable writes per second at 1 in flight, just before each round: of 4 KiB, or with futures of as
    /// much as a batch of all in flight.
    pub device_flushes_per_s: Option<f64>,
    /// Bytes of each of these.
    #[serde(default)]
    pub device_flush_bytes: usize,
}

/// The disk's rate of durable writes; the median of rounds before and after everything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceFlushes {
    pub in_flight: usize,
    pub write_bytes: usize,
    pub flushes_per_s: f64,
    pub flushes_per_s_min: f64,
    pub flushes_per_s_max: f64,
}

/// The disk's rate of large writes; the median of rounds before and after everything else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceSequential {
    pub write_bytes: usize,
    pub bytes_per_s: f64,
    pub bytes_per_s_min: f64,
    pub bytes_per_s_max: f64,
}

impl StoreWrites {
    /// The point with its rates, in one line.
    pub(crate) fn in_words(&self) -> String {
        format!(
            "{} {} {} B + {} B, {} {}: {} puts/s, {} until caught up",
            self.index,
            self.durability,
            self.key_bytes,
            self.value_bytes,
            self.writers,
            if self.futures { "futures" } else { "writers" },
            whole(self.puts_per_s_acked),
            whole(self.puts_per_s_caught_up)
        )
    }
}

/// The rows for people: our store, then the disk itself.
pub(crate) fn tables(rows: &[WriteRow]) -> Vec<Table> {
    let mut store = Table::new(&[
        "index",
        "durability",
        "value B",
        "writers",
        "puts/s",
        "min",
        "max",
        "caught up/s",
        "puts/batch",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "CPU µs/put",
        "disk B/user B",
        "disk flushes/s",
        "puts/flush",
    ]);
    let mut device = Table::new(&["disk itself", "in flight", "per second", "min", "max"]);
    for row in rows {
        match row {
            WriteRow::Store(row) => store.push(store_cells(row)),
            WriteRow::Flush(row) => device.push(vec![
                "4 KiB durable writes".to_owned(),
                row.in_flight.to_string(),
                whole(row.flushes_per_s),
                whole(row.flushes_per_s_min),
                whole(row.flushes_per_s_max),
            ]),
            WriteRow::Sequential(row) => device.push(vec![
                "1 MiB sequential writes".to_owned(),
                "4".to_owned(),
                bytes(row.bytes_per_s as u64),
                bytes(row.bytes_per_s_min as u64),
                bytes(row.bytes_per_s_max as u64),
            ]),
        }
    }
    vec![store, device]
}

fn store_cells(row: &StoreWrites) -> Vec<String> {
    let per_flush = row.device_flushes_per_s.map(|flushes| row.puts_per_s_acked / flushes);
    vec![
        row.index.clone(),
        row.durability.clone(),
        row.value_bytes.to_string(),
        if row.futures { format!("{} futures", row.writers) } else { row.writers.to_string() },
        whole(row.puts_per_s_acked),
        whole(row.puts_per_s_acked_min),
        whole(row.puts_per_s_acked_max),
        whole(row.puts_per_s_caught_up),
        decimal(row.puts_per_batch, 1),
        decimal(row.p50_us, 1),
        decimal(row.p99_us, 1),
        decimal(row.p999_us, 1),
        decimal(row.cpu_us_per_put, 2),
        decimal(row.device_bytes_per_user_byte, 2),
        row.device_flushes_per_s.map_or_else(|| NONE.to_owned(), whole),
        decimal(per_flush, 2),
    ]
}
