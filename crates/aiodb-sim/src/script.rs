//! What happens in a run: everything that a seed decides, written out before anything is run, so that parts can be left
//! out and the rest still means the same.

use std::path::Path;
use std::time::Duration;

use aiodb::io::Phase;
use aiodb::io::sim::{Call, Effect};
use aiodb::{Compression, Durability, IndexKind, Step, TableModes};

/// A run.
#[derive(Clone, Debug)]
pub struct Script {
    /// What it was made from; also seeds the simulated machine.
    pub seed: u64,
    /// How the store is made.
    pub setup: Setup,
    /// What happens, one after the other.
    pub actions: Vec<Action>,
}

/// What holds for a whole run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The kinds of the tables that may come to be.
    pub tables: Vec<IndexKind>,
    /// How each table compresses its values.
    pub compression: Vec<Compression>,
    /// Bytes up to which the index of each table has values; 0 for none.
    pub inline_bytes: Vec<usize>,
    /// How blocks of each table's runs are compressed.
    pub block_compression: Vec<Compression>,
    /// Which tables have a compaction filter.
    pub filtered: Vec<bool>,
    /// The modes with which each table is made.
    pub modes: Vec<TableModes>,
    /// Bytes of memory for values that were read lately.
    pub cache_bytes: u64,
    /// Whether values that were written lately are there too.
    pub cache_writes: bool,
    /// Keys in each table.
    pub keys: usize,
    /// Directories of the store.
    pub directories: usize,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Alignment of direct I/O, in bytes.
    pub block_bytes: usize,
    /// Bits that are kept of a key's hash: few make keys share tags.
    pub hash_mask: u64,
    /// Bytes of log between the checkpoints that upkeep makes.
    pub checkpoint_bytes: u64,
    /// Keys that the memtable of an ordered index takes at most.
    pub memtable_keys: usize,
    /// Keys that it takes however small the budget of memory is.
    pub least_memtable_keys: usize,
    /// Sorted runs of one tier that are merged into one.
    pub fan_out: usize,
    /// Whether every other process leaves the oldest run out of merges.
    pub merges_apart: bool,
    /// Superseded records of which memory has so many before they come to a file.
    pub versions_in_memory: usize,
    /// Memory for the keys of a `hash` table, in bytes; without, it has all of them.
    pub hash_bytes: Option<u64>,
    /// Whether only one of three processes has that much, and the others have none, or all they need.
    pub hash_bytes_change: bool,
    /// Tags of a `hash` table that a step of a spill takes, unless one shard has more.
    pub spill_step_tags: usize,
    /// Memory for filters of sorted runs, in bytes, in one of three processes; the others have none, or all they need.
    pub filter_bytes: Option<u64>,
    /// Whether work behind the scenes goes on during backups.
    pub works_beside_backups: bool,
    /// Bytes that must be free on the disk for LMDB to commit; without, it always finds room.
    pub index_needs: Option<u64>,
}

/// A value: its bytes follow from these.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// In bytes.
    pub length: u32,
    /// Tells values of one length apart.
    pub seed: u32,
}

impl Value {
    /// The value made long enough to be like no other: what is found must say whether it is the one that expires.
    pub fn distinct(self) -> Value {
        Value { length: self.length.max(8), ..self }
    }

    /// The value itself.
    pub fn bytes(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length as usize];
        if self.seed.is_multiple_of(3) {
            // Some values repeat themselves.
            bytes.fill(self.seed as u8);
            let stamp = self.seed.to_le_bytes();
            bytes.iter_mut().zip(stamp).for_each(|(byte, stamp)| *byte = stamp);
        } else {
            fastrand::Rng::with_seed(u64::from(self.seed)).fill(&mut bytes);
        }
        bytes
    }
}

/// How a crash ends a process, and what the next one starts on.
#[derive(Clone, Debug)]
pub struct Crash {
    /// A power cut; else only the process dies.
    pub power_cut: bool,
    /// Which state of LMDB's file is there afterwards.
    pub index: IndexState,
    /// Crashes during the recoveries that follow: after so many steps, by a power cut or not.
    pub again: Vec<(u64, bool)>,
    /// A call that fails during the recoveries, after so many that do not.
    pub error: Option<(Call, u64)>,
    /// Whether everything is verified and recounted after recovery.
    pub verify: bool,
    /// Whether the indexes are made again from the log.
    pub rebuild: bool,
    /// A bit of the manifest of sorted runs changes: which, or none. Its copy must do.
    pub rotten_runs: Option<u64>,
}

impl Crash {
    /// One between two calls, without anything else.
    pub fn between_calls(power_cut: bool) -> Crash {
        Crash {
            power_cut,
            index: IndexState::Newest,
            again: Vec::new(),
            error: None,
            verify: false,
            rebuild: false,
            rotten_runs: None,
        }
    }
}

/// A state of LMDB's file.
#[derive(Clone, Copy, Debug)]
pub enum IndexState {
    /// As it was at the crash.
    Newest,
    /// As it was after a commit so many commits ago.
    Earlier(usize),
    /// No file.
    Missing,
}

/// The files that a fault concerns.
#[derive(Clone, Copy, Debug)]
pub enum Files {
    /// Segments.
    Log,
    /// Everything else: manifests, checkpoints, directories.
    Other,
    /// All.
    Any,
}

impl Files {
    /// Whether a file is one of them.
    pub fn contain(self, path: &Path) -> bool {
        let is_segment = path.extension().is_some_and(|extension| extension == "seg");
        match self {
            Files::Log => is_segment,
            Files::Other => !is_segment,
            Files::Any => true,
        }
    }
}

/// One write of a group.
#[derive(Clone, Copy, Debug)]
pub enum Write {
    /// A put.
    Put(Value),
    /// A put that expires after so many milliseconds.
    PutFor(Value, u64),
    /// A delete.
    Delete,
    /// What lies from this key to before another one is deleted, or the other way round.
    DeleteRange(usize),
    /// An operand is appended.
    Merge(Value),
}

/// What a key must hold for a write to be made.
#[derive(Clone, Copy, Debug)]
pub enum Require {
    /// Nothing.
    Absent,
    /// Any value.
    Present,
    /// What it holds.
    Current,
    /// Hardly what it holds.
    Other(Value),
}

/// A part of a table that is scanned: two keys as bounds, whether they belong to it, and how.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The bounds, in any order.
    pub bounds: (usize, usize),
    /// Whether the lower and the upper bound belong to the part.
    pub inclusive: (bool, bool),
    /// From the last record to the first.
    pub backward: bool,
    /// Without values.
    pub keys_only: bool,
    /// Records at most.
    pub limit: usize,
}

/// A record of a table that is made with its contents.
#[derive(Clone, Copy, Debug)]
pub struct Ingested {
    /// Keys, in their order, that are left out before it.
    pub skipped: usize,
    /// Its value.
    pub value: Value,
    /// Milliseconds until it expires.
    pub expires_in_ms: Option<u64>,
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Action {
    /// Table, key, value, class.
    Put(usize, usize, Value, Durability),
    /// Table, key, class.
    Delete(usize, usize, Durability),
    /// Table, key, value, class, milliseconds until it expires.
    PutFor(usize, usize, Value, Durability, u64),
    /// Table, key, operand, class: what a table has is appended to.
    Merge(usize, usize, Value, Durability),
    /// Table, class, and two keys: what lies from one to before the other is deleted. An ordered table.
    DeleteRange(usize, Durability, usize, usize),
    /// As `DeleteRange`, from the later key to before the other one: there is no key in between.
    DeleteNothing(usize, Durability, usize, usize),
    /// Writes as one group: table, key and what is done.
    Batch(Vec<(usize, usize, Write)>, Durability),
    /// The same if all keys hold what is required.
    BatchIf(Vec<(usize, usize, Require)>, Vec<(usize, usize, Write)>, Durability),
    /// The second client appends a `sync` group as `BatchIf`, and waits for its batch while the first one goes on.
    Append(Vec<(usize, usize, Require)>, Vec<(usize, usize, Write)>),
    /// The second client goes on with one of its groups, which is acknowledged then.
    Await(usize),
    /// Table, key, what it must hold, what is stored then (nothing: a delete), class.
    SetIf(usize, usize, Require, Option<Value>, Durability),
    /// Table, key, value, class: a put from a source of bytes.
    PutStream(usize, usize, Value, Durability),
    /// A writer begins to write a value: table, key, value.
    BeginWriting(usize, usize, Value),
    /// A writer takes so many bytes more.
    WriteOn(usize, usize),
    /// What a writer has taken becomes visible.
    FinishWriting(usize, Durability),
    /// A reader begins to read a value: table, key.
    BeginReading(usize, usize),
    /// A reader reads up to so many bytes.
    ReadOn(usize, usize),
    /// Table, key, offset, length.
    GetRange(usize, usize, usize, usize),
    /// A part of an ordered table, in order.
    ScanPart(usize, Part),
    /// The sequence of the last write is remembered.
    Mark,
    /// What was written up to the mark becomes durable.
    WaitDurable,
    /// A restore point is made. Without `lmdb` tables.
    BackUp,
    /// A store is made from one of the last restore points, and compared.
    Restore(usize),
    /// Table, key.
    Get(usize, usize),
    /// Table, keys.
    GetMany(usize, Vec<usize>),
    /// All records of a table, in order (and backward) if it has one.
    Scan(usize, bool),
    /// A snapshot is taken and kept.
    Snapshot,
    /// A kept snapshot is compared with what there was when it was taken: one key, and all records of a table.
    Look(usize, usize, usize),
    /// A kept snapshot ends.
    Release(usize),
    /// A long time passes, in milliseconds, in which the store is called now and then.
    Sleep(u64),
    /// The system's clock is set: milliseconds forward or back from what it would show.
    Clock(i64),
    /// A client starts a get in its reader: client, table, key.
    Submit(usize, usize, usize),
    /// A client takes the next answer from its reader.
    Poll(usize),
    /// A table begins to be made with its contents.
    BeginIngest(usize),
    /// It gets records.
    IngestOn(Vec<Ingested>),
    /// It is there.
    FinishIngest,
    /// It is given up.
    AbandonIngest,
    /// Make a table.
    Create(usize),
    /// Drop a table.
    Drop(usize),
    /// Empty a table.
    Truncate(usize),
    /// Give each of two tables the name of the other.
    Swap(usize, usize),
    /// Make everything durable.
    Sync,
    /// Make a checkpoint.
    Checkpoint,
    /// Read everything and compare.
    Verify,
    /// Look at sizes and counters.
    Stats,
    /// What memory keeps of a table by preference: the keys, the values.
    Modes(usize, TableModes),
    /// The budget of memory is set to so many bytes more than the least, or left to the store.
    Memory(Option<u64>),
    /// The next process begins with a budget of so many bytes more than the least.
    NextMemory(u64),
    /// A bit of background work.
    Step(Step),
    /// The same bit of background work, so many times.
    Steps(Step, usize),
    /// Time passes, in milliseconds; what the clock makes due is done.
    Wait(u64),
    /// Close the store and open it again.
    Reopen,
    /// The process will crash in so many steps.
    CrashIn(u64, Crash),
    /// The process will crash inside a phase: after so many that pass, in so many steps or at its end.
    CrashInside(Phase, u64, u64, Crash),
    /// The process ends between two calls.
    CrashNow(Crash),
    /// So many calls are disturbed, after some that are not.
    Fault(Call, Effect, u64, u64, Files),
    /// A byte of a file changes: the file by its place in the list of files, offset, bits.
    Rot(usize, u64, u8),
    /// A byte of a value changes wherever the value lies, or one just before it: table, key, which byte, bits.
    RotValue(usize, usize, usize, u8),
    /// The disk has room for so many more segments, or for any number.
    Capacity(Option<u64>),
}

impl Script {
    /// Whether LMDB takes part.
    pub fn uses_lmdb(&self) -> bool {
        self.setup.tables.contains(&IndexKind::Lmdb)
    }
}

/// Readers with gets in flight.
pub const CLIENTS: usize = 3;

/// Gets that a reader keeps in flight.
pub const DEPTH: usize = 4;

/// Snapshots that a process holds at most.
pub const MOST_SNAPSHOTS: usize = 4;

/// Values that a process writes piece by piece at most, and as many that it reads.
pub const MOST_STREAMS: usize = 2;

/// The interval of the class `interval` in all scripts.
pub const INTERVAL: Duration = Duration::from_millis(100);

impl std::fmt::Display for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        writeln!(f, "{:?}", self.setup)?;
        for (number, action) in self.actions.iter().enumerate() {
            writeln!(f, "{number:>5}  {action:?}")?;
        }
        Ok(())
    }
}

/// The name of a table by its number.
pub fn table_name(table: usize) -> String {
    format!("table-{table}")
}

/// The bytes of a key by its number. Every eighth is long, and differs from the others only at its end.
pub fn key_bytes(number: usize) -> Vec<u8> {
    let mut key = if number % 8 == 7 { vec![b'x'; 600] } else { b"key".to_vec() };
    key.extend_from_slice(number.to_string().as_bytes());
    key
}
