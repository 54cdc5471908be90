//! Bugs that can be planted in the engine, to see whether the simulator finds them.
//!
//! Each stands at the place where the real one would be. Without the feature `planted-bugs` [`is_on`] is constantly false
//! and nothing of this is compiled in; with it, one bug at a time can be switched on for the whole process.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(not(feature = "planted-bugs"), allow(dead_code))]
pub enum Bug {
    /// A `sync` write is acknowledged before its batch is durable.
    AckBeforeFlush = 1,
    /// Segments with earlier, unflushed batches are not flushed before a durable batch.
    EarlierBatchesUnflushed,
    /// A segment's first batch is durable, its header is not.
    SegmentHeaderUnflushed,
    /// Batches of `interval` and `none` are forgotten by the next flush.
    DirtySegmentForgotten,
    /// After a failed flush the store goes on as if nothing had happened.
    FailedFlushForgotten,
    /// `interval` flushes four times too late.
    IntervalTooLong,
    /// A batch says of itself that it is durable before it is.
    DurableTooEarly,
    /// A checkpoint refers to log that is not durable.
    CheckpointAheadOfLog,
    /// A manifest is named before it is durable.
    ManifestUnflushed,
    /// A manifest's name is not made durable.
    ManifestNameUnflushed,
    /// A new segment's name is not made durable.
    SegmentNameUnflushed,
    /// A checkpoint forgets which tags are not settled.
    UnsettledTagsForgotten,
    /// A checkpoint forgets which table ids were given away.
    TableIdsReused,
    /// A record's checksum is not checked.
    RecordUnchecked,
    /// A batch's checksum is not checked by recovery.
    BatchUnchecked,
    /// Batches of a segment's earlier life are taken for batches of this one.
    OldLifeAccepted,
    /// A segment is used again while a reader may see it.
    FreedUnderReader,
    /// A segment is used again before the checkpoint that needs it no more is durable.
    FreedBeforeCheckpoint,
    /// Reclaim drops deletes that older records still need.
    TombstoneDroppedEarly,
    /// A move overtakes a put that came in between.
    MoveBeatsPut,
    /// A moved chunk is not made known to the record that names it.
    ChunkMoveForgotten,
    /// A tag shared by two keys is taken for an overwrite.
    CollisionTakenForOverwrite,
    /// Replay forgets which of two places under a tag is newer.
    ReplayOrderLost,
    /// A group whose end was not pending is recovered in part.
    GroupSplit,
    /// Batches that were still in memory are not recovered.
    PendingForgotten,
    /// Records that recovery has found are shown before they are durable.
    RecoveryUnflushed,
    /// An ordered index that is older than the checkpoint is believed.
    OldIndexBelieved,
    /// Superseded records are not retained for snapshots.
    SnapshotVersionsForgotten,
    /// Folding a key's operands leaves one out.
    OperandDropped,
    /// An expired record that is moved does not expire any more.
    ExpiredComesBack,
    /// A range delete is forgotten before it is carried out.
    RangeDeleteForgotten,
    /// The segment in which the log ends after a recovery is emptied and used again.
    LogEndFreed,
    /// A record that was overwritten, but is not settled yet, is moved past the delete of its key.
    UnsettledMoved,
    /// An ordered index that is older than the checkpoint is made again over its old entries.
    OldIndexKept,
    /// A segment is used again before a dropped table is taken out of the index.
    ReusedBeforePurge,
    /// A moved base in the memtable hides newer operands below it.
    MovedBaseHidesOperands,
    /// A base that comes to the memtable late hides newer operands that became immutable before it came.
    LateBaseHidesOperands,
    /// An operand in a layer below hides from snapshots the fold of it and others, when that fold has been superseded.
    OperandHidesWhatWasMade,
    /// A fold leaves out an operand that came to the index after the look-up, and stands for it.
    MissedOperandOverlooked,
    /// Conditions are judged while a write that comes before them in the log waits to be published.
    WaitingWriteOverlooked,
    /// Of two copies of a record that were superseded, the earlier is retained for snapshots.
    EarlierCopyKept,
    /// Reads do not ask whether their snapshot has ended.
    EndedSnapshotRead,
    /// A moved record forgets that its value is compressed.
    CompressionForgotten,
    /// A cached value is known by its place alone, whichever life of the segment it was read in.
    CachedLifeForgotten,
    /// A clock that jumps ahead is believed at once.
    ClockJumpBelieved,
    /// A clock that was put right is not believed, however long it stands there.
    TimeNeverComesBack,
    /// Time goes back with a clock that is set back a little.
    TimeGoesBack,
    /// Ordinary writes take of the reserve that making room needs.
    ReserveTakenByPuts,
    /// The epoch moves on while readers of the one before are counted.
    EpochMovesUnderReaders,
    /// A delete leaves the index while an older put may still be on its way there.
    DeleteGoneEarly,
    /// Whether older records are published is asked after the look-up that may have missed them.
    PublishedAskedLate,
    /// A change of a `hash` index is counted before it is made.
    ChangeCountedEarly,
    /// Whether the reserve is whole is noted after a later judgement.
    ReserveNotedLate,
    /// A waiter that is about to sleep is not told of the event that it waits for.
    WakeLost,
    /// The chunks of a large value in a batch belong to what its table was before it was emptied.
    ChunksOfAnotherTable,
    /// A batch loses its part in a table that was emptied before it came to the log, and keeps the rest.
    BatchTornByTruncate,
    /// A checkpoint does not wait for a change of the tables whose record lies before its position.
    TableChangeMissed,
    /// A writer that finds a memtable full looks late which commit it is to wait for, and misses its end.
    TurnAskedLate,
    /// A step of a merge says that it has ended while it still has its turn.
    StepEndsBeforeItsTurn,
    /// A step of a merge does not see which runs the step beside it merges.
    ClaimUnseen,
    /// A merge of runs keeps the older of two entries of a key.
    MergeKeepsOlder,
    /// A merge of runs drops deletes, though an older run may have what they delete.
    MergeDropsDeletes,
    /// A merge of runs does not retain what it supersedes for snapshots.
    MergeForgetsVersions,
    /// Runs forget a range tombstone that the oldest of them has not carried out.
    RunRangeForgotten,
    /// A file of a run is named before its bytes are durable.
    RunUnflushed,
    /// A file of a run is removed while the copy of the manifest names it.
    RunGoneEarly,
    /// The position of a run is ahead of its last record.
    RunPositionAhead,
    /// An entry of a run counts whichever life its segment is in.
    RunEntryOutlivesSegment,
    /// The filter of a run's file does not know the file's last key.
    RunFilterForgetsKey,
    /// An inline value survives in the memtable when its key is overwritten.
    InlineSurvivesOverwrite,
    /// A moved record leaves its inline value behind, and counts as empty.
    MovedValueLost,
    /// A merge leaves out what a filter gives up, without a delete.
    FilteredInPlace,
    /// What a filter has given up is deleted whatever was written to its key since.
    DropBeatsPut,
    /// Filters are asked about records that the oldest snapshot does not see.
    AskedAboveSnapshot,
    /// A filter's verdict is taken for that on another record.
    VerdictOfNeighbour,
    /// Keys that do not fit into a compressed block are lost instead of coming into the next one.
    PackedKeysLost,
    /// Keys that are not in a block yet are left where they are when a table begins whose blocks are compressed in another way: lost, or out
    /// of order.
    BlockUncutAtTable,
    /// A backup leaves out a file that the manifest of its runs names.
    BackupForgetsRun,
    /// A backup does not hold the files of runs that it copies.
    BackupLetsRunsGo,
    /// A move believes a look-up from before a commit.
    OldLookUpBelieved,
    /// Reclaim empties segments with records of an ingest that has not come to its end.
    IngestUnprotected,
    /// The entries of an ingest do not count as alive.
    IngestUncounted,
    /// The id of an ingest that did not come to its end is given to another table.
    IngestIdReused,
    /// Look-ups for snapshots do not ask versions that are on their way to a file.
    FrozenVersionsUnseen,
    /// The filter of a file of versions does not know the file's last key.
    VersionFilterForgetsKey,
    /// What only the oldest snapshot sees is left out when versions come to files, or are merged there.
    VersionMergeForgetsOldest,
    /// A merge is written as the put of what it makes while an earlier write of its key waits to be published.
    FoldOverlooksWaiting,
    /// It is written so although another write of its key came to the log after the look-up.
    FoldOverlooksLater,
    /// It is written so over a value that will expire.
    FoldOutlivesBase,
    /// What comes from the runs of a `hash` table to memory gets no floor.
    FloorForgotten,
    /// Merges of these runs, and walks through them, go on below a floor.
    FloorPassed,
    /// Memory gives up what lies at the end of a tag's places, whether a run has these places or others.
    SpillUnchecked,
    /// A merge of these runs forgets which place is newer.
    SpillMergeReversed,
    /// Files of merged runs go before a checkpoint is durable that does not name them.
    SpilledGoneEarly,
    /// A delete in a `hash` table goes without a look at older places in runs.
    DeleteOverSpilled,
    /// Reclaim does not ask the runs of a `hash` table for a record.
    SpilledNotMoved,
    /// Who has found a state between two changes of a batch answers it.
    BatchSeenBetween,
    /// A scan takes its moment for that of a table which another may have replaced by then.
    ScanOfTableThatIsGone,
    /// A table that is emptied is gone before its name is that of the next one.
    TableGoneBeforeItsName,
    /// Tables that are swapped get their names one after the other.
    SwapNameByName,
    /// Who goes through a `hash` table asks before the shard's lock whether there are runs.
    RunsAskedEarly,
    /// Modes of a table that were acknowledged wait for the next checkpoint.
    ModesForgotten,
    /// A merge into a `hash` table takes a value that it knows of a key for the present one.
    SumUnchecked,
    /// Names of tables that were acknowledged wait for the next checkpoint.
    NamesForgotten,
    /// A replay publishes records again that the runs have.
    ReplayedTwice,
    /// A file whose filter memory has no room for is taken for one without keys.
    FilterLeftOutHidesKeys,
    /// A checkpoint that was under way when tables were renamed has the new names.
    NamesOverOlderChanges,
    /// A batch is written to the tables that names had at different moments.
    BatchTornBySwap,
    /// A get that finds a record of a batch does not wait for the others.
    BatchSeenInPart,
    /// A memtable does not learn that its bound has fallen with the budget of memory.
    MemtableBoundKept,
    /// The memory of a shard of slots is asked for before its lock is held, and counted as what it was when it changes.
    SlotsMeasuredEarly,
    /// The memory of slots that a spill has given up still counts.
    GivenUpStillCounted,
    /// A truncate leaves the table without its modes.
    ModesLostByTruncate,
    /// A shard of a cache that begins anew, with blocks of another length, does not know which tables it prefers and which it refuses.
    PreferencesLostWithShard,
    /// A checkpoint is made while shards give up places to a run that it does not name.
    CheckpointAmidSpill,
    /// Shards give up places between the position of a checkpoint and the last index that it encodes.
    SpillBesideCheckpoint,
}

#[cfg(feature = "planted-bugs")]
mod switch {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Bug;

    /// The bug that is switched on; at first the one that the environment names, for processes that a test starts. Relaxed: it is
    /// switched before the store is opened or the threads are started that run into it.
    static PLANTED: LazyLock<AtomicU8> = LazyLock::new(|| {
        let name = std::env::var("AIODB_PLANTED").unwrap_or_default();
        let named = Bug::ALL.into_iter().chain(Bug::OF_THREADS).find(|bug| format!("{bug:?}") == name);
        AtomicU8::new(named.map_or(0, |bug| bug as u8))
    });

    /// Switches one bug on, or none.
    pub fn plant(bug: Option<Bug>) {
        PLANTED.store(bug.map_or(0, |bug| bug as u8), Ordering::Relaxed);
    }

    pub(crate) fn is_on(bug: Bug) -> bool {
        PLANTED.load(Ordering::Relaxed) == bug as u8
    }

    impl Bug {
        /// Bugs that one thread is enough for: the simulator finds them.
        pub const ALL: [Bug; 89] = [
            Bug::AckBeforeFlush,
            Bug::EarlierBatchesUnflushed,
            Bug::SegmentHeaderUnflushed,
            Bug::DirtySegmentForgotten,
            Bug::FailedFlushForgotten,
            Bug::IntervalTooLong,
            Bug::DurableTooEarly,
            Bug::CheckpointAheadOfLog,
            Bug::ManifestUnflushed,
            Bug::ManifestNameUnflushed,
            Bug::SegmentNameUnflushed,
            Bug::UnsettledTagsForgotten,
            Bug::TableIdsReused,
            Bug::RecordUnchecked,
            Bug::BatchUnchecked,
            Bug::OldLifeAccepted,
            Bug::FreedUnderReader,
            Bug::FreedBeforeCheckpoint,
            Bug::TombstoneDroppedEarly,
            Bug::MoveBeatsPut,
            Bug::ChunkMoveForgotten,
            Bug::CollisionTakenForOverwrite,
            Bug::ReplayOrderLost,
            Bug::GroupSplit,
            Bug::PendingForgotten,
            Bug::RecoveryUnflushed,
            Bug::OldIndexBelieved,
            Bug::SnapshotVersionsForgotten,
            Bug::OperandDropped,
            Bug::ExpiredComesBack,
            Bug::RangeDeleteForgotten,
            Bug::LogEndFreed,
            Bug::UnsettledMoved,
            Bug::OldIndexKept,
            Bug::ReusedBeforePurge,
            Bug::MovedBaseHidesOperands,
            Bug::LateBaseHidesOperands,
            Bug::WaitingWriteOverlooked,
            Bug::EarlierCopyKept,
            Bug::EndedSnapshotRead,
            Bug::CompressionForgotten,
            Bug::CachedLifeForgotten,
            Bug::ClockJumpBelieved,
            Bug::TimeNeverComesBack,
            Bug::TimeGoesBack,
            Bug::ReserveTakenByPuts,
            Bug::MergeKeepsOlder,
            Bug::MergeDropsDeletes,
            Bug::MergeForgetsVersions,
            Bug::RunRangeForgotten,
            Bug::RunUnflushed,
            Bug::RunGoneEarly,
            Bug::RunPositionAhead,
            Bug::RunEntryOutlivesSegment,
            Bug::RunFilterForgetsKey,
            Bug::InlineSurvivesOverwrite,
            Bug::MovedValueLost,
            Bug::FilteredInPlace,
            Bug::DropBeatsPut,
            Bug::AskedAboveSnapshot,
            Bug::VerdictOfNeighbour,
            Bug::PackedKeysLost,
            Bug::BlockUncutAtTable,
            Bug::BackupForgetsRun,
            Bug::BackupLetsRunsGo,
            Bug::OldLookUpBelieved,
            Bug::IngestUnprotected,
            Bug::IngestUncounted,
            Bug::IngestIdReused,
            Bug::FrozenVersionsUnseen,
            Bug::VersionFilterForgetsKey,
            Bug::VersionMergeForgetsOldest,
            Bug::FoldOverlooksWaiting,
            Bug::FoldOutlivesBase,
            Bug::FloorForgotten,
            Bug::FloorPassed,
            Bug::SpillUnchecked,
            Bug::SpillMergeReversed,
            Bug::SpilledGoneEarly,
            Bug::DeleteOverSpilled,
            Bug::SpilledNotMoved,
            Bug::ModesForgotten,
            Bug::SumUnchecked,
            Bug::NamesForgotten,
            Bug::ReplayedTwice,
            Bug::FilterLeftOutHidesKeys,
            Bug::GivenUpStillCounted,
            Bug::ModesLostByTruncate,
            Bug::CheckpointAmidSpill,
        ];

        /// Whether only tables of kind `lsm` run into it.
        pub fn is_of_runs(self) -> bool {
            (Bug::MergeKeepsOlder as u8..=Bug::BackupLetsRunsGo as u8).contains(&(self as u8))
        }

        /// Bugs that several threads run into: `tests/interleavings/` and the one of epochs find them. The simulator sees
        /// the bugs that need no more than a write that waits while another thread goes on.
        pub const OF_THREADS: [Bug; 29] = [
            Bug::EpochMovesUnderReaders,
            Bug::DeleteGoneEarly,
            Bug::LateBaseHidesOperands,
            Bug::OperandHidesWhatWasMade,
            Bug::MissedOperandOverlooked,
            Bug::PublishedAskedLate,
            Bug::ChangeCountedEarly,
            Bug::ReserveNotedLate,
            Bug::WakeLost,
            Bug::ChunksOfAnotherTable,
            Bug::BatchTornByTruncate,
            Bug::NamesOverOlderChanges,
            Bug::BatchTornBySwap,
            Bug::BatchSeenInPart,
            Bug::TableChangeMissed,
            Bug::TurnAskedLate,
            Bug::StepEndsBeforeItsTurn,
            Bug::ClaimUnseen,
            Bug::OldLookUpBelieved,
            Bug::FoldOverlooksLater,
            Bug::MemtableBoundKept,
            Bug::SlotsMeasuredEarly,
            Bug::PreferencesLostWithShard,
            Bug::SpillBesideCheckpoint,
            Bug::RunsAskedEarly,
            Bug::BatchSeenBetween,
            Bug::ScanOfTableThatIsGone,
            Bug::TableGoneBeforeItsName,
            Bug::SwapNameByName,
        ];
    }
}

#[cfg(feature = "planted-bugs")]
pub(crate) use switch::is_on;
#[cfg(feature = "planted-bugs")]
pub use switch::plant;

/// Whether a bug is switched on.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is_on(_bug: Bug) -> bool {
    false
}

#[cfg(all(test, feature = "planted-bugs"))]
mod tests;
