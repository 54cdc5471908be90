//! A signal asks a load to stop. A load may wait for a pipe that stays silent, so the wait itself must end.

use crate::error::CliError;
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Knows whether SIGINT or SIGTERM has arrived.
pub struct Interrupt {
    requested: Arc<AtomicBool>,
    /// Becomes readable with the first signal, which is what ends a wait.
    signalled: UnixStream,
}

impl Interrupt {
    /// From now on the first signal is only noted. A second one ends the process at once, with exit code 130.
    pub fn install() -> Result<Interrupt, CliError> {
        let installed = Interrupt::install_handlers();
        installed
            .map_err(|error| CliError::Input { name: "signals".into(), reason: format!("cannot be handled: {error}") })
    }

    fn install_handlers() -> io::Result<Interrupt> {
        let requested = Arc::new(AtomicBool::new(false));
        let (signalled, signal) = UnixStream::pair()?;
        for number in [SIGINT, SIGTERM] {
            // Actions run in this order: the shutdown looks at the flag before this signal has set it.
            flag::register_conditional_shutdown(number, 130, Arc::clone(&requested))?;
            flag::register(number, Arc::clone(&requested))?;
            pipe::register(number, signal.try_clone()?)?;
        }
        Ok(Interrupt { requested, signalled })
    }

    /// Whether a signal has arrived.
    pub fn requested(&self) -> bool {
        // Relaxed: it publishes nothing.
        self.requested.load(Ordering::Relaxed)
    }

    /// Waits until `file` can be read or has ended (true), or a signal has arrived (false).
    fn wait(&self, file: &File) -> io::Result<bool> {
        while !self.requested() {
            let mut waited = [
                PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.signalled.as_fd(), PollFlags::IN),
            ];
            match poll(&mut waited, None) {
                Ok(_) if !waited[0].revents().is_empty() => return Ok(true),
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}

/// A file or pipe whose reads fail once a signal has arrived.
pub struct InterruptibleRead {
    file: File,
    interrupt: Rc<Interrupt>,
}

impl InterruptibleRead {
    /// Reads `file` until it ends or the load is interrupted.
    pub fn new(file: File, interrupt: Rc<Interrupt>) -> InterruptibleRead {
        InterruptibleRead { file, interrupt }
    }
}

impl Read for InterruptibleRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.interrupt.wait(&self.file)? {
            return self.file.read(buffer);
        }
        // Not `ErrorKind::Interrupted`: readers would try again.
        Err(io::Error::other("stopped by a signal"))
    }
}
