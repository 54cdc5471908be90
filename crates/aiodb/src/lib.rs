//! aiodb: a key-value store that keeps values on SSD and reads them with asynchronous direct I/O.
//!
//! ```
//! use aiodb::{Db, IndexKind, Options};
//!
//! # fn main() -> aiodb::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("store");
//! let db = Db::open(&path, Options::default())?;
//! let table = db.table_or_create("sensors", IndexKind::Hash)?;
//! table.put(b"kitchen", b"21.5")?; // on the device when it returns
//! assert_eq!(table.get(b"kitchen")?, Some(b"21.5".to_vec()));
//!
//! // Hundreds of gets in flight from one thread.
//! let mut reader = table.reader(64)?;
//! reader.submit(b"kitchen", 1)?;
//! while let Some(got) = reader.poll()? {
//!     assert_eq!(got.value?, Some(&b"21.5"[..]));
//! }
//! db.close()?;
//! # Ok(()) }
//! ```
//!
//! Start with [`Db`], [`Table`] and [`Options`]; what an acknowledged write means is said at [`Durability`].

mod accounting;
mod background;
mod backup;
mod batch;
mod cache;
mod catalog;
mod checkpoint;
mod checksum;
mod clock;
mod commit;
mod compression;
mod conditional;
mod config;
mod db;
mod directories;
mod engine;
mod error;
mod fold;
mod futures;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod holds;
pub mod index;
pub mod io;
mod lead;
mod log;
mod manifest;
pub mod merge;
mod metrics;
mod operation;
mod pins;
mod planted;
mod publish;
mod purge;
mod read;
mod reader;
mod reclaim;
mod recovery;
mod room;
mod salvage;
mod scan;
mod sequence;
mod settle;
mod snapshot;
mod stats;
mod stream;
mod sync;
mod verify;
mod write;

pub use background::Step;
pub use backup::{BackupOptions, BackupReport, Repository, RepositoryReport, RestorePoint, RestoreReport};
#[doc(hidden)]
pub use batch::WaitingWrite;
pub use compression::Compression;
pub use conditional::Condition;
pub use config::{Backend, Durability, IndexKind, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options, TableOptions, WriteOptions};
pub use db::{Batch, Db, Table};
pub use error::{DirectoryFault, Error, Result};
pub use futures::{GetFuture, WriteFuture};
pub use merge::{MergeOperator, MergeOperators};
pub use metrics::{Distribution, Metrics};
#[cfg(feature = "planted-bugs")]
pub use planted::{Bug, plant};
pub use reader::{Got, Reader};
pub use salvage::{DoubtfulKey, LostRegion, SalvageReport, salvage, salvage_several};
pub use scan::{Scan, ScanOptions};
pub use sequence::Sequence;
pub use snapshot::Snapshot;
pub use stats::{Stats, TableStats};
pub use stream::{ValueReader, ValueWriter};
pub use verify::VerifyReport;
