//! The scenes by name: which seeds know them, and what each needs of a run.

use aiodb::{Compression, IndexKind, TableModes};

use super::trouble::Trouble;
use crate::script::Setup;

/// Small values beside large ones: they lie in several segments then.
pub(super) const SCATTERED: usize = 24;

/// A rare state of affairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scene {
    /// The log has forgotten deletes, and an ordered index from before them comes back.
    Forgotten,
    /// Records are moved, and overwritten before the index on disk knows of the move, under a snapshot.
    Overtaken,
    /// Segments are emptied and used again whose table was truncated under a snapshot that has ended since.
    Truncated,
    /// The same keys lie at the same places in one life of a segment after the other, and are read through the cache.
    Recycled,
    /// A checkpoint is made while tags of overwritten records are not settled; afterwards keys are counted.
    Counted,
    /// Values change on the disk and are read.
    Damaged,
    /// As `Recycled`, with gets in flight.
    InFlight,
    /// The system's clock jumps by years, and is put right.
    Jumped,
    /// Conditions of writes are about records that expire just then.
    Expired,
    /// A power cut comes soon after an interval.
    Lapsed,
    /// Tables are dropped and made again.
    Reborn,
    /// A full disk ends snapshots.
    Ended,
    /// The log ends in a segment of garbage.
    EmptyEnd,
    /// Writes wait while later ones of the same keys are taken up by the ordered index.
    Overlapped,
    /// Runs are merged, one commit of the index after the other, under snapshots.
    Merged,
    /// Ranges without keys are deleted, under snapshots.
    Vacuous,
    /// Processes die while the manifest of runs changes, and the first one of the two is damaged.
    HalfEdited,
    /// The disk is full, for the ordered index too, and the store is emptied.
    Filled,
    /// Keys of a `hash` table come to runs in many steps, with writes, checkpoints and crashes between them and in them.
    Spilling,
    /// The budget of memory falls below what there is, and rises again, with crashes in the change.
    Squeezed,
    /// The modes of a table change while it is brought to memory, emptied or dropped, with crashes in the change.
    Switched,
    /// The store is opened with less memory than it had, and with more.
    Lessened,
}

impl Scene {
    /// The scenes that all seeds with scenes know.
    pub(super) const FIRST: &[Scene] = Scene::ALL.split_at(6).0;

    /// The scenes that seeds from [`FIRST_TIMED`](super::FIRST_TIMED) on know.
    pub(super) const TIMED: &[Scene] = Scene::ALL.split_at(13).0;

    /// The scenes that seeds from [`FIRST_WAITING`](super::FIRST_WAITING) on know.
    pub(super) const WAITING: &[Scene] = Scene::ALL.split_at(14).0;

    /// All of them, in the order in which they came, which seeds from [`FIRST_SORTED`](super::FIRST_SORTED) on know.
    pub(super) const ALL: [Scene; 17] = [
        Scene::Forgotten,
        Scene::Overtaken,
        Scene::Truncated,
        Scene::Recycled,
        Scene::Counted,
        Scene::Damaged,
        Scene::InFlight,
        Scene::Jumped,
        Scene::Expired,
        Scene::Lapsed,
        Scene::Reborn,
        Scene::Ended,
        Scene::EmptyEnd,
        Scene::Overlapped,
        Scene::Merged,
        Scene::Vacuous,
        Scene::HalfEdited,
    ];

    /// The scenes of seeds from [`FIRST_PRESSED`](super::FIRST_PRESSED) on.
    pub(super) const PRESSED: &[Scene] = &[Scene::Spilling, Scene::Squeezed, Scene::Switched, Scene::Lessened];

    /// Whether it is about the ordered index.
    pub(super) fn is_of_ordered(self) -> bool {
        use Scene::{Filled, Forgotten, HalfEdited, Merged, Overlapped, Overtaken, Truncated, Vacuous};
        matches!(self, Forgotten | Overtaken | Truncated | Overlapped | Filled | Merged | Vacuous | HalfEdited)
    }

    /// The setup and the trouble that it needs.
    pub(super) fn furnish(self, setup: &mut Setup, trouble: &mut Trouble) {
        (setup.segment_bytes, setup.directories) = (64 << 10, 1);
        match self {
            Scene::InFlight => setup.cache_bytes = 256 << 10,
            Scene::Lapsed => *trouble = Trouble::None,
            Scene::Ended => {
                *trouble = Trouble::FullDisk;
                setup.keys = setup.keys.max(SCATTERED);
                setup.tables.truncate(2);
                if setup.tables.len() < 2 {
                    setup.tables.push(IndexKind::Hash);
                }
            }
            Scene::Jumped | Scene::Expired | Scene::Reborn | Scene::EmptyEnd => {}
            Scene::Merged | Scene::Vacuous => setup.tables[0] = IndexKind::Lmdb,
            Scene::HalfEdited => (*trouble, setup.tables[0]) = (Trouble::None, IndexKind::Lmdb),
            Scene::Overlapped => {
                setup.tables.resize(2, IndexKind::Lmdb);
                setup.tables.fill(IndexKind::Lmdb);
            }
            Scene::Filled => {
                setup.tables.resize(2, IndexKind::Lmdb);
                setup.tables[0] = IndexKind::Lmdb;
                setup.keys = setup.keys.max(SCATTERED);
                *trouble = Trouble::FullDisk;
            }
            Scene::Forgotten | Scene::Overtaken | Scene::Truncated => {
                setup.tables[0] = IndexKind::Lmdb;
                setup.tables.truncate(2);
                setup.keys = setup.keys.max(SCATTERED);
                if setup.tables.len() < 2 {
                    setup.tables.push(IndexKind::Hash);
                }
            }
            Scene::Recycled => setup.cache_bytes = 256 << 10,
            Scene::Spilling => {
                setup.keys = setup.keys.max(SCATTERED);
                if !setup.tables.contains(&IndexKind::Hash) {
                    setup.tables.push(IndexKind::Hash);
                }
            }
            Scene::Squeezed | Scene::Switched | Scene::Lessened => {
                setup.cache_bytes = 256 << 10;
                setup.keys = setup.keys.max(SCATTERED);
            }
            Scene::Counted => *trouble = Trouble::None,
            Scene::Damaged => (*trouble, setup.cache_bytes) = (Trouble::None, 0),
        }
        let plain = matches!(self, Scene::Recycled | Scene::Damaged | Scene::InFlight);
        setup.compression.resize(setup.tables.len(), Compression::None);
        setup.inline_bytes.resize(setup.tables.len(), 0);
        setup.block_compression.resize(setup.tables.len(), Compression::None);
        setup.filtered.resize(setup.tables.len(), false);
        setup.modes.resize(setup.tables.len(), TableModes::default());
        setup.compression.iter_mut().filter(|_| plain).for_each(|compression| *compression = Compression::None);
    }
}
