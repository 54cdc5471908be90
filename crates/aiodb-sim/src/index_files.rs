//! LMDB's file across crashes. LMDB maps its file by itself and cannot run on the simulated machine; so its file lies in a
//! real directory, in memory where possible, and its states are kept: at the moment of a crash, and after each commit.
//! Any of them, and none at all, must be enough together with the log.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aiodb::io::Phase;
use aiodb::io::sim::{Event, SimDevice};
use tempfile::TempDir;

use crate::script::IndexState;

/// States kept of a run. On a full disk reclaim commits the memtable for each victim with deletes, so the state from before
/// those deletes lies many commits back.
const MAX_STATES: usize = 96;

/// Where the store keeps LMDB's file, below a device's real directory.
const FILE: &str = "store/index/lmdb/data.mdb";

/// The states of LMDB's file in one run.
pub struct IndexFiles {
    root: TempDir,
    lives: usize,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    file: PathBuf,
    committed: VecDeque<Vec<u8>>,
    crashed: Option<Vec<u8>>,
}

impl IndexFiles {
    /// An empty directory for the first process on `device`.
    pub fn new(device: &SimDevice) -> IndexFiles {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let root = tempfile::Builder::new().prefix("aiodb-sim-").tempdir_in(parent);
        let root = root.expect("a directory for LMDB's file can be made");
        let mut files = IndexFiles { root, lives: 0, seen: Arc::default() };
        let seen = Arc::clone(&files.seen);
        device.observe(move |event| {
            let mut seen = lock(&seen);
            match event {
                Event::Crash => seen.crashed = std::fs::read(&seen.file).ok(),
                Event::End(Phase::IndexCommit) => {
                    let state = std::fs::read(&seen.file).ok();
                    seen.committed.extend(state);
                    if seen.committed.len() > MAX_STATES {
                        seen.committed.pop_front();
                    }
                }
                Event::End(_) => {}
            }
        });
        files.next_life(device, None);
        files
    }

    /// The process has died: the next one finds the file in this state, in a directory of its own, because the dead one
    /// may still hold the file mapped.
    pub fn crash(&mut self, device: &SimDevice, state: IndexState) {
        let mut seen = lock(&self.seen);
        let newest = seen.crashed.take().or_else(|| std::fs::read(&seen.file).ok());
        let bytes = match state {
            IndexState::Newest => newest,
            IndexState::Earlier(age) => {
                let index = seen.committed.len().saturating_sub(1 + age);
                seen.committed.get(index).cloned().or(newest)
            }
            IndexState::Missing => None,
        };
        drop(seen);
        self.next_life(device, bytes);
    }

    /// Removes what earlier lives have left, whose stores are closed by now.
    pub fn forget_dead(&self) {
        for life in 1..self.lives {
            let _ = std::fs::remove_dir_all(self.directory(life));
        }
    }

    fn next_life(&mut self, device: &SimDevice, bytes: Option<Vec<u8>>) {
        self.lives += 1;
        let directory = self.directory(self.lives);
        let file = directory.join(FILE);
        std::fs::create_dir_all(file.parent().expect("the file lies in a directory")).expect("directories can be made");
        if let Some(bytes) = bytes {
            std::fs::write(&file, bytes).expect("LMDB's file can be written");
        }
        device.set_real_directory(&directory);
        lock(&self.seen).file = file;
    }

    fn directory(&self, life: usize) -> PathBuf {
        self.root.path().join(life.to_string())
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
