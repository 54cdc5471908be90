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
//! Of a sector written several times without a sync, any of these states may be left.

mod content;
mod file;
mod machine;
mod queue;
#[cfg(test)]
mod tests;
mod tree;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::machine::{CrashInside, Fault, Machine, State};
use self::tree::absolute;
use super::{Access, Device, Mapping, Phase, Report, SECTOR_BYTES, UNIT_BYTES};

pub use self::file::SimFile;
pub use self::machine::{Call, Counters, Effect, Event};
pub use self::queue::SimQueue;

/// The greatest depth of a read queue.
const MAX_DEPTH: usize = 4096;

/// Units that a long scan reads at once.
const STREAM_UNITS: usize = 3;

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
    /// The number of its process on the machine.
    process: u64,
}

/// The system's clock when a machine is made: some day in 2026.
const START_WALL_MS: u64 = 1_780_000_000_000;

/// Holds a simulated lock until dropped.
pub struct SimLock {
    device: SimDevice,
    path: PathBuf,
}

impl SimDevice {
    /// An empty machine with 512-byte blocks.
    pub fn new(seed: u64) -> SimDevice {
        Self::with_block_bytes(seed, SECTOR_BYTES)
    }

    /// An empty machine whose direct I/O is aligned to `block_bytes`: 512 or 4096.
    pub fn with_block_bytes(seed: u64, block_bytes: usize) -> SimDevice {
        assert!([SECTOR_BYTES, UNIT_BYTES].contains(&block_bytes), "blocks have 512 or 4096 bytes, not {block_bytes}");
        SimDevice { machine: Arc::new(Machine::new(seed, block_bytes)), process: 0 }
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
            let (sectors, names) = state.tree.lose_unflushed(&mut state.random);
            state.counters.lost_sectors += sectors;
            state.counters.lost_names += names;
        })
    }

    fn restart(&self, happening: impl FnOnce(&mut State)) -> SimDevice {
        let mut state = self.machine.lock();
        state.tree.absorb();
        state.tree.orphan_memory();
        happening(&mut state);
        state.process += 1;
        (state.crash_in, state.crash_inside) = (None, None);
        state.crashed = false;
        state.phases.clear();
        state.locks.clear();
        state.counters.crashes += 1;
        SimDevice { machine: self.machine.clone(), process: state.process }
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

    /// Makes each read that includes one of these bytes of a file fail with `EIO`, whatever is written there. Panics if there is no such file.
    pub fn make_unreadable(&self, path: impl AsRef<Path>, bytes: Range<u64>) {
        let (path, mut machine) = (path.as_ref(), self.machine.lock());
        let inode = machine.tree.find(path).unwrap_or_else(|| panic!("no file {} to be unreadable", path.display()));
        machine.unreadable.push((inode, bytes));
    }

    /// Takes back all faults of [`SimDevice::fail`], [`SimDevice::disturb`] and [`SimDevice::make_unreadable`].
    pub fn clear_faults(&self) {
        let mut machine = self.machine.lock();
        machine.faults.clear();
        machine.unreadable.clear();
    }

    /// Sets the size of the disk in bytes, `None` for an endless one. Files take whole units of 4096 bytes. A size
    /// below what is in use only refuses growth.
    pub fn set_capacity(&self, capacity: Option<u64>) {
        self.machine.lock().capacity = capacity;
    }

    /// Sets how much memory there is for the process: 512 MiB at first.
    pub fn set_memory(&self, bytes: u64) {
        self.machine.lock().memory_bytes = bytes;
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

    /// The phases that the engine is in, outermost first; after a crash the phases in which it happened.
    pub fn phases(&self) -> Vec<Phase> {
        self.machine.lock().phases.clone()
    }

    /// Tells `observer` of events; it must not call the device.
    pub fn observe(&self, observer: impl FnMut(Event) + Send + 'static) {
        self.machine.lock().observer = Some(Box::new(observer));
    }

    /// Sets the directory of the kernel's file system under which files lie that libraries open by themselves. Without one
    /// they lie under their own paths.
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
        self.machine.lock().call(self.process, effect)
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
                return Ok(Err(format!("simulated process {}", state.process)));
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

    fn memory_bytes(&self) -> u64 {
        self.machine.lock().memory_bytes
    }

    fn random(&self) -> u64 {
        self.machine.lock().random.u64(..)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        let Some(directory) = self.machine.lock().real_directory.clone() else { return Ok(path.to_path_buf()) };
        let within = absolute(path);
        Ok(directory.join(within.strip_prefix("/").expect("the path is absolute")))
    }

    fn stream_bytes(&self) -> usize {
        STREAM_UNITS * UNIT_BYTES
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
        if state.process != self.process || state.crashed {
            return;
        }
        if begins {
            state.phases.push(phase);
        }
        state.aim(phase, begins);
        // A crash shows in the next call.
        let dies = state.step(self.process).unwrap_or(true);
        if !begins && !dies {
            // Phases of one thread end in the order in which they began, with phases of other threads in between.
            let began = state.phases.iter().rposition(|begun| *begun == phase);
            state.phases.remove(began.expect("a phase that ends has begun"));
            state.tell(Event::End(phase));
        }
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.device.machine.lock();
        if state.process == self.device.process {
            state.locks.remove(&self.path);
        }
    }
}
