//! Measured processes: this program once more, with a request on its standard input and replies on its standard output,
//! one in a line. A process of its own so that a limit of memory holds for it alone, and so that its death is a void
//! measurement and no more.

use crate::error::{Error, Result};
use crate::memory::MemoryLimit;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// A running measured process and what it says.
pub struct Process<'a> {
    child: Child,
    replies: Receiver<String>,
    limit: Option<&'a MemoryLimit>,
    kills_before: u64,
}

impl<'a> Process<'a> {
    /// Starts a subcommand of this program. The limit is only looked at; the process joins it as its request says.
    pub fn start(subcommand: &str, request: &impl Serialize, limit: Option<&'a MemoryLimit>) -> Result<Process<'a>> {
        let program = std::env::current_exe().map_err(Error::io("find", "this program"))?;
        if let Some(limit) = limit {
            limit.empty();
        }
        let mut child = Command::new(&program)
            .arg(subcommand)
            // Threads that come and go would each leave memory behind in an arena of their own, and engines that
            // allocate what they read would die of it.
            .env("MALLOC_ARENA_MAX", "2")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("start", &program))?;
        let text = serde_json::to_string(request).expect("a request has only string keys");
        let mut input = child.stdin.take().expect("the standard input is a pipe");
        input.write_all(text.as_bytes()).map_err(Error::io("write to", &program))?;
        drop(input);
        let output = child.stdout.take().expect("the standard output is a pipe");
        let (sender, replies) = mpsc::channel();
        // The thread ends with the process's output, or once the other end is dropped.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(io::Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Process { child, replies, limit, kills_before: limit.map_or(0, MemoryLimit::kills) })
    }

    /// The next reply. The error says why there is none: the process ended well, or why it did not.
    pub fn reply<R: DeserializeOwned>(&mut self, patience: Duration) -> std::result::Result<R, Option<String>> {
        match self.replies.recv_timeout(patience) {
            Ok(line) => serde_json::from_str(&line).map_err(|error| Some(format!("not a reply: {error}: {line}"))),
            Err(RecvTimeoutError::Timeout) => Err(Some(format!("no sign of life for {} s", patience.as_secs()))),
            Err(RecvTimeoutError::Disconnected) => Err(self.end()),
        }
    }

    /// How the process ended, None if well.
    fn end(&mut self) -> Option<String> {
        let status = match self.child.wait() {
            Ok(status) if status.success() => return None,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let killed = self.limit.is_some_and(|limit| limit.kills() > self.kills_before);
        Some(if killed { format!("killed for want of memory ({status})") } else { format!("died: {status}") })
    }

    /// Ends the process if it has not ended yet.
    pub fn stop(mut self) {
        // A process that has ended cannot be killed, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The request on the standard input of a measured process.
pub fn request<R: DeserializeOwned>() -> Result<R> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).map_err(Error::io("read", "the standard input"))?;
    serde_json::from_str(&text).map_err(|error| Error::Request(format!("the standard input is not a request: {error}")))
}

/// Says something to the process that made the request.
pub fn reply(reply: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(reply).expect("a reply has only string keys");
    let mut output = io::stdout().lock();
    writeln!(output, "{text}").and_then(|()| output.flush()).map_err(Error::io("write", "the standard output"))
}
