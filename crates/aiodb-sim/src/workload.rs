//! From a seed to a script.

mod scenes;
mod waiting;

use aiodb::io::Phase;
use aiodb::io::sim::{Call, Effect};
use aiodb::{Compression, Durability, IndexKind, Step};
use fastrand::Rng;
use scenes::Scene;

use crate::script::{Action, Crash, Files, INTERVAL, IndexState, Part, Require, Script, Setup, Value, Write};

/// Crashes in a run, about.
const LIVES: usize = 8;
/// Seeds from here on aim most crashes at a phase of the engine. Those below crash after a number of steps, wherever that
/// is, and keep their meaning for what they once found.
pub const FIRST_AIMED: u64 = 10_000;
/// Seeds from here on also use conditional writes, streams, parts of scans, waiting for sequences, backups and several
/// directories. Those below keep their meaning for what they once found.
pub const FIRST_WHOLE: u64 = 40_000_000;
/// Half of the seeds from here on have a scene before some crashes. Those below keep their meaning for what they once found.
pub const FIRST_STAGED: u64 = 1_000_000_000;
/// A third of the seeds from here on also keep what is written in the cache, if they have one. Those below keep their
/// meaning for what they once found.
pub const FIRST_CACHED: u64 = 2_000_000_000;

/// Seeds from here on know more scenes, in which clocks jump by years among others. Those below keep their meaning for what
/// they once found.
pub const FIRST_TIMED: u64 = 20_000_000_000;

/// From here on seeds have a second client, whose writes wait while the first one goes on. Those below keep their meaning for
/// what they once found.
pub const FIRST_WAITING: u64 = 30_000_000_000;

/// From here on seeds have an ordered index that finds no room on a full disk, and half of them fill the disk and empty the
/// store again. Those below keep their meaning for what they once found.
pub const FIRST_BOUNDED: u64 = 40_000_000_000_000;

/// Bytes that LMDB needs for a commit in such a run: some pages.
const INDEX_NEEDS: u64 = 16 << 10;

/// Of the seeds that aim, every so many empties all old segments now and then. The others keep their meaning.
const CHURNING: u64 = 4;

/// One of so many actions is followed by writes that wait while others proceed.
const OVERLAPPING: u8 = 16;

/// Readers with gets in flight.
pub const CLIENTS: usize = 3;

/// Which tables runs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// A quarter of the runs uses LMDB.
    Any,
    /// Only hash tables.
    Hash,
    /// At least one ordered table.
    Lmdb,
}

/// What besides crashes happens in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Errors,
    FullDisk,
    Medium,
    Slow,
}

/// The script of a seed.
pub fn script(seed: u64, tables: Tables) -> Script {
    let mut random = Rng::with_seed(seed);
    let lmdb = match tables {
        Tables::Any => random.u8(..4) == 0,
        Tables::Hash => false,
        Tables::Lmdb => true,
    };
    let mut kinds = vec![if lmdb { IndexKind::Lmdb } else { IndexKind::Hash }];
    for _ in 0..random.usize(0..3) {
        kinds.push(if lmdb && random.bool() { IndexKind::Lmdb } else { IndexKind::Hash });
    }
    let compression = kinds.iter().map(|_| match random.u8(..4) {
        0 => Compression::Lz4,
        1 => Compression::Zstd(1),
        _ => Compression::None,
    });
    let whole = seed >= FIRST_WHOLE;
    let cache_writes = seed >= FIRST_CACHED && seed.is_multiple_of(3);
    let mut setup = Setup {
        compression: compression.collect(),
        cache_bytes: if random.bool() { 0 } else { 256 << 10 },
        cache_writes,
        tables: kinds,
        keys: random.usize(8..40),
        segment_bytes: if random.u8(..8) == 0 { 256 << 10 } else { 64 << 10 },
        block_bytes: if random.bool() { 512 } else { 4096 },
        // Now and then keys share tags.
        hash_mask: if random.u8(..4) == 0 { !0 << 61 } else { u64::MAX },
        checkpoint_bytes: [64 << 10, 256 << 10, 1 << 20][random.usize(..3)],
        index_needs: (seed >= FIRST_BOUNDED).then_some(INDEX_NEEDS),
        directories: if whole && random.u8(..4) == 0 { random.usize(2..=3) } else { 1 },
    };
    let mut trouble = match random.u8(..16) {
        0..=1 => Trouble::Errors,
        2..=3 => Trouble::FullDisk,
        4..=5 => Trouble::Medium,
        6 => Trouble::Slow,
        _ => Trouble::None,
    };
    let aimed = seed >= FIRST_AIMED;
    let scene = scene(seed, tables);
    if let Some(scene) = scene {
        scene.furnish(&mut setup, &mut trouble);
    }
    let churning = aimed && seed.is_multiple_of(CHURNING) && scene.is_none();
    let waiting = seed >= FIRST_WAITING;
    let actions = Vec::new();
    let mut maker = Maker { random, setup, trouble, aimed, whole, waiting, churning, scene, actions, next_value: 0 };
    for _ in 0..LIVES {
        maker.life();
    }
    Script { seed, setup: maker.setup, actions: maker.actions }
}

/// The scene of a seed, if it has one that goes with the tables.
fn scene(seed: u64, tables: Tables) -> Option<Scene> {
    let scenes = match seed {
        ..FIRST_TIMED => Scene::FIRST,
        FIRST_TIMED..FIRST_WAITING => Scene::TIMED,
        FIRST_WAITING..FIRST_BOUNDED => &Scene::ALL,
        FIRST_BOUNDED.. => &[Scene::Filled],
    };
    let number = seed.checked_sub(FIRST_STAGED)? as usize % (2 * scenes.len());
    scenes.get(number).copied().filter(|scene| tables != Tables::Hash || !scene.is_of_lmdb())
}

struct Maker {
    random: Rng,
    setup: Setup,
    trouble: Trouble,
    /// Whether crashes are aimed at phases.
    aimed: bool,
    /// Whether the operations that came later are used.
    whole: bool,
    /// Whether there is a second client, whose writes wait.
    waiting: bool,
    /// Whether old segments are emptied for a while, so that deletes need no longer be kept.
    churning: bool,
    /// What is staged before some crashes.
    scene: Option<Scene>,
    actions: Vec<Action>,
    next_value: u32,
}

impl Maker {
    /// What happens between two crashes.
    fn life(&mut self) {
        for table in 0..self.setup.tables.len() {
            self.actions.push(Action::Create(table));
        }
        for _ in 0..self.random.usize(90..200) {
            let action = self.action();
            if !self.suits(&action) {
                continue;
            }
            self.actions.push(action);
            if self.waiting && self.random.u8(..OVERLAPPING) == 0 {
                self.overlap();
            }
            if self.random.u8(..40) == 0 {
                let trouble = self.trouble();
                self.actions.extend(trouble);
            }
        }
        if self.trouble == Trouble::FullDisk && self.random.bool() {
            self.actions.push(Action::Capacity(None));
        }
        let churned = self.churning && self.random.bool();
        if churned {
            self.churn();
        }
        if let Some(scene) = self.scene
            && self.random.bool()
        {
            self.play(scene);
        }
        if self.waiting && self.random.bool() {
            self.overlap();
        }
        self.crash(churned);
    }

    fn crash(&mut self, churned: bool) {
        let mut crash = Crash {
            power_cut: self.random.bool(),
            index: match self.random.u8(..6) {
                0..=2 => IndexState::Newest,
                3..=4 => IndexState::Earlier(self.random.usize(..4)),
                _ => IndexState::Missing,
            },
            again: (0..self.random.usize(..8).saturating_sub(5))
                .map(|_| (self.random.u64(1..80), self.random.bool()))
                .collect(),
            error: self.error_of_recovery(),
            verify: self.random.u8(..4) == 0,
            rebuild: self.random.u8(..12) == 0,
        };
        if churned {
            crash.rebuild |= self.random.bool();
            crash.index = IndexState::Earlier(self.random.usize(..4));
        }
        match self.random.u8(..10) {
            0 => self.actions.push(Action::CrashNow(crash)),
            1 => self.actions.push(Action::Reopen),
            way if way >= 5 && self.aimed => self.crash_inside(crash),
            2..=5 => {
                let steps = self.random.u64(1..150);
                self.actions.push(Action::CrashIn(steps, crash));
            }
            _ => {
                let steps = self.random.u64(1..40);
                self.actions.push(Action::CrashIn(steps, crash));
                self.target();
            }
        }
    }

    /// Now and then a call fails while the store is opened again.
    fn error_of_recovery(&mut self) -> Option<(Call, u64)> {
        if !self.aimed || self.trouble != Trouble::Errors || self.random.bool() {
            return None;
        }
        let call = [Call::Read, Call::Write, Call::Write, Call::Sync][self.random.usize(..4)];
        Some((call, self.random.u64(..12)))
    }

    /// What a crash that is counted in steps is likely to fall into.
    fn target(&mut self) {
        let table = self.table();
        match self.random.u8(..8) {
            0..=1 => self.actions.push(Action::Checkpoint),
            2 => self.actions.push(Action::Truncate(table)),
            3 => self.actions.extend([Action::Drop(table), Action::Create(table)]),
            4..=5 => {
                let steps =
                    [Step::Settle, Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare, Step::Reclaim];
                self.actions.extend(steps.map(Action::Step));
            }
            6 => self.actions.extend([Action::Step(Step::Upkeep), Action::Step(Step::Upkeep)]),
            _ => {
                let puts = self.large_puts();
                self.actions.extend(puts);
            }
        }
    }

    /// A crash inside a phase, and what is likely to lead there; the rare ones often.
    fn crash_inside(&mut self, crash: Crash) {
        let table = self.table();
        let (phase, before, after) = match self.random.u8(..20) {
            0 => (Phase::Append, Vec::new(), self.large_puts()),
            1 => (Phase::Publish, Vec::new(), self.large_puts()),
            2..=4 => (Phase::Flush, self.puts(Durability::None), self.puts(Durability::Sync)),
            5..=6 if self.setup.tables.contains(&IndexKind::Lmdb) => {
                (Phase::IndexCommit, self.puts(Durability::None), vec![Action::Checkpoint])
            }
            5..=7 => (Phase::Checkpoint, Vec::new(), vec![Action::Checkpoint]),
            8..=9 => (Phase::Cut, Vec::new(), self.large_puts()),
            10..=12 => (Phase::ReclaimMove, Vec::new(), reclaiming()),
            13..=15 => (Phase::SegmentReuse, Vec::new(), [reclaiming(), self.large_puts()].concat()),
            16 => (Phase::TableCreate, vec![Action::Drop(table)], vec![Action::Create(table)]),
            17..=18 => (Phase::TableDrop, Vec::new(), vec![Action::Drop(table), Action::Create(table)]),
            _ => (Phase::TableTruncate, Vec::new(), vec![Action::Truncate(table)]),
        };
        let passing = if matches!(phase, Phase::Checkpoint | Phase::IndexCommit) { 0 } else { self.random.u64(..3) };
        let skip = if after.len() > 3 { passing } else { 0 };
        // Few steps more often than many.
        let most = 1 << self.random.u32(..6);
        let steps = self.random.u64(1..=most);
        self.actions.extend(before);
        self.actions.push(Action::CrashInside(phase, skip, steps, crash));
        self.actions.extend(after);
    }

    fn puts(&mut self, durability: Durability) -> Vec<Action> {
        (0..3).map(|_| Action::Put(self.table(), self.key(), self.value(), durability)).collect()
    }

    fn large_puts(&mut self) -> Vec<Action> {
        let put = |_| {
            let (table, key) = (self.table(), self.key());
            Action::Put(table, key, self.value_of(16_000..70_000), self.durability())
        };
        (0..4).map(put).collect()
    }

    fn action(&mut self) -> Action {
        if self.whole && self.random.u8(..4) == 0 {
            return self.later_action();
        }
        let (table, key) = (self.table(), self.key());
        match self.random.u8(..100) {
            0..=20 => Action::Put(table, key, self.value(), self.durability()),
            21..=23 => {
                let (value, durability) = (self.value().distinct(), self.durability());
                Action::PutFor(table, key, value, durability, [10, 100, 1000, 100_000][self.random.usize(..4)])
            }
            // Operands pile up on few keys.
            24..=31 => Action::Merge(table, key % 3, self.operand(), self.durability()),
            32..=38 => Action::Delete(table, key, self.durability()),
            39 if self.setup.tables[table] == IndexKind::Lmdb => {
                let (durability, other) = (self.durability(), self.key());
                Action::DeleteRange(table, durability, key, other)
            }
            39 => Action::Delete(table, key, self.durability()),
            40..=47 => {
                let writes = (0..self.random.usize(2..7)).map(|_| {
                    let write = match self.random.u8(..8) {
                        0..=1 => Write::Delete,
                        2..=3 => Write::Merge(self.operand()),
                        _ => Write::Put(self.value()),
                    };
                    (self.table(), self.key(), write)
                });
                let writes = writes.collect();
                Action::Batch(writes, self.durability())
            }
            48..=55 => Action::Get(table, key),
            56 => Action::Scan(table, self.random.bool()),
            57 if self.random.bool() => Action::Snapshot,
            57 if self.random.u8(..4) == 0 => Action::Release(self.random.usize(..4)),
            57..=58 => Action::Look(self.random.usize(..4), table, key),
            59 if self.random.u8(..8) == 0 => Action::Clock(self.random.i64(-60_000..200_000)),
            59 => Action::Get(table, key % 3),
            60..=61 => Action::GetMany(table, (0..self.random.usize(1..12)).map(|_| self.key()).collect()),
            62..=69 => Action::Submit(self.random.usize(..CLIENTS), table, key),
            70..=74 => Action::Poll(self.random.usize(..CLIENTS)),
            75 => Action::Sync,
            76 => Action::Checkpoint,
            77 if self.random.u8(..4) == 0 => Action::Verify,
            77 => Action::Stats,
            78 if self.random.u8(..3) == 0 => Action::Truncate(table),
            78 if self.random.u8(..3) == 0 => Action::Drop(table),
            79 => Action::Create(table),
            80..=84 => Action::Wait(self.random.u64(1..120)),
            85..=86 => Action::Step(Step::Write),
            87 => Action::Step(Step::Settle),
            88 => Action::Step(if self.random.bool() { Step::Settle } else { Step::DeleteRanges }),
            89..=91 => Action::Step(Step::Prepare),
            92..=94 => Action::Step(Step::Upkeep),
            _ => Action::Step(Step::Reclaim),
        }
    }

    /// One of the operations that came to the store later.
    fn later_action(&mut self) -> Action {
        let (table, key) = (self.table(), self.key());
        let ordered = self.setup.tables[table] == IndexKind::Lmdb;
        match self.random.u8(..100) {
            0..=17 => {
                let (require, durability) = (self.require(), self.durability());
                let new = (self.random.u8(..4) > 0).then(|| self.value());
                Action::SetIf(table, key, require, new, durability)
            }
            18..=29 => {
                let requirements = (0..self.random.usize(1..4)).map(|_| (self.table(), self.key(), self.require()));
                let requirements = requirements.collect();
                let writes = (0..self.random.usize(1..5)).map(|_| self.any_write()).collect();
                Action::BatchIf(requirements, writes, self.durability())
            }
            30..=39 => {
                let writes = (0..self.random.usize(2..7)).map(|_| self.any_write()).collect();
                Action::Batch(writes, self.durability())
            }
            40..=45 => {
                let (value, durability) = (self.stream(), self.durability());
                Action::PutStream(table, key, value, durability)
            }
            46..=49 => Action::BeginWriting(table, key, self.stream()),
            50..=56 => Action::WriteOn(self.random.usize(..2), self.random.usize(1..20_000)),
            57..=59 => Action::FinishWriting(self.random.usize(..2), self.durability()),
            60..=63 => Action::BeginReading(table, key),
            64..=69 => Action::ReadOn(self.random.usize(..2), self.random.usize(1..20_000)),
            70..=77 => Action::GetRange(table, key, self.random.usize(..2000), self.random.usize(..20_000)),
            78..=87 if ordered => Action::ScanPart(table, self.part()),
            78..=87 => Action::Get(table, key),
            88..=91 => Action::Mark,
            92..=95 => Action::WaitDurable,
            96..=97 if !self.setup.tables.contains(&IndexKind::Lmdb) && self.random.bool() => Action::BackUp,
            98 if self.random.bool() => Action::Restore(self.random.usize(..3)),
            _ => Action::Step(Step::Write),
        }
    }

    fn any_write(&mut self) -> (usize, usize, Write) {
        let (table, key) = (self.table(), self.key());
        let write = match self.random.u8(..9) {
            0..=1 => Write::Delete,
            2..=3 => Write::Merge(self.operand()),
            4 => Write::PutFor(self.value().distinct(), [10, 100, 1000, 100_000][self.random.usize(..4)]),
            5 if self.setup.tables[table] == IndexKind::Lmdb => Write::DeleteRange(self.key()),
            _ => Write::Put(self.value()),
        };
        (table, key, write)
    }

    fn require(&mut self) -> Require {
        match self.random.u8(..6) {
            0 => Require::Absent,
            1 => Require::Present,
            2 => Require::Other(self.value()),
            _ => Require::Current,
        }
    }

    /// A value that is worth writing piece by piece.
    fn stream(&mut self) -> Value {
        let lengths = if self.random.bool() { 10_000..70_000 } else { 0..20_000 };
        self.value_of(lengths)
    }

    fn part(&mut self) -> Part {
        Part {
            bounds: (self.key(), self.key()),
            inclusive: (self.random.bool(), self.random.bool()),
            backward: self.random.bool(),
            keys_only: self.random.u8(..4) == 0,
            limit: if self.random.bool() { self.random.usize(..12) } else { usize::MAX },
        }
    }

    /// A fault of the kind that this run has.
    fn trouble(&mut self) -> Option<Action> {
        let files = [Files::Log, Files::Log, Files::Other, Files::Any][self.random.usize(..4)];
        let (skip, call) = (self.random.u64(..6), [Call::Read, Call::Write, Call::Sync][self.random.usize(..3)]);
        match self.trouble {
            Trouble::None => None,
            Trouble::Errors => (self.random.u8(..2) == 0)
                .then(|| Action::Fault(call, Effect::Fail, skip, self.random.u64(1..3), files)),
            Trouble::FullDisk => Some(Action::Capacity(match self.random.u8(..3) {
                0 => None,
                _ => Some(self.random.u64(..3)),
            })),
            // One copy on one disk: at most one damage in a life or so, or nothing could be said of what is left.
            Trouble::Medium => match self.random.u8(..12) {
                0..=1 => {
                    let offset = self.random.u64(..);
                    Some(Action::Rot(self.random.usize(..), offset, 1 << self.random.u8(..8)))
                }
                2 => Some(Action::Fault(Call::Write, Effect::Lose, skip, 1, files)),
                3 => Some(Action::Fault(Call::Write, Effect::Misdirect(self.random.u64(1..16)), skip, 1, files)),
                4 => Some(Action::Fault(Call::Sync, Effect::Lose, skip, 1, files)),
                _ => None,
            },
            Trouble::Slow => Some(Action::Fault(call, Effect::Delay(self.random.u64(1..400)), skip, 1, files)),
        }
    }

    fn table(&mut self) -> usize {
        self.random.usize(..self.setup.tables.len())
    }

    fn key(&mut self) -> usize {
        self.random.usize(..self.setup.keys)
    }

    fn durability(&mut self) -> Durability {
        match self.random.u8(..3) {
            0 => Durability::Sync,
            1 => Durability::Interval(INTERVAL),
            _ => Durability::None,
        }
    }

    fn value(&mut self) -> Value {
        let lengths = match self.random.u8(..24) {
            0 => 0..1,
            1 => 1200..1400,
            2 => 4000..6000,
            3 => 14_000..40_000,
            _ => 1..300,
        };
        self.value_of(lengths)
    }

    fn operand(&mut self) -> Value {
        let lengths = if self.random.u8(..16) == 0 { 1000..5000 } else { 1..40 };
        self.value_of(lengths)
    }

    fn value_of(&mut self, lengths: std::ops::Range<u32>) -> Value {
        self.next_value += 1;
        Value { length: self.random.u32(lengths), seed: self.next_value }
    }
}

/// What empties segments and makes them free.
fn reclaiming() -> Vec<Action> {
    let steps = [Step::Settle, Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare, Step::Reclaim];
    [&steps[..], &[Step::Upkeep, Step::Reclaim, Step::Checkpoint, Step::Upkeep]]
        .concat()
        .into_iter()
        .map(Action::Step)
        .collect()
}

/// The bytes of a key by its number. Every eighth is long, and differs from the others only at its end.
pub fn key_bytes(number: usize) -> Vec<u8> {
    let mut key = if number % 8 == 7 { vec![b'x'; 600] } else { b"key".to_vec() };
    key.extend_from_slice(number.to_string().as_bytes());
    key
}
