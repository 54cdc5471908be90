//! What all handles of one open store share, and how it comes into being and ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::background::Background;
use crate::cache::ValueCache;
use crate::catalog::{Catalog, Generation, Settings, check_name, is_name};
use crate::checkpoint::Checkpoints;
use crate::clock::StoreClock;
use crate::commit::Commit;
use crate::config::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::directories::{self, Found};
use crate::futures::Futures;
use crate::holds::Holds;
use crate::index::lmdb::LmdbIndex;
use crate::index::tail::Frozen;
use crate::io::disk::{LEAST_OPEN_FILES, with_descriptors};
use crate::io::{Access, Device, InPhase, Phase, Report};
use crate::log::Segments;
use crate::log::batch::Append;
use crate::log::record::{Kind, chunk_list_bytes};
use crate::manifest::{Identity, Manifest, damage_error, read_file};
use crate::metrics::Meters;
use crate::operation::Operation;
use crate::pins::Pins;
use crate::planted::{self, Bug};
use crate::purge::Purging;
use crate::reclaim::Reclaiming;
use crate::recovery::Recovered;
use crate::room::unless_full;
use crate::settle::Settling;
use crate::snapshot::Snapshots;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::{Compression, Durability, Error, IndexKind, Options, Result, TableOptions};

/// Values up to this length are written whole.
const MAX_WHOLE_VALUE_BYTES: u64 = 1 << 20;

/// An open store.
pub(crate) struct Engine<D: Device> {
    pub(crate) device: D,
    /// The first directory, with everything but segments.
    pub(crate) root: PathBuf,
    pub(crate) options: Options,
    pub(crate) report: Report,
    pub(crate) block_bytes: usize,
    hash_seed: u64,
    pub(crate) segments: Segments<D>,
    pub(crate) commit: Commit,
    pub(crate) catalog: Catalog,
    /// The environment of the `lmdb` tables, opened with the first of them.
    pub(crate) lmdb: OnceLock<LmdbIndex>,
    pub(crate) pins: Pins,
    /// Writers between append and publication.
    pub(crate) publishers: Pins,
    pub(crate) cache: ValueCache,
    pub(crate) meters: Meters,
    pub(crate) holds: Arc<Holds>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) settling: Settling,
    /// Held while a checkpoint is made; writers never wait for it. Below it come `unfinished_commit` and the commit lock.
    pub(crate) checkpointing: Mutex<()>,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    /// The frozen tail that is being committed, or that could not be. Held while the tail is committed; below it come the
    /// commit lock and the order of LMDB's transactions.
    pub(crate) unfinished_commit: Mutex<Option<Frozen>>,
    pub(crate) reclaiming: Mutex<Reclaiming>,
    /// Held by the write that makes room on a full disk; others wait for what it makes. When none could be made last, and how many
    /// segments had been given back until then.
    pub(crate) room_lock: Mutex<Option<(u64, u64)>>,
    /// Whether the files of the ordered index are on another disk than the rest.
    pub(crate) lmdb_lies_apart: bool,
    /// Dropped and truncated tables. A step of a purge may take `unfinished_commit` and the order of LMDB's transactions.
    pub(crate) purging: Purging,
    /// The life of the log's last segment when each large put began: its chunks lie there or later, not yet named.
    pub(crate) staging: Mutex<BTreeMap<u64, u64>>,
    pub(crate) next_staging: AtomicU64,
    pub(crate) background: Background,
    pub(crate) futures: Futures<D>,
    pub(crate) recovered: OnceLock<Recovered>,
    /// By which records expire.
    pub(crate) clock: StoreClock,
    closed: AtomicBool,
    /// The last failure of background work, for `stat`; foreground calls report their own.
    trouble: Mutex<Option<String>>,
    /// Taken out, and so released, when the store is closed.
    locks: Mutex<Vec<D::Lock>>,
}

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
            directories::settle(&device, &found.directories)?;
        }
        let manifest = read_manifest(&device, &found.directories[0], &found.identity)?;
        let engine = Self::assemble(device, found, options, &manifest, locks)?;
        let rebuild = engine.load_indexes(&manifest)?;
        let recovered = engine.recover(&manifest, &rebuild)?;
        if !engine.options.read_only {
            engine.forget_orphans()?;
        }
        if recovered.rebuilt {
            unless_full(engine.checkpoint())?;
        }
        let _ = engine.recovered.set(recovered);
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
        let catalog = Catalog::new(identity.store, identity.segment_bytes);
        for table in &manifest.tables {
            catalog.apply_create(&table.name, &table.settings, table.id);
        }
        catalog.raise_next_id(manifest.next_table);
        let buffer_bytes = crate::commit::buffer_bytes(identity.segment_bytes);
        let buffers = crate::recovery::pending::private_buffers(buffer_bytes);
        let commit = Commit::new(buffers, manifest.position, manifest.next_sequence, manifest.next_life);
        let checkpoints =
            Checkpoints { begun: manifest.checkpoint, durable: manifest.checkpoint, ..Checkpoints::default() };
        let holds = Arc::new(Holds::default());
        let cache = ValueCache::new(options.cache_bytes).map_err(|_| Error::Option {
            option: "cache_bytes",
            value: options.cache_bytes.to_string(),
            allowed: "what the system still gives this process of memory",
        })?;
        Ok(Engine {
            block_bytes: report.block_bytes,
            cache,
            meters: Meters::default(),
            device,
            root,
            options,
            report,
            hash_seed: identity.hash_seed,
            segments,
            commit,
            catalog,
            lmdb: OnceLock::new(),
            pins: Pins::default(),
            publishers: Pins::default(),
            snapshots: Arc::new(Snapshots::new(Arc::clone(&holds))),
            holds,
            settling: Settling::default(),
            checkpointing: Mutex::default(),
            checkpoints: Mutex::new(checkpoints),
            unfinished_commit: Mutex::default(),
            reclaiming: Mutex::default(),
            room_lock: Mutex::default(),
            lmdb_lies_apart,
            purging: Purging::default(),
            staging: Mutex::default(),
            next_staging: AtomicU64::new(0),
            background: Background::default(),
            futures: Futures::default(),
            recovered: OnceLock::new(),
            clock: StoreClock::new(),
            closed: AtomicBool::new(false),
            trouble: Mutex::default(),
            locks: Mutex::new(locks),
        })
    }

    /// Loads the checkpointed indexes. Returns the tables whose index is lost or is to be made again.
    fn load_indexes(&self, manifest: &Manifest) -> Result<BTreeSet<u32>> {
        let mut rebuild = BTreeSet::new();
        let lmdb_tables: Vec<_> =
            manifest.tables.iter().filter(|table| table.settings.kind == IndexKind::Lmdb).collect();
        if lmdb_tables.is_empty() {
            self.remove_lmdb()?;
        } else if self.open_lmdb(manifest)? {
            rebuild.extend(lmdb_tables.iter().map(|table| table.id));
        }
        for table in &manifest.tables {
            let Some(generation) = self.catalog.generation(table.id) else { continue };
            let lost = table.settings.kind == IndexKind::Hash
                && (self.options.rebuild_index || self.load_hash(&generation, table.checkpoint)?.is_none());
            if lost {
                rebuild.insert(table.id);
            }
        }
        if self.options.read_only && !rebuild.is_empty() {
            let reason = "the index of a table has to be made again from the log".to_string();
            return Err(Error::Unrecovered { path: self.root.clone(), reason });
        }
        Ok(rebuild)
    }

    /// Opens the ordered index; true if it must be made again from the log. Then it is empty: what an index older than the
    /// checkpoint holds may have been deleted since, and the log need not say so any more.
    fn open_lmdb(&self, manifest: &Manifest) -> Result<bool> {
        let path = self.lmdb_path()?;
        if self.options.rebuild_index {
            self.remove_lmdb()?;
        }
        let mut index = self.new_lmdb(&path)?;
        let covered = index.position()?.map_or(0, |position| position.batch);
        let older = covered < manifest.position.batch && !planted::is_on(Bug::OldIndexBelieved);
        if older && covered > 0 && !self.options.read_only && !planted::is_on(Bug::OldIndexKept) {
            index.close();
            self.remove_lmdb()?;
            index = self.new_lmdb(&path)?;
        }
        let opened = self.lmdb.set(index).is_ok();
        assert!(opened, "an index is opened once");
        Ok(older)
    }

    /// Removes the files of the ordered index. Where the checkpoint knows no table of this kind, they hold nothing that the
    /// log after it does not say.
    fn remove_lmdb(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        let path = self.lmdb_path()?;
        match with_descriptors(|| std::fs::remove_dir_all(&path), |error| Some(error)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path, &error)),
            _ => Ok(()),
        }
    }

    fn new_lmdb(&self, path: &Path) -> Result<LmdbIndex> {
        let index = LmdbIndex::open(path, self.segments.store, Arc::clone(&self.snapshots), self.options.read_only)?;
        let device = self.device.clone();
        index.ask_for_room(move || device.has_room_for_index());
        Ok(index)
    }

    /// Opens what tables of this kind need.
    pub(crate) fn open_index_of(&self, kind: IndexKind) -> Result<()> {
        if kind != IndexKind::Lmdb || self.lmdb.get().is_some() {
            return Ok(());
        }
        let index = self.new_lmdb(&self.lmdb_path()?)?;
        // Another thread may have been faster only if it opened the same; LMDB refuses a second environment.
        let _ = self.lmdb.set(index);
        Ok(())
    }

    /// Entries of tables that were dropped, but not yet purged, when the store was closed.
    fn forget_orphans(&self) -> Result<()> {
        let Some(lmdb) = self.lmdb.get() else { return Ok(()) };
        for table in lmdb.tables()? {
            if self.catalog.generation(table).is_none() {
                let settings = Settings::new(&IndexKind::Lmdb.into());
                let orphan = Generation::new(table, settings, self.segments.segment_bytes);
                self.forget_generation(Some(Arc::new(orphan)));
            }
        }
        Ok(())
    }

    fn lmdb_path(&self) -> Result<PathBuf> {
        let path = self.root.join("index").join("lmdb");
        self.device.real_path(&path).map_err(|e| Error::io("find a place for", path, &e))
    }

    /// The hash of a key in this store.
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(key, self.hash_seed) & self.options.hash_mask
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Remembers a failure that no caller can be told of.
    pub(crate) fn note_trouble(&self, error: &Error) {
        *self.trouble.lock().expect("no code panics while it notes trouble") = Some(error.to_string());
    }

    /// The last failure of background work.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().expect("no code panics while it notes trouble").clone()
    }

    /// Longer values lie in chunks.
    pub(crate) fn whole_value_bytes(&self) -> usize {
        MAX_WHOLE_VALUE_BYTES.min(self.segments.segment_bytes / 4) as usize
    }

    pub(crate) fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES.min(self.segments.segment_bytes as usize / 8)
    }

    pub(crate) fn max_value_bytes(&self) -> usize {
        let chunk_bytes = self.whole_value_bytes();
        // The list of chunks must itself be a whole value.
        let chunks = (chunk_bytes - chunk_list_bytes(0, 1)) / (chunk_list_bytes(1, 1) - chunk_list_bytes(0, 1));
        MAX_VALUE_BYTES.min(chunks * chunk_bytes)
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let max = self.max_key_bytes();
        if key.is_empty() || key.len() > max { Err(Error::KeyLength { length: key.len(), max }) } else { Ok(()) }
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        let max = self.max_value_bytes();
        if value.len() > max { Err(Error::ValueLength { length: value.len(), max }) } else { Ok(()) }
    }

    pub(crate) fn create_table(&self, name: &str, options: &TableOptions) -> Result<()> {
        check_name(name)?;
        self.commit.check()?;
        let _phase = InPhase::enter(&self.device, Phase::TableCreate);
        let settings = Settings::new(options);
        check_settings(&settings)?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        if let Ok(slot) = self.catalog.find(name) {
            return Err(Error::TableExists { name: name.to_string(), kind: slot.settings.kind.name() });
        }
        self.open_index_of(settings.kind)?;
        let id = self.catalog.next_id();
        self.write_table_record(Kind::TableCreate, id, name, &settings.encode())?;
        self.catalog.apply_create(name, &settings, id);
        Ok(())
    }

    pub(crate) fn truncate_table(&self, name: &str) -> Result<()> {
        let _phase = InPhase::enter(&self.device, Phase::TableTruncate);
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let slot = self.catalog.find(name)?;
        let old = slot.generation()?.id;
        let id = self.catalog.next_id();
        self.write_table_record(Kind::TableTruncate, old, name, &id.to_le_bytes())?;
        self.forget_generation(self.catalog.apply_create(name, &slot.settings, id));
        Ok(())
    }

    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        let _phase = InPhase::enter(&self.device, Phase::TableDrop);
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let id = self.catalog.find(name)?.generation()?.id;
        self.write_table_record(Kind::TableDrop, id, name, &[])?;
        self.forget_generation(self.catalog.apply_drop(name, id));
        Ok(())
    }

    /// Changes of the catalog are always durable before they are visible.
    fn write_table_record(&self, kind: Kind, id: u32, name: &str, value: &[u8]) -> Result<()> {
        let append = Append::new(kind, id, name.as_bytes(), value);
        self.write(&[Operation { generation: None, append, hash: 0 }], Durability::Sync).map(drop)
    }

    /// Makes everything durable, writes a checkpoint and refuses everything from then on.
    pub(crate) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.background.stop();
        self.futures.stop();
        self.remove_metrics_file();
        let outcome = match self.commit.failure() {
            // What can be known is on the device already; the next open recovers it.
            Some(cause) => Err(Error::Failed { cause: cause.to_string() }),
            None if self.options.read_only => Ok(()),
            None => self.close_log(),
        };
        self.commit.close();
        if let Some(lmdb) = self.lmdb.get() {
            lmdb.close();
        }
        self.locks.lock().expect("no code panics while it releases the locks").clear();
        outcome
    }
}

/// What the users' handles share: the last one closes the store.
pub(crate) struct Handle<D: Device>(pub(crate) Arc<Engine<D>>);

impl<D: Device> std::ops::Deref for Handle<D> {
    type Target = Engine<D>;

    fn deref(&self) -> &Engine<D> {
        &self.0
    }
}

impl<D: Device> Drop for Handle<D> {
    fn drop(&mut self) {
        // Nobody is left to be told. What was acknowledged is safe without it; a clean close only saves the replay.
        let _ = self.0.close();
    }
}

fn check_settings(settings: &Settings) -> Result<()> {
    if Compression::from_bytes(settings.compression.to_bytes()).is_none() {
        let value = format!("{:?}", settings.compression);
        return Err(Error::Option {
            option: "compression",
            value,
            allowed: "none, lz4, or zstd with a level from 1 to 19",
        });
    }
    if let Some(name) = settings.merge.as_ref().filter(|name| !is_name(name)) {
        let allowed = "a merge operator's name has 1 to 255 bytes without control characters";
        return Err(Error::Option { option: "merge", value: name.clone(), allowed });
    }
    Ok(())
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

/// The manifest, or its copy when the first is damaged or lost.
fn read_manifest<D: Device>(device: &D, root: &Path, identity: &Identity) -> Result<Manifest> {
    let read = |name: &str| -> Result<Manifest> {
        let path = root.join(name);
        let bytes = read_file(device, &path)?.unwrap_or_default();
        let advice = "restore the file, or the store from a backup";
        Manifest::decode(&bytes, &identity.store).map_err(|damage| damage_error(&path, 0, damage, advice))
    };
    match read("MANIFEST") {
        Err(damaged @ Error::Corruption { .. }) => read("MANIFEST.copy").map_err(|_| damaged),
        other => other,
    }
}
