//! What a process holds: an open store, and what its clients have begun and not finished. Nothing of it outlives a crash.

use std::collections::BTreeMap;

use aiodb::io::sim::SimDevice;
use aiodb::{Db, Ingest, Reader, Sequence, Snapshot, Table, ValueReader, ValueWriter, WaitingWrite};

use crate::model::{Contents, Effect, Held, Moments};
use crate::script::CLIENTS;

/// A process: an open store and what its clients hold.
pub(crate) struct Life {
    pub(crate) clients: Vec<Client>,
    /// Snapshots that are held, and what they must show.
    pub(crate) snapshots: Vec<Taken>,
    /// Values that are being written and read piece by piece.
    pub(crate) writing: Vec<Writing>,
    /// See `writing`.
    pub(crate) reading: Vec<Reading>,
    /// A table that is being made with its contents.
    pub(crate) ingesting: Option<Ingesting>,
    /// Writes of the second client.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) db: Db<SimDevice>,
}

impl Life {
    /// A store that has just been opened.
    pub(crate) fn new(db: Db<SimDevice>) -> Life {
        let clients = (0..CLIENTS).map(|_| Client::default()).collect();
        let (snapshots, writing, reading, waiting) = Default::default();
        Life { clients, snapshots, writing, reading, ingesting: None, waiting, db }
    }

    /// Ends the gets in flight and the streams of all clients: segments in which they read or write are not emptied, or not free
    /// afterwards. Snapshots are none of that, a full disk ends them. True if there were any.
    pub(crate) fn end_holding(&mut self) -> bool {
        let reads = self.clients.iter().any(|client| !client.in_flight.is_empty());
        let streams = !self.reading.is_empty() || !self.writing.is_empty();
        let holds = reads || streams || self.ingesting.take().is_some();
        self.clients.iter_mut().for_each(|client| *client = Client::default());
        self.reading.clear();
        self.writing.clear();
        holds
    }
}

/// One logical client with a reader of its own.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) reader: Option<Reader<SimDevice>>,
    /// The reader's table, and which of its creations.
    pub(crate) table: (usize, u64),
    pub(crate) in_flight: BTreeMap<u64, Get>,
    pub(crate) next_token: u64,
}

/// A get in flight, and every value that its key has had since it was submitted.
pub(crate) struct Get {
    pub(crate) key: usize,
    pub(crate) accepted: Vec<Held>,
    /// When it was submitted.
    pub(crate) from: Moments,
}

/// A snapshot that was taken, and the contents that it must show.
pub(crate) struct Taken {
    pub(crate) snapshot: Snapshot<SimDevice>,
    /// Handles from that time: the tables may be gone by now.
    pub(crate) tables: Vec<Option<Table<SimDevice>>>,
    /// Several where a write came to be seen just then.
    pub(crate) contents: Vec<Contents>,
    /// When it was taken.
    pub(crate) moments: Moments,
    /// The last sequence at that time.
    pub(crate) sequence: Sequence,
}

/// A value that is being written.
pub(crate) struct Writing {
    pub(crate) writer: ValueWriter<SimDevice>,
    pub(crate) table: usize,
    pub(crate) key: usize,
    /// How often the table had been emptied.
    pub(crate) emptied: u64,
    pub(crate) value: Vec<u8>,
    pub(crate) pushed: usize,
}

/// A value that is being read, and what it may be.
pub(crate) struct Reading {
    pub(crate) reader: ValueReader<SimDevice>,
    pub(crate) accepted: Vec<Vec<u8>>,
    pub(crate) read: usize,
}

/// A table that is being made with its contents.
pub(crate) struct Ingesting {
    pub(crate) ingest: Ingest<SimDevice>,
    pub(crate) table: usize,
    /// All keys in the order of their bytes, and the place there of the next one.
    pub(crate) keys: Vec<usize>,
    pub(crate) next: usize,
    /// The records so far.
    pub(crate) effects: Vec<Effect>,
}

/// A write that waits, and the number of its change.
pub(crate) struct Waiting {
    pub(crate) write: WaitingWrite<SimDevice>,
    pub(crate) change: usize,
}

/// How a write ended that has met no error.
pub(crate) enum Written {
    Acknowledged,
    /// It is in the log.
    Appended(WaitingWrite<SimDevice>),
    /// What it requires is not there.
    Refused,
}
