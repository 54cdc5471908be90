//! The directories of a store, one for each SSD: their order, their faults, and how they come into being.
//!
//! Each has a file `STORE` that names the store, the directory's ordinal and the number of directories. So they may be
//! given in any order, and none can be forgotten, exchanged for another store's, or be empty because its disk is not
//! mounted. The first one has the manifest, the indexes and the pending batches; segments lie in all of them.

use std::path::{Path, PathBuf};

use crate::format::manifest::{Identity, MANIFEST_NAMES, Manifest, damage_error};
use crate::format::position::Position;
use crate::format::segment::Features;
use crate::index::versions::scratch::ScratchDirectory;
use crate::io::disk::is_trial;
use crate::io::small_file::{new_name, read_file, rename_durably, replace_file};
use crate::io::{Access, Device, File, WriteSync};
use crate::{DirectoryFault, Error, Options, Result};

/// The most directories of a store.
pub(crate) const MAX_DIRECTORIES: usize = 64;

/// The names that may be in the directory of a store that is not complete.
const OURS: [&str; 8] = ["LOCK", "MANIFEST", "MANIFEST.copy", "index", "log", "lost+found", "pending", "STORE.new"];

/// The directory of records that are retained for snapshots, in that of the indexes.
const VERSIONS_NAME: &str = "versions";

/// The directory of the runs of `hash` tables there.
const SPILLED_NAME: &str = "spilled";

pub(crate) fn check_count(paths: &[&Path]) -> Result<()> {
    if (1..=MAX_DIRECTORIES).contains(&paths.len()) {
        return Ok(());
    }
    Err(Error::Option { option: "directories", value: paths.len().to_string(), allowed: "1 to 64" })
}

/// Makes the directories of a store that is to be made.
pub(crate) fn prepare(paths: &[&Path], options: &Options) -> Result<()> {
    let exists = |path: &Path| path.try_exists().map_err(|e| Error::io("open", path, &e));
    let mut is_store = false;
    for path in paths {
        is_store |= exists(&path.join("STORE"))?;
    }
    for path in paths {
        match exists(path)? {
            true => {}
            false if is_store => return Err(fault(path, DirectoryFault::NoPart)),
            false if !options.create || options.read_only => return Err(Error::NoStore { path: path.to_path_buf() }),
            false => std::fs::create_dir_all(path).map_err(|e| Error::io("create", path, &e))?,
        }
    }
    // Several names can lead to one directory.
    let real = paths.iter().map(|path| path.canonicalize().map_err(|e| Error::io("open", *path, &e)));
    let real = real.collect::<Result<Vec<_>>>()?;
    for (position, path) in real.iter().enumerate() {
        if let Some(earlier) = real[..position].iter().position(|earlier| earlier == path) {
            let other = paths[earlier].to_path_buf();
            return Err(fault(paths[position], DirectoryFault::Twice { other }));
        }
    }
    Ok(())
}

/// The directories of a store by ordinal, and its identity.
pub(crate) struct Found {
    pub(crate) identity: Identity,
    pub(crate) directories: Vec<PathBuf>,
}

/// Finds the ordinal of each directory. `None` if there is no store in any of them yet.
pub(crate) fn find<D: Device>(device: &D, paths: &[&Path], options: &Options) -> Result<Option<Found>> {
    let mut identities = Vec::new();
    for path in paths {
        identities.push(read_identity(device, &path.join("STORE"))?);
    }
    // Only the first directory's identity says that the store is complete; it is the last to be written.
    let complete = identities.iter().flatten().find(|identity| identity.ordinal == 0).copied();
    let Some(any) = complete.or_else(|| identities.iter().flatten().next().copied()) else {
        for path in paths {
            refuse_foreign_directory(device, path, options)?;
        }
        return Ok(None);
    };
    let mut directories: Vec<Option<PathBuf>> = vec![None; usize::from(any.count)];
    for (path, identity) in paths.iter().zip(identities) {
        let identity = match identity {
            Some(identity) => identity,
            // The process that made the store died before it had given the last directories their names.
            None => read_identity(device, &path.join("STORE.new"))?
                .filter(|unfinished| unfinished.store == any.store)
                .ok_or_else(|| fault(path, DirectoryFault::NoPart))?,
        };
        if identity.store != any.store || identity.count != any.count {
            return Err(fault(path, DirectoryFault::Foreign));
        }
        let place = directories.get_mut(usize::from(identity.ordinal));
        let place = place.ok_or_else(|| fault(path, DirectoryFault::Foreign))?;
        if let Some(other) = place.replace(path.to_path_buf()) {
            return Err(fault(path, DirectoryFault::Twice { other }));
        }
    }
    let missing = directories.iter().position(Option::is_none);
    if let Some(ordinal) = missing {
        let lacks = DirectoryFault::Missing { ordinal: ordinal as u16, count: any.count };
        return Err(fault(paths[0], lacks));
    }
    Ok(Some(Found {
        identity: Identity { ordinal: 0, ..any },
        directories: directories.into_iter().flatten().collect(),
    }))
}

fn read_identity<D: Device>(device: &D, path: &Path) -> Result<Option<Identity>> {
    let Some(bytes) = read_file(device, path)? else { return Ok(None) };
    let advice = "the store's identity is damaged: restore the file from a backup";
    match Identity::decode(&bytes) {
        // It was being written when the process died.
        Err(_) if path.extension().is_some() => Ok(None),
        decoded => decoded.map(Some).map_err(|damage| damage_error(path, 0, damage, advice)),
    }
}

/// Without an identity, a directory may only contain the leftovers of an interrupted creation.
fn refuse_foreign_directory<D: Device>(device: &D, root: &Path, options: &Options) -> Result<()> {
    let names = device.list(root).map_err(|e| Error::io("list", root, &e))?;
    let is_ours = |name: &String| {
        OURS.contains(&name.trim_end_matches(".new")) || OURS.contains(&name.as_str()) || is_trial(name)
    };
    if !names.iter().all(is_ours) {
        return Err(Error::NotAStore { path: root.to_path_buf() });
    }
    // A creation ends with the identity, and only then are there segments: the identity was lost, and making another would bury
    // their records.
    let log = device.list(&root.join("log")).unwrap_or_default();
    if log.iter().any(|name| name.ends_with(".seg")) {
        let what = "the store's identity is missing; restore the file from a backup, or use `aiodb salvage`";
        return Err(Error::Corruption { path: root.join("STORE"), offset: 0, what: what.to_string() });
    }
    if !options.create || options.read_only {
        return Err(Error::NoStore { path: root.to_path_buf() });
    }
    Ok(())
}

/// Makes a store. The first directory's identity comes last: with it the store exists. The identities of the others lie ready by
/// then, and get their name afterwards or, after a crash, when the store is opened.
pub(crate) fn create<D: Device>(device: &D, paths: &[&Path], options: &Options) -> Result<Found> {
    for (ordinal, path) in paths.iter().enumerate() {
        let names: &[&str] = if ordinal == 0 { &["log", "index", "pending"] } else { &["log", "pending"] };
        for name in names {
            let path = path.join(name);
            device.create_dir(&path).map_err(|e| Error::io("create", &path, &e))?;
        }
        device.sync_dir(path).map_err(|e| Error::io("flush", *path, &e))?;
    }
    let mut store = [0; 16];
    store[..8].copy_from_slice(&device.random().to_le_bytes());
    store[8..].copy_from_slice(&device.random().to_le_bytes());
    let count = u16::try_from(paths.len()).expect("the number of directories is limited");
    let segment_bytes = options.segment_bytes;
    let identity = Identity { store, ordinal: 0, count, segment_bytes, hash_seed: device.random() };
    for (ordinal, path) in paths.iter().enumerate().skip(1) {
        let identity = Identity { ordinal: ordinal as u16, ..identity };
        write_durably(device, &path.join("STORE.new"), &identity.encode())?;
    }
    let bytes = empty_manifest().encode(&store);
    for name in MANIFEST_NAMES {
        replace_file(device, &paths[0].join(name), &bytes)?;
    }
    replace_file(device, &paths[0].join("STORE"), &identity.encode())?;
    Ok(Found { identity, directories: paths.iter().map(|path| path.to_path_buf()).collect() })
}

fn empty_manifest() -> Manifest {
    Manifest {
        checkpoint: 0,
        closed: true,
        position: Position::START,
        next_sequence: 1,
        next_life: 1,
        next_table: 0,
        taken_out: 0,
        time_ms: 0,
        features: Features::default(),
        tables: Vec::new(),
        segments: Vec::new(),
    }
}

fn write_durably<D: Device>(device: &D, path: &Path, bytes: &[u8]) -> Result<()> {
    let file = device.open(path, Access::CREATE).map_err(|e| Error::io("create", path, &e))?;
    let written = file.truncate(0).and_then(|()| file.write_at(bytes, 0, WriteSync::Later)).and_then(|()| file.sync());
    written.map_err(|e| Error::io("write", path, &e))?;
    let directory = path.parent().expect("a file lies in a directory");
    device.sync_dir(directory).map_err(|e| Error::io("flush", directory, &e))
}

/// Finishes the work of a process that died: gives the directories' identities their names, removes files that were being
/// written, and makes the names of finished files survive a power cut.
pub(crate) fn finish_interrupted<D: Device>(device: &D, directories: &[PathBuf]) -> Result<()> {
    for (ordinal, root) in directories.iter().enumerate() {
        let identity = root.join("STORE");
        if ordinal > 0 && read_file(device, &identity)?.is_none() {
            rename_durably(device, &new_name(&identity), &identity)?;
        }
        let below: &[&str] = if ordinal == 0 { &["log", "index"] } else { &["log"] };
        let below = below.iter().map(|name| root.join(name));
        if ordinal == 0 {
            // What it retained for its snapshots.
            ScratchDirectory::new(device, versions_of(&root.join("index"))).clear()?;
        }
        for directory in [root.clone()].into_iter().chain(below) {
            let names = device.list(&directory).map_err(|e| Error::io("list", &directory, &e))?;
            for name in names.iter().filter(|name| name.ends_with(".new") || is_trial(name)) {
                let path = directory.join(name);
                device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
            }
            device.sync_dir(&directory).map_err(|e| Error::io("flush", &directory, &e))?;
        }
    }
    Ok(())
}

/// Where records are retained for snapshots, in the directory of indexes.
pub(crate) fn versions_of(index: &Path) -> PathBuf {
    index.join(VERSIONS_NAME)
}

/// Where the runs of `hash` tables are, in the directory of indexes.
pub(crate) fn spilled_of(index: &Path) -> PathBuf {
    index.join(SPILLED_NAME)
}

/// Locks every directory, so that none can become a part of two stores that are made at once.
pub(crate) fn lock<D: Device>(device: &D, directories: &[&Path], options: &Options) -> Result<Vec<D::Lock>> {
    let lock = |directory: &&Path| {
        let path = directory.join("LOCK");
        let lock = if options.read_only { device.lock_shared(&path) } else { device.lock(&path) };
        let lock = lock.map_err(|e| Error::io("lock", &path, &e))?;
        lock.map_err(|holder| Error::Locked { path: directory.to_path_buf(), holder })
    };
    directories.iter().map(lock).collect()
}

fn fault(path: &Path, fault: DirectoryFault) -> Error {
    Error::Directory { path: path.to_path_buf(), fault }
}
