//! The gets of futures on a thread of the caller's.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::flow::futures::drivers::Gets;
use crate::flow::futures::{Futures, Get};
use crate::flow::lifecycle::Handle;
use crate::flow::upkeep::background::survive;
use crate::io::{Device, Disk, Notifications, Queue};
use crate::store::engine::Engine;
use crate::{Error, Result};

/// Gets in flight: a device gives its full rate, and what waits longer waits in the queue.
const GETS_IN_FLIGHT: usize = 256;

/// Carries out the gets of a store's futures that need the device on the caller's own thread, from [`Db::get_driver`](crate::Db::get_driver).
///
/// Without one a thread of the store does that, and each such get costs two switches of threads. A task of the runtime that polls the
/// futures saves them: it waits until [`GetDriver::poll_arrived`] is ready or the descriptor ([`AsFd`]) has an event, and then takes a
/// [`GetDriver::turn`]. The descriptor is never read from and stays readable, so it must be waited for by its edges (`EPOLLET`; `AsyncFd` of
/// tokio does that); the event is to be taken before the turn. Who takes no turn lets gets wait: nobody else carries them out. A get from an
/// `lmdb` table still goes to the thread, since it may wait for a page of the index.
///
/// Dropping it waits for reads that the device has, and answers the gets that it had, and all later ones that need the device, with
/// [`Error::Closed`].
pub struct GetDriver<D: Device = Disk> {
    engine: Arc<Engine<D>>,
    futures: Arc<Futures<D>>,
    gets: Gets<D>,
    /// Empty between turns.
    arrived: Vec<Get<D>>,
    notifications: Notifications,
}

impl<D: Device> GetDriver<D> {
    /// `None` if the device cannot tell of results, or somebody carries out gets already.
    pub(crate) fn attach(handle: &Handle<D>) -> Result<Option<GetDriver<D>>> {
        let engine = Arc::clone(&handle.engine);
        let io = |e| Error::io("wait without a thread for reads from", &engine.root, &e);
        let notifications = Notifications::new().map_err(io)?;
        let can_tell = engine.device.queue(1).and_then(|mut queue| queue.notify(&notifications)).map_err(io)?;
        if !can_tell || !handle.futures.driven.attach_driver() {
            return Ok(None);
        }
        let gets = Gets::new(Arc::clone(&engine), GETS_IN_FLIGHT, Some(notifications.clone()));
        let futures = Arc::clone(&handle.futures);
        Ok(Some(GetDriver { engine, futures, gets, arrived: Vec::new(), notifications }))
    }

    /// Ready when so many gets have come, at least one, and there is room for some, or when the store is being closed. Else the context's
    /// waker is called then; while there is no room the descriptor has an event first.
    pub fn poll_arrived(&mut self, context: &mut Context<'_>, least: usize) -> Poll<()> {
        self.futures.driven.poll_arrived(context, least.clamp(1, GETS_IN_FLIGHT), self.gets.room() > 0)
    }

    /// Gives the device the gets that have come, and the futures the answers that are there. It does not wait for what the device reads, but
    /// where the system is short of descriptors or memory, and once when turns come from another thread than before. False once the store is
    /// being closed: then all gets are answered, and there will be nothing more to do.
    pub fn turn(&mut self) -> bool {
        let GetDriver { engine, futures, gets, arrived, .. } = self;
        let mut is_open = false;
        survive(engine, "of gets", || is_open = gets.turn(&futures.driven, arrived));
        if !is_open {
            futures.driven.refuse();
            gets.give_up(Error::Closed);
        }
        is_open
    }
}

impl<D: Device> AsFd for GetDriver<D> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notifications.as_fd()
    }
}

impl<D: Device> Drop for GetDriver<D> {
    fn drop(&mut self) {
        self.futures.driven.refuse();
    }
}
