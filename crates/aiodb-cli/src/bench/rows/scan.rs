//! The rows of `bench scan`, and their table.

use serde::{Deserialize, Serialize};

use crate::bench::table::{NONE, Table, decimal, whole};

/// One series; rates are medians over rounds, of bytes of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScanRow {
    /// Such as `scan, values in key order`.
    pub series: String,
    pub index: Option<String>,
    pub value_bytes: usize,
    pub bytes_per_s: f64,
    pub bytes_per_s_rounds: Vec<f64>,
    /// Processor time of the whole process for each value, in microseconds.
    pub cpu_us_per_value: f64,
    /// What the series is held against, and the median of the ratios within a round.
    pub against: Option<String>,
    pub ratio: Option<f64>,
    pub ratio_min: Option<f64>,
    pub ratio_max: Option<f64>,
}

/// The rows for people.
pub(crate) fn table(rows: &[ScanRow]) -> Table {
    let mut table = Table::new(&[
        "series",
        "index",
        "value bytes",
        "MiB/s",
        "values/s",
        "CPU µs/value",
        "against",
        "ratio",
        "min",
        "max",
    ]);
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| NONE.to_owned(), |ratio| decimal(ratio, 2));
    for row in rows {
        table.push(vec![
            row.series.clone(),
            row.index.clone().unwrap_or_else(|| NONE.to_owned()),
            row.value_bytes.to_string(),
            whole(row.bytes_per_s / f64::from(1 << 20)),
            whole(row.bytes_per_s / row.value_bytes as f64),
            decimal(row.cpu_us_per_value, 2),
            row.against.clone().unwrap_or_else(|| NONE.to_owned()),
            ratio(row.ratio),
            ratio(row.ratio_min),
            ratio(row.ratio_max),
        ]);
    }
    table
}
