//! What benchmarks find, as data: the rows of each, their names and units in the JSON, and the tables made of them.
//! A row is plain values; nothing here measures or opens a file. Old results must still be read: a field is added with a
//! default, and none is renamed.

pub(crate) mod cache;
pub(crate) mod churn;
pub(crate) mod copy_size;
pub(crate) mod cost;
pub(crate) mod merge;
pub(crate) mod queue_depth;
pub(crate) mod scan;
pub(crate) mod soak;
pub(crate) mod write;

use serde::{Deserialize, Serialize};

use super::table::Table;
use cache::CacheRow;
use churn::ChurnRow;
use copy_size::CopySizeRow;
use cost::CostRow;
use merge::MergeRow;
use queue_depth::QueueDepthRow;
use scan::ScanRow;
use soak::SoakRow;
use write::WriteRow;

/// One row per measured point; every name carries its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench", content = "rows", rename_all = "kebab-case")]
pub(crate) enum Rows {
    QueueDepth(Vec<QueueDepthRow>),
    CopySize(Vec<CopySizeRow>),
    Write(Vec<WriteRow>),
    Cost(Vec<CostRow>),
    Cache(Vec<CacheRow>),
    Scan(Vec<ScanRow>),
    Soak(Vec<SoakRow>),
    Churn(Vec<ChurnRow>),
    Merge(Vec<MergeRow>),
}

impl Rows {
    /// The name of the subcommand.
    pub(crate) fn bench(&self) -> &'static str {
        match self {
            Rows::QueueDepth(_) => "queue-depth",
            Rows::CopySize(_) => "copy-size",
            Rows::Write(_) => "write",
            Rows::Cost(_) => "cost",
            Rows::Cache(_) => "cache",
            Rows::Scan(_) => "scan",
            Rows::Soak(_) => "soak",
            Rows::Churn(_) => "churn",
            Rows::Merge(_) => "merge",
        }
    }

    /// What people read of them.
    pub(crate) fn tables(&self) -> Vec<Table> {
        match self {
            Rows::QueueDepth(rows) => vec![queue_depth::table(rows)],
            Rows::CopySize(rows) => vec![copy_size::table(rows)],
            Rows::Write(rows) => write::tables(rows),
            Rows::Cost(rows) => vec![cost::table(rows)],
            Rows::Cache(rows) => vec![cache::table(rows)],
            Rows::Scan(rows) => vec![scan::table(rows)],
            Rows::Soak(rows) => soak::tables(rows),
            Rows::Churn(rows) => churn::tables(rows),
            Rows::Merge(rows) => merge::tables(rows),
        }
    }
}
