//! Online backups: restore points in the repository of the setting `backup-dir`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aiodb::{BackupOptions, Db};

use crate::refusal::{Refusal, said, words};

/// Why there is no backup.
const RUNNING: Refusal = words("ERR Background save already in progress");
const NOWHERE: Refusal = words("ERR there is no directory for backups: start the server with the setting backup-dir");

/// What becomes of backups.
pub(crate) struct Saves {
    repository: Option<PathBuf>,
    shown: Arc<Shown>,
    /// The last one in the background.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What INFO shows of them.
pub(crate) struct Shown {
    pub(crate) is_running: AtomicBool,
    /// Of the last one that went well, or of the start; in seconds since 1970.
    pub(crate) last_s: AtomicU64,
    /// Those that went well.
    pub(crate) count: AtomicU64,
    pub(crate) has_failed: AtomicBool,
    /// How long the last one took; -1 before the first.
    pub(crate) took_s: AtomicI64,
}

impl Saves {
    /// Backups go to `repository`, if there is one.
    pub(crate) fn new(repository: Option<&Path>) -> Saves {
        let shown = Shown {
            is_running: AtomicBool::new(false),
            last_s: AtomicU64::new(now_s()),
            count: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            took_s: AtomicI64::new(-1),
        };
        Saves { repository: repository.map(Path::to_path_buf), shown: Arc::new(shown), thread: Mutex::default() }
    }

    pub(crate) fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Makes a backup, and returns when it is durable.
    pub(crate) fn save(&self, db: &Db) -> Result<(), Refusal> {
        let repository = self.begin()?;
        self.shown.make(db, repository).map_err(|error| said(format!("ERR the backup failed: {error}")))
    }

    /// Begins a backup. INFO says how it went.
    pub(crate) fn save_in_background(&self, db: &Db) -> Result<(), Refusal> {
        let repository = self.begin()?.to_path_buf();
        let (shown, db) = (Arc::clone(&self.shown), db.clone());
        let begun = std::thread::Builder::new().name("aiodb-backup".into()).spawn(move || {
            // INFO says that it failed.
            let _ = shown.make(&db, &repository);
        });
        match begun {
            Ok(thread) => {
                *self.thread.lock().expect("no code panics while it holds the thread") = Some(thread);
                Ok(())
            }
            Err(error) => {
                self.shown.is_running.store(false, Ordering::SeqCst);
                Err(said(format!("ERR the backup failed: {error}")))
            }
        }
    }

    /// Waits for the backup in the background, which fails soon once the store is closed. Whether there was one under way, and it failed.
    pub(crate) fn finish(&self) -> bool {
        let was_running = self.shown.is_running.load(Ordering::SeqCst);
        let thread = self.thread.lock().expect("no code panics while it holds the thread").take();
        if let Some(thread) = thread {
            thread.join().expect("the thread of a backup does not panic");
        }
        was_running && self.shown.has_failed.load(Ordering::Relaxed)
    }

    fn begin(&self) -> Result<&Path, Refusal> {
        let repository = self.repository.as_deref().ok_or(NOWHERE)?;
        match self.shown.is_running.swap(true, Ordering::SeqCst) {
            true => Err(RUNNING),
            false => Ok(repository),
        }
    }
}

impl Shown {
    fn make(&self, db: &Db, repository: &Path) -> aiodb::Result<()> {
        let begun = Instant::now();
        let made = db.backup(repository, &BackupOptions::default(), &mut |_, _| {});
        self.took_s.store(begun.elapsed().as_secs() as i64, Ordering::Relaxed);
        self.has_failed.store(made.is_err(), Ordering::Relaxed);
        if made.is_ok() {
            self.last_s.store(now_s(), Ordering::Relaxed);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        self.is_running.store(false, Ordering::SeqCst);
        made.map(drop)
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
