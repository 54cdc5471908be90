//! The read queue over io_uring.
//!
//! Where the kernel has it (6.1 on), a ring is bound to the thread that enters it first (`SINGLE_ISSUER`), which lets
//! completions be handled only when that thread asks for them (`DEFER_TASKRUN`): the cheapest way to read. A queue may
//! nevertheless move to another thread. The kernel then refuses to enter the ring; it is closed, reads in flight are
//! reported as interrupted, for [`super::reads::Reads`] to push again, and a ring that any thread may enter takes over
//! for good.

use std::collections::VecDeque;
use std::io::{self, PipeReader, Read};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Weak};

use io_uring::{EnterFlags, IoUring, opcode, squeue, types};

use super::disk::file::{DiskFile, InUse, OpenFile};
use super::{MAX_QUEUE_DEPTH, Notifications, Queue, Reaped};

/// Sizes of a ring's table of registered files, in the order tried: the kernel allows no more than the process may have
/// open. A file lies at the index of its descriptor; files with higher descriptors are read unregistered.
const FILE_TABLES: [u32; 4] = [8192, 512, 128, 32];
/// How many times the kernel is entered between two searches for registered files that have no handle any more, or whose
/// descriptor was closed. A removed file takes up its space until then.
const ENTERS_PER_SWEEP: u32 = 4096;
/// How often in a row the kernel may refuse to take reads for want of resources.
const MAX_REFUSALS: u32 = 100;
/// The index of the only registered buffer.
const ARENA: u16 = 0;

/// A read that the ring does not have yet.
struct Pushed {
    slot: u32,
    file: DiskFile,
    offset: u64,
    buffer: *mut u8,
    length: u32,
}

// SAFETY: the queue's owner is the only one to use the buffer, as the caller of `push` promised; memory is not tied to a
// thread.
unsafe impl Send for Pushed {}

/// One io_uring, used by one thread at a time.
pub struct UringQueue {
    ring: Ring,
    depth: u32,
    /// Reads for the next time that the kernel is entered: only then their files need descriptors.
    pushed: VecDeque<Pushed>,
    /// Files of reads that the ring has and the kernel has not taken. It holds a file itself once it has taken its read.
    claims: Vec<InUse<Arc<OpenFile>>>,
    /// Reads whose files could not be opened.
    refused: Vec<(u32, io::Error)>,
    /// The memory given to [`Queue::register`], as addresses; empty when none was given.
    arena: Range<usize>,
    /// Which slots were pushed and not reaped.
    pending: Vec<bool>,
    pending_count: u32,
    /// Slots whose reads ended with a ring that was closed.
    interrupted: Vec<u32>,
    /// Where it tells of results, if anybody has asked for it.
    notifications: Option<Notifications>,
}

impl UringQueue {
    pub fn new(depth: usize) -> io::Result<UringQueue> {
        // Each mode needs less of the kernel than the one before; the refusal of the last one is reported.
        UringQueue::with_mode(depth, Mode::Bound)
            .or_else(|_| UringQueue::with_mode(depth, Mode::Shared))
            .or_else(|_| UringQueue::with_mode(depth, Mode::Plain))
    }

    fn with_mode(depth: usize, mode: Mode) -> io::Result<UringQueue> {
        assert!((1..=MAX_QUEUE_DEPTH).contains(&depth), "a queue depth of {depth}");
        Ok(UringQueue {
            ring: Ring::new(depth as u32, mode)?,
            depth: depth as u32,
            pushed: VecDeque::with_capacity(depth),
            claims: Vec::new(),
            refused: Vec::new(),
            arena: 0..0,
            pending: vec![false; depth],
            pending_count: 0,
            interrupted: Vec::with_capacity(depth),
            notifications: None,
        })
    }

    /// Replaces a ring that is bound to another thread by one that is bound to none. Waits for the end of the old one.
    fn leave_thread(&mut self) -> io::Result<()> {
        let mut ring = Ring::new(self.depth, Mode::Shared).or_else(|_| Ring::new(self.depth, Mode::Plain))?;
        // SAFETY: the caller of `register` leaves the memory allocated until this queue is dropped, which waits.
        unsafe { ring.register_arena(&self.arena) };
        if let Some(notifications) = &self.notifications {
            ring.notify(notifications)?;
        }
        self.ring = ring;
        self.claims.clear();
        self.pushed.clear();
        let slots = self.pending.iter().enumerate().filter(|(_, pending)| **pending);
        // A refusal is an answer of its own.
        let refused = |slot: u32| self.refused.iter().any(|(refused, _)| *refused == slot);
        self.interrupted.extend(slots.map(|(slot, _)| slot as u32).filter(|slot| !refused(*slot)));
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        !self.interrupted.is_empty() || !self.refused.is_empty() || !self.ring.uring.completion().is_empty()
    }

    /// Gives the pushed reads to the ring.
    fn fill_ring(&mut self) -> io::Result<()> {
        while let Some(read) = self.pushed.pop_front() {
            let claim = match read.file.try_claim() {
                Ok(Some(claim)) => Ok(claim),
                // All descriptors are in use, maybe by this queue: the reads in the ring go first.
                Ok(None) if !self.claims.is_empty() => {
                    self.pushed.push_front(read);
                    self.submit(0)?;
                    continue;
                }
                Ok(None) => read.file.claim(),
                Err(error) => Err(error),
            };
            match claim {
                Ok(claim) => {
                    let in_arena = self.arena.contains(&read.buffer.addr())
                        && read.length as usize <= self.arena.end - read.buffer.addr();
                    let entry = self.ring.entry(&claim, read.offset, read.buffer, read.length, in_arena);
                    let entry = entry.user_data(u64::from(read.slot));
                    // SAFETY: the buffer is valid until the read was reaped, as the caller of `push` promises, and the
                    // descriptor stays open until the kernel has taken the read: it is claimed.
                    let added = unsafe { self.ring.uring.submission().push(&entry) };
                    added.expect("the ring has an entry for each slot");
                    self.claims.push(claim);
                }
                Err(error) => self.refused.push((read.slot, error)),
            }
        }
        Ok(())
    }

    /// Hands the ring's reads to the kernel, and waits for results.
    fn submit(&mut self, wait_for: u32) -> io::Result<()> {
        let mut refusals = 0;
        loop {
            let queued = self.ring.unsubmitted();
            let wait = if self.is_ready() { 0 } else { wait_for };
            match self.ring.enter(queued, wait).map_err(|error| (error.raw_os_error(), error)) {
                Ok(()) | Err((Some(libc::EINTR), _)) => {}
                Err((Some(libc::EEXIST), _)) if self.ring.end.is_some() => self.leave_thread()?,
                Err((Some(libc::EAGAIN | libc::EBUSY), _)) if refusals < MAX_REFUSALS => {
                    // Out of resources, which come back as reads end. An error here is met again by the next turn.
                    refusals += 1;
                    let worth_waiting = self.pending_count > queued && !self.is_ready();
                    let _ = self.ring.enter(0, u32::from(worth_waiting));
                }
                Err((_, error)) => return Err(error),
            }
            if self.ring.unsubmitted() == 0 {
                self.claims.clear();
                if wait_for == 0 || self.is_ready() {
                    return Ok(());
                }
            }
        }
    }

    /// Waits until the kernel owns no buffer any more. False on a thread that may not enter the ring.
    fn drain(&mut self) -> bool {
        loop {
            while self.reap().is_some() {}
            if self.pending_count == self.ring.unsubmitted() + self.pushed.len() as u32 {
                return true;
            }
            match self.ring.enter(0, 1).map_err(|error| error.raw_os_error()) {
                Ok(()) | Err(Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(_) => return false,
            }
        }
    }
}

impl Queue for UringQueue {
    type File = DiskFile;

    unsafe fn register(&mut self, start: *mut u8, length: usize) {
        assert!(self.arena.is_empty(), "memory is registered once");
        self.arena = start.expose_provenance()..start.addr() + length;
        // SAFETY: promised by the caller.
        unsafe { self.ring.register_arena(&self.arena) };
    }

    unsafe fn push(&mut self, slot: u32, file: &DiskFile, offset: u64, buffer: *mut u8, length: u32) {
        let pending = &mut self.pending[slot as usize];
        assert!(!std::mem::replace(pending, true), "slot {slot} is pushed twice");
        self.pending_count += 1;
        self.pushed.push_back(Pushed { slot, file: file.clone(), offset, buffer, length });
    }

    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        self.fill_ring()?;
        self.submit(wait_for)
    }

    fn reap(&mut self) -> Option<Reaped> {
        let (slot, outcome) = if let Some(slot) = self.interrupted.pop() {
            (slot, Err(io::ErrorKind::Interrupted.into()))
        } else if let Some((slot, error)) = self.refused.pop() {
            (slot, Err(error))
        } else {
            let entry = self.ring.uring.completion().next()?;
            (entry.user_data() as u32, outcome(entry.result()))
        };
        let pending = &mut self.pending[slot as usize];
        assert!(std::mem::replace(pending, false), "the kernel returned slot {slot}, which is not in flight");
        self.pending_count -= 1;
        Some(Reaped { slot, outcome })
    }

    fn notify(&mut self, notifications: &Notifications) -> io::Result<bool> {
        self.ring.notify(notifications)?;
        self.notifications = Some(notifications.clone());
        Ok(true)
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        if self.drain() {
            self.ring.end.iter_mut().for_each(|end| end.wait = false);
            // The kernel frees a ring some time after it was closed. Until then its files would be open, and a file
            // system could not be unmounted. A refusal (to another thread than the ring's) costs just that.
            let _ = self.ring.uring.submitter().unregister_files();
        } else if self.ring.end.is_none() {
            // Going on would free memory that the device is writing to.
            eprintln!("aiodb: the kernel does not let this process wait for its reads in flight");
            std::process::abort();
        }
    }
}

fn outcome(result: i32) -> io::Result<u32> {
    match result {
        // The kernel cancels a read that it had handed to a worker of a thread that has since ended.
        _ if result == -libc::ECANCELED => Err(io::ErrorKind::Interrupted.into()),
        ..0 => Err(io::Error::from_raw_os_error(-result)),
        _ => Ok(result as u32),
    }
}

/// Which threads may enter a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Only the first thread that enters it.
    Bound,
    /// Any thread, one at a time.
    Shared,
    /// As `Shared`, but without flags that kernels before 5.19 do not know.
    Plain,
}

/// An io_uring with the files and the memory that are registered in it.
struct Ring {
    uring: IoUring,
    /// A bound ring is made disabled: the thread that enables it is the one that it is bound to.
    enabled: bool,
    arena_registered: bool,
    /// The file that is registered at the index of each descriptor; empty if the kernel refused the table. The kernel holds a
    /// registered file open by itself. A descriptor can come to mean another file; the address of an [`OpenFile`]
    /// cannot while a weak pointer to it is held.
    files: Vec<Weak<OpenFile>>,
    /// Of a bound ring. Declared, and so dropped, after the ring, whose end it waits for.
    end: Option<End>,
    enters: u32,
}

impl Ring {
    fn new(depth: u32, mode: Mode) -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        match mode {
            Mode::Bound => builder.setup_single_issuer().setup_defer_taskrun().setup_r_disabled().setup_submit_all(),
            Mode::Shared => builder.setup_coop_taskrun().setup_submit_all(),
            Mode::Plain => &mut builder,
        };
        let uring = builder.build(depth.next_power_of_two())?;
        let (enabled, arena_registered) = (mode != Mode::Bound, false);
        let mut ring = Ring { uring, enabled, arena_registered, files: Vec::new(), end: None, enters: 0 };
        let table = ring.register_table();
        if mode == Mode::Bound {
            // Without the pipe there is no way to wait for such a ring from another thread.
            ring.register_end(table?)?;
        }
        Ok(ring)
    }

    /// Makes an empty table of registered files, with one entry more than for descriptors; returns that entry.
    fn register_table(&mut self) -> io::Result<u32> {
        let mut refusal = None;
        for size in FILE_TABLES {
            match self.uring.submitter().register_files_sparse(size + 1) {
                Ok(()) => {
                    self.files.resize_with(size as usize, Weak::new);
                    return Ok(size);
                }
                Err(error) => refusal = Some(error),
            }
        }
        Err(refusal.expect("at least one size was tried"))
    }

    /// Gives the writing end of a pipe to the ring. The kernel closes it when it frees the ring, which it does not do
    /// before the last read has ended.
    fn register_end(&mut self, entry: u32) -> io::Result<()> {
        let (reader, writer) = io::pipe()?;
        self.uring.submitter().register_files_update(entry, &[writer.as_raw_fd()])?;
        self.end = Some(End { pipe: reader, wait: true });
        Ok(())
    }

    /// Lets the kernel pin the memory once instead of at each read. A refusal (of too much locked memory, mostly) only
    /// costs time.
    ///
    /// # Safety
    /// The memory must stay allocated until the ring was closed or has no read in flight.
    unsafe fn register_arena(&mut self, arena: &Range<usize>) {
        if arena.is_empty() {
            return;
        }
        let memory = libc::iovec { iov_base: std::ptr::with_exposed_provenance_mut(arena.start), iov_len: arena.len() };
        // SAFETY: promised by the caller; the kernel writes there only for reads into it.
        self.arena_registered = unsafe { self.uring.submitter().register_buffers(&[memory]) }.is_ok();
    }

    /// Lets the kernel count up for results that have come, or that come with the next enter.
    fn notify(&self, notifications: &Notifications) -> io::Result<()> {
        self.uring.submitter().register_eventfd(notifications.as_fd().as_raw_fd())
    }

    /// The entry for one read: with registered file and buffer where they are, plain ones otherwise.
    fn entry(
        &mut self,
        file: &InUse<Arc<OpenFile>>,
        offset: u64,
        buffer: *mut u8,
        length: u32,
        in_arena: bool,
    ) -> squeue::Entry {
        let fixed_buffer = in_arena && self.arena_registered;
        let plain = types::Fd(file.raw_fd());
        match (self.registered_file(file), fixed_buffer) {
            (Some(fd), true) => opcode::ReadFixed::new(fd, buffer, length, ARENA).offset(offset).build(),
            (Some(fd), false) => opcode::Read::new(fd, buffer, length).offset(offset).build(),
            (None, true) => opcode::ReadFixed::new(plain, buffer, length, ARENA).offset(offset).build(),
            (None, false) => opcode::Read::new(plain, buffer, length).offset(offset).build(),
        }
    }

    /// The file's place in the table, where it is put on first use; `None` if it cannot be there. A file that was opened again
    /// may be here as it was opened before.
    fn registered_file(&mut self, file: &InUse<Arc<OpenFile>>) -> Option<types::Fixed> {
        let index = file.raw_fd() as u32;
        let registered = self.files.get_mut(index as usize)?;
        if !std::ptr::eq(registered.as_ptr(), file.shared()) {
            self.uring.submitter().register_files_update(index, &[file.raw_fd()]).ok()?;
            *registered = file.downgrade();
        }
        Some(types::Fixed(index))
    }

    /// Lets go of registered files that have no handle any more, or another descriptor.
    fn sweep(&mut self) {
        let unused = Weak::new();
        for (index, file) in self.files.iter_mut().enumerate() {
            let elsewhere = |file: Arc<OpenFile>| file.raw_fd() != index as i32;
            let closed = !file.ptr_eq(&unused) && file.upgrade().is_none_or(elsewhere);
            if closed && self.uring.submitter().register_files_update(index as u32, &[-1]).is_ok() {
                *file = Weak::new();
            }
        }
    }

    /// Reads pushed and not yet handed to the kernel.
    fn unsubmitted(&mut self) -> u32 {
        self.uring.submission().len() as u32
    }

    fn enter(&mut self, submit: u32, wait_for: u32) -> io::Result<()> {
        if !self.enabled {
            self.uring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        self.enters = (self.enters + 1) % ENTERS_PER_SWEEP;
        if self.enters == 0 {
            self.sweep();
        }
        // With deferred task work the kernel posts completions only when asked for events, also if none is waited for.
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: the entries were pushed with buffers that stay valid; there is no further argument.
        unsafe { self.uring.submitter().enter::<libc::sigset_t>(submit, wait_for, flags, None) }.map(drop)
    }
}

/// Tells when the kernel has let go of a bound ring with all its reads: the ring holds the only writing end of the pipe.
struct End {
    pipe: PipeReader,
    /// Whether dropping this waits. It takes a while, and is not needed when no read is in flight.
    wait: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        while self.wait {
            match self.pipe.read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => {
                    assert!(matches!(outcome, Ok(0)), "the pipe of a ring only ends, and gave {outcome:?}");
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
