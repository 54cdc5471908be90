//! The read queue of the backend that was found to work.

use std::io;

use super::file::DiskFile;
use crate::io::libaio::LibaioQueue;
use crate::io::threads::ThreadsQueue;
use crate::io::uring::UringQueue;
use crate::io::{MAX_QUEUE_DEPTH, Notifications, Queue, Reaped};

/// The implementation behind a queue; the later one works wherever an earlier one does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum QueueKind {
    Uring,
    Libaio,
    Threads,
}

impl QueueKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            QueueKind::Uring => "uring",
            QueueKind::Libaio => "libaio",
            QueueKind::Threads => "threads",
        }
    }
}

/// A read queue of the backend that was found to work.
pub struct DiskQueue(Implementation);

#[expect(clippy::large_enum_variant, reason = "there is one for each reading thread, and it is used in place")]
enum Implementation {
    Uring(UringQueue),
    Libaio(LibaioQueue),
    Threads(ThreadsQueue),
}

impl DiskQueue {
    pub(super) fn new(kind: QueueKind, depth: usize) -> io::Result<DiskQueue> {
        assert!((1..=MAX_QUEUE_DEPTH).contains(&depth), "a queue depth of {depth}");
        Ok(DiskQueue(match kind {
            QueueKind::Uring => Implementation::Uring(UringQueue::new(depth)?),
            QueueKind::Libaio => Implementation::Libaio(LibaioQueue::new(depth)?),
            QueueKind::Threads => Implementation::Threads(ThreadsQueue::new(depth)?),
        }))
    }
}

impl Queue for DiskQueue {
    type File = DiskFile;

    unsafe fn register(&mut self, start: *mut u8, length: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            match &mut self.0 {
                Implementation::Uring(queue) => queue.register(start, length),
                Implementation::Libaio(queue) => queue.register(start, length),
                Implementation::Threads(queue) => queue.register(start, length),
            }
        }
    }

    unsafe fn push(&mut self, slot: u32, file: &DiskFile, offset: u64, buffer: *mut u8, length: u32) {
        // SAFETY: promised by the caller.
        unsafe {
            match &mut self.0 {
                Implementation::Uring(queue) => queue.push(slot, file, offset, buffer, length),
                Implementation::Libaio(queue) => queue.push(slot, file, offset, buffer, length),
                Implementation::Threads(queue) => queue.push(slot, file, offset, buffer, length),
            }
        }
    }

    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        match &mut self.0 {
            Implementation::Uring(queue) => queue.enter(wait_for),
            Implementation::Libaio(queue) => queue.enter(wait_for),
            Implementation::Threads(queue) => queue.enter(wait_for),
        }
    }

    fn reap(&mut self) -> Option<Reaped> {
        match &mut self.0 {
            Implementation::Uring(queue) => queue.reap(),
            Implementation::Libaio(queue) => queue.reap(),
            Implementation::Threads(queue) => queue.reap(),
        }
    }

    fn notify(&mut self, notifications: &Notifications) -> io::Result<bool> {
        match &mut self.0 {
            Implementation::Uring(queue) => queue.notify(notifications),
            Implementation::Libaio(queue) => queue.notify(notifications),
            Implementation::Threads(queue) => queue.notify(notifications),
        }
    }

    /// The kernel counts for each thread how often it gave up the processor of its own will.
    fn sleeps(&self) -> u64 {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes one `rusage`, for which there is room; all zeros are one, too, if it refuses.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        usage.ru_nvcsw as u64
    }
}
