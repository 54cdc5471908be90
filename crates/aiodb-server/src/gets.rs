//! Reads of the device on the threads of connections: the engine's gets are carried out by a task of the runtime, so that a get that misses
//! memory takes no switch to another thread and back.

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::Poll;

use aiodb::GetDriver;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;

/// So many gets are given to the device before other connections that are ready have had their turn.
const BATCH: usize = 8;

/// Starts the task that carries out gets until the store is closed. Called by a thread of the runtime.
pub(crate) fn start(mut driver: GetDriver) -> io::Result<()> {
    // A descriptor of its own, so that the driver itself can be used beside it.
    let descriptor = driver.as_fd().try_clone_to_owned()?;
    // SAFETY: nobody else has this descriptor; it is open until it is dropped, with the `AsyncFd`.
    let notifications = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
    tokio::spawn(async move {
        // An error says that the runtime ends.
        while next(&mut driver, &notifications).await.is_ok() && driver.turn() {
            // Where reads are done at once, this would go on while connections wait.
            consume_budget().await;
        }
    });
    Ok(())
}

/// Returns when there is something for a turn: the device has read something, or gets have come. Few gets wait until other connections
/// that are ready have asked too, so that their reads enter the kernel together.
async fn next(driver: &mut GetDriver, notifications: &AsyncFd<OwnedFd>) -> io::Result<()> {
    let mut yielding: Option<Pin<Box<_>>> = None;
    poll_fn(|context| {
        // What the device reads after this is another event.
        if let Poll::Ready(guard) = notifications.poll_read_ready(context) {
            guard?.clear_ready();
            return Poll::Ready(Ok(()));
        }
        if yielding.is_none() && driver.poll_arrived(context, 1).is_ready() {
            yielding = Some(Box::pin(yield_now()));
        }
        let Some(yielding) = &mut yielding else { return Poll::Pending };
        if driver.poll_arrived(context, BATCH).is_ready() {
            return Poll::Ready(Ok(()));
        }
        yielding.as_mut().poll(context).map(Ok)
    })
    .await
}
