//! The connections, as CLIENT shows them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::acl::User;
use crate::reply::Protocol;

/// A connection.
pub(crate) struct Client {
    pub(crate) id: u64,
    /// The other end.
    pub(crate) address: SocketAddr,
    /// Our end.
    pub(crate) local_address: SocketAddr,
    pub(crate) descriptor: i32,
    pub(crate) shown: Shown,
    user: Mutex<Arc<User>>,
    since: Instant,
    /// Milliseconds after `since` at which the last command came.
    active_ms: AtomicU64,
    is_killed: AtomicBool,
    killed: Notify,
    waits: AtomicU8,
    unblocked: Notify,
}

/// Whether a client waits for elements, or what CLIENT UNBLOCK wants of one that does.
const WAITS_NOT: u8 = 0;
const WAITS: u8 = 1;
const TIMED_OUT: u8 = 2;
const UNBLOCKED: u8 = 3;

/// How CLIENT UNBLOCK ends the waiting of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unblocked {
    /// As if its time were over.
    TimedOut,
    WithError,
}

/// What changes of a connection, for others to see.
#[derive(Default)]
pub(crate) struct Shown {
    pub(crate) name: Mutex<Bytes>,
    pub(crate) database: AtomicU16,
    pub(crate) is_resp3: AtomicBool,
    /// Commands that wait for EXEC; -1 outside of a transaction.
    pub(crate) queued: AtomicI64,
    pub(crate) last_command: Mutex<Option<&'static str>>,
    /// Bytes received and not read yet.
    pub(crate) input_bytes: AtomicUsize,
    /// Bytes of replies that the client has not taken.
    pub(crate) output_bytes: AtomicUsize,
    /// Bytes of messages that wait behind them.
    pub(crate) message_bytes: AtomicUsize,
    /// Subscriptions to channels, and to patterns.
    pub(crate) channels: AtomicUsize,
    pub(crate) patterns: AtomicUsize,
    /// Whether it asked to stay when memory is short. Nobody is cut off for that here.
    pub(crate) stays: AtomicBool,
}

impl Client {
    /// Asks the connection to end.
    pub(crate) fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
        self.killed.notify_one();
    }

    /// Whether the connection is to end.
    pub(crate) fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }

    /// Returns when the connection is to end. One task waits at a time.
    pub(crate) async fn killed(&self) {
        while !self.is_killed() {
            self.killed.notified().await;
        }
    }

    /// Says that the client waits from now on.
    pub(crate) fn begin_to_wait(&self) {
        self.waits.store(WAITS, Ordering::SeqCst);
    }

    /// Says that the client does not wait from now on; whether that is so because another wants it.
    pub(crate) fn end_to_wait(&self) -> Option<Unblocked> {
        match self.waits.swap(WAITS_NOT, Ordering::SeqCst) {
            TIMED_OUT => Some(Unblocked::TimedOut),
            UNBLOCKED => Some(Unblocked::WithError),
            _ => None,
        }
    }

    /// Ends the waiting of the client; whether it did wait.
    pub(crate) fn unblock(&self, how: Unblocked) -> bool {
        let wanted = match how {
            Unblocked::TimedOut => TIMED_OUT,
            Unblocked::WithError => UNBLOCKED,
        };
        let waited = self.waits.compare_exchange(WAITS, wanted, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        if waited {
            self.unblocked.notify_one();
        }
        waited
    }

    /// Returns when another wants the client not to wait any more. One task waits at a time.
    pub(crate) async fn unblocked(&self) {
        while self.waits.load(Ordering::SeqCst) <= WAITS {
            self.unblocked.notified().await;
        }
    }

    /// Notes that a command came.
    pub(crate) fn note(&self, command: &'static str) {
        self.active_ms.store(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
        *self.shown.last_command.lock().expect("no code panics while it holds the command") = Some(command);
    }

    pub(crate) fn set_protocol(&self, protocol: Protocol) {
        self.shown.is_resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    }

    pub(crate) fn name(&self) -> Bytes {
        self.shown.name.lock().expect("no code panics while it holds the name").clone()
    }

    pub(crate) fn set_name(&self, name: Bytes) {
        *self.shown.name.lock().expect("no code panics while it holds the name") = name;
    }

    pub(crate) fn user(&self) -> Arc<User> {
        Arc::clone(&self.user.lock().expect("no code panics while it holds the user"))
    }

    pub(crate) fn set_user(&self, user: Arc<User>) {
        *self.user.lock().expect("no code panics while it holds the user") = user;
    }

    /// Whether it has subscriptions.
    pub(crate) fn listens(&self) -> bool {
        self.shown.channels.load(Ordering::Relaxed) + self.shown.patterns.load(Ordering::Relaxed) > 0
    }

    /// Redis's letters for what it is and does.
    fn flags(&self) -> String {
        let is_queueing = self.shown.queued.load(Ordering::Relaxed) >= 0;
        let waits = self.waits.load(Ordering::Relaxed) != WAITS_NOT;
        let stays = self.shown.stays.load(Ordering::Relaxed);
        let letters = [(self.listens(), 'P'), (is_queueing, 'x'), (waits, 'b'), (stays, 'e')];
        let flags: String = letters.into_iter().filter(|(is_set, _)| *is_set).map(|(_, letter)| letter).collect();
        if flags.is_empty() { "N".into() } else { flags }
    }

    /// The connection as one line of CLIENT LIST.
    pub(crate) fn line(&self) -> String {
        let shown = &self.shown;
        let age_ms = self.since.elapsed().as_millis() as u64;
        let idle_ms = age_ms.saturating_sub(self.active_ms.load(Ordering::Relaxed));
        let queued = shown.queued.load(Ordering::Relaxed);
        let output_bytes = shown.output_bytes.load(Ordering::Relaxed) + shown.message_bytes.load(Ordering::Relaxed);
        let last_command = *shown.last_command.lock().expect("no code panics while it holds the command");
        format!(
            "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub=0 multi={} qbuf={} \
             qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={output_bytes} oll=0 omem={output_bytes} tot-mem={} \
             events=r cmd={} user={} redir=-1 resp={}\n",
            self.id,
            self.address,
            self.local_address,
            self.descriptor,
            String::from_utf8_lossy(&self.name()),
            age_ms / 1000,
            idle_ms / 1000,
            self.flags(),
            shown.database.load(Ordering::Relaxed),
            shown.channels.load(Ordering::Relaxed),
            shown.patterns.load(Ordering::Relaxed),
            queued,
            shown.input_bytes.load(Ordering::Relaxed),
            shown.input_bytes.load(Ordering::Relaxed) + output_bytes,
            last_command.unwrap_or("NULL"),
            String::from_utf8_lossy(&self.user().name),
            if shown.is_resp3.load(Ordering::Relaxed) { 3 } else { 2 },
        )
    }
}

/// All connections.
#[derive(Default)]
pub(crate) struct Clients {
    next_id: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// How many: connections ask with each reply. Relaxed: changed under the lock.
    count: AtomicUsize,
}

impl Clients {
    /// Adds a connection, if there are fewer than `most`.
    pub(crate) fn add(
        &self,
        address: SocketAddr,
        local_address: SocketAddr,
        descriptor: i32,
        user: &Arc<User>,
        most: usize,
    ) -> Option<Arc<Client>> {
        let mut open = self.lock();
        if open.len() >= most {
            return None;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed) + 1;
        let shown = Shown { queued: AtomicI64::new(-1), ..Shown::default() };
        let client = Arc::new(Client {
            id,
            address,
            local_address,
            descriptor,
            shown,
            user: Mutex::new(Arc::clone(user)),
            since: Instant::now(),
            active_ms: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
            killed: Notify::new(),
            waits: AtomicU8::new(WAITS_NOT),
            unblocked: Notify::new(),
        });
        open.insert(id, Arc::clone(&client));
        self.count.store(open.len(), Ordering::Relaxed);
        Some(client)
    }

    pub(crate) fn remove(&self, client: &Client) {
        let mut open = self.lock();
        open.remove(&client.id);
        self.count.store(open.len(), Ordering::Relaxed);
    }

    /// All connections, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Client>>> {
        self.open.lock().expect("no code panics while it holds the connections")
    }
}
