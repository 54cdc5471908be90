//! A simulated machine: files, directories, mapped memory and reads in memory, with crashes and faults from one seed.
//!
//! The same seed and the same calls give the same results, bit for bit. Everything done survives the death of the
//! process. What a power cut takes is what POSIX allows and a journalling file system such as ext4 can do:
//!
//! | done by                                        | survives a power cut                                            |
//! | ---------------------------------------------- | --------------------------------------------------------------- |
//! | `write_at` with [`Now`](super::WriteSync)      | always, with the length it needs                                |
//! | `write_at` with [`Later`](super::WriteSync)    | after the file's `sync`; before it, any mixture of its sectors  |
//! | `reserve`                                      | after the file's `sync`, or as far as a durable write reached   |
//! | storing in a mapping                           | after the file's `sync`; before it, any mixture of its pages    |
//! | `open` of a new file, `rename`, `remove`       | after `sync_dir`; before it, the directory's oldest few changes |
//! | `create_dir`                                   | after `sync_dir` of it, of one within, or of its parent         |
//!
//! Of a sector written several times without a sync, any of these states may be what is left.

mod content;
mod file;
mod queue;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use fastrand::Rng;

use self::tree::{Tree, absolute};
use super::{Access, Device, Mapping, Phase, Report, SECTOR_BYTES, UNIT_BYTES};
use crate::sync::{Mutex, MutexGuard, Rank};

pub use self::file::SimFile;
pub use self::queue::SimQueue;

/// The simulated clock advances by this much with each call, so that waiting in a loop for a time to come ends.
const STEP_US: u64 = 20;

/// The greatest depth of a read queue.
const MAX_DEPTH: usize = 4096;

/// A kind of device call that can be made to fail with [`SimDevice::fail`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reads through a file or a queue.
    Read,
    /// Writes. Some of the sectors may have been written.
    Write,
    /// [`File::sync`](super::File::sync), after which the unwritten rest stays unwritten even if a later sync succeeds,
    /// and [`Device::sync_dir`].
    Sync,
}

/// What an injected fault does to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call fails with `EIO`.
    Fail,
    /// A write or sync is acknowledged and has not happened. Reads are not affected.
    Lose,
    /// A write goes to this many units further on in its file, around the end. Other calls are not affected.
    Misdirect(u64),
    /// The call takes this many milliseconds more.
    Delay(u64),
}

/// What is told to the observer of a machine, see [`SimDevice::observe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The process dies now.
    Crash,
    /// The engine has ended a phase.
    End(Phase),
}

/// What has happened on a [`SimDevice`] since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls of the device, its files and its queues that a crash can hit.
    pub steps: u64,
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
    /// Calls that were made to fail, by kind: reads, writes, syncs.
    pub failed: [u64; 3],
    /// Writes, and syncs, that were acknowledged and did not happen.
    pub lost_writes: u64,
    /// See `lost_writes`.
    pub lost_syncs: u64,
    /// Writes that went elsewhere.
    pub misdirected_writes: u64,
    /// Calls that were delayed.
    pub delayed_calls: u64,
    /// Calls that found the disk full.
    pub refused_for_space: u64,
}

/// A deterministic machine in memory; see the module for its rules.
///
/// Clones are the same process on the same machine. A process ends with [`SimDevice::process_death`] or
/// [`SimDevice::power_cut`], which return the device of the next process; through the old one, its files, queues and
/// locks nothing can be changed any more ("stale handle"). The methods named here, as opposed to those of [`Device`],
/// are the tester's: they work through any clone, also after a crash, and are not counted as steps.
///
/// The simulated process must call the device from one thread at a time, and hold no mutable slice of a [`Mapping`]
/// while it does: the device reads mapped memory during calls, as the kernel does.
#[derive(Clone)]
pub struct SimDevice {
    machine: Arc<Machine>,
    generation: u64,
}

/// The system's clock when a machine is made: some day in 2026.
const START_WALL_MS: u64 = 1_780_000_000_000;

/// Retention a simulated lock until dropped.
pub struct SimLock {
    device: SimDevice,
    path: PathBuf,
}

struct Machine(Mutex<State, { Rank::Machine as u8 }>);

impl Machine {
    fn lock(&self) -> MutexGuard<'_, State> {
        // An assertion that failed in a test leaves nothing half done that a later call could trip over.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Fault {
    call: Call,
    effect: Effect,
    skip: u64,
    times: u64,
    on: Box<dyn Fn(&Path) -> bool + Send>,
}

/// See [`SimDevice::crash_inside`].
struct CrashInside {
    phase: Phase,
    skip: u64,
    steps: u64,
    /// How many phases the engine is in, this one included, once it has begun.
    depth: Option<usize>,
}

struct State {
    random: Rng,
    block_bytes: usize,
    tree: Tree,
    /// The number of the running process.
    generation: u64,
    /// Steps until the crash.
    crash_in: Option<u64>,
    /// The phase in which the process is to crash.
    crash_inside: Option<CrashInside>,
    crashed: bool,
    /// The phases that the engine is in, outermost first; after a crash those that it was in.
    phases: Vec<Phase>,
    observer: Option<Box<dyn FnMut(Event) + Send>>,
    real_directory: Option<PathBuf>,
    /// Bytes that must be free for LMDB to commit.
    index_needs: Option<u64>,
    capacity: Option<u64>,
    faults: Vec<Fault>,
    locks: BTreeSet<PathBuf>,
    clock_us: u64,
    /// How far the system's clock has been set forward, or back.
    wall_offset_ms: i64,
    counters: Counters,
}

impl SimDevice {
    /// An empty machine with 512-byte blocks.
    pub fn new(seed: u64) -> SimDevice {
        Self::with_block_bytes(seed, SECTOR_BYTES)
    }

    /// An empty machine whose direct I/O is aligned to `block_bytes`: 512 or 4096.
    pub fn with_block_bytes(seed: u64, block_bytes: usize) -> SimDevice {
        assert!([SECTOR_BYTES, UNIT_BYTES].contains(&block_bytes), "blocks have 512 or 4096 bytes, not {block_bytes}");
        let state = State {
            random: Rng::with_seed(seed),
            block_bytes,
            tree: Tree::new(),
            generation: 0,
            crash_in: None,
            crash_inside: None,
            crashed: false,
            phases: Vec::new(),
            observer: None,
            real_directory: None,
            index_needs: None,
            capacity: None,
            faults: Vec::new(),
            locks: BTreeSet::new(),
            clock_us: 0,
            wall_offset_ms: 0,
            counters: Counters::default(),
        };
        SimDevice { machine: Arc::new(Machine(Mutex::new(state))), generation: 0 }
    }

    /// Kills the process during the `steps`-th call from now (1 is the next): that call may take effect wholly, partly
    /// or not at all, and it and all later ones fail with "simulated crash". What the process stores in mappings
    /// afterwards is lost. Call [`SimDevice::process_death`] or [`SimDevice::power_cut`] to go on. Replaces an earlier
    /// request.
    pub fn crash_after(&self, steps: u64) {
        assert!(steps > 0, "the call that was made last cannot crash any more");
        let mut state = self.machine.lock();
        (state.crash_in, state.crash_inside) = (Some(steps), None);
    }

    /// Like [`SimDevice::crash_after`], but kills the process inside a phase of the engine: `skip` of them pass, then it
    /// dies in the `steps`-th step of the next one (1 is its beginning), or at its end if that comes first.
    pub fn crash_inside(&self, phase: Phase, skip: u64, steps: u64) {
        assert!(steps > 0, "the call that was made last cannot crash any more");
        let mut state = self.machine.lock();
        state.crash_in = None;
        state.crash_inside = Some(CrashInside { phase, skip, steps, depth: None });
    }

    /// Whether the crash asked for has happened, and neither a process death nor a power cut has followed.
    pub fn has_crashed(&self) -> bool {
        self.machine.lock().crashed
    }

    /// Ends the process and returns the device of the next one. The kernel keeps everything written and mapped.
    #[must_use = "the device of the process that died is of no further use"]
    pub fn process_death(&self) -> SimDevice {
        self.restart(|_| {})
    }

    /// Cuts the power and returns the device of the process that starts on what is left.
    #[must_use = "the device of the process that died is of no further use"]
    pub fn power_cut(&self) -> SimDevice {
        self.restart(|state| {
            let (sectors, names) = state.tree.settle(&mut state.random);
            state.counters.lost_sectors += sectors;
            state.counters.lost_names += names;
        })
    }

    fn restart(&self, happening: impl FnOnce(&mut State)) -> SimDevice {
        let mut state = self.machine.lock();
        state.tree.absorb();
        state.tree.orphan_memory();
        happening(&mut state);
        state.generation += 1;
        (state.crash_in, state.crash_inside) = (None, None);
        state.crashed = false;
        state.phases.clear();
        state.locks.clear();
        state.counters.crashes += 1;
        SimDevice { machine: self.machine.clone(), generation: state.generation }
    }

    /// Makes calls on files whose path (as opened) satisfies `on` fail with `EIO`: after the next `skip` such calls,
    /// the following `times` ones. Faults stay through crashes until they are used up or cleared.
    pub fn fail(&self, call: Call, skip: u64, times: u64, on: impl Fn(&Path) -> bool + Send + 'static) {
        self.disturb(call, Effect::Fail, skip, times, on);
    }

    /// Like [`SimDevice::fail`], with another effect.
    pub fn disturb(
        &self,
        call: Call,
        effect: Effect,
        skip: u64,
        times: u64,
        on: impl Fn(&Path) -> bool + Send + 'static,
    ) {
        self.machine.lock().faults.push(Fault { call, effect, skip, times, on: Box::new(on) });
    }

    /// Takes back all faults of [`SimDevice::fail`] and [`SimDevice::disturb`].
    pub fn clear_faults(&self) {
        self.machine.lock().faults.clear();
    }

    /// Sets the size of the disk in bytes, `None` for an endless one. Files take whole units of 4096 bytes. A size
    /// below what is in use only refuses growth.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.machine.lock().capacity = capacity;
    }

    /// Has LMDB find no room while less than this is free, `None` for any time: its file does not lie on this disk.
    pub fn set_index_needs(&self, bytes: Option<u64>) {
        self.machine.lock().index_needs = bytes;
    }

    /// The space that files take on the disk, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.machine.lock().tree.used_bytes(UNIT_BYTES as u64)
    }

    /// Flips the bits of `mask` in the byte at `offset`, on the medium and in the kernel. Panics if there is no such
    /// byte or the file is mapped.
    pub fn corrupt(&self, path: impl AsRef<Path>, offset: u64, mask: u8) {
        let path = path.as_ref();
        let inode = self.machine.lock().tree.find(path);
        inode.unwrap_or_else(|| panic!("no file {} to corrupt", path.display())).lock().corrupt(offset, mask);
    }

    /// The phases that the engine is in, outermost first; after a crash those in which it happened.
    pub fn phases(&self) -> Vec<Phase> {
        self.machine.lock().phases.clone()
    }

    /// Has events told to `observer`, which must not call the device.
    pub fn observe(&self, observer: impl FnMut(Event) + Send + 'static) {
        self.machine.lock().observer = Some(Box::new(observer));
    }

    /// Says under which directory of the kernel's file system the files lie that libraries open by themselves; else they
    /// lie under their own paths.
    pub fn set_real_directory(&self, directory: impl Into<PathBuf>) {
        self.machine.lock().real_directory = Some(directory.into());
    }

    /// What the kernel shows of a file (after a crash: showed when it happened), `None` if there is no such file.
    pub fn file_bytes(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.machine.lock();
        let inode = state.tree.find(path.as_ref())?;
        let mut content = inode.lock();
        content.absorb();
        let mut bytes = vec![0; content.length() as usize];
        content.read(&mut bytes, 0);
        Some(bytes)
    }

    /// The absolute paths of all files, sorted.
    pub fn file_names(&self) -> Vec<PathBuf> {
        self.machine.lock().tree.file_names()
    }

    /// Lets `ms` milliseconds pass.
    pub fn advance_clock(&self, ms: u64) {
        self.machine.lock().clock_us += ms * 1000;
    }

    /// Sets the system's clock, but not the one that never goes back, forward or back.
    pub fn set_wall_clock(&self, offset_ms: i64) {
        self.machine.lock().wall_offset_ms = offset_ms;
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.machine.lock().counters
    }

    fn call<T>(&self, effect: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        self.machine.lock().call(self.generation, effect)
    }
}

impl Device for SimDevice {
    type File = SimFile;
    type Queue = SimQueue;
    type Lock = SimLock;

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.call(|state| state.tree.create_dir(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.call(|state| state.tree.list(dir))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<SimFile> {
        let inode = self.call(|state| state.tree.open(path, access.create))?;
        Ok(SimFile { device: self.clone(), inode, path: absolute(path).into(), access })
    }

    fn free_bytes(&self, _path: &Path) -> Option<u64> {
        let machine = self.machine.lock();
        machine.capacity.map(|capacity| capacity.saturating_sub(machine.tree.used_bytes(UNIT_BYTES as u64)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(|state| state.tree.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(|state| state.tree.remove(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(|state| {
            state.counters.syncs += 1;
            match state.disturbance(Call::Sync, &absolute(dir)) {
                Some(Effect::Fail) => Err(io::Error::from_raw_os_error(libc::EIO)),
                Some(Effect::Lose) => Ok(()),
                _ => state.tree.sync_dir(dir),
            }
        })
    }

    /// See [`Device::map`]. Panics if the file has a live mapping already.
    fn map(&self, path: &Path, length: usize) -> io::Result<Mapping> {
        self.call(|state| {
            if length == 0 {
                return Err(io::Error::from_raw_os_error(libc::EINVAL));
            }
            let inode = state.tree.open(path, true)?;
            state.check_space(&inode, length as u64)?;
            Ok(inode.lock().map(length))
        })
    }

    fn lock(&self, path: &Path) -> io::Result<Result<SimLock, String>> {
        self.call(|state| {
            if !state.tree.is_dir(path) {
                state.tree.open(path, true)?;
            }
            let path = absolute(path);
            if !state.locks.insert(path.clone()) {
                return Ok(Err(format!("simulated process {}", state.generation)));
            }
            Ok(Ok(path))
        })
        .map(|taken| taken.map(|path| SimLock { device: self.clone(), path }))
    }

    fn queue(&self, depth: usize) -> io::Result<SimQueue> {
        if !(1..=MAX_DEPTH).contains(&depth) {
            let message = format!("a read queue has a depth of 1 to {MAX_DEPTH}, not {depth}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.call(|_| Ok(SimQueue::new(self.clone(), depth)))
    }

    fn report(&self) -> Report {
        let block_bytes = self.machine.lock().block_bytes;
        Report { backend: "sim", direct: true, block_bytes, fallbacks: Vec::new() }
    }

    fn clock_ms(&self) -> u64 {
        self.machine.lock().clock_us / 1000
    }

    fn wall_ms(&self) -> u64 {
        let state = self.machine.lock();
        START_WALL_MS.saturating_add_signed(state.wall_offset_ms) + state.clock_us / 1000
    }

    fn random(&self) -> u64 {
        self.machine.lock().random.u64(..)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        let Some(directory) = self.machine.lock().real_directory.clone() else { return Ok(path.to_path_buf()) };
        let within = absolute(path);
        Ok(directory.join(within.strip_prefix("/").expect("the path is absolute")))
    }

    fn index_needs_bytes(&self) -> u64 {
        self.machine.lock().index_needs.unwrap_or(0)
    }

    fn has_room_for_index(&self) -> bool {
        let mut state = self.machine.lock();
        let (Some(capacity), Some(bytes)) = (state.capacity, state.index_needs) else { return true };
        let has_room = state.tree.used_bytes(UNIT_BYTES as u64) + bytes <= capacity;
        state.counters.refused_for_space += u64::from(!has_room);
        has_room
    }

    /// Both ends of a phase are steps: a crash can hit them where the engine only works in memory.
    fn mark(&self, phase: Phase, begins: bool) {
        let mut state = self.machine.lock();
        if state.generation != self.generation || state.crashed {
            return;
        }
        if begins {
            state.phases.push(phase);
        }
        state.aim(phase, begins);
        // A crash shows in the next call.
        let dies = state.step(self.generation).unwrap_or(true);
        if !begins && !dies {
            // Those of one thread end in the order in which they began; other threads have theirs in between.
            let began = state.phases.iter().rposition(|begun| *begun == phase);
            state.phases.remove(began.expect("a phase that ends has begun"));
            state.tell(Event::End(phase));
        }
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.device.machine.lock();
        if state.generation == self.device.generation {
            state.locks.remove(&self.path);
        }
    }
}

impl State {
    /// Counts a call of the process `generation`, and says whether the process dies during it.
    fn step(&mut self, generation: u64) -> io::Result<bool> {
        if generation != self.generation {
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
    fn aim(&mut self, phase: Phase, begins: bool) {
        let depth = self.phases.len();
        let Some(inside) = self.crash_inside.as_mut().filter(|inside| inside.phase == phase) else { return };
        match inside.depth {
            None if begins && inside.skip > 0 => inside.skip -= 1,
            None if begins => (inside.depth, self.crash_in) = (Some(depth), Some(inside.steps)),
            Some(at) if !begins && at == depth => self.crash_in = Some(1),
            _ => {}
        }
    }

    fn tell(&mut self, event: Event) {
        if let Some(observer) = &mut self.observer {
            observer(event);
        }
    }

    /// Makes a call that a crash either prevents or lets take effect; writes, which can be torn, are made otherwise.
    fn call<T>(&mut self, generation: u64, effect: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let dies = self.step(generation)?;
        if dies && self.random.bool() {
            return Err(crashed());
        }
        let outcome = effect(self);
        if dies { Err(crashed()) } else { outcome }
    }

    /// What an injected fault does to this call. Delays are over when this returns.
    fn disturbance(&mut self, call: Call, path: &Path) -> Option<Effect> {
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

fn stale() -> io::Error {
    io::Error::other("stale handle")
}

fn crashed() -> io::Error {
    io::Error::other("simulated crash")
}
