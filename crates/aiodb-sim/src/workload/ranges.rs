//! The first seeds of what came to the simulator one after the other.

/// Seeds from here on aim most crashes at a phase of the engine. Lower seeds crash after a number of
/// steps, in any phase: they stay as they are, for the faults that they once found.
pub const FIRST_AIMED: u64 = 10_000;
/// Seeds from here on also use conditional writes, streams, parts of scans, waiting for sequences, backups and several
/// directories. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_WHOLE: u64 = 40_000_000;
/// Half of the seeds from here on have a scene before some crashes. Lower seeds stay as they are, for the
/// faults that they once found.
pub const FIRST_STAGED: u64 = 1_000_000_000;
/// A third of the seeds from here on also put written values into the cache, if they have one. Lower seeds
/// stay as they are, for the faults that they once found.
pub const FIRST_CACHED: u64 = 2_000_000_000;

/// Seeds from here on know more scenes, in which clocks jump by years among others. Lower seeds stay as
/// they are, for the faults that they once found.
pub const FIRST_TIMED: u64 = 20_000_000_000;

/// From here on seeds have a second client, whose writes wait while the first one goes on. Lower seeds stay as
/// they are, for the faults that they once found.
pub const FIRST_WAITING: u64 = 30_000_000_000;

/// From here on half of the seeds have ordered tables, of either kind, or of both; there are scenes of sorted runs, and crashes after which
/// a manifest of theirs is damaged. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_SORTED: u64 = 60_000_000_000;

/// From here on, where there are `lsm` tables, memtables take few keys, and those of `lsm` tables are committed when they are half full,
/// as a thread of the store does it. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_AHEAD: u64 = 80_000_000_000;

/// From here on the index of some tables of kind `lsm` has short values. Lower seeds stay as they are, for the faults that they once
/// found.
pub const FIRST_INLINE: u64 = 90_000_000_000;

/// From here on, where there are `lsm` tables, work behind the scenes goes on during backups. Lower seeds stay as they are, for the faults
/// that they once found.
pub const FIRST_BESIDE: u64 = 100_000_000_000;

/// From here on tables of kind `lsm` are ingested too. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_INGESTED: u64 = 110_000_000_000;

/// From here on some tables of kind `lsm` have a compaction filter. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_FILTERED: u64 = 120_000_000_000;

/// From here on blocks of some tables of kind `lsm` are compressed, and half of the seeds have more keys. Lower seeds stay as they are, for the
/// faults that they once found.
pub const FIRST_COMPRESSED: u64 = 140_000_000_000;

/// From here on memory has few of the superseded records that snapshots need, of all kinds of tables, and files have the others. Lower seeds
/// stay as they are, for the faults that they once found.
pub const FIRST_SPILLED: u64 = 150_000_000_000;

/// From here on memory has few of the keys of `hash` tables, and runs sorted by hash have the others. Lower seeds stay as they are, for the
/// faults that they once found.
pub const FIRST_OUTGROWN: u64 = 160_000_000_000;

/// From here on the store has little memory, now less and now more: memtables take few keys, and caches shrink and grow. Lower seeds stay as
/// they are, for the faults that they once found.
pub const FIRST_BUDGETED: u64 = 170_000_000_000;

/// From here on both: little memory in all, and less for the keys of `hash` tables. Lower seeds stay as they are, for the faults that they once
/// found.
pub const FIRST_SQUEEZED: u64 = 180_000_000_000;

/// From here on tables change what memory keeps of them. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_MODED: u64 = 190_000_000_000;

/// From here on spills take many steps, each process has another part of the memory for keys of `hash` tables, and half of the seeds have a scene of
/// spills, budgets or modes, with crashes aimed at their steps. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_PRESSED: u64 = 200_000_000_000;

/// From here on tables are swapped. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_SWAPPED: u64 = 210_000_000_000;

/// From here on seeds have an ordered index that finds no room on a full disk, and half of them fill the disk and empty the
/// store again. Lower seeds stay as they are, for the faults that they once found.
pub const FIRST_BOUNDED: u64 = 40_000_000_000_000;
