//! The queues of the work that the threads of a store do for async runtimes.

pub(crate) mod driven;
pub(crate) mod drivers;
pub(crate) mod requests;

use std::sync::Arc;

use crate::flow::futures::requests::{Reply, Requests};
use crate::flow::get::BegunGet;
use crate::io::Device;
use crate::store::catalog::TableSlot;
use crate::store::engine::Engine;
use crate::{Batch, Durability, Result, Sequence};

/// The futures of one store.
pub(crate) struct Futures<D: Device> {
    pub(crate) gets: Requests<Get<D>>,
    /// Those that a driver of the user's carries out, see [`driven::GetDriver`].
    pub(crate) driven: Requests<Get<D>>,
    pub(crate) writes: Requests<Write<D>>,
}

/// A get that waits for its thread.
pub(crate) struct Get<D: Device> {
    pub(crate) slot: Arc<TableSlot>,
    pub(crate) key: Vec<u8>,
    /// What is left of it, if it was begun already.
    pub(crate) begun: Option<Box<BegunGet<D>>>,
    /// Whether a driver carries it out. It is decided once, since the get may wait for its place there.
    pub(crate) is_driven: bool,
    pub(crate) reply: Reply<Option<Vec<u8>>>,
}

/// A write that waits for its thread.
pub(crate) struct Write<D: Device> {
    pub(crate) batch: Batch<D>,
    pub(crate) durability: Durability,
    pub(crate) reply: Reply<Sequence>,
}

impl<D: Device> Default for Futures<D> {
    fn default() -> Self {
        Futures { gets: Requests::default(), driven: Requests::default(), writes: Requests::default() }
    }
}

impl<D: Device> Futures<D> {
    /// Ends the threads; requests that they have not done are answered with [`Error::Closed`], and so are all later ones.
    pub(crate) fn stop(&self) {
        self.gets.stop();
        self.driven.refuse();
        self.writes.stop();
    }
}

/// The work of a thread of the store for futures.
pub(crate) trait Work<D: Device>: Sized + Send {
    const THREAD: &'static str;

    /// What a request is answered with.
    type Answer;

    /// The answer, if there is one without a wait for the device or for other work of the store: it saves the way to the thread and
    /// back. The caller's thread gives it.
    fn at_once(&mut self, engine: &Arc<Engine<D>>, futures: &Futures<D>) -> Result<Option<Self::Answer>>;

    /// Gives up what it holds of the store: it waits for a place in the queue, perhaps for long.
    fn let_go(&mut self) {}

    /// The queue that it goes into.
    fn requests<'a>(&self, futures: &'a Futures<D>) -> &'a Requests<Self>;

    /// The queue of the thread.
    fn requests_of_thread(futures: &Futures<D>) -> &Requests<Self>;

    /// Works on requests until the store is closed.
    fn drive(engine: Arc<Engine<D>>, futures: &Futures<D>);
}
