//! The rows of `bench cache`, and their table.

use serde::{Deserialize, Serialize};

use crate::bench::table::{NONE, Table, decimal, whole};

/// One point; rates are medians over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CacheRow {
    /// `lmdb in memory`, `aiodb get` (blocking) or `aiodb reader`.
    pub series: String,
    /// The index of our store.
    pub index: Option<String>,
    pub value_bytes: usize,
    pub pairs: u64,
    /// The budget of our store's cache.
    pub cache_bytes: u64,
    pub gets_per_s: f64,
    pub gets_per_s_min: f64,
    pub gets_per_s_max: f64,
    pub gets_per_s_rounds: Vec<f64>,
    pub rounds: usize,
    pub cpu_us_per_get: f64,
    /// Against LMDB in the same round.
    pub ratio_to_lmdb: Option<f64>,
}

impl CacheRow {
    /// The point without its figures.
    pub(crate) fn in_words(&self) -> String {
        let index = self.index.as_ref().map_or(String::new(), |index| format!(", index {index}"));
        format!("{}{index}, {} B values", self.series, self.value_bytes)
    }
}

/// The rows for people.
pub(crate) fn table(rows: &[CacheRow]) -> Table {
    let mut table =
        Table::new(&["store", "index", "value bytes", "gets/s", "min", "max", "rounds", "CPU µs/get", "to LMDB"]);
    for row in rows {
        table.push(vec![
            row.series.clone(),
            row.index.clone().unwrap_or_else(|| NONE.to_owned()),
            row.value_bytes.to_string(),
            whole(row.gets_per_s),
            whole(row.gets_per_s_min),
            whole(row.gets_per_s_max),
            row.rounds.to_string(),
            decimal(row.cpu_us_per_get, 2),
            row.ratio_to_lmdb.map_or_else(|| NONE.to_owned(), |ratio| decimal(ratio, 2)),
        ]);
    }
    table
}
