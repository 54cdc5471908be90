//! The named tables.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use crate::budget::Accounts;
use crate::format::place::Counting;
use crate::format::segment::Features;
use crate::format::settings::{FIRST_TABLE_ID, Settings};
use crate::index::hash::HashIndex;
use crate::index::snapshots::View;
use crate::metrics::counter::Counter;
use crate::planted::{self, Bug};
use crate::store::epochs::Epochs;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::{Compression, Error, IndexKind, Result, StorageMode, TableModes};

/// The incarnation of a table between two truncates: records name it by its id, which is never used again.
pub(crate) struct Generation {
    pub(crate) id: u32,
    pub(crate) settings: Settings,
    pub(crate) index: TableIndex,
    /// Set when no table has this generation any more: no record is published in it from then on. SeqCst: a purge sets it and then
    /// looks for publishers, a publisher counts itself (`publishers`) and then reads it, and one of the two must see the
    /// other.
    gone: AtomicBool,
    /// Whether the cache takes its values. Relaxed: what is cached a little longer is still right.
    cached: AtomicBool,
    /// What of it memory keeps by preference, in the format's bytes. Relaxed, as `cached`.
    modes: AtomicU16,
    /// Look-ups of its values in the cache that were answered, and that were not.
    pub(crate) value_hits: Counter,
    pub(crate) value_misses: Counter,
    /// The checkpoint that holds a hash index (0 = none), and the index's changes that it has seen.
    pub(crate) checkpointed: Mutex<(u64, u64), { Rank::Checkpointed as u8 }>,
    /// Bytes of that checkpoint's file. Relaxed: an estimate that publishes nothing. Relaxed: an estimate that publishes nothing.
    pub(crate) checkpoint_bytes: AtomicU64,
}

/// The index of one generation.
pub(crate) enum TableIndex {
    /// In the store's one index of this kind, under the generation's id.
    Ordered,
    Hash(HashIndex),
}

impl Generation {
    /// An empty one; the memory of its index counts in these accounts.
    pub(crate) fn new(id: u32, settings: Settings, segment_bytes: u64, accounts: &Arc<Accounts>) -> Generation {
        let index = match settings.kind {
            IndexKind::Lmdb | IndexKind::Lsm => TableIndex::Ordered,
            IndexKind::Hash => TableIndex::Hash(HashIndex::new(segment_bytes).counted_in(accounts)),
        };
        Generation {
            id,
            settings,
            index,
            gone: AtomicBool::new(false),
            cached: AtomicBool::new(true),
            modes: AtomicU16::new(0),
            value_hits: Counter::default(),
            value_misses: Counter::default(),
            checkpointed: Mutex::default(),
            checkpoint_bytes: AtomicU64::new(0),
        }
    }

    pub(crate) fn kind(&self) -> IndexKind {
        self.settings.kind
    }

    /// Memory of the index.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.index {
            TableIndex::Ordered => 0,
            TableIndex::Hash(index) => index.memory_bytes(),
        }
    }

    /// Whether no table has this generation any more. Publishers ask while they are counted: the thread that has set it waits for the
    /// publishers that have not seen it.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }

    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Whether values of it are put into the cache.
    pub(crate) fn is_cached(&self) -> bool {
        self.cached.load(Ordering::Relaxed) && self.modes().values != StorageMode::Disk
    }

    /// What of it memory keeps by preference.
    pub(crate) fn modes(&self) -> TableModes {
        let bytes = self.modes.load(Ordering::Relaxed).to_le_bytes();
        TableModes::from_bytes(bytes).expect("only modes are stored here")
    }

    pub(crate) fn set_modes(&self, modes: TableModes) {
        self.modes.store(u16::from_le_bytes(modes.to_bytes()), Ordering::Relaxed);
    }

    /// Whether memory keeps its values by preference.
    pub(crate) fn prefers_values(&self) -> bool {
        self.modes().values == StorageMode::Memory && self.cached.load(Ordering::Relaxed)
    }

    /// Whether it keeps blocks of its runs by preference: without the keys that lead to them values would be read from the disk all the same.
    pub(crate) fn prefers_blocks(&self) -> bool {
        let modes = self.modes();
        self.kind() == IndexKind::Lsm && (modes.keys == StorageMode::Memory || modes.values == StorageMode::Memory)
    }

    pub(crate) fn set_cached(&self, cached: bool) {
        self.cached.store(cached, Ordering::Relaxed);
    }

    /// What gets of it see.
    pub(crate) fn view(&self) -> View {
        View { cached: self.is_cached(), ..View::LATEST }
    }
}

/// A name of a table, shared by all handles on it.
pub(crate) struct TableSlot {
    pub(crate) name: String,
    /// The store that the table belongs to.
    pub(crate) store: [u8; 16],
    current: RwLock<Current, { Rank::Current as u8 }>,
}

/// What has a name.
enum Current {
    Generation(Arc<Generation>),
    /// Nothing any more: the table was dropped, or has another name. It had these settings.
    Gone(Settings),
}

impl TableSlot {
    /// The current generation, or an error when no table has the name any more.
    pub(crate) fn generation(&self) -> Result<Arc<Generation>> {
        match &*self.read() {
            Current::Generation(generation) => Ok(Arc::clone(generation)),
            Current::Gone(_) => Err(Error::NoSuchTable { name: self.name.clone() }),
        }
    }

    /// Whether the name is that of a generation.
    pub(crate) fn has(&self, generation: &Generation) -> bool {
        matches!(&*self.read(), Current::Generation(current) if current.id == generation.id)
    }

    /// Fails if the name is not that of a generation, which was found by it: the table is gone, or another one has the name.
    pub(crate) fn check_has(&self, generation: &Generation) -> Result<()> {
        if self.has(generation) {
            return Ok(());
        }
        self.generation()?;
        Err(Error::TableEmptied { name: self.name.clone() })
    }

    /// Calls a closure, which must not ask this slot, with the settings of the table, or those that it had.
    pub(crate) fn with_settings<T>(&self, ask: impl FnOnce(&Settings) -> T) -> T {
        match &*self.read() {
            Current::Generation(generation) => ask(&generation.settings),
            Current::Gone(settings) => ask(settings),
        }
    }

    /// The kind of its index, or that which it had.
    pub(crate) fn kind(&self) -> IndexKind {
        self.with_settings(|settings| settings.kind)
    }

    /// Keeps all handles from asking what has the name. The caller has the catalog for itself, and may hold other names.
    fn hold(&self) -> RwLockWriteGuard<'_, Current> {
        self.current.write_one_more().expect("no code panics while it holds a table")
    }

    fn read(&self) -> RwLockReadGuard<'_, Current> {
        self.current.read().expect("no code panics while it holds a table")
    }
}

#[derive(Default)]
struct Tables {
    by_name: BTreeMap<String, Arc<TableSlot>>,
    by_id: BTreeMap<u32, Arc<Generation>>,
    next_id: u32,
    /// The names that generations are about to get: a checkpoint has these already.
    naming: BTreeMap<u32, String>,
    /// The names of tables that are being made with their contents, with the ids of these and how their blocks are compressed.
    reserved: BTreeMap<String, (u32, Compression)>,
    /// How blocks of generations are compressed that are to be purged.
    compressed_gone: BTreeMap<u32, Compression>,
}

impl Tables {
    /// Takes a generation out that is to be purged.
    fn remove(&mut self, id: u32) -> Option<Arc<Generation>> {
        let old = self.by_id.remove(&id)?;
        self.keep_compression(&old);
        // A batch that finds it so and begins again may find the old one, but who has found the next one finds no batch that did not.
        old.set_gone();
        Some(old)
    }

    fn keep_compression(&mut self, generation: &Generation) {
        let compression = generation.settings.block_compression;
        if compression != Compression::None {
            self.compressed_gone.insert(generation.id, compression);
        }
    }
}

/// All tables of a store.
pub(crate) struct Catalog {
    store: [u8; 16],
    segment_bytes: u64,
    /// For the memory of indexes.
    accounts: Arc<Accounts>,
    tables: RwLock<Tables, { Rank::Tables as u8 }>,
    /// Held by the thread that creates, truncates, renames or drops a table, from the decision to the publication.
    pub(crate) changing: Mutex<(), { Rank::Changing as u8 }>,
    /// Changes between the append of their record and their application.
    pub(crate) changes: Epochs,
    /// See [`Catalog::namings`]. SeqCst: who compares it has read tables in between, which change between its two changes.
    namings: AtomicU64,
    /// What there may be as far as its files said when the store was opened.
    of_files: Features,
    /// See [`crate::format::manifest::Manifest::features`]. Once one is set it stays so, unless the manifest that
    /// tells of it could not be made. SeqCst, which is more than it needs: it is set
    /// under `changing`, before the checkpoint that tells of it.
    pub(crate) has_values: AtomicBool,
    pub(crate) has_filters: AtomicBool,
    pub(crate) has_compressed_blocks: AtomicBool,
    /// Whether live bytes are counted [`Counting::AsTheyLie`]: set before the first ordered table of a store is made.
    pub(crate) counts_as_they_lie: AtomicBool,
}

impl Catalog {
    /// A catalog without tables; `features` is what the manifest says, and the memory of indexes counts in these accounts.
    pub(crate) fn new(store: [u8; 16], segment_bytes: u64, features: Features, accounts: &Arc<Accounts>) -> Catalog {
        let tables = Tables { next_id: FIRST_TABLE_ID, ..Tables::default() };
        Catalog {
            store,
            segment_bytes,
            accounts: Arc::clone(accounts),
            tables: RwLock::new(tables),
            changing: Mutex::default(),
            changes: Epochs::default(),
            namings: AtomicU64::new(0),
            of_files: features,
            has_values: AtomicBool::new(false),
            has_filters: AtomicBool::new(false),
            has_compressed_blocks: AtomicBool::new(false),
            counts_as_they_lie: AtomicBool::new(false),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Result<Arc<TableSlot>> {
        self.read().by_name.get(name).cloned().ok_or_else(|| Error::NoSuchTable { name: name.to_string() })
    }

    /// The generation of records with this id, unless it was dropped or truncated.
    pub(crate) fn generation(&self, id: u32) -> Option<Arc<Generation>> {
        self.read().by_id.get(&id).cloned()
    }

    /// The table that has a generation, unless that is gone.
    pub(crate) fn slot_of(&self, id: u32) -> Option<Arc<TableSlot>> {
        self.read().by_name.values().find(|slot| Self::id(slot) == Some(id)).cloned()
    }

    /// Whether there were tables with compaction filters since the store was opened.
    pub(crate) fn has_filters(&self) -> bool {
        self.has_filters.load(Ordering::SeqCst)
    }

    /// How blocks of runs with the keys of a generation are compressed, before its table has it and until it is purged too.
    pub(crate) fn block_compression(&self, id: u32) -> Compression {
        let tables = self.read();
        let of_table = tables.by_id.get(&id).map(|generation| generation.settings.block_compression);
        let reserved = || tables.reserved.values().find(|(reserved, _)| *reserved == id).map(|(_, of_table)| *of_table);
        let found = of_table.or_else(|| tables.compressed_gone.get(&id).copied()).or_else(reserved);
        found.unwrap_or(Compression::None)
    }

    /// Up to how many bytes values of a generation lie in runs; 0 once no table has it.
    pub(crate) fn inline_bytes(&self, id: u32) -> usize {
        self.read().by_id.get(&id).map_or(0, |generation| generation.settings.inline_bytes)
    }

    /// Gives a generation up that no table has got: it is to be purged.
    pub(crate) fn give_up(&self, generation: Arc<Generation>) -> Arc<Generation> {
        self.write().keep_compression(&generation);
        generation
    }

    /// Forgets what is known of a generation that is purged.
    pub(crate) fn forget(&self, id: u32) {
        self.write().compressed_gone.remove(&id);
    }

    /// What tables have, or may soon, that earlier programs know nothing of.
    pub(crate) fn features(&self) -> Features {
        Features {
            values: self.of_files.values || self.has_values.load(Ordering::SeqCst),
            filters: self.of_files.filters || self.has_filters(),
            compressed_blocks: self.of_files.compressed_blocks || self.has_compressed_blocks.load(Ordering::SeqCst),
            counts_as_they_lie: self.counting() == Counting::AsTheyLie,
        }
    }

    /// How the live bytes of ordered tables are counted.
    pub(crate) fn counting(&self) -> Counting {
        let as_they_lie = self.of_files.counts_as_they_lie || self.counts_as_they_lie.load(Ordering::SeqCst);
        if as_they_lie { Counting::AsTheyLie } else { Counting::ByLength }
    }

    /// Adds what a table has to that.
    fn add_features(&self, features: Features) {
        self.has_values.fetch_or(features.values, Ordering::SeqCst);
        self.has_filters.fetch_or(features.filters, Ordering::SeqCst);
        self.has_compressed_blocks.fetch_or(features.compressed_blocks, Ordering::SeqCst);
    }

    pub(crate) fn slots(&self) -> Vec<Arc<TableSlot>> {
        self.read().by_name.values().cloned().collect()
    }

    pub(crate) fn generations(&self) -> Vec<Arc<Generation>> {
        self.read().by_id.values().cloned().collect()
    }

    pub(crate) fn next_id(&self) -> u32 {
        self.read().next_id
    }

    /// Makes sure that no id below this one is given again.
    pub(crate) fn raise_next_id(&self, next_id: u32) {
        if self.next_id() >= next_id {
            return;
        }
        let mut tables = self.write();
        tables.next_id = tables.next_id.max(next_id);
    }

    /// Takes a generation and a name for a table that is to be there later, until [`Catalog::release`]. The caller holds `changing`, and has
    /// seen that nobody has the name.
    pub(crate) fn reserve(&self, name: &str, settings: Settings) -> Generation {
        let mut tables = self.write();
        let generation = Generation::new(tables.next_id, settings, self.segment_bytes, &self.accounts);
        tables.reserved.insert(name.to_string(), (generation.id, generation.settings.block_compression));
        tables.next_id += 1;
        generation
    }

    /// Gives a name up that was reserved.
    pub(crate) fn release(&self, name: &str) {
        self.write().reserved.remove(name);
    }

    /// Whether a table of this name is to be there later.
    pub(crate) fn is_reserved(&self, name: &str) -> bool {
        self.read().reserved.contains_key(name)
    }

    /// Adds a table, or gives an existing one of the same settings a new and empty generation. Ids rise, so a replayed change with
    /// a lower id than the table's has no effect. Returns the generation that was replaced.
    pub(crate) fn apply_create(&self, name: &str, settings: &Settings, id: u32) -> Option<Arc<Generation>> {
        let mut tables = self.write();
        if tables.next_id > id
            && tables.by_name.get(name).is_some_and(|slot| Self::id(slot).is_some_and(|old| old >= id))
        {
            return None;
        }
        tables.next_id = tables.next_id.max(id + 1);
        self.add_features(settings.features());
        let generation = Arc::new(Generation::new(id, settings.clone(), self.segment_bytes, &self.accounts));
        let slot = tables.by_name.get(name).cloned();
        let old = slot.as_deref().and_then(Self::id);
        // No thread finds the old one once it is gone: what it wrote would be in no table, and it would read what was there.
        let held = slot.as_deref().filter(|_| !planted::is_on(Bug::TableGoneBeforeItsName)).map(TableSlot::hold);
        let old = old.and_then(|old| tables.remove(old));
        if let Some(old) = old.as_ref().filter(|_| !planted::is_on(Bug::ModesLostByTruncate)) {
            generation.set_modes(old.modes());
        }
        tables.by_id.insert(id, Arc::clone(&generation));
        match &slot {
            Some(slot) => *held.unwrap_or_else(|| slot.hold()) = Current::Generation(generation),
            None => self.add_slot(&mut tables, name, generation),
        }
        old
    }

    /// Gives a generation a name that no table has.
    fn add_slot(&self, tables: &mut Tables, name: &str, generation: Arc<Generation>) {
        let current = RwLock::new(Current::Generation(generation));
        let slot = TableSlot { name: name.to_string(), store: self.store, current };
        tables.by_name.insert(name.to_string(), Arc::new(slot));
    }

    /// Drops the table if it still has this generation. Returns the dropped generation.
    pub(crate) fn apply_drop(&self, name: &str, id: u32) -> Option<Arc<Generation>> {
        let mut tables = self.write();
        let slot = tables.by_name.get(name).filter(|slot| Self::id(slot) == Some(id)).cloned()?;
        tables.by_name.remove(name);
        let settings = slot.with_settings(Settings::clone);
        let mut held = slot.hold();
        let old = tables.remove(id);
        *held = Current::Gone(settings);
        old
    }

    /// Sets the modes of a table, if it is there. Returns those that it had.
    pub(crate) fn set_modes(&self, name: &str, modes: TableModes) -> Option<TableModes> {
        let tables = self.read();
        let generation = tables.by_name.get(name)?.generation().ok()?;
        let before = generation.modes();
        generation.set_modes(modes);
        Some(before)
    }

    fn id(slot: &TableSlot) -> Option<u32> {
        slot.generation().ok().map(|generation| generation.id)
    }

    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().expect("no code panics while it holds the catalog")
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().expect("no code panics while it holds the catalog")
    }
}

mod names;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
