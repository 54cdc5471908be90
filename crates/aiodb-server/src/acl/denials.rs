//! What was denied lately, for ACL LOG.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Alike denials within this time are one entry, if they are among the last few.
const ALIKE: Duration = Duration::from_secs(60);
const LAST_FEW: usize = 10;

/// Bytes of a name or a key that are kept, at most.
const MOST_BYTES: usize = 1024;

/// Where a client has tried what was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Toplevel,
    Transaction,
    Script,
}

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Toplevel => "toplevel",
            Place::Transaction => "multi",
            Place::Script => "lua",
        }
    }
}

/// Something that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    /// `command`, `key`, `channel` or `auth`.
    pub(crate) reason: &'static str,
    pub(crate) place: Place,
    /// The command, key or channel.
    pub(crate) object: Bytes,
    pub(crate) user: Bytes,
}

/// The same denial, once or several times.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) denied: Denied,
    pub(crate) count: i64,
    /// The last time.
    pub(crate) at: Instant,
    /// The client of the last time, as CLIENT INFO shows it.
    pub(crate) client: String,
}

/// The latest denials first.
#[derive(Default)]
pub(crate) struct Denials {
    entries: Mutex<VecDeque<Entry>>,
}

impl Denials {
    /// Notes a denial, and keeps so many.
    pub(crate) fn add(&self, mut denied: Denied, client: String, most: usize) {
        // They must not keep what they came in.
        for name in [&mut denied.object, &mut denied.user] {
            *name = Bytes::copy_from_slice(&name[..name.len().min(MOST_BYTES)]);
        }
        let mut entries = self.lock();
        let now = Instant::now();
        let is_alike = |entry: &Entry| entry.denied == denied && now.duration_since(entry.at) <= ALIKE;
        let alike = entries.iter().take(LAST_FEW).position(is_alike);
        let count = alike.and_then(|at| entries.remove(at)).map_or(1, |entry| entry.count + 1);
        entries.push_front(Entry { denied, count, at: now, client });
        entries.truncate(most);
    }

    /// So many, the latest first.
    pub(crate) fn latest(&self, most: usize) -> Vec<Entry> {
        self.lock().iter().take(most).cloned().collect()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().expect("no code panics while it holds the denials")
    }
}
