//! The choices of a user.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use crate::{CompactionFilters, MergeOperators};

/// The durability class of a write, see `docs/durability.md`. In every class an acknowledged write survives the death of the
/// process; the classes differ in the writes that a power cut may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged means on the device: a power cut takes nothing. Concurrent writers share one device write.
    Sync,
    /// A power cut may take the writes acknowledged within this time before it. Capped at one hour.
    Interval(Duration),
    /// A power cut may take whatever the system had not yet written.
    None,
}

/// How a table finds its records. [`IndexKind::Lsm`] by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// Ordered, on disk: LMDB (the index of the AIODB paper). For stores whose index fits in memory.
    Lmdb,
    /// Ordered, on disk, in sorted runs that are written one after the other and merged later: inserts stay fast where the keys do
    /// not fit in memory. The number of keys is an estimate.
    #[default]
    Lsm,
    /// Unordered; in memory at about 11 bytes a key whatever its length, and in files beyond its part of memory.
    Hash,
}

impl IndexKind {
    /// Whether a table has its keys in order: [`crate::Table::scan`] needs that, and [`crate::Table::delete_range`].
    pub fn is_ordered(self) -> bool {
        match self {
            IndexKind::Lmdb | IndexKind::Lsm => true,
            IndexKind::Hash => false,
        }
    }

    /// The name used in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            IndexKind::Lmdb => "lmdb",
            IndexKind::Lsm => "lsm",
            IndexKind::Hash => "hash",
        }
    }
}

/// How a table is made, see [`crate::Db::create_table_with`]. Lasting: truncating a table changes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// How it finds its records.
    pub kind: IndexKind,
    /// How its values are compressed. Default not at all.
    pub compression: Compression,
    /// The name of the operator that [`crate::Table::merge`] uses, at most 255 bytes. Default none.
    pub merge: Option<String>,
    /// Values and operands of up to so many bytes, as they are stored, lie in the index too, beside their places in the log: the
    /// block of a run in which a get finds their key has them, so that it reads the device once at most. Merges write them again
    /// and again. 0 for none; above 0, up to [`MAX_INLINE_BYTES`], only in tables of kind `lsm`. Default
    /// [`DEFAULT_INLINE_BYTES`] there, else 0.
    pub inline_bytes: usize,
    /// How blocks of its sorted runs are compressed: its keys, and the values that lie in the index, are shorter on disk then. A block that
    /// saves no unit of the disk is stored as it is. Only in tables of kind `lsm`. Default not at all.
    /// See `docs/decisions/0055-compressed-blocks.md`.
    pub block_compression: Compression,
    /// The name of the filter that merges of sorted runs ask which of its records may go, at most 255 bytes; only in tables of kind
    /// `lsm`. Default none.
    pub compaction_filter: Option<String>,
    /// What of the table memory keeps by preference. [`crate::Db::set_table_modes`] changes it. Default nothing.
    pub modes: TableModes,
}

impl From<IndexKind> for TableOptions {
    fn from(kind: IndexKind) -> TableOptions {
        let inline_bytes = if kind == IndexKind::Lsm { DEFAULT_INLINE_BYTES } else { 0 };
        TableOptions {
            kind,
            compression: Compression::None,
            merge: None,
            inline_bytes,
            block_compression: Compression::None,
            compaction_filter: None,
            modes: TableModes::default(),
        }
    }
}

/// Whether memory is for the keys of a table, or for its values. The disk always has both, so a change moves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StorageMode {
    /// Caches take what is asked for, as far as the store's options give them room, and prefer nothing.
    #[default]
    Auto,
    /// Caches take all of it, as far as the budget goes ([`Options::memory_bytes`]), and let go of others' first.
    Memory,
    /// Caches take nothing more of it.
    Disk,
}

impl StorageMode {
    /// All of them.
    pub const ALL: [StorageMode; 3] = [StorageMode::Auto, StorageMode::Memory, StorageMode::Disk];

    /// The name used in commands and reports.
    pub fn name(self) -> &'static str {
        match self {
            StorageMode::Auto => "auto",
            StorageMode::Memory => "memory",
            StorageMode::Disk => "disk",
        }
    }
}

/// The storage modes of a table, see `docs/decisions/0062-storage-modes.md`. Where the budget does not suffice it comes closer to the disk by
/// itself: values leave memory first, the coldest before others, then blocks of keys, then filters of sorted runs ([`Options::filter_bytes`]). Fences are in
/// memory in every mode, and slots of `hash` tables as far as there is room for them ([`Options::hash_bytes`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TableModes {
    /// Blocks of the sorted runs of an `lsm` table, with the values that lie in them. Slots of a `hash` table leave memory only where it has no room for
    /// them, and of `lmdb` tables the system's page cache decides: so [`StorageMode::Disk`] is only for tables of kind `lsm`.
    pub keys: StorageMode,
    /// Values that lie in the log. [`StorageMode::Memory`] stands for keys in memory too, and is refused beside keys on disk.
    pub values: StorageMode,
}

/// The most that [`TableOptions::inline_bytes`] may be: longer values have blocks of their own.
pub const MAX_INLINE_BYTES: usize = 1024;

/// [`TableOptions::inline_bytes`] of a table of kind `lsm` that is made without further choices. `docs/decisions/0043-inline-values.md`
/// has the measurement.
pub const DEFAULT_INLINE_BYTES: usize = 0;

/// How a write is acknowledged, and until when its records count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// The class; `None` = the store's.
    pub durability: Option<Durability>,
    /// Milliseconds since 1970 from which on a put counts as deleted; `None` = never. A record that has expired stays so even if
    /// the system's clock goes back, unless that was wrong by more than an hour. Without meaning for deletes and operands.
    pub expires_ms: Option<NonZeroU64>,
}

impl From<Durability> for WriteOptions {
    fn from(durability: Durability) -> WriteOptions {
        WriteOptions { durability: Some(durability), expires_ms: None }
    }
}

impl WriteOptions {
    /// Writes that expire `after` this moment; never, if that is further away than there are numbers for.
    pub fn expiring(after: Duration) -> WriteOptions {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let at_ms = now.checked_add(after).and_then(|at| u64::try_from(at.as_millis()).ok());
        WriteOptions { durability: None, expires_ms: at_ms.and_then(NonZeroU64::new) }
    }
}

/// How reads reach the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Backend {
    /// The first of `Uring`, `Libaio`, `Threads` that works here.
    #[default]
    Auto,
    /// Linux io_uring.
    Uring,
    /// Linux native AIO (the paper's choice); works where a container forbids io_uring.
    Libaio,
    /// A pool of threads with `pread`; works anywhere.
    Threads,
}

/// How a store is opened. `Options::default()` is right for most uses.
#[derive(Clone, Debug)]
pub struct Options {
    /// Make the store if there is none. Default true.
    pub create: bool,
    /// Durability of writes that do not say otherwise. Default [`Durability::Sync`].
    pub durability: Durability,
    /// The device backend; anything but `Auto` fails to open where it does not work. Default `Auto`.
    pub backend: Backend,
    /// Use `O_DIRECT` where the file system has it. Default true.
    pub direct: bool,
    /// Bytes in a segment file, fixed when the store is made: a power of two from 64 KiB to 1 GiB. Default 32 MiB. A
    /// store takes at least five segments.
    pub segment_bytes: u64,
    /// How many segment files have an open file descriptor at a time, at least 8; other segment files are opened as they are used.
    /// Default 0: as many as the process's limit (raised as far as it may be) leaves after a quarter of it, 32 to 1,024, for
    /// everything else.
    pub max_open_files: usize,
    /// A checkpoint is made when this many bytes of log have been written since the last. Default 512 MiB.
    pub checkpoint_bytes: u64,
    /// Open the store without changing a byte, also from a read-only file system; every write is refused with
    /// [`crate::Error::ReadOnly`]. Several processes may do so at once, none while another has the store open for
    /// writing. Writes acknowledged after the last checkpoint are brought into memory and stay there: up to
    /// `checkpoint_bytes` of log. Default false.
    pub read_only: bool,
    /// Memory that the store may take in all, in bytes: memtables, filters and fences of sorted runs, slots of `hash` tables, superseded records
    /// for snapshots, buffers and both caches. What cannot be given back comes first, then sizes that are chosen here; slots have at most half of the
    /// rest; memtables have a part of what they leave, never less than 10 MB, the cache of blocks the others. Caches give memory back when other parts grow. Pages of LMDB's file are not among it: the system takes them back.
    /// Default `None`: a quarter of the memory that the machine has, or that the process's control group or its limit of address space allow, at
    /// least 64 MiB, and up to three quarters where what cannot be given back and sizes that are chosen here would leave less than an eighth to the
    /// other parts; a limit that changes is followed. What is chosen counts as far as there is so much: where a control group has less, the store
    /// takes no more than that, until the group grows again, and says so ([`crate::Stats::warnings`]); other memory of the process comes on top.
    /// [`crate::Db::set_memory_bytes`] changes it. Less than an empty store takes is refused. See `docs/decisions/0057-one-memory-budget.md`.
    pub memory_bytes: Option<u64>,
    /// How many stores share the memory that there is: where `memory_bytes` is not chosen, each takes its part. Default 1.
    pub memory_shared_by: u32,
    /// Memory for values that gets have read lately, at most, in bytes; 0 reads all of them from the device. It is a part of `memory_bytes`.
    /// Default 0: a cache pays only where some keys are asked for again and again, and costs every other get a copy. Where it is 0, values of tables
    /// that want them in memory ([`TableModes`]) have what `memory_bytes` leaves.
    pub cache_bytes: u64,
    /// Memory for the blocks of sorted runs in which gets of `lsm` tables found their keys, at most, in bytes. Such a get reads the device
    /// once, for its value, where the block is here, and twice where it is not. A key of 18 bytes takes 26 of a block. It is a part of
    /// `memory_bytes`. Default `None`: half of that, from 8 MiB to 1 GiB. It is taken as blocks come.
    pub block_cache_bytes: Option<u64>,
    /// Memory for the two memtables of an ordered index, at most, in bytes: the keys that were written and that its files do not have yet, at some
    /// 300 bytes each. Writers wait where it is used up. It is a part of `memory_bytes`. Default `None`: two fifths of what those parts leave that
    /// cannot be given back. Never less than 10 MB, and never more than 300 MiB.
    pub memtable_bytes: Option<u64>,
    /// Memory for the keys of all `hash` tables, at most, in bytes: at about 11 bytes each. It is a part of `memory_bytes`. Where they are more,
    /// older ones move on into files, sorted by hash, of which memory has less than two bytes a key; a get of such a key reads a block of them
    /// before its value, and a write to one has the store read that block and the records of the key. Default `None`: half of what the other
    /// parts need not have, where `memory_bytes` is not chosen of three quarters of the memory that there is; at least 4 MiB.
    /// See `docs/decisions/0058-hash-tables-spill.md`.
    pub hash_bytes: Option<u64>,
    /// Memory for the filters of all sorted runs, at most, in bytes: they have about 1.3 bytes a key of `lsm` tables, and 1.8 a key of `hash`
    /// tables in files. It is a part of `memory_bytes`. A look-up does without a filter that is left out, and reads a block of its run: the filters
    /// of the largest runs are left out first, and those of `hash` tables last. Default `None`: three quarters of `memory_bytes`, where it is
    /// not chosen of the most that it grows to, without what other parts cannot do without. See `docs/decisions/0065-filters-beyond-memory.md`.
    pub filter_bytes: Option<u64>,
    /// Put written values into the cache too, so that they are read without the device; it costs every
    /// write a copy. Values that are compressed come there when they are first read. Default false.
    pub cache_writes: bool,
    /// While the store is open, a file that is replaced about every second by its metrics as Prometheus text (see
    /// [`crate::Metrics`]), and removed when it is closed; needs `background`. `aiodb stat --watch` looks for it at
    /// `metrics.prom` in the store's directory. Default none.
    pub metrics_file: Option<PathBuf>,
    /// Rebuild all indexes from the whole log while opening. Default false.
    pub rebuild_index: bool,
    /// The operators of tables that merge. Default none.
    pub merge_operators: MergeOperators,
    /// The compaction filters of tables. Default none.
    pub compaction_filters: CompactionFilters,
    /// Run background work on a thread of the store's own. Default true; a simulator switches it off and calls
    /// [`crate::Db::step`].
    pub background: bool,
    /// For tests: hash bits that are used, so that different keys can be made to share a tag. Default all.
    #[doc(hidden)]
    pub hash_mask: u64,
    /// For tests: keys that the memtable of an ordered index takes, at most. Default all that it has room for.
    #[doc(hidden)]
    pub memtable_keys: usize,
    /// For tests: keys that the memtable of an ordered index takes however small the budget is. Default 16,384.
    #[doc(hidden)]
    pub least_memtable_keys: usize,
    /// For tests: where so many range deletes of an ordered index wait to be carried out, the next writer of one waits too. A
    /// batch with more of them is taken alone. Default 1,024.
    #[doc(hidden)]
    pub waiting_range_deletes: usize,
    /// For tests: when the sorted runs of `lsm` tables are merged.
    #[doc(hidden)]
    pub merge_policy: MergePolicy,
    /// For tests: when so many superseded records have gathered in memory for snapshots, they are brought to a file. Default 65,536.
    #[doc(hidden)]
    pub versions_in_memory: usize,
    /// For tests: so many tags of a `hash` table are written, or given up by memory, in one step of a spill, unless one shard has more. Default 32,768.
    #[doc(hidden)]
    pub spill_step_tags: usize,
}

/// When sorted runs are merged.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePolicy {
    /// Runs of one tier that are merged into one.
    pub fan_out: usize,
    /// Times that the oldest run may be larger than the runs that are merged into it.
    pub oldest_ratio: u64,
}

impl Default for MergePolicy {
    fn default() -> MergePolicy {
        MergePolicy { fan_out: 4, oldest_ratio: 4 }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create: true,
            durability: Durability::Sync,
            backend: Backend::Auto,
            direct: true,
            segment_bytes: 32 << 20,
            max_open_files: 0,
            checkpoint_bytes: 512 << 20,
            read_only: false,
            memory_bytes: None,
            memory_shared_by: 1,
            cache_bytes: 0,
            block_cache_bytes: None,
            memtable_bytes: None,
            hash_bytes: None,
            filter_bytes: None,
            cache_writes: false,
            metrics_file: None,
            rebuild_index: false,
            merge_operators: MergeOperators::default(),
            compaction_filters: CompactionFilters::default(),
            background: true,
            hash_mask: u64::MAX,
            memtable_keys: usize::MAX,
            least_memtable_keys: 16 << 10,
            waiting_range_deletes: 1024,
            merge_policy: MergePolicy::default(),
            versions_in_memory: 64 << 10,
            spill_step_tags: 32 << 10,
        }
    }
}

/// The longest key in bytes; the shortest is one byte.
pub const MAX_KEY_BYTES: usize = 64 << 10;

/// The longest value in bytes.
pub const MAX_VALUE_BYTES: usize = 1 << 30;

/// How a table's values are compressed, or the blocks of its runs. Values that would hardly become shorter are stored as they are, and so
/// are the chunks of large ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// LZ4: fast.
    Lz4,
    /// Zstandard at a level from 1 (fast) to 19 (small).
    Zstd(u8),
}

/// The name used in commands and reports.
impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Compression::None => write!(f, "none"),
            Compression::Lz4 => write!(f, "lz4"),
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
        }
    }
}
