//! How tables are made, emptied, renamed and dropped.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::flow::room::frees_much;
use crate::format::batch::Append;
use crate::format::place::Counting;
use crate::format::record::Kind;
use crate::format::settings::{Settings, check_name, is_name};
use crate::io::{Device, InPhase, Phase};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::commit::Operation;
use crate::store::write_path::WritePath;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{
    Compression, Durability, Error, IndexKind, MAX_INLINE_BYTES, Result, StorageMode, TableModes, TableOptions,
};

impl<D: Device> WritePath<D> {
    pub(crate) fn create_table(&self, name: &str, options: &TableOptions) -> Result<Arc<TableSlot>> {
        check_name(name)?;
        self.commit.check()?;
        let _phase = InPhase::enter(&self.device, Phase::TableCreate);
        let settings = Settings::new(options);
        check_settings(&settings)?;
        check_modes(settings.kind, options.modes)?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        self.check_new_name(name)?;
        self.prepare_index(&settings)?;
        let id = self.catalog.next_id();
        let made = self.change_tables(Kind::TableCreate, id, name, &settings.encode_made(false), || {
            self.catalog.apply_create(name, &settings, id);
            // Found before anybody else can drop it, and make another of its name.
            self.catalog.find(name)
        })??;
        self.give_modes(&made, options.modes)?;
        Ok(made)
    }

    /// Gives a table that was just made its modes. After an error it stays without: others may have found it, and written to it, since it is
    /// there. The caller holds `changing`.
    pub(crate) fn give_modes(&self, made: &TableSlot, modes: TableModes) -> Result<()> {
        if modes == TableModes::default() {
            return Ok(());
        }
        let without = |cause| Error::MadeWithoutModes { name: made.name.clone(), cause: Box::new(cause) };
        self.change_modes(&[(&made.name, modes)]).map_err(without)
    }

    /// Changes what of some tables memory keeps by preference: of all of them, or of none.
    pub(crate) fn set_modes_of_tables(&self, wanted: &[(&str, TableModes)]) -> Result<()> {
        self.commit.check()?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        for (name, modes) in wanted {
            check_modes(self.catalog.find(name)?.kind(), *modes)?;
        }
        self.change_modes(wanted)
    }

    /// The manifest alone has modes: they say nothing of what is on disk, so no record of the log is needed, and earlier programs pass over them.
    /// The caller holds `changing`.
    fn change_modes(&self, wanted: &[(&str, TableModes)]) -> Result<()> {
        let _phase = InPhase::enter(&self.device, Phase::TableModes);
        let wanted = wanted.iter().copied();
        let before: Vec<(&str, TableModes)> =
            wanted.filter_map(|(name, modes)| Some((name, self.catalog.set_modes(name, modes)?))).collect();
        if before.is_empty() {
            return Ok(());
        }
        let pace = self.pace();
        self.balance_memory(pace);
        for (name, _) in &before {
            self.warming.ask(&*self.catalog.find(name)?.generation()?);
        }
        if planted::is_on(Bug::ModesForgotten) {
            return Ok(());
        }
        self.checkpoint().inspect_err(|_| {
            // A table that was named twice gets back what it had first.
            for (name, modes) in before.iter().rev() {
                self.catalog.set_modes(name, *modes);
            }
            self.balance_memory(pace);
        })
    }

    /// Refuses the name of a table that is there, or that is being made with its contents. The caller holds `changing`.
    pub(crate) fn check_new_name(&self, name: &str) -> Result<()> {
        if let Ok(slot) = self.catalog.find(name) {
            return Err(Error::TableExists { name: name.to_string(), kind: slot.kind().name() });
        }
        if self.catalog.is_reserved(name) { Err(Error::TableBeingMade { name: name.to_string() }) } else { Ok(()) }
    }

    /// Makes ready the index of a table that is to be made.
    pub(crate) fn prepare_index(&self, settings: &Settings) -> Result<()> {
        if settings.kind.is_ordered() && self.ordered.open().next().is_none() {
            // Nothing is counted in another way yet.
            let is_known = self.catalog.counting() == Counting::AsTheyLie;
            self.declare(&self.catalog.counts_as_they_lie, is_known)?;
        }
        self.open_index_of(settings.kind)?;
        let (features, catalog, known) = (settings.features(), &self.catalog, self.catalog.features());
        let wanted = [
            (features.values, known.values, &catalog.has_values),
            (features.filters, known.filters, &catalog.has_filters),
            (features.compressed_blocks, known.compressed_blocks, &catalog.has_compressed_blocks),
        ];
        let mut wanted = wanted.into_iter().filter(|(is_wanted, ..)| *is_wanted);
        wanted.try_for_each(|(_, is_known, feature)| self.declare(feature, is_known))
    }

    /// Makes a manifest that says that there may be something of which earlier programs know nothing, if there is none (`is_known`), before
    /// anything in the log depends on it.
    fn declare(&self, feature: &AtomicBool, is_known: bool) -> Result<()> {
        if feature.swap(true, Ordering::SeqCst) || is_known {
            return Ok(());
        }
        self.checkpoint().inspect_err(|_| feature.store(false, Ordering::SeqCst))
    }

    pub(crate) fn truncate_table(&self, name: &str) -> Result<()> {
        let _phase = InPhase::enter(&self.device, Phase::TableTruncate);
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        self.bound_gone()?;
        let slot = self.catalog.find(name)?;
        let old = slot.generation()?;
        let id = self.catalog.next_id();
        self.change_tables(Kind::TableTruncate, old.id, name, &id.to_le_bytes(), || {
            self.forget_generation(|| self.catalog.apply_create(name, &old.settings, id));
        })?;
        // Caches know tables by their numbers.
        self.balance_memory(self.pace());
        self.publish_appended()
    }

    pub(crate) fn drop_table(&self, name: &str) -> Result<()> {
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let slot = self.catalog.find(name)?;
        self.drop_of(&slot, &*slot.generation()?)
    }

    /// Drops the table that has this generation, if its name is still that of this one.
    pub(crate) fn drop_generation(&self, slot: &TableSlot, generation: &Generation) -> Result<()> {
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        if slot.has(generation) { self.drop_of(slot, generation) } else { Ok(()) }
    }

    /// The caller holds `changing`.
    fn drop_of(&self, slot: &TableSlot, generation: &Generation) -> Result<()> {
        let _phase = InPhase::enter(&self.device, Phase::TableDrop);
        self.bound_gone()?;
        let (name, id) = (&slot.name, generation.id);
        self.change_tables(Kind::TableDrop, id, name, &[], || {
            self.forget_generation(|| self.catalog.apply_drop(name, id));
        })?;
        self.publish_appended()
    }

    /// Gives a table another name, which no table has.
    pub(crate) fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        self.commit.check()?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let id = self.catalog.find(from)?.generation()?.id;
        self.check_new_name(to)?;
        self.give_names(BTreeMap::from([(id, to.to_string())]))
    }

    /// Gives each of two tables the name of the other.
    pub(crate) fn swap_tables(&self, one: &str, other: &str) -> Result<()> {
        self.commit.check()?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let id = |name: &str| Ok(self.catalog.find(name)?.generation()?.id);
        let (id_of_one, id_of_other) = (id(one)?, id(other)?);
        if id_of_one == id_of_other {
            return Ok(());
        }
        self.give_names(BTreeMap::from([(id_of_one, other.to_string()), (id_of_other, one.to_string())]))
    }

    /// The manifest alone has names, as it has modes: records say tables by their ids. So that no program sees a name that a crash would take
    /// back, the names are durable first. The caller holds `changing`: no record about a table comes between the position of the manifest and
    /// the names.
    fn give_names(&self, names: BTreeMap<u32, String>) -> Result<()> {
        let _phase = InPhase::enter(&self.device, Phase::TableRename);
        // A checkpoint that is under way has its position from before changes of tables that are done by now, which a replay from there would
        // apply to the new names: it must not have these. One that begins from here on has them, and a position behind all changes.
        if !planted::is_on(Bug::NamesOverOlderChanges) {
            drop(self.checkpointing.one_at_a_time.lock().expect("no code panics while it makes a checkpoint"));
        }
        let named = self.checkpointing.numbers().named;
        self.catalog.begin_naming(names);
        if planted::is_on(Bug::NamesForgotten) {
            self.catalog.end_naming(true);
            return Ok(());
        }
        let Err(error) = self.checkpoint() else {
            self.catalog.end_naming(true);
            return Ok(());
        };
        let is_known = {
            let _no_checkpoint =
                self.checkpointing.one_at_a_time.lock().expect("no code panics while it makes a checkpoint");
            self.catalog.end_naming(false);
            self.checkpointing.numbers().named == named
        };
        // An opening might find the names that do not count: what is written from here on would be in the other table then.
        if !is_known && self.checkpoint().is_err() {
            self.commit.fail(&error);
        }
        Err(error)
    }

    /// A batch that came to the log before a table was gone counts as one from before that: who has seen the table gone sees the batch in
    /// other tables.
    fn publish_appended(&self) -> Result<()> {
        if !planted::is_on(Bug::BatchTornByTruncate) {
            self.write_open_batch()?;
            self.publishers.wait_for_present();
        }
        Ok(())
    }

    /// Changes of the catalog are always durable before they are visible. From its append on, a change is counted until it is applied: a
    /// checkpoint whose position covers its record waits for that.
    pub(crate) fn change_tables<T>(
        &self,
        kind: Kind,
        id: u32,
        name: &str,
        value: &[u8],
        apply: impl FnOnce() -> T,
    ) -> Result<T> {
        let operation =
            Operation { generation: None, append: Append::new(kind, id, name.as_bytes(), value), hash: 0, over: None };
        let mut counted = None;
        // Counted under the commit lock: making room, which comes before, may make a checkpoint itself.
        let count = || {
            counted = Some(self.catalog.changes.pin());
            true
        };
        let appended = self.append(&[operation], Durability::Sync, None, count)?;
        if let Some((state, number)) = appended.expect("what is always permitted is appended").unpublished {
            self.timed(&self.meters.acknowledge_wait, || self.wait_durable(state, number))?;
        }
        let applied = apply();
        drop(counted);
        if frees_much(kind) {
            self.note_freeing();
        }
        Ok(applied)
    }
}

/// Refuses modes that contradict each other, or say nothing of such a table.
pub(crate) fn check_modes(kind: IndexKind, TableModes { keys, values }: TableModes) -> Result<()> {
    let refused = |allowed| Err(Error::Option { option: "keys", value: keys.name().into(), allowed });
    match (keys, values) {
        (StorageMode::Disk, StorageMode::Memory) => refused(
            "memory or auto beside `values` = memory: a get whose key is on disk reads the disk before it knows of a value in memory",
        ),
        (StorageMode::Disk, _) if kind == IndexKind::Hash => refused(
            "memory or auto in tables of kind `hash`: their slots leave memory only where memory has no room for them",
        ),
        (StorageMode::Disk, _) if kind == IndexKind::Lmdb => {
            refused("memory or auto in tables of kind `lmdb`: the system's page cache keeps what it has room for")
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_settings(settings: &Settings) -> Result<()> {
    check_compression("compression", settings.compression)?;
    check_compression("block_compression", settings.block_compression)?;
    if settings.block_compression != Compression::None && settings.kind != IndexKind::Lsm {
        let value = format!("{:?}", settings.block_compression);
        return Err(Error::Option { option: "block_compression", value, allowed: "none but in tables of kind `lsm`" });
    }
    if let Some(name) = settings.merge.as_ref().filter(|name| !is_name(name)) {
        let allowed = "a merge operator's name has 1 to 255 bytes without control characters";
        return Err(Error::Option { option: "merge", value: name.clone(), allowed });
    }
    if let Some(name) = &settings.compaction_filter
        && !(is_name(name) && settings.kind == IndexKind::Lsm)
    {
        let allowed =
            "a compaction filter's name, of 1 to 255 bytes without control characters, in tables of kind `lsm`";
        return Err(Error::Option { option: "compaction_filter", value: name.clone(), allowed });
    }
    let most = if settings.kind == IndexKind::Lsm { MAX_INLINE_BYTES } else { 0 };
    if settings.inline_bytes > most {
        let allowed = "0 to 1024 in tables of kind `lsm`, 0 in others";
        return Err(Error::Option { option: "inline_bytes", value: settings.inline_bytes.to_string(), allowed });
    }
    Ok(())
}

fn check_compression(option: &'static str, compression: Compression) -> Result<()> {
    if Compression::from_bytes(compression.to_bytes()).is_some() {
        return Ok(());
    }
    let allowed = "none, lz4, or zstd with a level from 1 to 19";
    Err(Error::Option { option, value: format!("{compression:?}"), allowed })
}
