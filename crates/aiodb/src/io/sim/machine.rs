//! The state of a simulated machine: which process runs, how far it has come, when it dies, and what is to fail.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

use fastrand::Rng;

use super::tree::{Inode, Tree};
use crate::io::Phase;
use crate::sync::{Mutex, MutexGuard, Rank};

/// The simulated clock advances by this much with each call, so that waiting in a loop for a time to come ends.
const STEP_US: u64 = 20;

/// A kind of device call that can be made to fail with [`SimDevice::fail`](super::SimDevice::fail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reads through a file or a queue.
    Read,
    /// Writes. Some of the sectors may have been written.
    Write,
    /// [`File::sync`](crate::io::File::sync), after which the unwritten rest stays unwritten even if a later sync succeeds,
    /// and [`Device::sync_dir`](crate::io::Device::sync_dir).
    Sync,
    /// [`Queue::enter`](crate::io::Queue::enter), by the file of one of the queue's reads: none of them ends by it.
    Enter,
}

/// What an injected fault does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call fails with `EIO`.
    Fail,
    /// A read fails with `ENOMEM`. Other calls are not affected.
    Shortage,
    /// A write or sync is acknowledged and has not happened. Reads are not affected.
    Lose,
    /// A write goes to this many units further on in its file, around the end. Other calls are not affected.
    Misdirect(u64),
    /// The call takes this many milliseconds more.
    Delay(u64),
}

/// Something that the observer of a machine is told, see [`SimDevice::observe`](super::SimDevice::observe).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process dies now.
    Crash,
    /// The engine has ended a phase.
    End(Phase),
}

/// What has happened on a [`SimDevice`](super::SimDevice) since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of the device, its files and its queues that a crash can hit.
    pub steps: u64,
    /// Bytes that were read, through files and queues.
    pub read_bytes: u64,
    /// Calls of `write_at`.
    pub writes: u64,
    /// Calls of `sync` and `sync_dir`.
    pub syncs: u64,
    /// Process deaths and power cuts.
    pub crashes: u64,
    /// Writes of which some sectors took effect and others did not.
    pub torn_writes: u64,
    /// Sectors whose newest state a power cut took.
    pub lost_sectors: u64,
    /// Directory changes (a name made, changed or removed) that a power cut took.
    pub lost_names: u64,
    /// Calls that were made to fail, by kind: reads, writes, syncs, entries of queues.
    pub failed: [u64; 4],
    /// Writes, and syncs, that were acknowledged and did not happen.
    pub lost_writes: u64,
    /// See `lost_writes`.
    pub lost_syncs: u64,
    /// Writes that went elsewhere.
    pub misdirected_writes: u64,
    /// Calls that were delayed.
    pub delayed_calls: u64,
    /// Reads that one queue had in flight, at most.
    pub most_queued_reads: u64,
    /// Calls that found the disk full.
    pub refused_for_space: u64,
}

/// Memory of a machine where nothing else is said.
const MEMORY_BYTES: u64 = 512 << 20;

pub(super) struct Machine(Mutex<State, { Rank::Machine as u8 }>);

impl Machine {
    /// An empty machine.
    pub(super) fn new(seed: u64, block_bytes: usize) -> Machine {
        Machine(Mutex::new(State {
            random: Rng::with_seed(seed),
            block_bytes,
            tree: Tree::new(),
            process: 0,
            crash_in: None,
            crash_inside: None,
            crashed: false,
            phases: Vec::new(),
            observer: None,
            real_directory: None,
            index_needs: None,
            capacity: None,
            memory_bytes: MEMORY_BYTES,
            faults: Vec::new(),
            unreadable: Vec::new(),
            locks: BTreeSet::new(),
            clock_us: 0,
            wall_offset_ms: 0,
            counters: Counters::default(),
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // An assertion that failed in a test leaves nothing half done that a later call could trip over.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Fault {
    pub(super) call: Call,
    pub(super) effect: Effect,
    pub(super) skip: u64,
    pub(super) times: u64,
    pub(super) on: Box<dyn Fn(&Path) -> bool + Send>,
}

/// See [`SimDevice::crash_inside`](super::SimDevice::crash_inside).
pub(super) struct CrashInside {
    pub(super) phase: Phase,
    pub(super) skip: u64,
    pub(super) steps: u64,
    /// How many phases the engine is in, this one included, once it has begun.
    pub(super) depth: Option<usize>,
}

pub(super) struct State {
    pub(super) random: Rng,
    pub(super) block_bytes: usize,
    pub(super) tree: Tree,
    /// The number of the running process.
    pub(super) process: u64,
    /// Steps until the crash.
    pub(super) crash_in: Option<u64>,
    /// The phase in which the process is to crash.
    pub(super) crash_inside: Option<CrashInside>,
    pub(super) crashed: bool,
    /// The phases that the engine is in, outermost first; after a crash the phases that it was in.
    pub(super) phases: Vec<Phase>,
    pub(super) observer: Option<Box<dyn FnMut(Event) + Send>>,
    pub(super) real_directory: Option<PathBuf>,
    /// Bytes that must be free for LMDB to commit.
    pub(super) index_needs: Option<u64>,
    pub(super) capacity: Option<u64>,
    pub(super) memory_bytes: u64,
    pub(super) faults: Vec<Fault>,
    /// Bytes of files that cannot be read, whatever the names of the files.
    pub(super) unreadable: Vec<(Inode, Range<u64>)>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) clock_us: u64,
    /// How far the system's clock has been set forward, or back.
    pub(super) wall_offset_ms: i64,
    pub(super) counters: Counters,
}

impl State {
    /// Counts a call of a process, and says whether the process dies during it.
    pub(super) fn step(&mut self, process: u64) -> io::Result<bool> {
        if process != self.process {
            return Err(stale());
        }
        if self.crashed {
            return Err(crashed());
        }
        self.counters.steps += 1;
        self.clock_us += STEP_US;
        self.crash_in = self.crash_in.map(|steps| steps - 1);
        if self.crash_in == Some(0) {
            self.crash_in = None;
            self.crashed = true;
            // What the process stores in its mappings from here on must not count.
            self.tree.absorb();
            self.tree.orphan_memory();
            self.tell(Event::Crash);
        }
        Ok(self.crashed)
    }

    /// Sets the moment of a crash inside a phase, when that begins, and brings it forward to the phase's end.
    pub(super) fn aim(&mut self, phase: Phase, begins: bool) {
        let depth = self.phases.len();
        let Some(inside) = self.crash_inside.as_mut().filter(|inside| inside.phase == phase) else { return };
        match inside.depth {
            None if begins && inside.skip > 0 => inside.skip -= 1,
            None if begins => (inside.depth, self.crash_in) = (Some(depth), Some(inside.steps)),
            Some(at) if !begins && at == depth => self.crash_in = Some(1),
            _ => {}
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        if let Some(observer) = &mut self.observer {
            observer(event);
        }
    }

    /// Makes a call that a crash either prevents or lets take effect; writes, which can be torn, are made otherwise.
    pub(super) fn call<T>(&mut self, process: u64, effect: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let dies = self.step(process)?;
        if dies && self.random.bool() {
            return Err(crashed());
        }
        let outcome = effect(self);
        if dies { Err(crashed()) } else { outcome }
    }

    /// What an injected fault does to this call. Delays are over when this returns.
    pub(super) fn disturbance(&mut self, call: Call, path: &Path) -> Option<Effect> {
        let mut found = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.call == call && fault.times > 0) {
            if !(fault.on)(path) {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                continue;
            }
            fault.times -= 1;
            if let Effect::Delay(ms) = fault.effect {
                self.clock_us += ms * 1000;
                self.counters.delayed_calls += 1;
                continue;
            }
            found = Some(fault.effect);
            break;
        }
        self.faults.retain(|fault| fault.times > 0);
        match (found?, call) {
            (Effect::Fail, _) => self.counters.failed[call as usize] += 1,
            (Effect::Lose, Call::Write) => self.counters.lost_writes += 1,
            (Effect::Lose, Call::Sync) => self.counters.lost_syncs += 1,
            (Effect::Misdirect(_), Call::Write) => self.counters.misdirected_writes += 1,
            _ => {}
        }
        found
    }
}

impl State {
    /// Whether one of these bytes cannot be read.
    pub(super) fn is_unreadable(&mut self, inode: &Inode, bytes: Range<u64>) -> bool {
        let meets = |range: &Range<u64>| range.start < bytes.end && bytes.start < range.end;
        let fails = self.unreadable.iter().any(|(file, range)| file.is(inode) && meets(range));
        self.counters.failed[Call::Read as usize] += u64::from(fails);
        fails
    }
}

pub(super) fn stale() -> io::Error {
    io::Error::other("stale handle")
}

pub(super) fn crashed() -> io::Error {
    io::Error::other("simulated crash")
}
