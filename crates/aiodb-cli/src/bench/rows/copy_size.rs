//! The rows of `bench copy-size`, and their table.

use serde::{Deserialize, Serialize};

use crate::bench::table::{NONE, Table, decimal, whole};

/// The series of LMDB alone.
pub(crate) const LMDB: &str = "lmdb in memory";

/// The series of our store.
pub(crate) const AIODB: &str = "aiodb";

/// One point; rates are medians over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CopySizeRow {
    /// `lmdb in memory` or `aiodb`.
    pub series: String,
    pub copy_bytes: usize,
    /// Gets in flight; LMDB has one at a time.
    pub depth: Option<usize>,
    pub pairs: u64,
    pub gets_per_s: f64,
    pub gets_per_s_min: f64,
    pub gets_per_s_max: f64,
    pub gets_per_s_rounds: Vec<f64>,
    pub rounds: usize,
    pub cpu_us_per_get: f64,
}

/// The rows for people.
pub(crate) fn table(rows: &[CopySizeRow]) -> Table {
    let mut table = Table::new(&["store", "depth", "bytes copied", "gets/s", "min", "max", "rounds", "CPU µs/get"]);
    for row in rows {
        table.push(vec![
            row.series.clone(),
            row.depth.map_or_else(|| NONE.to_owned(), |depth| depth.to_string()),
            row.copy_bytes.to_string(),
            whole(row.gets_per_s),
            whole(row.gets_per_s_min),
            whole(row.gets_per_s_max),
            row.rounds.to_string(),
            decimal(row.cpu_us_per_get, 2),
        ]);
    }
    table
}
