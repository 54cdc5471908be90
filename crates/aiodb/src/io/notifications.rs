//! How a queue tells that results have come to a caller that waits for other things as well.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::Arc;

/// A descriptor that becomes readable. Nobody reads from it: it stays readable, and each notification is an event for those who wait for
/// edges (`EPOLLET`).
#[derive(Clone, Debug)]
pub struct Notifications(Arc<OwnedFd>);

impl Notifications {
    /// A descriptor that nothing has been told yet.
    pub fn new() -> io::Result<Notifications> {
        // SAFETY: no memory is given.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made it, and nobody else has it.
        Ok(Notifications(Arc::new(unsafe { OwnedFd::from_raw_fd(descriptor) })))
    }
}

impl AsFd for Notifications {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
