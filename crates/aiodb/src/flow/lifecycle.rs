//! How a store is opened and closed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::cache::Cache;
use crate::flow::directories::{self, Found};
use crate::flow::futures::Futures;
use crate::flow::room::unless_full;
use crate::flow::upkeep::memory::Pace;
use crate::format::manifest::{Identity, MANIFEST_NAMES, Manifest, damage_error};
use crate::format::settings::Settings;
use crate::index::ordered::OrderedIndexes;
use crate::index::runs::spilled::SpilledTables;
use crate::index::snapshots::Snapshots;
use crate::index::versions::scratch::ScratchDirectory;
use crate::io::disk::LEAST_OPEN_FILES;
use crate::io::small_file::read_file;
use crate::io::{Access, Device, InPhase, Phase};
use crate::log::Segments;
use crate::log::commit::PENDING_BUFFERS;
use crate::metrics::Meters;
use crate::retention::Retention;
use crate::store::append_path::AppendPath;
use crate::store::background::Background;
use crate::store::catalog::{Catalog, Generation};
use crate::store::checkpoints::Checkpointing;
use crate::store::clock::StoreClock;
use crate::store::commit::Commit;
use crate::store::dropping::Dropping;
use crate::store::engine::Engine;
use crate::store::epochs::Epochs;
use crate::store::groups::Groups;
use crate::store::host::Host;
use crate::store::memory::Memory;
use crate::store::purging::Purging;
use crate::store::read_path::ReadPath;
use crate::store::settling::Settling;
use crate::store::spilling::Spilling;
use crate::store::staging::Staging;
use crate::store::status::Status;
use crate::store::sums::Sums;
use crate::store::suspicion::Suspicion;
use crate::store::upkeep::Upkeep;
use crate::store::warming::Warming;
use crate::store::write_path::WritePath;
use crate::sync::Mutex;
use crate::{Error, IndexKind, Options, Result};

impl<D: Device> Engine<D> {
    /// Opens or makes the store in directories that exist, and recovers it.
    pub(crate) fn open(device: D, paths: &[&Path], options: Options) -> Result<Engine<D>> {
        check_options(&options)?;
        let observed = device.clone();
        let _phase = InPhase::enter(&observed, Phase::Recovery);
        // Once before the lock, so that nothing is made in a foreign directory.
        directories::find(&device, paths, &options)?;
        let locks = directories::lock(&device, paths, &options)?;
        let found = match directories::find(&device, paths, &options)? {
            Some(found) => found,
            None => directories::create(&device, paths, &options)?,
        };
        if !options.read_only {
            directories::finish_interrupted(&device, &found.directories)?;
        }
        let manifest = read_manifest(&device, &found.directories[0], &found.identity)?;
        let engine = Self::assemble(device, found, options, &manifest, locks)?;
        let rebuild = engine.load_indexes(&manifest)?;
        // Nobody writes yet. What the indexes have loaded cannot be given back.
        engine.balance_memory(Pace::AtOnce);
        engine.balance_filters(usize::MAX);
        engine.ordered.open().for_each(|ordered| engine.bound_memtable_by_memory(ordered));
        let recovered = engine.recover(&manifest, &rebuild)?;
        if !engine.options.read_only {
            engine.forget_orphans()?;
        }
        // A manifest whose copy is of an earlier checkpoint may have other names of tables than that, and records about tables that come from here
        // on would be applied to the wrong ones where only the copy is left.
        if recovered.rebuilt || !engine.options.read_only && !engine.manifests_agree()? {
            unless_full(engine.checkpoint())?;
        }
        // What was replayed cannot be given back, and tables that it has emptied have other numbers. Nobody looks before the first read.
        engine.balance_memory(Pace::AtOnce);
        let _ = engine.recovered.set(recovered);
        engine.dropping.begin();
        engine.catalog.generations().iter().for_each(|generation| engine.warming.ask(generation));
        Ok(engine)
    }

    fn assemble(
        device: D,
        found: Found,
        options: Options,
        manifest: &Manifest,
        locks: Vec<D::Lock>,
    ) -> Result<Engine<D>> {
        let Found { identity, directories } = found;
        let root = directories[0].clone();
        let lmdb_lies_apart = device.real_path(&root).is_ok_and(|real| real != root);
        let report = device.report();
        let access = Access { write: !options.read_only, ..Access::SEGMENT };
        let segments = Segments::new(device.clone(), directories, access, identity.store, identity.segment_bytes);
        let buffer_bytes = crate::log::commit::buffer_bytes(identity.segment_bytes);
        let batch_bytes = (PENDING_BUFFERS * buffer_bytes) as u64;
        let memory = Memory::new(&options, device.memory_bytes(), batch_bytes, device.clock_ms())?;
        let catalog = Catalog::new(identity.store, identity.segment_bytes, manifest.features, &memory.accounts);
        for table in &manifest.tables {
            catalog.apply_create(&table.name, &table.settings, table.id);
            catalog.set_modes(&table.name, table.modes);
        }
        catalog.raise_next_id(manifest.next_table);
        let buffers = crate::log::commit::private_buffers(buffer_bytes);
        let commit = Commit::new(buffers, manifest.position, manifest.next_sequence, manifest.next_life);
        let retention = Arc::new(Retention::default());
        let host = Host {
            block_bytes: report.block_bytes,
            device,
            root,
            report,
            hash_seed: identity.hash_seed,
            memory,
            meters: Meters::default(),
            clock: StoreClock::new(),
            status: Status::new(locks),
            options,
        };
        let snapshots = Arc::new(new_snapshots(&host, &identity.store, &retention));
        let block_cache = Arc::new(new_block_cache(&host)?);
        let runs = directories::spilled_of(&host.root.join("index"));
        let spilled =
            SpilledTables::new((&host.device, &host.memory.accounts), runs, identity.store, Arc::clone(&block_cache));
        let reads = ReadPath {
            segments,
            commit,
            catalog,
            ordered: OrderedIndexes::default(),
            spilled,
            epochs: Epochs::default(),
            cache: new_cache(&host)?,
            block_cache,
            groups: Groups::default(),
            sums: Sums::counted_in(&host.memory.accounts),
            snapshots,
            retention,
            host,
        };
        let appends = AppendPath {
            reads,
            publishers: Epochs::default(),
            settling: Settling::default(),
            staging: Staging::default(),
            background: Background::default(),
            unmoved: Mutex::default(),
            lmdb_lies_apart,
        };
        let upkeep = Upkeep {
            appends,
            checkpointing: Checkpointing::after(manifest.checkpoint),
            reclaiming: Mutex::default(),
            purging: Purging::default(),
            suspicion: Suspicion::default(),
            spilling: Spilling::default(),
            warming: Warming::default(),
            dropping: Dropping::default(),
        };
        let writes = WritePath { upkeep, room_lock: Mutex::default() };
        Ok(Engine { writes, recovered: OnceLock::new() })
    }

    /// Loads the checkpointed indexes. Returns the tables whose index is lost or is to be made again.
    fn load_indexes(&self, manifest: &Manifest) -> Result<BTreeSet<u32>> {
        let mut rebuild = BTreeSet::new();
        let of_kind = |kind| manifest.tables.iter().filter(move |table| table.settings.kind == kind);
        if of_kind(IndexKind::Lmdb).next().is_none() {
            self.remove_lmdb()?;
        } else if self.open_lmdb(manifest)? {
            rebuild.extend(of_kind(IndexKind::Lmdb).map(|table| table.id));
        }
        for table in &manifest.tables {
            let Some(generation) = self.catalog.generation(table.id) else { continue };
            let lost = table.settings.kind == IndexKind::Hash
                && (self.options.rebuild_index || self.load_hash(&generation, table.checkpoint)?.is_none());
            if lost {
                rebuild.insert(table.id);
            }
        }
        // After those: filters of `hash` tables have the first of the room.
        if of_kind(IndexKind::Lsm).next().is_none() {
            self.open_runs_since(manifest)?;
        } else if self.open_runs(manifest)? {
            rebuild.extend(of_kind(IndexKind::Lsm).map(|table| table.id));
        }
        // The checkpoint of an index that is made again may name runs too, until the next one is durable.
        let is_any_lost = of_kind(IndexKind::Hash).any(|table| rebuild.contains(&table.id));
        // So may the copy of the manifest, where a crash came between the two.
        self.spilled.clear(|| Ok(!self.options.read_only && !is_any_lost && self.manifests_agree()?))?;
        if self.options.read_only && !rebuild.is_empty() {
            let reason = "the index of a table has to be made again from the log".to_string();
            return Err(Error::Unrecovered { path: self.root.clone(), reason });
        }
        Ok(rebuild)
    }

    /// Whether the manifest and its copy are the same.
    fn manifests_agree(&self) -> Result<bool> {
        let [manifest, copy] = MANIFEST_NAMES.map(|name| read_file(&self.device, &self.root.join(name)));
        Ok(manifest? == copy?)
    }

    /// Entries of tables that were dropped, but not yet purged, when the store was closed.
    fn forget_orphans(&self) -> Result<()> {
        for ordered in self.ordered.open() {
            for table in ordered.committed.tables()? {
                if self.catalog.generation(table).is_none() {
                    let settings = Settings::new(&ordered.kind().into());
                    let orphan = Generation::new(table, settings, self.segments.segment_bytes, &self.memory.accounts);
                    self.forget_generation(|| Some(Arc::new(orphan)));
                }
            }
        }
        Ok(())
    }

    /// See [`Handle::close`]; `stop_drivers` ends the threads of the futures.
    fn close(&self, stop_drivers: impl FnOnce()) -> Result<()> {
        if !self.status.close() {
            return Ok(());
        }
        self.background.stop();
        stop_drivers();
        self.remove_metrics_file();
        let outcome = match self.commit.failure() {
            // All that can be known is on the device already; the next open recovers it.
            Some(cause) => Err(Error::Failed { cause: cause.to_string() }),
            None if self.options.read_only => Ok(()),
            None => self.close_log(),
        };
        // Calls on their way change no file from here on: a checkpoint is waited for, and the next one finds the store closed.
        let one_at_a_time = self.checkpointing.one_at_a_time.lock();
        self.commit.close();
        drop(one_at_a_time);
        self.segments.close();
        self.ordered.open().for_each(|ordered| ordered.committed.close());
        self.spilled.close();
        // Else the next opening removes their files.
        let _ = self.snapshots.close();
        self.status.release();
        outcome
    }
}

/// The store that the users' handles share: the last one closes it.
pub(crate) struct Handle<D: Device> {
    pub(crate) engine: Arc<Engine<D>>,
    pub(crate) futures: Arc<Futures<D>>,
}

impl<D: Device> Handle<D> {
    pub(crate) fn new(engine: Arc<Engine<D>>) -> Handle<D> {
        Handle { engine, futures: Arc::default() }
    }

    /// Makes all writes durable, writes a checkpoint and refuses all calls from then on.
    pub(crate) fn close(&self) -> Result<()> {
        self.engine.close(|| self.futures.stop())
    }
}

impl<D: Device> std::ops::Deref for Handle<D> {
    type Target = Engine<D>;

    fn deref(&self) -> &Engine<D> {
        &self.engine
    }
}

impl<D: Device> Drop for Handle<D> {
    fn drop(&mut self) {
        // No caller is left to be told. Acknowledged writes are safe without it; a clean close only saves the replay.
        let _ = self.close();
    }
}

fn check_options(options: &Options) -> Result<()> {
    let segment = options.segment_bytes;
    if !segment.is_power_of_two() || !(64 << 10..=1 << 30).contains(&segment) {
        let allowed = "a power of two from 65536 (64 KiB) to 1073741824 (1 GiB)";
        return Err(Error::Option { option: "segment_bytes", value: segment.to_string(), allowed });
    }
    if (1..LEAST_OPEN_FILES).contains(&options.max_open_files) {
        let value = options.max_open_files.to_string();
        return Err(Error::Option {
            option: "max_open_files",
            value,
            allowed: "0 (what the limit leaves), or at least 8",
        });
    }
    if options.checkpoint_bytes == 0 {
        return Err(Error::Option { option: "checkpoint_bytes", value: "0".into(), allowed: "at least 1" });
    }
    if options.read_only && options.rebuild_index {
        let allowed = "an index is made again only in a store that is open for writing";
        return Err(Error::Option { option: "rebuild_index", value: "true".into(), allowed });
    }
    Ok(())
}

/// The snapshots of a store, of which there are none yet. Where nothing is written, nothing is superseded.
fn new_snapshots<D: Device>(host: &Host<D>, store: &[u8; 16], retention: &Arc<Retention>) -> Snapshots {
    let snapshots = Snapshots::new(Arc::clone(retention));
    if host.options.read_only {
        return snapshots;
    }
    let directory = ScratchDirectory::new(&host.device, directories::versions_of(&host.root.join("index")));
    snapshots.spilling_to(Arc::new(directory), &host.memory.accounts, *store, host.options.versions_in_memory)
}

fn new_cache<D: Device>(host: &Host<D>) -> Result<Cache> {
    let demand = host.memory.demand(&host.options, 1);
    // A table may want its values in memory at any time.
    let most = if demand.cache > 0 { demand.cache } else { demand.budget };
    let made = Cache::of_values(most, demand.bounds().cache);
    made.map_err(|_| no_memory("cache_bytes", demand.cache))
}

fn new_block_cache<D: Device>(host: &Host<D>) -> Result<Cache> {
    let demand = host.memory.demand(&host.options, 1);
    let made = Cache::of_blocks(demand.block_cache.most, demand.bounds().block_cache);
    made.map_err(|_| no_memory("block_cache_bytes", demand.block_cache.most))
}

fn no_memory(option: &'static str, bytes: u64) -> Error {
    Error::Option { option, value: bytes.to_string(), allowed: "what the system still gives this process of memory" }
}

/// The manifest, or its copy when the first is damaged or lost.
fn read_manifest<D: Device>(device: &D, root: &Path, identity: &Identity) -> Result<Manifest> {
    let read = |name: &str| -> Result<Manifest> {
        let path = root.join(name);
        let bytes = read_file(device, &path)?.unwrap_or_default();
        let advice = "restore the file, or the store from a backup";
        Manifest::decode(&bytes, &identity.store).map_err(|damage| damage_error(&path, 0, damage, advice))
    };
    let [name, copy_name] = MANIFEST_NAMES;
    match read(name) {
        Err(damaged @ Error::Corruption { .. }) => read(copy_name).map_err(|_| damaged),
        other => other,
    }
}
