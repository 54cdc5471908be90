//! From a seed to a script. Everything that is left to chance is decided here, from the seed alone: no run, and nothing of
//! the engine, is asked. A seed keeps its script for good, so what came later has seeds of its own: the ranges below.
//!
//! `maker` makes the parts of actions, `operations` and `crashes` the actions; `scenes` brings together what hardly ever
//! comes together by chance, `waiting` has the second client.

mod budgets;
mod crashes;
mod filters;
mod ingests;
mod maker;
mod modes;
mod operations;
mod outgrown;
mod pressed;
mod ranges;
mod runs;
mod scene;
mod scenes;
mod swaps;
mod trouble;
mod versions;
mod waiting;

use aiodb::{Compression, IndexKind, MergePolicy, Options, TableModes};
use fastrand::Rng;
use maker::Maker;
pub use ranges::{
    FIRST_AHEAD, FIRST_AIMED, FIRST_BESIDE, FIRST_BOUNDED, FIRST_BUDGETED, FIRST_CACHED, FIRST_COMPRESSED,
    FIRST_FILTERED, FIRST_INGESTED, FIRST_INLINE, FIRST_MODED, FIRST_OUTGROWN, FIRST_PRESSED, FIRST_SORTED,
    FIRST_SPILLED, FIRST_SQUEEZED, FIRST_STAGED, FIRST_SWAPPED, FIRST_TIMED, FIRST_WAITING, FIRST_WHOLE,
};
use scene::Scene;
use trouble::Trouble;

use crate::script::{Action, Script, Setup};

/// Crashes in a run, about.
const LIVES: usize = 8;

/// Bytes that LMDB needs for a commit in such a run: some pages.
const INDEX_NEEDS: u64 = 16 << 10;

/// Of the seeds that aim, every so many empties all old segments now and then. The others keep their meaning.
const CHURNING: u64 = 4;

/// Times as many keys as others have that fill several blocks of runs.
const MANY_KEYS: usize = 4;

/// One of so many actions is followed by writes that wait while others proceed.
const OVERLAPPING: u8 = 16;

/// Which tables runs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// A quarter of the runs uses LMDB; seeds from [`FIRST_SORTED`] on: half of them ordered tables of either kind.
    Any,
    /// Only hash tables.
    Hash,
    /// At least one ordered table.
    Lmdb,
    /// As `Lmdb`, with `lsm` in its place.
    Lsm,
}

/// The script of a seed.
pub fn script(seed: u64, tables: Tables) -> Script {
    let mut random = Rng::with_seed(seed);
    let mut setup = setup(seed, tables, &mut random);
    let mut trouble = match random.u8(..16) {
        0..=1 => Trouble::Errors,
        2..=3 => Trouble::FullDisk,
        4..=5 => Trouble::Medium,
        6 => Trouble::Slow,
        _ => Trouble::None,
    };
    let (aimed, whole) = (seed >= FIRST_AIMED, seed >= FIRST_WHOLE);
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
    let script = Script { seed, setup: maker.setup, actions: maker.actions };
    let script = match tables {
        Tables::Any if seed >= FIRST_SORTED => runs::with_runs(script, true),
        Tables::Lsm => runs::with_runs(script, false),
        Tables::Any | Tables::Hash | Tables::Lmdb => script,
    };
    let script = match seed {
        // Half of them with few versions in memory, too.
        FIRST_OUTGROWN..FIRST_BUDGETED if !seed.is_multiple_of(2) => script,
        FIRST_SPILLED..FIRST_BOUNDED => versions::with_versions(script),
        _ => script,
    };
    let script = match seed {
        FIRST_OUTGROWN..FIRST_BUDGETED => outgrown::outgrown(script),
        FIRST_BUDGETED..FIRST_SQUEEZED => budgets::with_budgets(script),
        FIRST_SQUEEZED..FIRST_BOUNDED => outgrown::outgrown(budgets::with_budgets(script)),
        _ => script,
    };
    let script = if (FIRST_MODED..FIRST_BOUNDED).contains(&seed) { modes::with_modes(script) } else { script };
    let script = if (FIRST_PRESSED..FIRST_BOUNDED).contains(&seed) { pressed::pressed(script) } else { script };
    if (FIRST_SWAPPED..FIRST_BOUNDED).contains(&seed) { swaps::with_swaps(script) } else { script }
}

/// How the store of a seed is made.
fn setup(seed: u64, tables: Tables, random: &mut Rng) -> Setup {
    let lmdb = match tables {
        Tables::Any => random.u8(..4) < if seed >= FIRST_SORTED { 2 } else { 1 },
        Tables::Hash => false,
        Tables::Lmdb | Tables::Lsm => true,
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
    let has_many_keys = (FIRST_COMPRESSED..FIRST_BOUNDED).contains(&seed) && seed.is_multiple_of(2);
    let cache_writes = seed >= FIRST_CACHED && seed.is_multiple_of(3);
    Setup {
        compression: compression.collect(),
        inline_bytes: vec![0; kinds.len()],
        block_compression: vec![Compression::None; kinds.len()],
        filtered: vec![false; kinds.len()],
        modes: vec![TableModes::default(); kinds.len()],
        cache_bytes: if random.bool() { 0 } else { 256 << 10 },
        cache_writes,
        tables: kinds,
        keys: random.usize(8..40) * if has_many_keys { MANY_KEYS } else { 1 },
        segment_bytes: if random.u8(..8) == 0 { 256 << 10 } else { 64 << 10 },
        block_bytes: if random.bool() { 512 } else { 4096 },
        // Now and then keys share tags.
        hash_mask: if random.u8(..4) == 0 { !0 << 61 } else { u64::MAX },
        checkpoint_bytes: [64 << 10, 256 << 10, 1 << 20][random.usize(..3)],
        memtable_keys: usize::MAX,
        least_memtable_keys: Options::default().least_memtable_keys,
        fan_out: MergePolicy::default().fan_out,
        merges_apart: false,
        works_beside_backups: false,
        versions_in_memory: Options::default().versions_in_memory,
        hash_bytes: None,
        hash_bytes_change: false,
        spill_step_tags: Options::default().spill_step_tags,
        filter_bytes: None,
        index_needs: (seed >= FIRST_BOUNDED).then_some(INDEX_NEEDS),
        directories: if whole && random.u8(..4) == 0 { random.usize(2..=3) } else { 1 },
    }
}

/// The scene of a seed, if it has one that goes with the tables.
fn scene(seed: u64, tables: Tables) -> Option<Scene> {
    let scenes = match seed {
        ..FIRST_TIMED => Scene::FIRST,
        FIRST_TIMED..FIRST_WAITING => Scene::TIMED,
        FIRST_WAITING..FIRST_SORTED => Scene::WAITING,
        FIRST_SORTED..FIRST_PRESSED => &Scene::ALL,
        FIRST_PRESSED..FIRST_BOUNDED => Scene::PRESSED,
        FIRST_BOUNDED.. => &[Scene::Filled],
    };
    let number = seed.checked_sub(FIRST_STAGED)? as usize % (2 * scenes.len());
    scenes.get(number).copied().filter(|scene| tables != Tables::Hash || !scene.is_of_ordered())
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
}
