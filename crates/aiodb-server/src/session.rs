//! What the server knows of a connection while it lasts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use crate::acl::{Acl, User};
use crate::channels::Subscriptions;
use crate::client::Client;
use crate::locks::{Database, Key};
use crate::reply::Protocol;
use crate::request::Request;
use crate::slow_log::Waits;
use crate::waiters::Waiter;
use crate::watch::Watch;

/// The state of a connection.
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    /// Who the client is; the default user until it says who.
    pub(crate) user: Arc<User>,
    pub(crate) database: Database,
    pub(crate) protocol: Protocol,
    /// Whether the client has given a password, or needed none when it came.
    pub(crate) is_known: bool,
    /// Whether the connection ends after the replies to what came so far.
    pub(crate) is_ending: bool,
    /// The commands since MULTI.
    pub(crate) transaction: Option<Transaction>,
    /// While the commands of a transaction are carried out.
    pub(crate) is_executing: bool,
    pub(crate) watch: Watch,
    pub(crate) subscriptions: Subscriptions,
    /// While a command is carried out that waits.
    pub(crate) waiting: Option<Waiting>,
    /// What the last commands waited for.
    pub(crate) waits: Waits,
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
    pub(crate) fn new(client: Arc<Client>) -> Session {
        let user = client.user();
        Session {
            client,
            database: 0,
            protocol: Protocol::Resp2,
            is_known: user.is_open(),
            user,
            is_ending: false,
            transaction: None,
            is_executing: false,
            watch: Watch::default(),
            subscriptions: Subscriptions::default(),
            waiting: None,
            waits: Waits::default(),
        }
    }

    /// The client is this user from now on.
    pub(crate) fn log_in(&mut self, user: Arc<User>) {
        self.is_known = true;
        self.client.set_user(Arc::clone(&user));
        self.user = user;
    }

    /// The client is nobody from now on, as one that has just come.
    pub(crate) fn log_out(&mut self, acl: &Acl) {
        self.log_in(Arc::clone(acl.default_user()));
        self.is_known = self.user.is_open();
    }

    /// Whether the client must say who it is before anything else.
    pub(crate) fn must_log_in(&self, acl: &Acl) -> bool {
        !self.is_known && !acl.default_user().is_open()
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
