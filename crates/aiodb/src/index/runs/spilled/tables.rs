//! The runs of all `hash` tables of a store, and those of one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::copy::CapturedRuns;
use super::super::file::{Removals, RunFile};
use super::super::filters::FilteredRun;
use super::super::scan::for_each_damage_of;
use super::super::set::{Files, Run, RunSet};
use super::super::writer::{Making, RunWriter};
use super::live::Live;
use super::look_up::{AskedTag, SpilledLookUp};
use super::tag::RANK_BITS;
use crate::budget::Accounts;
use crate::cache::Cache;
use crate::format::location::Location;
use crate::format::run::manifest::{ManifestRun, RunManifest};
use crate::format::segment::u64_at;
use crate::format::spilled::{SpilledLive, SpilledManifest};
use crate::io::{Access, Device};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::{Error, Result};

/// The number of the first file: runs of `lsm` tables have lower ones. No two files of a store share their blocks' places in the cache, nor
/// their names in backups.
pub(crate) const FIRST_FILE: u64 = 1 << 40;

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it holds the runs of a hash table";

/// The runs of all `hash` tables of a store.
pub(crate) struct SpilledTables<D: Device> {
    device: D,
    /// For the memory of files, and of those who write and merge them.
    pub(super) accounts: Arc<Accounts>,
    directory: PathBuf,
    store: [u8; 16],
    /// Has blocks that look-ups have read.
    cache: Arc<Cache>,
    pub(super) removals: Arc<Removals>,
    tables: RwLock<BTreeMap<u32, Arc<SpilledTable<D>>>, { Rank::HashTables as u8 }>,
    /// The number of the next file. Relaxed: all that matters is that none is given away twice.
    next_file: AtomicU64,
    /// Files that no set has any more, and the last durable checkpoint may name.
    obsolete: Mutex<Vec<Arc<RunFile<D>>>, { Rank::HashRunsObsolete as u8 }>,
    /// Bytes of the disk that are for others. Relaxed: a bound.
    leave_free: AtomicU64,
}

/// The runs of one table.
pub(crate) struct SpilledTable<D: Device> {
    pub(super) table: u32,
    layers: RwLock<Layers<D>, { Rank::HashRuns as u8 }>,
    live: Mutex<Live, { Rank::HashRunsLive as u8 }>,
}

/// The runs, and whether one is about to be added.
pub(super) struct Layers<D: Device> {
    pub(super) set: Arc<RunSet<D>>,
    /// The set that the last checkpoint of the index names.
    checkpointed: Arc<RunSet<D>>,
    /// The set with a run more, which counts in so many shards already: from those its places were taken out of memory.
    pub(super) next: Option<(Arc<RunSet<D>>, usize)>,
}

impl<D: Device> Layers<D> {
    /// The runs that count below the memory of a shard.
    fn below(&self, shard: usize) -> &Arc<RunSet<D>> {
        match &self.next {
            Some((next, shards)) if shard < *shards => next,
            _ => &self.set,
        }
    }
}

/// The runs that count below the memory of one shard, as of one moment.
pub(crate) struct Below<D: Device>(pub(super) Arc<RunSet<D>>);

impl<D: Device> Below<D> {
    /// Whether no place has come to the runs since another moment, of the same shard. What merges do changes nothing.
    pub(crate) fn is_as(&self, other: &Below<D>) -> bool {
        self.0.manifest.next_run == other.0.manifest.next_run
    }
}

impl<D: Device> SpilledTables<D> {
    /// The runs in a directory, which is made with the first of them; none is open yet.
    pub(crate) fn new(
        (device, accounts): (&D, &Arc<Accounts>),
        directory: PathBuf,
        store: [u8; 16],
        cache: Arc<Cache>,
    ) -> SpilledTables<D> {
        SpilledTables {
            device: device.clone(),
            accounts: Arc::clone(accounts),
            directory,
            store,
            cache,
            removals: Arc::default(),
            tables: RwLock::default(),
            next_file: AtomicU64::new(FIRST_FILE),
            obsolete: Mutex::default(),
            leave_free: AtomicU64::new(0),
        }
    }

    /// Whether any table has runs, or had some.
    pub(crate) fn is_any(&self) -> bool {
        !self.read().is_empty()
    }

    /// The runs of a table, if it ever had any.
    pub(crate) fn table(&self, table: u32) -> Option<Arc<SpilledTable<D>>> {
        self.read().get(&table).cloned()
    }

    /// The runs that count below the memory of a shard. The caller holds that shard's lock.
    pub(crate) fn below(&self, table: u32, shard: usize) -> Option<Below<D>> {
        self.table(table).map(|runs| runs.below(shard))
    }

    /// Begins to look up what runs have under the tag of a hash; `None` if they have nothing.
    pub(crate) fn begin_look_up(&self, table: u32, hash: u64, below: &Below<D>) -> Option<Box<SpilledLookUp<D>>> {
        let asked = AskedTag::new(self.hash_seed(), table, hash);
        asked.may_be_in(&below.0).then(|| Box::new(asked.look_up(Arc::clone(&below.0), Arc::clone(&self.cache))))
    }

    /// Whether the runs that count below the memory of a shard may have something under the tag of a hash. Each put into a table with runs
    /// asks: it shares no counter with others but those of two locks.
    pub(crate) fn may_have(&self, table: u32, shard: usize, hash: u64) -> bool {
        let tables = self.read();
        let Some(runs) = tables.get(&table) else { return false };
        AskedTag::new(self.hash_seed(), table, hash).may_be_in(runs.read().below(shard))
    }

    /// Opens the runs that the checkpoint of a table names.
    pub(crate) fn open(&self, table: u32, manifest: &SpilledManifest, read_only: bool) -> Result<()> {
        let access = if read_only { Access::READ_SEGMENT } else { Access::SEGMENT };
        let mut files = Files::new();
        for name in manifest.runs.iter().flat_map(|run| &run.files) {
            let file = RunFile::open((&self.device, &self.accounts), &self.directory, &self.store, *name, access)?;
            files.insert(name.number, file);
        }
        self.next_file.fetch_max(manifest.next_file, Ordering::Relaxed);
        let next_run = manifest.runs.first().map_or(1, |newest| newest.number + 1);
        let runs = RunManifest { runs: manifest.runs.clone(), next_run, ..RunManifest::default() };
        let opened = self.new_table(table, RunSet::new(runs, &files), Live::new(&manifest.live));
        self.write().insert(table, Arc::new(opened));
        Ok(())
    }

    /// Removes the files that no open run has, if asked about it; not while a checkpoint may name some that were not opened. None of their
    /// numbers is given away again.
    pub(crate) fn clear(&self, removes: impl FnOnce() -> Result<bool>) -> Result<()> {
        let names = match self.device.list(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(|e| Error::io("list", &self.directory, &e))?,
        };
        let open: BTreeSet<u64> = self.read().values().flat_map(|table| table.set().files().into_keys()).collect();
        let removes = removes()?;
        for name in names {
            let number = name.strip_suffix(".run").and_then(|number| number.parse::<u64>().ok());
            self.next_file.fetch_max(number.map_or(0, |number| number + 1), Ordering::Relaxed);
            if removes && number.is_none_or(|number| !open.contains(&number)) {
                let path = self.directory.join(&name);
                self.device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
            }
        }
        Ok(())
    }

    /// Forgets the runs of a table that is gone. Returns what their places took of segments.
    pub(crate) fn forget(&self, table: u32) -> Vec<SpilledLive> {
        let Some(gone) = self.write().remove(&table) else { return Vec::new() };
        let layers = gone.read();
        let sets = [Some(&layers.set), layers.next.as_ref().map(|(set, _)| set)];
        let files: BTreeMap<u64, _> = sets.into_iter().flatten().flat_map(|set| set.files()).collect();
        self.add_obsolete(files.into_values());
        drop(layers);
        gone.live.lock().expect(NO_PANIC).all()
    }

    /// The runs of a table as its last checkpoint names them, for a backup; `None` if there are none.
    pub(crate) fn capture(&self, table: u32) -> Option<CapturedRuns<D>> {
        let set = Arc::clone(&self.table(table)?.read().checkpointed);
        (!set.runs.is_empty()).then(|| CapturedRuns::new(set, self.store))
    }

    /// How many files wait for a durable checkpoint that does not name them: the next one names none of so many.
    pub(crate) fn obsolete(&self) -> usize {
        self.obsolete.lock().expect(NO_PANIC).len()
    }

    /// Has so many of them removed: the first ones that came to wait.
    pub(crate) fn release(&self, count: usize) {
        let released: Vec<_> = self.obsolete.lock().expect(NO_PANIC).drain(..count).collect();
        released.iter().for_each(|file| file.set_dropped(&self.removals));
    }

    /// The runs of all tables, for their filters.
    pub(crate) fn filtered(&self) -> Vec<FilteredRun<D>> {
        let sets: Vec<_> = self.read().values().map(|table| table.set()).collect();
        sets.iter().flat_map(|set| set.filtered(true)).collect()
    }

    /// Bytes of the files of all tables on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let tables: Vec<_> = self.read().values().cloned().collect();
        tables.iter().map(|table| table.disk_bytes()).sum()
    }

    /// Look-ups that begin from now on know which filters have left memory or come there.
    pub(crate) fn take_filters(&self) {
        let tables: Vec<_> = self.read().values().cloned().collect();
        tables.iter().for_each(|table| table.take_filters());
    }

    /// Says how many bytes of the disk spills must leave free.
    pub(crate) fn leave_free(&self, bytes: u64) {
        self.leave_free.store(bytes, Ordering::Relaxed);
    }

    /// The number of the next file.
    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    /// Makes and removes no file any more: another process may have the same ones then.
    pub(crate) fn close(&self) {
        self.removals.end();
    }

    /// The runs of a table, of which there are none if it is new.
    pub(super) fn table_or_new(&self, table: u32) -> Arc<SpilledTable<D>> {
        let none = || RunSet::new(RunManifest { next_run: 1, ..RunManifest::default() }, &Files::new());
        let fresh = || Arc::new(self.new_table(table, none(), Live::default()));
        Arc::clone(self.write().entry(table).or_insert_with(fresh))
    }

    fn new_table(&self, table: u32, set: RunSet<D>, live: Live) -> SpilledTable<D> {
        let set = Arc::new(set);
        SpilledTable {
            table,
            layers: RwLock::new(Layers { checkpointed: Arc::new(set.without_filters()), set, next: None }),
            live: Mutex::new(live),
        }
    }

    pub(super) fn add_obsolete(&self, files: impl Iterator<Item = Arc<RunFile<D>>>) {
        let files = files.inspect(|file| file.forget_filter());
        self.obsolete.lock().expect(NO_PANIC).extend(files);
    }

    /// Whether the disk has room for so many bytes beside what others need.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        let root = self.directory.parent().unwrap_or(&self.directory);
        let wanted = bytes.saturating_add(self.leave_free.load(Ordering::Relaxed));
        self.device.free_bytes(root).is_none_or(|free| free >= wanted)
    }

    /// Begins a file of the run of this number.
    pub(super) fn new_writer(&self, run: u64) -> Result<RunWriter<D>> {
        self.device.create_dir(&self.directory).map_err(|e| Error::io("create", &self.directory, &e))?;
        let (base, hash_seed) = (run << RANK_BITS, self.hash_seed());
        let making = Making { base, carried_out: 0, hash_seed, is_asked_by_puts: true };
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        RunWriter::new((&self.device, &self.accounts), (&self.directory, &self.removals), self.store, number, making)
    }

    /// Makes the names of new files durable.
    pub(super) fn sync_names(&self) -> Result<()> {
        let flush = |path: &Path| self.device.sync_dir(path).map_err(|e| Error::io("flush", path, &e));
        flush(&self.directory)?;
        self.directory.parent().map_or(Ok(()), flush)
    }

    fn hash_seed(&self) -> u64 {
        u64_at(&self.store, 0)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u32, Arc<SpilledTable<D>>>> {
        self.tables.read().expect(NO_PANIC)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u32, Arc<SpilledTable<D>>>> {
        self.tables.write().expect(NO_PANIC)
    }
}

impl<D: Device> SpilledTable<D> {
    /// The runs that count below the memory of a shard. The caller holds that shard's lock.
    pub(crate) fn below(&self, shard: usize) -> Below<D> {
        Below(Arc::clone(self.read().below(shard)))
    }

    fn take_filters(&self) {
        let sets = {
            let layers = self.read();
            [Some(Arc::clone(&layers.set)), layers.next.as_ref().map(|(set, _)| Arc::clone(set))]
        };
        for old in sets.into_iter().flatten() {
            let Some(present) = old.with_present_filters().map(Arc::new) else { continue };
            let mut layers = self.write();
            let Layers { set, next, .. } = &mut *layers;
            // What was changed meanwhile waits for the next call.
            for set in std::iter::once(set).chain(next.as_mut().map(|(set, _)| set)) {
                if Arc::ptr_eq(set, &old) {
                    *set = Arc::clone(&present);
                }
            }
        }
    }

    /// Counts a place that has come to the runs, or with sign -1 one that has left them. The caller holds the lock of its shard.
    pub(crate) fn count(&self, shard: usize, place: Location, sign: i64) {
        self.live.lock().expect(NO_PANIC).count(shard, place, sign);
    }

    /// Begins to note what a checkpoint is to say of the runs: what changes in shards that it has encoded does not count for it.
    pub(crate) fn begin_checkpoint(&self) {
        self.live.lock().expect(NO_PANIC).begin_checkpoint();
    }

    /// Notes that the checkpoint has encoded a shard. The caller holds the shard's lock.
    pub(crate) fn note_encoded(&self, shard: usize) {
        self.live.lock().expect(NO_PANIC).note_encoded(shard);
    }

    /// What the checkpoint says of the runs, all shards of which are encoded. No run has come or gone since it began.
    pub(crate) fn end_checkpoint(&self, next_file: u64) -> SpilledManifest {
        let live = self.live.lock().expect(NO_PANIC).end_checkpoint();
        let number_and_files = |run: &ManifestRun| {
            let ManifestRun { number, files, .. } = run.clone();
            ManifestRun { number, files, ..ManifestRun::default() }
        };
        let mut layers = self.write();
        let runs = layers.set.manifest.runs.iter().map(number_and_files).collect();
        layers.checkpointed = Arc::new(layers.set.without_filters());
        SpilledManifest { next_file, runs, live }
    }

    /// What the places in the runs take of segments.
    pub(crate) fn live(&self) -> Vec<SpilledLive> {
        self.live.lock().expect(NO_PANIC).all()
    }

    /// How many places the runs have that count.
    pub(crate) fn places(&self) -> u64 {
        self.live().iter().map(|live| live.records).sum::<i64>().max(0) as u64
    }

    /// How many runs there are.
    pub(crate) fn runs(&self) -> usize {
        self.set().runs.len()
    }

    /// Bytes of the files on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.set().pieces().map(|piece| piece.file.bytes()).sum()
    }

    /// Bytes that filters and fences take in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.set().pieces().map(|piece| piece.file.memory_bytes()).sum()
    }

    /// Reads all blocks, and tells of each that is damaged.
    pub(crate) fn for_each_damage(&self, tell: &mut dyn FnMut(Error)) -> Result<()> {
        self.set().without_filters().pieces().try_for_each(|piece| for_each_damage_of(piece.file, tell))
    }

    /// The newest set, with a run that is about to be added.
    pub(super) fn set(&self) -> Arc<RunSet<D>> {
        let layers = self.read();
        Arc::clone(layers.next.as_ref().map_or(&layers.set, |(next, _)| next))
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, Layers<D>> {
        self.layers.read().expect(NO_PANIC)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Layers<D>> {
        self.layers.write().expect(NO_PANIC)
    }
}

/// The set with other runs, whose files are those of a set and these. The number of the next run is above those of all that there ever were.
pub(super) fn set_of<D: Device>(old: &RunSet<D>, runs: Vec<ManifestRun>, made: &[Arc<RunFile<D>>]) -> Arc<RunSet<D>> {
    let mut files = old.files();
    files.extend(made.iter().map(|file| (file.name.number, Arc::clone(file))));
    let next_run = runs.first().map_or(0, |newest| newest.number + 1).max(old.manifest.next_run);
    Arc::new(RunSet::new(RunManifest { runs, next_run, ..RunManifest::default() }, &files))
}

/// The bytes of a run.
pub(super) fn bytes_of<D: Device>(run: &Run<D>) -> u64 {
    run.files.iter().map(|file| file.bytes()).sum()
}
