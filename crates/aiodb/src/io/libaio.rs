//! The read queue over Linux native AIO (`io_submit`), called without a C library.
//!
//! It is asynchronous for direct reads only: a read through the page cache blocks in `io_submit`.

use std::collections::VecDeque;
use std::ffi::{c_long, c_ulong};
use std::io;
use std::sync::Arc;

use super::disk::DiskFile;
use super::disk::file::{InUse, OpenFile};
use super::{MAX_QUEUE_DEPTH, Queue, Reaped};

/// How often in a row the kernel may refuse to take reads for want of resources, with none in flight to wait for.
const MAX_REFUSALS: u32 = 100;
/// `IOCB_CMD_PREAD`.
const READ: u16 = 0;

/// A request, the kernel's `struct iocb`, in 64 bytes:
///
/// | offset | size | meaning                                                     |
/// | ------ | ---- | ----------------------------------------------------------- |
/// | 0      | 8    | returned with the result: our slot                          |
/// | 8      | 8    | the kernel's own, and flags (their order depends on the machine); both 0 |
/// | 16     | 2    | operation                                                   |
/// | 18     | 2    | priority, 0                                                 |
/// | 20     | 4    | file descriptor                                             |
/// | 24     | 8    | address of the buffer                                       |
/// | 32     | 8    | length in bytes                                             |
/// | 40     | 8    | offset in the file                                          |
/// | 48     | 16   | reserved, flags and an event descriptor that we do not use  |
#[repr(C)]
struct Request {
    slot: u64,
    key_and_flags: u64,
    operation: u16,
    priority: i16,
    fd: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    unused: [u64; 2],
}

const _: () = assert!(size_of::<Request>() == 64);

/// A result, the kernel's `struct io_event`, in 32 bytes: the request's first field, its address in user space, the
/// bytes transferred or a negated error number, and a second result that reads do not have.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    slot: u64,
    request: u64,
    result: i64,
    result2: i64,
}

const _: () = assert!(size_of::<Event>() == 32);

/// One AIO context.
pub struct LibaioQueue {
    context: c_ulong,
    /// Pushed and not yet taken by the kernel, which copies a request when it takes it, and then holds the file itself.
    queued: Vec<Request>,
    /// Their files.
    files: VecDeque<DiskFile>,
    /// Addresses of the queued requests, as `io_submit` wants them; filled for each call.
    addresses: Vec<usize>,
    in_kernel: usize,
    /// Where the kernel writes events: room for one of each slot.
    events: Vec<Event>,
    /// Events to be reaped.
    ready: VecDeque<Event>,
    /// Reads whose files could not be opened.
    refused: Vec<(u32, io::Error)>,
}

impl LibaioQueue {
    pub fn new(depth: usize) -> io::Result<LibaioQueue> {
        assert!((1..=MAX_QUEUE_DEPTH).contains(&depth), "a queue depth of {depth}");
        let mut context: c_ulong = 0;
        // SAFETY: the kernel writes the new context to the given address.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth as c_long, &raw mut context) };
        checked(result).map_err(explain_setup)?;
        Ok(LibaioQueue {
            context,
            queued: Vec::with_capacity(depth),
            files: VecDeque::with_capacity(depth),
            addresses: Vec::with_capacity(depth),
            in_kernel: 0,
            events: vec![Event::default(); depth],
            ready: VecDeque::with_capacity(depth),
            refused: Vec::new(),
        })
    }

    /// Claims descriptors for the first of the queued requests: for as many as are to be had at once, and for one if that takes
    /// waiting. A request whose file cannot be opened is taken out. Without a claim nothing is queued.
    fn claim(&mut self) -> Vec<InUse<Arc<OpenFile>>> {
        let mut claims = Vec::with_capacity(self.queued.len());
        while let Some(file) = self.files.get(claims.len()) {
            let claim = match file.try_claim() {
                Ok(None) if claims.is_empty() => file.claim(),
                Ok(None) => break,
                Ok(Some(claim)) => Ok(claim),
                Err(error) => Err(error),
            };
            match claim {
                Ok(claim) => {
                    self.queued[claims.len()].fd = claim.raw_fd() as u32;
                    claims.push(claim);
                }
                Err(error) => {
                    self.files.remove(claims.len());
                    let slot = self.queued.remove(claims.len()).slot;
                    self.refused.push((slot as u32, error));
                }
            }
        }
        claims
    }

    /// Hands over the queued reads: all of them, or as many as the kernel takes while other reads are in flight.
    fn submit(&mut self) -> io::Result<()> {
        let mut refusals = 0;
        while !self.queued.is_empty() {
            let claims = self.claim();
            if claims.is_empty() {
                return Ok(());
            }
            self.addresses.clear();
            self.addresses
                .extend(self.queued[..claims.len()].iter().map(|request| (&raw const *request).expose_provenance()));
            let (count, addresses) = (self.addresses.len() as c_long, self.addresses.as_ptr());
            // SAFETY: the requests live during the call, which copies them. Their buffers are valid until the reads
            // were reaped or this queue was dropped, as the callers of `push` promise; dropping waits.
            match checked(unsafe { libc::syscall(libc::SYS_io_submit, self.context, count, addresses) }) {
                Ok(accepted) => {
                    self.queued.drain(..accepted);
                    self.files.drain(..accepted);
                    self.in_kernel += accepted;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Resources come back as reads end; the rest is handed over after that.
                    if self.in_kernel > 0 || !self.ready.is_empty() || !self.refused.is_empty() {
                        return Ok(());
                    }
                    refusals += 1;
                    if refusals > MAX_REFUSALS {
                        return Err(error);
                    }
                    std::thread::yield_now();
                }
                // The kernel reports an error only if it concerns the first request.
                Err(error) => {
                    self.files.pop_front();
                    let slot = self.queued.remove(0).slot;
                    let result = -i64::from(error.raw_os_error().unwrap_or(libc::EIO));
                    self.ready.push_back(Event { slot, result, ..Event::default() });
                }
            }
        }
        Ok(())
    }

    /// Takes events from the kernel, at least `wait_for`.
    fn take_events(&mut self, wait_for: u32) -> io::Result<()> {
        let (least, most) = (c_long::from(wait_for), self.events.len() as c_long);
        let events = self.events.as_mut_ptr();
        let no_limit = std::ptr::null_mut::<libc::timespec>();
        let taken = loop {
            // SAFETY: `events` has room for `most` events.
            let result = unsafe { libc::syscall(libc::SYS_io_getevents, self.context, least, most, events, no_limit) };
            match checked(result) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                taken => break taken?,
            }
        };
        self.in_kernel -= taken;
        self.ready.extend(&self.events[..taken]);
        Ok(())
    }
}

impl Queue for LibaioQueue {
    type File = DiskFile;

    unsafe fn push(&mut self, slot: u32, file: &DiskFile, offset: u64, buffer: *mut u8, length: u32) {
        let pending = self.queued.len() + self.in_kernel + self.ready.len() + self.refused.len();
        assert!(pending < self.events.len(), "more reads than the depth");
        self.files.push_back(file.clone());
        self.queued.push(Request {
            slot: u64::from(slot),
            key_and_flags: 0,
            operation: READ,
            priority: 0,
            // Known when the file's descriptor is claimed.
            fd: u32::MAX,
            buffer: buffer.expose_provenance() as u64,
            length: u64::from(length),
            offset: offset as i64,
            unused: [0; 2],
        });
    }

    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        self.submit()?;
        if self.in_kernel > 0 {
            let nothing = self.ready.is_empty() && self.refused.is_empty();
            self.take_events(if nothing { wait_for } else { 0 })?;
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Reaped> {
        if let Some((slot, error)) = self.refused.pop() {
            return Some(Reaped { slot, outcome: Err(error) });
        }
        let event = self.ready.pop_front()?;
        let outcome = match event.result {
            ..0 => Err(io::Error::from_raw_os_error(-event.result as i32)),
            transferred => Ok(transferred as u32),
        };
        Some(Reaped { slot: event.slot as u32, outcome })
    }
}

impl Drop for LibaioQueue {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and is used no more.
        let result = unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
        // The call returns when all reads have ended. If it were refused, the device might go on writing to memory
        // that is freed next.
        if result != 0 {
            eprintln!("aiodb: the kernel does not let this process wait for its reads in flight");
            std::process::abort();
        }
    }
}

/// The value of a system call that returns a count, or its error.
fn checked(result: c_long) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// The kernel says no more than `EAGAIN` when all contexts of the machine together are too deep.
fn explain_setup(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), format!("{error}: raise fs.aio-max-nr (sysctl)")),
        _ => error,
    }
}
