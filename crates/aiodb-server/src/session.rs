//! What the server knows of a connection while it lasts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::channels::Subscriptions;
use crate::client::Client;
use crate::locks::{Database, Key};
use crate::reply::Protocol;
use crate::request::Request;
use crate::waiters::Waiter;
use crate::watch::Watch;

/// The state of a connection.
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) database: Database,
    pub(crate) protocol: Protocol,
    /// Whether the client has given the password, or needs none.
    pub(crate) is_known: bool,
    /// Whether the connection ends after the replies to what came so far.
    pub(crate) is_ending: bool,
    /// The commands since MULTI.
    pub(crate) transaction: Option<Transaction>,
    pub(crate) watch: Watch,
    pub(crate) subscriptions: Subscriptions,
    /// While a command is carried out that waits.
    pub(crate) waiting: Option<Waiting>,
}

/// A client that waits for elements of some keys.
pub(crate) struct Waiting {
    pub(crate) keys: Arc<[Key]>,
    pub(crate) waiter: Arc<Waiter>,
    /// Whether there was nothing at first.
    pub(crate) has_waited: bool,
}

/// Commands that wait for EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) requests: Vec<Request>,
    /// Bytes of their arguments.
    pub(crate) bytes: usize,
    /// Whether one of them was refused, so that EXEC will be too.
    pub(crate) is_refused: bool,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, is_known: bool) -> Session {
        Session {
            client,
            database: 0,
            protocol: Protocol::Resp2,
            is_known,
            is_ending: false,
            transaction: None,
            watch: Watch::default(),
            subscriptions: Subscriptions::default(),
            waiting: None,
        }
    }

    /// A key of the chosen database.
    pub(crate) fn key(&self, name: &Bytes) -> Key {
        Key { database: self.database, name: name.clone() }
    }

    /// Whether the client may only ask for more or fewer subscriptions, since it cannot tell replies from messages.
    pub(crate) fn only_listens(&self) -> bool {
        self.protocol == Protocol::Resp2 && self.subscriptions.count() > 0
    }

    pub(crate) fn select(&mut self, database: Database) {
        self.database = database;
        self.client.shown.database.store(database, Ordering::Relaxed);
    }

    pub(crate) fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.set_protocol(protocol);
    }

    pub(crate) fn show_transaction(&self) {
        let queued = self.transaction.as_ref().map_or(-1, |transaction| transaction.requests.len() as i64);
        self.client.shown.queued.store(queued, Ordering::Relaxed);
    }
}
