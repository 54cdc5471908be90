//! The state of a run: the simulated machine, the process on it, the model beside it, and what the script has made go wrong.
//! Each file of operations adds its methods to [`Run`]; here are the methods by which they all reach it.

use std::path::Path;
use std::sync::Arc;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{
    CompactionFilters, Db, Error, MergeOperator, MergeOperators, MergePolicy, Options, Sequence, Table, TableModes,
    TableOptions,
};

use crate::droppings::{self, Droppings, Watch, may_go};
use crate::index_files::IndexFiles;
use crate::model::{Contents, Held, Model, Moments};
use crate::operands::Operands;
use crate::process::Life;
use crate::report::Report;
use crate::script::{Crash, Script, key_bytes, table_name};
use crate::store_time::StoreTime;

pub(crate) const ROOT: &str = "/store";

/// The directories of a store, as many as it has.
const DIRECTORIES: [&str; 3] = [ROOT, "/second", "/third"];

/// What a run found wrong.
pub type Violation = String;

/// A restore point, and what a store made from it must hold.
pub(crate) struct Point {
    pub(crate) number: u64,
    pub(crate) contents: Contents,
    pub(crate) moments: Moments,
}

/// What may go wrong by now, because the script made it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowed {
    /// Calls failed with an I/O error.
    pub(crate) errors: bool,
    /// The disk had an end.
    pub(crate) full: bool,
    /// The medium was damaged.
    pub(crate) damage: bool,
}

pub(crate) struct Run<'a> {
    pub(crate) script: &'a Script,
    pub(crate) device: SimDevice,
    pub(crate) index: Option<IndexFiles>,
    pub(crate) model: Model,
    pub(crate) life: Option<Life>,
    pub(crate) report: Report,
    pub(crate) allowed: Allowed,
    /// The crash that is armed.
    pub(crate) armed: Option<Crash>,
    /// How often a store was opened.
    pub(crate) openings: u64,
    /// Restore points that were made.
    pub(crate) points: Vec<Point>,
    /// A sequence, and the changes up to it.
    pub(crate) mark: Option<(Sequence, usize)>,
    /// The store has refused a write for good; operations tried since.
    pub(crate) failed: Option<usize>,
    /// The contents before this action, if a write that waited has come to be seen in it.
    pub(crate) before: Option<Contents>,
    /// Writes and flushes that had failed by the last recovery.
    pub(crate) failed_before: u64,
    /// Changes that no damage of the medium may take.
    pub(crate) floor: usize,
    /// Damage was found and reported: nothing more can be said.
    pub(crate) ended: bool,
    pub(crate) operations_since_crash: usize,
    /// The modes that each table may have, the last ones at the end: several where the outcome of a change is not known.
    pub(crate) modes: Vec<Vec<TableModes>>,
    /// The budget of memory that was set last; `None` leaves it to the store.
    pub(crate) memory_bytes: Option<u64>,
    /// What the store's time may be.
    pub(crate) time: StoreTime,
    /// Tables that had operands, expiry or range deletes: their keys are only estimated.
    pub(crate) estimated: Vec<bool>,
    /// What the compaction filter was asked.
    pub(crate) watch: Arc<Watch>,
    pub(crate) last_tick: u64,
    pub(crate) on_time: bool,
    /// The action being performed.
    pub(crate) at: usize,
    pub(crate) trace: u64,
}

impl<'a> Run<'a> {
    /// Before the first process.
    pub(crate) fn new(script: &'a Script) -> Run<'a> {
        let device = SimDevice::with_block_bytes(script.seed, script.setup.block_bytes);
        device.set_index_needs(script.setup.index_needs);
        let index = script.uses_lmdb().then(|| IndexFiles::new(&device));
        Run {
            script,
            device,
            index,
            model: Model::new(script.setup.tables.len(), script.setup.keys),
            life: None,
            report: Report::default(),
            allowed: Allowed::default(),
            armed: None,
            openings: 0,
            points: Vec::new(),
            mark: None,
            failed: None,
            before: None,
            failed_before: 0,
            floor: 0,
            ended: false,
            operations_since_crash: 0,
            modes: vec![vec![TableModes::default()]; script.setup.tables.len()],
            memory_bytes: None,
            time: StoreTime::new(),
            estimated: vec![false; script.setup.tables.len()],
            watch: Arc::default(),
            last_tick: 0,
            on_time: true,
            at: 0,
            trace: 0,
        }
    }

    /// Takes something into the hash of the run.
    pub(crate) fn see(&mut self, what: u64) {
        self.trace = (self.trace.rotate_left(5) ^ what).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub(crate) fn options(&self, rebuild: bool) -> Options {
        let setup = &self.script.setup;
        let apart = setup.merges_apart && self.openings % 2 == 1;
        let oldest_ratio = if apart { 0 } else { MergePolicy::default().oldest_ratio };
        Options {
            merge_policy: MergePolicy { fan_out: setup.fan_out, oldest_ratio },
            segment_bytes: self.script.setup.segment_bytes,
            checkpoint_bytes: self.script.setup.checkpoint_bytes,
            hash_mask: self.script.setup.hash_mask,
            memtable_keys: self.script.setup.memtable_keys,
            least_memtable_keys: self.script.setup.least_memtable_keys,
            memory_bytes: self.memory_bytes,
            cache_bytes: self.script.setup.cache_bytes,
            block_cache_bytes: Some(self.script.setup.cache_bytes),
            cache_writes: self.script.setup.cache_writes,
            merge_operators: MergeOperators::default().with(Operands),
            compaction_filters: CompactionFilters::default().with(Droppings(Arc::clone(&self.watch))),
            versions_in_memory: setup.versions_in_memory,
            hash_bytes: setup.hash_bytes.map(|bytes| match setup.hash_bytes_change {
                true => [bytes, u64::MAX, 0][self.openings as usize % 3],
                false => bytes,
            }),
            spill_step_tags: setup.spill_step_tags,
            filter_bytes: setup.filter_bytes.map(|bytes| [u64::MAX, bytes, 0][self.openings as usize % 3]),
            rebuild_index: rebuild,
            background: false,
            ..Options::default()
        }
    }

    pub(crate) fn open(&mut self, rebuild: bool) -> aiodb::Result<Db<SimDevice>> {
        self.openings += 1;
        // Those of an earlier process.
        self.watch.forget_snapshots();
        let directories = &DIRECTORIES[..self.script.setup.directories];
        for directory in directories {
            let created = self.device.create_dir(Path::new(directory));
            created.map_err(|e| Error::Io {
                action: "create",
                path: directory.into(),
                kind: e.kind(),
                reason: e.to_string(),
            })?;
        }
        Db::open_several_on(self.device.clone(), directories, self.options(rebuild))
    }

    pub(crate) fn db(&self) -> &Db<SimDevice> {
        &self.life.as_ref().expect("the store is open").db
    }

    pub(crate) fn life(&mut self) -> &mut Life {
        self.life.as_mut().expect("the store is open")
    }

    pub(crate) fn table(&self, table: usize) -> aiodb::Result<Table<SimDevice>> {
        self.db().table(&table_name(table))
    }

    pub(crate) fn table_options(&self, table: usize) -> TableOptions {
        let setup = &self.script.setup;
        TableOptions {
            kind: setup.tables[table],
            compression: setup.compression[table],
            merge: Some(Operands.name().into()),
            inline_bytes: setup.inline_bytes[table],
            block_compression: setup.block_compression[table],
            compaction_filter: setup.filtered[table].then(|| droppings::NAME.into()),
            modes: setup.modes[table],
        }
    }

    /// What a key holds that is put.
    pub(crate) fn held(&self, table: usize, key: usize, value: &[u8], until_ms: Option<u64>) -> Held {
        let held = Held::put(value.into(), until_ms);
        let goes = self.script.setup.filtered[table] && may_go(&key_bytes(key), value);
        if goes { held.that_may_go() } else { held }
    }
}
