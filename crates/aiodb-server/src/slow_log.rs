//! Commands that took long.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::join_all;

use crate::client::Client;

/// What is kept of a command, as in Redis: so many arguments, and so many bytes of each.
const MOST_ARGUMENTS: usize = 32;
const MOST_BYTES: usize = 128;

/// Commands of whose arguments nothing is kept, since there are passwords among them.
const SECRET: [&str; 4] = ["auth", "hello", "config|set", "acl|setuser"];

/// The last ones.
#[derive(Default)]
pub(crate) struct SlowLog {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next_id: i64,
    /// The latest first.
    entries: VecDeque<SlowCommand>,
}

/// A command as a client has sent it.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'a> {
    /// Of a subcommand with its container's name before a `|`.
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a [Bytes],
}

/// What a command waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// Entries and elements that were not in memory. Those that a scan passes are not counted.
    pub(crate) reads: u32,
    /// Until they were read.
    pub(crate) read: Duration,
    /// Until its write, or what it has seen, was on the device.
    pub(crate) flush: Duration,
}

impl Waits {
    /// Waits for reads of the device that have begun.
    pub(crate) async fn read<F: Future>(&mut self, reads: Vec<F>) -> Vec<F::Output> {
        if reads.is_empty() {
            return Vec::new();
        }
        let begun = Instant::now();
        self.reads += reads.len() as u32;
        let read = join_all(reads).await;
        self.read += begun.elapsed();
        read
    }
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct SlowCommand {
    pub(crate) id: i64,
    /// When it had been carried out, in seconds since 1970.
    pub(crate) at_s: u64,
    pub(crate) took: Duration,
    pub(crate) arguments: Vec<Bytes>,
    pub(crate) address: String,
    pub(crate) client_name: Bytes,
}

impl SlowLog {
    /// Keeps a command, and of all others the last ones.
    pub(crate) fn add(&self, client: &Client, command: Sent<'_>, took: Duration, at_s: u64, most: usize) {
        let mut state = self.lock();
        let id = state.next_id;
        state.next_id += 1;
        let (address, client_name) = (client.address.to_string(), client.name());
        state.entries.push_front(SlowCommand { id, at_s, took, arguments: kept(command), address, client_name });
        state.entries.truncate(most);
    }

    /// The latest ones.
    pub(crate) fn latest(&self, most: usize) -> Vec<SlowCommand> {
        self.lock().entries.iter().take(most).cloned().collect()
    }

    /// How many are kept.
    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.lock().entries.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the commands")
    }
}

fn kept(command: Sent<'_>) -> Vec<Bytes> {
    let Sent { name, arguments } = command;
    let names = name.matches('|').count() + 1;
    let is_secret = SECRET.contains(&name);
    let shown = if arguments.len() > MOST_ARGUMENTS { MOST_ARGUMENTS - 1 } else { arguments.len() };
    let mut kept: Vec<Bytes> = arguments[..shown].iter().map(|argument| shortened(argument)).collect();
    if is_secret {
        kept.iter_mut().skip(names).for_each(|argument| *argument = Bytes::from_static(b"(redacted)"));
    }
    if arguments.len() > shown {
        kept.push(format!("... ({} more arguments)", arguments.len() - shown).into());
    }
    kept
}

fn shortened(argument: &[u8]) -> Bytes {
    match argument.split_at_checked(MOST_BYTES) {
        Some((first, rest)) if !rest.is_empty() => {
            [first, format!("... ({} more bytes)", rest.len()).as_bytes()].concat().into()
        }
        _ => Bytes::copy_from_slice(argument),
    }
}

#[cfg(test)]
mod tests;
