//! LMDB's file, which no simulated machine has: it lies in a real directory, in memory where possible. The next process finds it as it was when the one
//! before it died.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ROOT;
use crate::io::sim::{Event, SimDevice};

/// Directories that were made by this process, so that each has a name of its own.
static DIRECTORIES: AtomicU64 = AtomicU64::new(0);

/// The file in the lives of one script. Its directories are removed in the end.
pub(super) struct IndexFile {
    directory: PathBuf,
    lives: usize,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    file: PathBuf,
    /// As it was when the machine crashed.
    crashed: Option<Vec<u8>>,
}

impl IndexFile {
    /// An empty directory for the first process on `device`.
    pub(super) fn new(device: &SimDevice) -> IndexFile {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = DIRECTORIES.fetch_add(1, Ordering::Relaxed);
        let directory = parent.join(format!("aiodb-fuzz-{}-{number}", std::process::id()));
        let mut file = IndexFile { directory, lives: 0, seen: Arc::default() };
        let seen = Arc::clone(&file.seen);
        device.observe(move |event| {
            if let Event::Crash = event {
                let mut seen = lock(&seen);
                seen.crashed = std::fs::read(&seen.file).ok();
            }
        });
        file.begin_life(device, None);
        file
    }

    /// The process has died. The next one has a directory of its own, since the dead one may still hold the file mapped.
    pub(super) fn end_life(&mut self, device: &SimDevice) {
        let mut seen = lock(&self.seen);
        let bytes = seen.crashed.take().or_else(|| std::fs::read(&seen.file).ok());
        drop(seen);
        self.begin_life(device, bytes);
    }

    fn begin_life(&mut self, device: &SimDevice, bytes: Option<Vec<u8>>) {
        self.lives += 1;
        let directory = self.directory.join(self.lives.to_string());
        let file = directory.join(ROOT.trim_start_matches('/')).join("index/lmdb/data.mdb");
        std::fs::create_dir_all(file.parent().expect("the file lies in a directory")).expect("directories can be made");
        if let Some(bytes) = bytes {
            std::fs::write(&file, bytes).expect("LMDB's file can be written");
        }
        device.set_real_directory(&directory);
        lock(&self.seen).file = file;
    }
}

impl Drop for IndexFile {
    fn drop(&mut self) {
        // What is left is in memory, or in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
