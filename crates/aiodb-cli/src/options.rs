//! Arguments that several commands share, and how a store is opened with them.

use crate::error::CliError;
use aiodb::merge::{Add, Append, Frames};
use aiodb::{
    Backend, Compression, Db, Durability, IndexKind, MergeOperators, Options, StorageMode, Table, TableModes,
    TableOptions,
};
use clap::{Args, ValueEnum, value_parser};
use std::path::PathBuf;
use std::time::Duration;

/// The longest interval that the engine allows.
const MAX_INTERVAL_MS: u64 = 3_600_000;

/// Of Zstandard, where none is said: its own default.
const DEFAULT_ZSTD_LEVEL: u8 = 3;

/// The table used when none is named.
pub const DEFAULT_TABLE: &str = "default";

/// Which store, and how its device is read.
#[derive(Args, Clone, Debug)]
pub struct StoreArgs {
    /// Directory of the store
    pub store: PathBuf,
    /// Another directory of a store that lies in several, one per disk; needed each time, in any order. With a command
    /// that makes the store it is made in all of them
    #[arg(long, value_name = "DIR")]
    pub also: Vec<PathBuf>,
    /// How reads reach the device; anything but auto fails where it does not work
    #[arg(long, value_enum, default_value = "auto")]
    pub backend: BackendChoice,
    /// At most so many of the store's files are open at a time, 8 or more [default: most of what this process may have]
    #[arg(long, value_name = "FILES", value_parser = value_parser!(u32).range(8..))]
    pub max_open_files: Option<u32>,
    /// Memory that the store may take in all, caches and memtables included [default: a quarter of what the machine has or the control group
    /// allows, at least 64 MiB, and more for many keys]
    #[arg(long, value_name = "BYTES")]
    pub memory_bytes: Option<u64>,
}

impl StoreArgs {
    /// The engine's options for a store that must be there already.
    pub fn options(&self) -> Options {
        let metrics_file = Some(self.metrics_file());
        // Tables that merge with one of the library's own operators can be read.
        let merge_operators = MergeOperators::default().with(Add).with(Append).with(Frames);
        Options {
            create: false,
            backend: self.backend.into(),
            max_open_files: self.max_open_files.unwrap_or(0) as usize,
            memory_bytes: self.memory_bytes,
            metrics_file,
            merge_operators,
            ..Options::default()
        }
    }

    /// Where a command that works for long tells others what it is doing: `stat --watch` looks there.
    pub fn metrics_file(&self) -> PathBuf {
        self.store.join("metrics.prom")
    }

    /// Opens the store with certain options.
    pub fn open_with(&self, options: Options) -> aiodb::Result<Db> {
        let directories: Vec<_> = std::iter::once(&self.store).chain(&self.also).collect();
        Db::open_several(&directories, options)
    }

    /// Opens the store for writing, or makes it where there is none and `create` allows it.
    pub fn open_to_write(&self, create: bool, durability: Durability) -> Result<Db, CliError> {
        Ok(self.open_with(Options { create, durability, ..self.options() })?)
    }
}

/// Which store, for commands that only read.
#[derive(Args, Clone, Debug)]
pub struct ReadArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Open the store without changing a byte; other commands may read it at the same time, none may write
    #[arg(long)]
    pub read_only: bool,
}

impl ReadArgs {
    /// The engine's options for a store that must be there already.
    pub fn options(&self) -> Options {
        let options = self.store.options();
        // Reading alone leaves no file either.
        let metrics_file = options.metrics_file.filter(|_| !self.read_only);
        Options { read_only: self.read_only, metrics_file, ..options }
    }

    /// Opens the store; it must be there already.
    pub fn open(&self) -> Result<Db, CliError> {
        Ok(self.store.open_with(self.options())?)
    }
}

/// Which table.
#[derive(Args, Clone, Debug)]
pub struct TableArgs {
    /// Table to use
    #[arg(long, value_name = "NAME", default_value = DEFAULT_TABLE)]
    pub table: String,
}

/// The index of a table that is made when it is missing.
#[derive(Args, Clone, Copy, Debug)]
pub struct IndexArgs {
    /// Index of the table if this command makes it [default: lsm]; an existing table must have this index
    #[arg(long, value_enum)]
    pub index: Option<IndexChoice>,
    #[command(flatten)]
    pub lsm: LsmArgs,
}

/// What is chosen of the index of an `lsm` table.
#[derive(Args, Clone, Copy, Debug)]
pub struct LsmArgs {
    /// Values of up to so many bytes lie in the index of an `lsm` table too, if this command makes it, so that a get of one reads
    /// the disk once at most; 0 for none [default: 0]
    #[arg(long, value_name = "BYTES")]
    pub inline_bytes: Option<usize>,
    /// How the index of an `lsm` table is compressed on disk, with the values that lie in it, if this command makes it: none, lz4, zstd or
    /// zstd:LEVEL with a level from 1 to 19 [default: none]
    #[arg(long, value_name = "HOW", value_parser = parse_compression)]
    pub block_compression: Option<Compression>,
}

impl LsmArgs {
    /// The options of a table of this kind.
    pub fn options(self, kind: IndexKind) -> TableOptions {
        let options = TableOptions::from(kind);
        TableOptions {
            inline_bytes: self.inline_bytes.unwrap_or(options.inline_bytes),
            block_compression: self.block_compression.unwrap_or(options.block_compression),
            ..options
        }
    }

    /// What a reader of measurements must know.
    pub fn in_words(self) -> Vec<String> {
        let inline = |bytes| format!("values of up to {bytes} bytes lie in the index of `lsm` tables");
        let compressed = |compression| format!("blocks of the index of `lsm` tables are compressed: {compression}");
        self.inline_bytes.map(inline).into_iter().chain(self.block_compression.map(compressed)).collect()
    }

    /// [`LsmArgs::options`] where tables of other kinds than `lsm` are made beside: they have no such values.
    pub fn options_if_lsm(self, kind: IndexKind) -> TableOptions {
        if kind == IndexKind::Lsm { self.options(kind) } else { kind.into() }
    }
}

impl IndexArgs {
    /// The table, made if it is missing. Without `--index` an existing table of any kind will do.
    pub fn table_or_create(self, db: &Db, name: &str) -> Result<Table, CliError> {
        match (self.index, db.table(name)) {
            (None, Ok(table)) => Ok(table),
            (Some(choice), Ok(_)) => Ok(db.table_or_create(name, choice.into())?),
            (choice, Err(aiodb::Error::NoSuchTable { .. })) => {
                let kind = choice.map_or(IndexKind::default(), IndexKind::from);
                Ok(db.create_table_with(name, self.lsm.options(kind))?)
            }
            (_, Err(error)) => Err(error.into()),
        }
    }
}

/// What of a table memory keeps by preference.
#[derive(Args, Clone, Copy, Debug)]
pub struct ModeArgs {
    /// Where the keys of the table are to be, as far as memory goes: the blocks of its index if that is `lsm`
    #[arg(long, value_enum, value_name = "WHERE")]
    pub keys: Option<ModeChoice>,
    /// Where its values are to be, as far as memory goes; in memory only with the keys
    #[arg(long, value_enum, value_name = "WHERE")]
    pub values: Option<ModeChoice>,
}

impl ModeArgs {
    /// The modes of a table that has others now.
    pub fn change(self, now: TableModes) -> TableModes {
        TableModes {
            keys: self.keys.map_or(now.keys, StorageMode::from),
            values: self.values.map_or(now.values, StorageMode::from),
        }
    }
}

/// [`StorageMode`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModeChoice {
    /// In memory what is asked for, as far as the store's options give it room
    Auto,
    /// In memory, before what other tables have there
    Memory,
    /// On disk: caches take nothing of it
    Disk,
}

impl From<ModeChoice> for StorageMode {
    fn from(choice: ModeChoice) -> StorageMode {
        match choice {
            ModeChoice::Auto => StorageMode::Auto,
            ModeChoice::Memory => StorageMode::Memory,
            ModeChoice::Disk => StorageMode::Disk,
        }
    }
}

/// [`IndexKind`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum IndexChoice {
    /// Ordered, on disk; best while the keys fit in memory
    Lmdb,
    /// Ordered, on disk, in sorted runs; inserts stay fast where the keys do not fit in memory
    Lsm,
    /// Unordered; in memory at about 11 bytes a key whatever its length, and in files beyond its part of memory
    Hash,
}

impl From<IndexChoice> for IndexKind {
    fn from(choice: IndexChoice) -> IndexKind {
        match choice {
            IndexChoice::Lmdb => IndexKind::Lmdb,
            IndexChoice::Lsm => IndexKind::Lsm,
            IndexChoice::Hash => IndexKind::Hash,
        }
    }
}

/// [`Backend`] on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendChoice {
    /// The first of the others that works here
    Auto,
    /// Linux io_uring
    Uring,
    /// Linux native AIO
    Libaio,
    /// Threads with pread
    Threads,
}

impl From<BackendChoice> for Backend {
    fn from(choice: BackendChoice) -> Backend {
        match choice {
            BackendChoice::Auto => Backend::Auto,
            BackendChoice::Uring => Backend::Uring,
            BackendChoice::Libaio => Backend::Libaio,
            BackendChoice::Threads => Backend::Threads,
        }
    }
}

/// Reads `sync`, `none` or `interval:MS`.
pub fn parse_durability(text: &str) -> Result<Durability, String> {
    match text {
        "sync" => return Ok(Durability::Sync),
        "none" => return Ok(Durability::None),
        _ => {}
    }
    let interval = text.strip_prefix("interval:").and_then(|ms| ms.parse::<u64>().ok());
    match interval.filter(|ms| (1..=MAX_INTERVAL_MS).contains(ms)) {
        Some(ms) => Ok(Durability::Interval(Duration::from_millis(ms))),
        None => Err(format!("use sync, none or interval:MS with 1 to {MAX_INTERVAL_MS} milliseconds")),
    }
}

/// Reads `none`, `lz4`, `zstd` or `zstd:LEVEL`, as a compression is shown.
fn parse_compression(text: &str) -> Result<Compression, String> {
    let level = match text {
        "none" => return Ok(Compression::None),
        "lz4" => return Ok(Compression::Lz4),
        "zstd" => Some(DEFAULT_ZSTD_LEVEL),
        text => text.strip_prefix("zstd:").and_then(|level| level.parse().ok()),
    };
    let level = level.filter(|level| (1..=19).contains(level));
    level.map(Compression::Zstd).ok_or_else(|| "use none, lz4, zstd or zstd:LEVEL with a level from 1 to 19".into())
}

/// The opposite of [`parse_durability`].
pub fn durability_name(durability: Durability) -> String {
    match durability {
        Durability::Sync => "sync".into(),
        Durability::None => "none".into(),
        Durability::Interval(interval) => format!("interval:{}", interval.as_millis()),
    }
}

#[cfg(test)]
mod tests;
