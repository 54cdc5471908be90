//! Gets and writes as futures, for any async runtime.
//!
//! What needs no device and no wait is done where the future is first polled: gets of what lies in memory, and writes in a
//! class that waits for nothing. The device is driven by threads of the store's own, which are started by the first future of
//! their sort that needs them: one has a [`Reader`] on all tables and keeps many gets in flight (or a task of the caller's does, see
//! [`Db::get_driver`](crate::Db::get_driver)); another appends all the writes
//! that wait to the open batch and leads that once for all of them. Gets do not wait for writes. A future only holds the
//! question and, later, the answer: every buffer that the kernel may write into belongs to the reader of the first thread, so
//! that dropping a future at any moment frees none of them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::flow::futures::requests::{Answer, Offer, answer};
use crate::flow::futures::{Get, Work, Write};
use crate::flow::lifecycle::Handle;
use crate::flow::upkeep::background::survive;
use crate::io::{Device, Disk};
use crate::{Batch, Db, Durability, Error, Result, Sequence, Table};

impl<D: Device> Table<D> {
    /// [`Table::get`] as a future.
    ///
    /// ```
    /// # use aiodb::{Db, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path(), Options::default())?;
    /// let table = db.table_or_create("sensors", IndexKind::Hash)?;
    /// let both = async {
    ///     // Both puts share one write to the device.
    ///     let (kitchen, attic) = (table.put_async(b"kitchen", b"21.5"), table.put_async(b"attic", b"14.0"));
    ///     let (kitchen, attic) = futures::join!(kitchen, attic);
    ///     assert!(kitchen.is_ok() && attic.is_ok());
    ///     table.get_async(b"attic").await
    /// };
    /// assert_eq!(futures::executor::block_on(both)?, Some(b"14.0".to_vec()));
    /// # Ok(()) }
    /// ```
    pub fn get_async(&self, key: &[u8]) -> GetFuture<D> {
        let (reply, answer) = answer();
        let request = self.engine.check_key(key).map(|()| {
            let (slot, key) = (Arc::clone(&self.slot), key.to_vec());
            Get { slot, key, begun: None, is_driven: false, reply }
        });
        GetFuture(Asked::new(&self.engine, request, answer))
    }

    /// [`Table::put`] as a future, see [`WriteFuture`].
    pub fn put_async(&self, key: &[u8], value: &[u8]) -> WriteFuture<D> {
        self.put_async_with(key, value, self.engine.options.durability)
    }

    /// [`Table::put_with`] as a future, see [`WriteFuture`].
    pub fn put_async_with(&self, key: &[u8], value: &[u8], durability: Durability) -> WriteFuture<D> {
        let mut batch = Batch::new();
        let added = batch.put(self, key, value).map(drop);
        WriteFuture::new(&self.engine, added.map(|()| batch), durability)
    }

    /// [`Table::delete`] as a future, see [`WriteFuture`].
    pub fn delete_async(&self, key: &[u8]) -> WriteFuture<D> {
        self.delete_async_with(key, self.engine.options.durability)
    }

    /// [`Table::delete_with`] as a future, see [`WriteFuture`].
    pub fn delete_async_with(&self, key: &[u8], durability: Durability) -> WriteFuture<D> {
        let mut batch = Batch::new();
        let added = batch.delete(self, key).map(drop);
        WriteFuture::new(&self.engine, added.map(|()| batch), durability)
    }
}

impl<D: Device> Db<D> {
    /// [`Db::write`] as a future, see [`WriteFuture`]. Conditional batches of one task are written one after the other.
    pub fn write_async(&self, batch: Batch<D>) -> WriteFuture<D> {
        self.write_async_with(batch, self.engine.options.durability)
    }

    /// [`Db::write_with`] as a future, see [`WriteFuture`].
    pub fn write_async_with(&self, batch: Batch<D>, durability: Durability) -> WriteFuture<D> {
        WriteFuture::new(&self.engine, Ok(batch), durability)
    }
}

/// A get under way, from [`Table::get_async`].
///
/// It begins when it is first polled, and completes there if all that it needs lies in memory, except in a table of kind `lmdb`:
/// pages of LMDB may have to be read. Of the others a store works on at most 128 and 4,096 more wait in its queue; when that is
/// full, a future waits for a place there. Dropping it is always possible. It completes with [`Error::Closed`] when the
/// store is closed, and with [`Error::Option`] in a store that was opened without [`crate::Options::background`].
#[must_use = "a future does nothing unless it is polled"]
pub struct GetFuture<D: Device = Disk>(Asked<D, Get<D>>);

/// A write under way, from [`Table::put_async`], [`Table::delete_async`] or [`Db::write_async`]; it completes when the
/// write is acknowledged in its class, with its sequence.
///
/// It begins when it is first polled. A small write in the class `interval` or `none` completes there, unless it would have to
/// wait, the store asks for work first, or its values are to be compressed. One that overwrites or deletes a value of more than
/// 1 MiB may read the list of its parts from the device. All writes that wait together share one write to the device. A queue holds 4,096;
/// when that is full, a future waits for a place there. A future that is dropped after it was polled does not take its
/// write back: that may happen or not, as a whole. It completes with [`Error::Closed`] when the store was closed before
/// its write was begun, and with [`Error::Option`] in a store that was opened without [`crate::Options::background`].
#[must_use = "a future does nothing unless it is polled"]
pub struct WriteFuture<D: Device = Disk>(Asked<D, Write<D>>);

impl<D: Device> WriteFuture<D> {
    fn new(engine: &Arc<Handle<D>>, batch: Result<Batch<D>>, durability: Durability) -> WriteFuture<D> {
        let (reply, answer) = answer();
        WriteFuture(Asked::new(engine, batch.map(|batch| Write { batch, durability, reply }), answer))
    }
}

impl<D: Device> Future for GetFuture<D> {
    type Output = Result<Option<Vec<u8>>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

impl<D: Device> Future for WriteFuture<D> {
    type Output = Result<Sequence>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context)
    }
}

/// A question to a thread of the store, and where its answer comes.
struct Asked<D: Device, R: Work<D>> {
    engine: Arc<Handle<D>>,
    /// The question until the queue takes it, or the reason why there is none.
    request: Option<Result<R>>,
    /// The place among the questions that wait for the queue.
    ticket: Option<u64>,
    answer: Arc<Answer<R::Answer>>,
}

impl<D: Device, R: Work<D>> Asked<D, R> {
    fn new(engine: &Arc<Handle<D>>, request: Result<R>, answer: Arc<Answer<R::Answer>>) -> Asked<D, R> {
        let request =
            request.and_then(|request| if engine.options.background { Ok(request) } else { Err(no_threads()) });
        Asked { engine: Arc::clone(engine), request: Some(request), ticket: None, answer }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<R::Answer>> {
        if let Some(request) = self.request.take() {
            let mut request = request?;
            let is_first_poll = self.ticket.is_none();
            if is_first_poll && let Some(answer) = request.at_once(&self.engine.engine, &self.engine.futures)? {
                return Poll::Ready(Ok(answer));
            }
            let start = || {
                let name = R::THREAD.into();
                let (engine, futures) = (Arc::clone(&self.engine.engine), Arc::clone(&self.engine.futures));
                let drive = move || {
                    if !survive(&engine, R::THREAD, || R::drive(Arc::clone(&engine), &futures)) {
                        R::requests_of_thread(&futures).refuse();
                    }
                };
                let thread = std::thread::Builder::new().name(name).spawn(drive);
                thread.map_err(|e| Error::io("start a thread for", &self.engine.root, &e))
            };
            let requests = request.requests(&self.engine.futures);
            match requests.offer(request, &mut self.ticket, context.waker(), start)? {
                Offer::Taken => {}
                Offer::Full(mut request) => {
                    request.let_go();
                    self.request = Some(Ok(request));
                    return Poll::Pending;
                }
            }
        }
        self.answer.poll(context)
    }
}

impl<D: Device, R: Work<D>> Drop for Asked<D, R> {
    fn drop(&mut self) {
        // While it waits for a place it has its request.
        if let (Some(ticket), Some(Ok(request))) = (self.ticket, &self.request) {
            request.requests(&self.engine.futures).leave(ticket);
        }
    }
}

fn no_threads() -> Error {
    let allowed = "futures need the store's own threads: open it with `background`, or use the blocking calls";
    Error::Option { option: "background", value: "false".into(), allowed }
}
