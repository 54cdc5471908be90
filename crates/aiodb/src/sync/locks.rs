//! The locks of a store and the order in which a thread may hold several.
//!
//! A thread that holds a lock takes only locks that come after it in [`Rank`]. So no two threads wait for each other. Debug builds,
//! and so all tests, panic at the first lock that is taken out of order; release builds check nothing. This list is the only
//! place that tells the order.

use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

#[cfg(not(feature = "shuttle"))]
use std::sync as inner;

#[cfg(feature = "shuttle")]
use shuttle::sync as inner;

macro_rules! ranks {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Every lock of a store, the outermost first.
        #[derive(Clone, Copy)]
        #[repr(u8)]
        pub(crate) enum Rank {
            $($(#[$doc])* $name,)*
        }

        /// The names of the ranks.
        #[cfg(debug_assertions)]
        const NAMES: &[&str] = &[$(stringify!($name),)*];
    };
}

ranks! {
    /// A table is being made, emptied or dropped: `Catalog::changing`.
    Changing,
    /// A writer folds the operands of waiting keys: `Urgent::folding`.
    Folding,
    /// A write makes room on a full disk: `WritePath::room_lock`.
    MakingRoom,
    /// The records of a dropped table leave the counts and indexes: `Purging::current`.
    Purge,
    /// A segment is being emptied: `Upkeep::reclaiming`.
    Reclaiming,
    /// A checkpoint is being made: `Checkpointing::one_at_a_time`.
    Checkpointing,
    /// Places of `hash` tables come to runs, and runs are merged; a checkpoint waits for a step: `Upkeep::spilling`.
    HashSpill,
    /// The immutable memtable of an ordered index is being committed: `OrderedIndex::unfinished_commit`.
    UnfinishedCommit,
    /// A segment is being made: `Segments::making`.
    Making,
    /// A backup copies the file of LMDB: `LmdbIndex::copying`.
    Copying,
    /// Range deletes are being carried out: `OrderedIndex::carried_to`.
    CarriedTo,
    /// The turn of a transaction of LMDB that writes: `LmdbIndex::transactions`.
    Transactions,
    /// The environment of LMDB; for writing while its map grows: `LmdbIndex::env`.
    Env,
    /// Counts that are committed with the entries of LMDB: `LmdbIndex::counts`.
    Counts,
    /// The turn of a step of merging runs: `Turns::queue`.
    RunSteps,
    /// The turn of a step of another merge beside it: `Turns::beside`.
    RunStepsBeside,
    /// Which runs the steps under way merge: `Runs::claims`.
    RunClaims,
    /// What filters know of merges that were begun: `Runs::passes`.
    RunPasses,
    /// A memtable is being written as a run: `Runs::flushes`.
    RunFlush,
    /// The set of runs is being changed: `Runs::editing`.
    RunEdit,
    /// The set of runs is being cloned or replaced: `Runs::set`.
    RunSet,
    /// The active and the immutable memtable: `Memtable::both`.
    Memtables,
    /// A part of the keys of the memtable.
    MemtablePart,
    /// The last checkpoint of one `hash` table: `Generation::checkpointed`.
    Checkpointed,
    /// Large values that are being written: `Staging::begun`.
    Staging,
    /// The numbers of checkpoints, and retired segments: `Checkpointing::numbers`.
    Checkpoints,
    /// Versions are brought to files: `Spill::work`.
    Spilling,
    /// Range deletes that are not carried out yet.
    Ranges,
    /// The snapshots of the store: `Snapshots::alive`.
    Alive,
    /// Superseded records that snapshots see.
    Versions,
    /// A shard of a `hash` index.
    HashShard,
    /// The runs of all `hash` tables: `SpilledTables::tables`.
    HashTables,
    /// The runs of one of them: `SpilledTable::layers`.
    HashRuns,
    /// What the places in the runs of one `hash` table take: `SpilledTable::live`.
    HashRunsLive,
    /// Files of them that are to go: `SpilledTables::obsolete`.
    HashRunsObsolete,
    /// The open batch and the end of the log: `Commit::state`.
    Commit,
    /// Which segments are free: `Segments::pool`.
    Pool,
    /// Live bytes of chunks in one segment.
    LiveChunks,
    /// Tables that wait to be purged: `Purging::waiting`.
    Gone,
    /// The names of tables: `Catalog::tables`.
    Tables,
    /// The generation of one table: `TableSlot::current`. A thread that has `Tables` for itself may hold several.
    Current,
    /// When the records of one segment expire.
    Expiring,
    /// A shard of the cache.
    CacheShard,
    /// Values of keys that merge: `Sums::shards`.
    Sums,
    /// Batches that are being published: `Groups::listed`.
    Groups,
    /// Keys that compaction filters have given up: `Dropping::queue`.
    Dropping,
    /// Tables that are to be brought into memory: `Warming::queue`.
    Warming,
    /// Tags to be settled and keys to be folded: `Settling::queue`.
    Queue,
    /// Keys that the next writer folds: `Urgent::keys`.
    Urgent,
    /// Holds of snapshots and backups: `Retention::state`.
    Retention,
    /// When an epoch began.
    Moved,
    /// Whether the clock is believed.
    Doubt,
    /// Writers that wait for a commit of the memtable.
    Throttle,
    /// How memory and disk have grown: `Growth::samples`.
    Growth,
    /// The last failure of background work.
    Trouble,
    /// Why a record was not moved: `AppendPath::unmoved`.
    Unmoved,
    /// The filter of a file of a run comes to memory, or leaves it: `RunFile::filter`.
    RunFilter,
    /// A file of a run is being removed: `Removals::are_over`.
    RunRemoval,
    /// A file of versions is being made or removed: `Gate::is_closed`.
    Scratch,
    /// The locks on the directories of the store.
    StoreLocks,
    /// Numbers that threads sleep on, and turns.
    Word,
    /// A simulated machine.
    Machine,
}

/// The ranks that a thread holds.
#[cfg(debug_assertions)]
mod held {
    use std::cell::RefCell;

    use super::NAMES;

    #[cfg(not(feature = "shuttle"))]
    thread_local! {
        static HELD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    #[cfg(feature = "shuttle")]
    shuttle::thread_local! {
        static HELD: RefCell<Vec<u8>> = RefCell::new(Vec::new());
    }

    /// Counts a lock as held until it is dropped.
    pub(crate) struct Held(u8);

    impl Held {
        pub(crate) fn note(rank: u8) -> Held {
            Held::note_unless(rank, |other| other >= rank)
        }

        /// [`Held::note`] of a lock of which the thread may hold others of its rank.
        pub(crate) fn note_one_more(rank: u8) -> Held {
            Held::note_unless(rank, |other| other > rank)
        }

        fn note_unless(rank: u8, is_later: impl Fn(u8) -> bool) -> Held {
            // A thread that ends has no list any more.
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                if let Some(later) = held.iter().find(|other| is_later(**other)) {
                    let later = *later;
                    drop(held);
                    let (rank, later) = (NAMES[usize::from(rank)], NAMES[usize::from(later)]);
                    panic!("{rank} is taken by a thread that holds {later}, which comes after it");
                }
                held.push(rank);
            });
            Held(rank)
        }

        /// [`Held::note`] of a lock that was only tried: a thread that does not wait may have it out of order.
        pub(crate) fn note_tried(rank: u8) -> Held {
            let _ = HELD.try_with(|held| held.borrow_mut().push(rank));
            Held(rank)
        }
    }

    /// Does the work of another thread while this one holds its locks.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn as_another_thread<T>(work: impl FnOnce() -> T) -> T {
        let mine = HELD.with(RefCell::take);
        let outcome = work();
        HELD.with(|held| held.replace(mine));
        outcome
    }

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = HELD.try_with(|held| {
                let mut held = held.borrow_mut();
                if let Some(position) = held.iter().rposition(|rank| *rank == self.0) {
                    held.remove(position);
                }
            });
        }
    }
}

#[cfg(not(debug_assertions))]
mod held {
    pub(crate) struct Held;

    impl Held {
        #[inline]
        pub(crate) fn note(_rank: u8) -> Held {
            Held
        }

        #[inline]
        pub(crate) fn note_one_more(_rank: u8) -> Held {
            Held
        }

        #[inline]
        pub(crate) fn note_tried(_rank: u8) -> Held {
            Held
        }
    }
}

pub(crate) use held::Held;
#[cfg(all(test, not(feature = "shuttle")))]
pub(crate) use held::as_another_thread;

/// A lock of one thread at a time, with its place in the order.
#[derive(Default)]
pub(crate) struct Mutex<T, const RANK: u8>(inner::Mutex<T>);

/// A [`Mutex`], held.
pub(crate) struct MutexGuard<'a, T> {
    inner: inner::MutexGuard<'a, T>,
    held: Held,
}

impl<T, const RANK: u8> Mutex<T, RANK> {
    pub(crate) const fn new(value: T) -> Mutex<T, RANK> {
        Mutex(inner::Mutex::new(value))
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let held = Held::note(RANK);
        map(self.0.lock(), |inner| MutexGuard { inner, held })
    }

    /// The lock, if it is free. It never waits, so that it may be tried out of order.
    pub(crate) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(inner) => Ok(MutexGuard { inner, held: Held::note_tried(RANK) }),
            Err(TryLockError::Poisoned(error)) => {
                let guard = MutexGuard { inner: error.into_inner(), held: Held::note_tried(RANK) };
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    pub(crate) fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }

    pub(crate) fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

fn map<A, B>(locked: LockResult<A>, wrap: impl FnOnce(A) -> B) -> LockResult<B> {
    match locked {
        Ok(guard) => Ok(wrap(guard)),
        Err(error) => Err(PoisonError::new(wrap(error.into_inner()))),
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// An event that threads which hold a [`Mutex`] wait for.
#[derive(Default)]
pub(crate) struct Condvar(inner::Condvar);

impl Condvar {
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let MutexGuard { inner, held } = guard;
        map(self.0.wait(inner), |inner| MutexGuard { inner, held })
    }

    /// For [`super::Word`], which sleeps on a lock of this kind here.
    #[cfg(feature = "shuttle")]
    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A lock of one writer or many readers, with its place in the order.
#[derive(Default)]
pub(crate) struct RwLock<T, const RANK: u8>(inner::RwLock<T>);

/// A [`RwLock`], held by a reader.
pub(crate) struct RwLockReadGuard<'a, T> {
    inner: inner::RwLockReadGuard<'a, T>,
    _held: Held,
}

/// A [`RwLock`], held by the writer.
pub(crate) struct RwLockWriteGuard<'a, T> {
    inner: inner::RwLockWriteGuard<'a, T>,
    _held: Held,
}

impl<T, const RANK: u8> RwLock<T, RANK> {
    pub(crate) const fn new(value: T) -> RwLock<T, RANK> {
        RwLock(inner::RwLock::new(value))
    }

    #[inline]
    pub(crate) fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let held = Held::note(RANK);
        map(self.0.read(), |inner| RwLockReadGuard { inner, _held: held })
    }

    #[inline]
    pub(crate) fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = Held::note(RANK);
        map(self.0.write(), |inner| RwLockWriteGuard { inner, _held: held })
    }

    /// [`RwLock::write`] for a thread that may hold other locks of this rank. An earlier lock, which it holds too, must see to it that there is
    /// one such thread.
    pub(crate) fn write_one_more(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let held = Held::note_one_more(RANK);
        map(self.0.write(), |inner| RwLockWriteGuard { inner, _held: held })
    }
}

impl<T> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}
