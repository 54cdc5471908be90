//! The manifest: how a change of the set of runs becomes durable, and what is there after a crash.
//!
//! The manifest is written anew at each edit, under a second name and then renamed, so that after a crash the old one is there or
//! the new one. Then its copy is replaced in the same way. One of them that is damaged is told by its checksum, and the other is
//! as good: files are removed only after both are durable.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Runs;
use super::claims::Claims;
use super::file::{ADVICE, RunFile, path_of};
use super::lookup::place_of;
use super::set::{Files, Run, RunSet};
use super::turns::Turns;
use crate::budget::Accounts;
use crate::config::MergePolicy;
use crate::format::manifest::{MANIFEST_NAMES, damage_error};
use crate::format::run::manifest::RunManifest;
use crate::format::segment::Damage;
use crate::io::small_file::{new_name, read_file, rename_durably, replace_file, write_new};
use crate::io::{Access, Device};
use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{InOrder, Mutex, RwLock};
use crate::{Error, Result};

/// The ending of the name of a run's file.
const RUN_SUFFIX: &str = ".run";

/// What is known of edits, beside the set that the last one made.
pub(super) struct Editing<D: Device> {
    /// The number of the next edit: higher than that of any that may have become durable.
    next_edit: u64,
    /// Files that the set does not have, but that one of both manifests may name: its copy, or either after an edit of which it is not known
    /// whether it is durable.
    perhaps_named: Vec<Arc<RunFile<D>>>,
}

/// Whether an edit is in both manifests.
#[derive(PartialEq, Eq)]
pub(super) enum Edited {
    Once,
    Twice,
}

/// The manifest and its copy, as opening finds them.
struct Manifests {
    /// The later one, if there is any.
    latest: Option<RunManifest>,
    /// Whether both check out and are of the same edit.
    are_equal: bool,
    /// The numbers of the files that one of them names.
    named: BTreeSet<u64>,
}

impl<D: Device> Runs<D> {
    /// Opens the runs in a directory, or begins with none; their memory counts in these accounts. With `read_only` a manifest must be there, and
    /// nothing changes.
    pub(crate) fn open(
        (device, accounts): (&D, &Arc<Accounts>),
        directory: &Path,
        store: [u8; 16],
        read_only: bool,
    ) -> Result<Runs<D>> {
        let Manifests { latest, are_equal, mut named } = read_manifests(device, directory, &store)?;
        if latest.is_none() && read_only {
            let reason = "there is no manifest of its runs".to_string();
            return Err(Error::Index { path: directory.to_path_buf(), reason });
        }
        if !read_only {
            device.create_dir(directory).map_err(|e| Error::io("create", directory, &e))?;
        }
        let names = device.list(directory).map_err(|e| Error::io("list", directory, &e))?;
        let is_new = latest.is_none();
        if let Some(name) = names.iter().find(|name| is_new && name.ends_with(RUN_SUFFIX)) {
            let damage = Damage::Foreign("there are runs, and no manifest of them");
            return Err(damage_error(&directory.join(name), 0, damage, ADVICE));
        }
        let access = if read_only { Access::READ_SEGMENT } else { Access::SEGMENT };
        let runs =
            Self::with_manifest((device, accounts), directory, store, latest.unwrap_or_else(first_manifest), access)?;
        if read_only {
            return Ok(runs);
        }
        if !are_equal {
            match runs.edit(Vec::new(), |_| ()) {
                Ok(Edited::Twice) => named = runs.set()?.files().into_keys().collect(),
                // Files stay which the earlier of the two names.
                Ok(Edited::Once) => {}
                Err(error) if error.is_full() && !is_new => {}
                Err(error) => return Err(error),
            }
        }
        runs.remove_unnamed(&names, &named)?;
        Ok(runs)
    }

    fn with_manifest(
        (device, accounts): (&D, &Arc<Accounts>),
        directory: &Path,
        store: [u8; 16],
        manifest: RunManifest,
        access: Access,
    ) -> Result<Runs<D>> {
        let mut files = Files::new();
        for name in manifest.files() {
            files.insert(name.number, RunFile::open((device, accounts), directory, &store, *name, access)?);
        }
        let editing = Editing { next_edit: manifest.edit + 1, perhaps_named: Vec::new() };
        Ok(Runs {
            count: AtomicUsize::new(manifest.runs.len()),
            device: device.clone(),
            accounts: Arc::clone(accounts),
            directory: directory.to_path_buf(),
            store,
            cache: Arc::default(),
            removals: Arc::default(),
            next_file: AtomicU64::new(manifest.next_file),
            set: RwLock::new(Some(Arc::new(RunSet::new(manifest, &files)))),
            editing: Mutex::new(editing),
            policy: MergePolicy::default(),
            turns: Turns::default(),
            claims: Claims::default(),
            passes: Mutex::default(),
            flushes: InOrder::default(),
        })
    }

    /// Removes all runs of a directory, for an index that is made again. Numbers go on from where they were: backups know files by
    /// them.
    pub(crate) fn remove_all(device: &D, directory: &Path, store: &[u8; 16]) -> Result<()> {
        let names = match device.list(directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(|e| Error::io("list", directory, &e))?,
        };
        let manifests = read_manifests(device, directory, store).ok();
        let are_equal = manifests.as_ref().is_some_and(|manifests| manifests.are_equal);
        let latest = manifests.and_then(|manifests| manifests.latest).unwrap_or_else(first_manifest);
        let is_manifest = |name: &&String| MANIFEST_NAMES.contains(&&***name);
        if names.iter().all(|name| is_manifest(&name))
            && (names.is_empty() || are_equal && latest == without_runs(&latest))
        {
            return Ok(());
        }
        let highest = names.iter().filter_map(|name| number_of(name)).max().unwrap_or(0);
        let next_file = latest.next_file.max(highest + 1);
        let bytes = RunManifest { edit: latest.edit + 1, next_file, ..without_runs(&latest) }.encode(store);
        // First the manifests say that there is none. One for which there is no room goes last: runs without a manifest are taken
        // for damage.
        let mut unwritten = Vec::new();
        for path in MANIFEST_NAMES.map(|name| directory.join(name)) {
            match replace_file(device, &path, &bytes) {
                // Removing makes room.
                Err(error) if error.is_full() => unwritten.push(path),
                replaced => replaced?,
            }
        }
        let files = names.iter().filter(|name| !is_manifest(name) && !name.ends_with(".new"));
        let there = device.list(directory).map_err(|e| Error::io("list", directory, &e))?;
        unwritten.retain(|path| there.iter().any(|name| *path == directory.join(name)));
        for paths in [files.map(|name| directory.join(name)).collect(), unwritten] {
            paths.iter().try_for_each(|path: &PathBuf| remove(device, path))?;
            device.sync_dir(directory).map_err(|e| Error::io("flush", directory, &e))?;
        }
        Ok(())
    }

    /// Removes what no manifest names: files of edits that did not become durable.
    fn remove_unnamed(&self, names: &[String], named: &BTreeSet<u64>) -> Result<()> {
        let is_left =
            |name: &&String| name.ends_with(".new") || number_of(name).is_some_and(|number| !named.contains(&number));
        let left: Vec<_> = names.iter().filter(is_left).collect();
        for name in &left {
            // A manifest that was prepared may have got its name since.
            match self.device.remove(&self.directory.join(name)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                removed => removed.map_err(|e| Error::io("remove", self.directory.join(name), &e))?,
            }
            // Its number is not given away again: the removal may be undone by a power cut.
            self.next_file.fetch_max(number_of(name).map_or(0, |number| number + 1), Ordering::Relaxed);
        }
        if left.is_empty() { Ok(()) } else { self.sync_directory() }
    }

    pub(super) fn sync_directory(&self) -> Result<()> {
        self.device.sync_dir(&self.directory).map_err(|e| Error::io("flush", &self.directory, &e))
    }

    /// A number for a new file.
    pub(super) fn new_file_number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a change of the manifest durable, and then visible. The files that it names in addition are those given; those that
    /// it names no more are removed once no reader has them. After an error nothing has changed, as far as this process is
    /// concerned: if it is not known whether the change is durable, the next opening may find either.
    pub(super) fn edit(&self, made: Vec<Arc<RunFile<D>>>, change: impl FnOnce(&mut RunManifest)) -> Result<Edited> {
        let mut editing = self.editing.lock().expect("no code panics while it makes an edit");
        let before = self.set()?;
        let mut files = before.files();
        files.extend(made.iter().map(|file| (file.name.number, Arc::clone(file))));
        let mut manifest = before.manifest.clone();
        change(&mut manifest);
        manifest.edit = editing.next_edit;
        manifest.next_file = self.next_file.load(Ordering::Relaxed);
        let mut set = RunSet::new(manifest, &files);
        let forgotten = usize::from(planted::is_on(Bug::RunRangeForgotten));
        let asked = &set.runs[..set.runs.len().saturating_sub(forgotten)];
        let needed = |range: &_| asked.iter().flat_map(Run::pieces).any(|piece| piece.needs(range));
        let ranges = set.manifest.ranges.iter().filter(|range| needed(range)).cloned().collect();
        set.manifest.ranges = ranges;
        let bytes = set.manifest.encode(&self.store);
        let [path, copy] = MANIFEST_NAMES.map(|name| self.directory.join(name));
        let prepared = self.prepare(&path, &bytes, !made.is_empty());
        prepared.inspect_err(|_| made.iter().for_each(|file| file.set_dropped(&self.removals)))?;
        editing.next_edit += 1;
        // From here on the edit may be durable, so its files stay also after an error, until a later edit is.
        rename_durably(&self.device, &new_name(&path), &path).inspect_err(|_| editing.perhaps_named.extend(made))?;
        let named = set.files();
        self.count.store(set.runs.len(), Ordering::Relaxed);
        *self.set.write().expect("no code panics while it holds the set") = Some(Arc::new(set));
        let is_gone = |file: &Arc<RunFile<D>>| !named.contains_key(&file.name.number);
        let gone: Vec<_> = files.into_values().filter(is_gone).collect();
        editing.perhaps_named.extend(gone.iter().cloned());
        if planted::is_on(Bug::RunGoneEarly) {
            let gone = editing.perhaps_named.drain(..);
            gone.for_each(|file| drop(self.device.remove(&path_of(&self.directory, file.name.number))));
        }
        // If there is no room for it, the next edit writes it again.
        let edited = if replace_file(&self.device, &copy, &bytes).is_err() { Edited::Once } else { Edited::Twice };
        if edited == Edited::Twice {
            editing.perhaps_named.drain(..).filter(is_gone).for_each(|file| file.set_dropped(&self.removals));
        }
        drop(editing);
        for file in &gone {
            file.forget_filter();
            self.forget_blocks(file);
        }
        Ok(edited)
    }

    /// No look-up that begins from now on asks for blocks of this file: they leave the cache, and make room for those that came for them.
    fn forget_blocks(&self, file: &RunFile<D>) {
        if self.cache.is_on() {
            (0..file.fences.len()).for_each(|number| self.cache.forget(place_of(file, number)));
        }
    }

    /// Everything before the name of the manifest changes.
    fn prepare(&self, path: &Path, bytes: &[u8], has_files: bool) -> Result<()> {
        if has_files {
            self.sync_directory()?;
        }
        write_new(&self.device, path, bytes).map(drop)
    }
}

fn remove<D: Device>(device: &D, path: &Path) -> Result<()> {
    device.remove(path).map_err(|e| Error::io("remove", path, &e))
}

/// The same numbers without any run.
fn without_runs(manifest: &RunManifest) -> RunManifest {
    let RunManifest { edit, next_file, next_run, .. } = *manifest;
    RunManifest { edit, next_file, next_run, ..RunManifest::default() }
}

/// The number of the file of a run with this name.
fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(RUN_SUFFIX)?.parse().ok()
}

fn first_manifest() -> RunManifest {
    RunManifest { next_file: 1, next_run: 1, ..RunManifest::default() }
}

/// Reads both; an error if there are only damaged ones.
fn read_manifests<D: Device>(device: &D, directory: &Path, store: &[u8; 16]) -> Result<Manifests> {
    let (mut sound, mut damaged) = (Vec::new(), None);
    for path in MANIFEST_NAMES.map(|name| directory.join(name)) {
        let Some(bytes) = read_file(device, &path)? else { continue };
        match RunManifest::decode(&bytes, store) {
            Ok(manifest) => sound.push(manifest),
            Err(damage) => damaged = damaged.or(Some(damage_error(&path, 0, damage, ADVICE))),
        }
    }
    if let Some(error) = damaged.filter(|_| sound.is_empty()) {
        return Err(error);
    }
    let named = sound.iter().flat_map(RunManifest::files).map(|name| name.number).collect();
    let are_equal = matches!(&sound[..], [one, other] if one.edit == other.edit);
    Ok(Manifests { latest: sound.into_iter().max_by_key(|manifest| manifest.edit), are_equal, named })
}
