//! The simulated directories: which names there are now, and which a power cut may leave.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;

use super::content::Content;

/// A file's bytes, kept as long as a name or a handle refers to them.
#[derive(Clone)]
pub(super) struct Inode(Arc<Mutex<Content>>);

impl Inode {
    fn new() -> Inode {
        Inode(Arc::new(Mutex::new(Content::new())))
    }

    /// Whether both are the same file.
    pub(super) fn is(&self, other: &Inode) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Beyond this many unflushed changes of one directory the oldest reaches the medium by itself.
const MAX_PENDING_CHANGES: usize = 64;

enum Change {
    Link { name: String, inode: Inode },
    Unlink { name: String },
    Rename { from: String, to: String },
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Inode>) {
        match self {
            Change::Link { name, inode } => {
                names.insert(name.clone(), inode.clone());
            }
            Change::Unlink { name } => {
                names.remove(name);
            }
            Change::Rename { from, to } => {
                let inode = names.remove(from).expect("changes are applied in the order in which they were made");
                names.insert(to.clone(), inode);
            }
        }
    }
}

/// The files of one directory.
#[derive(Default)]
struct Directory {
    current: BTreeMap<String, Inode>,
    durable: BTreeMap<String, Inode>,
    /// The changes that lead from `durable` to `current`.
    pending: Vec<Change>,
    /// Whether the directory itself survives a power cut.
    survives: bool,
}

impl Directory {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
        if self.pending.len() > MAX_PENDING_CHANGES {
            self.flush(1);
        }
    }

    /// Makes the oldest `count` changes durable. Their order is kept, as a journal keeps it.
    fn flush(&mut self, count: usize) {
        for change in self.pending.drain(..count) {
            change.apply(&mut self.durable);
        }
    }

    /// A power cut; returns how many changes it took.
    fn lose_unflushed(&mut self, random: &mut Rng) -> u64 {
        if self.pending.is_empty() {
            return 0;
        }
        self.flush(random.usize(0..=self.pending.len()));
        let lost = self.pending.len() as u64;
        self.pending.clear();
        self.current = self.durable.clone();
        lost
    }

    fn inodes(&self) -> impl Iterator<Item = &Inode> {
        let linked = self.pending.iter().filter_map(|change| match change {
            Change::Link { inode, .. } => Some(inode),
            _ => None,
        });
        self.current.values().chain(self.durable.values()).chain(linked)
    }
}

/// All directories by their absolute path; the root is always there.
pub(super) struct Tree {
    directories: BTreeMap<PathBuf, Directory>,
}

impl Tree {
    pub(super) fn new() -> Tree {
        let root = Directory { survives: true, ..Directory::default() };
        Tree { directories: BTreeMap::from([(PathBuf::from("/"), root)]) }
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> io::Result<()> {
        let path = absolute(path);
        for ancestor in path.ancestors() {
            if self.find(ancestor).is_some() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        for ancestor in path.ancestors() {
            self.directories.entry(ancestor.to_path_buf()).or_default();
        }
        Ok(())
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        self.directories.contains_key(&absolute(path))
    }

    /// The names of the files and directories in `dir`, sorted.
    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let dir = absolute(dir);
        let directory = self.directories.get(&dir).ok_or(io::ErrorKind::NotFound)?;
        let inner = self.directories.keys().filter(|path| path.parent() == Some(&dir)).filter_map(|path| name(path));
        let mut names: Vec<String> = directory.current.keys().cloned().chain(inner).collect();
        names.sort();
        Ok(names)
    }

    pub(super) fn find(&self, path: &Path) -> Option<Inode> {
        let path = absolute(path);
        self.directories.get(path.parent()?)?.current.get(&name(&path)?).cloned()
    }

    /// The file at `path`, made if it is missing and may be made.
    pub(super) fn open(&mut self, path: &Path, create: bool) -> io::Result<Inode> {
        let (directory, name) = self.place(path)?;
        if let Some(inode) = directory.current.get(&name) {
            return Ok(inode.clone());
        }
        if !create {
            return Err(io::ErrorKind::NotFound.into());
        }
        let inode = Inode::new();
        directory.change(Change::Link { name, inode: inode.clone() });
        Ok(inode)
    }

    /// Renames within one directory, which is all that the engine does; the move is atomic.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        if absolute(from).parent() != absolute(to).parent() {
            let message = "the simulated device renames within one directory only";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        let (_, to) = self.place(to)?;
        let (directory, from) = self.place(from)?;
        if !directory.current.contains_key(&from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if from != to {
            directory.change(Change::Rename { from, to });
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let (directory, name) = self.place(path)?;
        if !directory.current.contains_key(&name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        directory.change(Change::Unlink { name });
        Ok(())
    }

    /// Makes the changes in `dir` durable, and the directories that lead to it, as journalling file systems do.
    pub(super) fn sync_dir(&mut self, dir: &Path) -> io::Result<()> {
        let dir = absolute(dir);
        let directory = self.directories.get_mut(&dir).ok_or(io::ErrorKind::NotFound)?;
        directory.flush(directory.pending.len());
        for (path, directory) in &mut self.directories {
            directory.survives |= dir.starts_with(path) || path.parent() == Some(&dir);
        }
        Ok(())
    }

    /// The paths of all files, sorted.
    pub(super) fn file_names(&self) -> Vec<PathBuf> {
        let in_directory = |(path, directory): (&PathBuf, &Directory)| -> Vec<PathBuf> {
            directory.current.keys().map(|name| path.join(name)).collect()
        };
        let mut paths: Vec<PathBuf> = self.directories.iter().flat_map(in_directory).collect();
        paths.sort();
        paths
    }

    /// The space that the named files take, in bytes: each file's length in whole `granule_bytes`.
    pub(super) fn used_bytes(&self, granule_bytes: u64) -> u64 {
        let files = self.directories.values().flat_map(|directory| directory.current.values());
        files.map(|inode| inode.lock().length().next_multiple_of(granule_bytes)).sum()
    }

    /// Takes over the bytes that the process has stored in its mappings up to now.
    pub(super) fn absorb(&self) {
        self.directories.values().flat_map(Directory::inodes).for_each(|inode| inode.lock().absorb());
    }

    /// Parts from the memory of a dead process, which may still hold its mappings.
    pub(super) fn orphan_memory(&self) {
        self.directories.values().flat_map(Directory::inodes).for_each(|inode| inode.lock().orphan_memory());
    }

    /// A power cut; returns how many sectors lost their newest state, and how many changes of names were lost.
    pub(super) fn lose_unflushed(&mut self, random: &mut Rng) -> (u64, u64) {
        // Paths are sorted, so a directory comes after its parent and is lost with it.
        let mut lost: Vec<PathBuf> = Vec::new();
        self.directories.retain(|path, directory| {
            directory.survives = directory.survives || random.bool();
            let survives = directory.survives && !lost.iter().any(|gone| path.starts_with(gone));
            if !survives {
                lost.push(path.clone());
            }
            survives
        });
        let (mut lost_sectors, mut lost_names) = (0, 0);
        for directory in self.directories.values_mut() {
            lost_names += directory.lose_unflushed(random);
            for inode in directory.current.values() {
                lost_sectors += inode.lock().lose_unflushed(random);
            }
        }
        (lost_sectors, lost_names)
    }

    /// The directory and name that `path` stands for, whether or not such a file is there.
    fn place(&mut self, path: &Path) -> io::Result<(&mut Directory, String)> {
        let path = absolute(path);
        if self.directories.contains_key(&path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let (Some(parent), Some(name)) = (path.parent(), name(&path)) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let directory = self.directories.get_mut(parent).ok_or(io::ErrorKind::NotFound)?;
        Ok((directory, name))
    }
}

/// The simulated process works in the root directory.
pub(super) fn absolute(path: &Path) -> PathBuf {
    Path::new("/").join(path)
}

fn name(path: &Path) -> Option<String> {
    path.file_name()?.to_str().map(str::to_owned)
}
