//! Open files as a bound known ahead.
//!
//! The system gives a process so many file descriptors and no more, and a store may have more segments than that. So the
//! descriptors of segments lie in a table with a bound: where it is full, an idle one is closed, and opened again by
//! the file's name when it is wanted. Other files of a store are open for a short time, with the descriptors that the bound
//! leaves; where the rest of the process has taken these, idle descriptors of segments are closed for them. Idle is a descriptor
//! that no system call uses.
//!
//! A use ends with the system call that it was for, so waiting for one to end is safe as long as the waiter has none. Two kinds are
//! kept open for longer: descriptors with writes that no flush has followed, since a second descriptor might never be told
//! that writing them back has failed, and descriptors that the engine keeps open for writes that it has admitted.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use crate::error::{descriptor_limit, is_shortage};

/// The fewest segment files that a store keeps open: half of them may be unflushed, two are being written, one is being made.
pub(crate) const LEAST_OPEN_FILES: usize = 8;

/// Descriptors left to everything else: a quarter of what the process may have, within these limits. The lower one is what a
/// store needs at once: the program's three, locks, LMDB's three, two for each read queue, the files of a checkpoint and of a
/// backup. The upper one is enough for a server's connections; one with more of them sets `Options::max_open_files`.
const LEFT_SHARE: u64 = 4;
const LEAST_LEFT: u64 = 32;
const MOST_LEFT: u64 = 1024;

/// Descriptors closed at a time when the system has none: LMDB opens three files in one call.
const CLOSED_AT_ONCE: usize = 4;

/// How often an opening is repeated when the system has no descriptor: after so many, other users of the system take each
/// descriptor that is closed for it.
const MOST_REPETITIONS: usize = 16;

/// Bits of a descriptor's word; the lower ones count its uses.
const CLOSED: u32 = 1 << 31;
const KEPT: u32 = 1 << 30;
const UNFLUSHED: u32 = 1 << 29;
const USED_LATELY: u32 = 1 << 28;
const USERS: u32 = USED_LATELY - 1;

/// The number of a closed descriptor.
const NO_NUMBER: RawFd = -1;

/// A file's descriptor, which may be closed while it is idle.
pub(super) struct Descriptor {
    /// Uses, and the bits above. SeqCst: a thread changes it and then reads [`Descriptors::waiting`], a waiter counts itself there
    /// and then reads this, and one of the two must see the other.
    word: AtomicU32,
    /// Relaxed: a use reads it after it has seen in the word that the descriptor is open, and it is stored before the word says so.
    fd: AtomicI32,
    /// Where in the table it lies. Relaxed: read and changed under the table's lock.
    place: AtomicUsize,
}

/// The findings about a descriptor that might be closed.
enum Closing {
    Done,
    UsedLately,
    InUse,
    Kept,
}

impl Descriptor {
    /// An open one, idle.
    pub(super) fn new(fd: OwnedFd) -> Descriptor {
        Descriptor {
            word: AtomicU32::new(0),
            fd: AtomicI32::new(std::os::fd::IntoRawFd::into_raw_fd(fd)),
            place: AtomicUsize::new(0),
        }
    }

    /// Begins a use; false if it is closed.
    #[inline]
    pub(super) fn begin_use(&self) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & CLOSED == 0 {
            let used = (word + 1) | USED_LATELY;
            match self.word.compare_exchange_weak(word, used, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Ends a use; true if it was the last one.
    #[inline]
    pub(super) fn end_use(&self) -> bool {
        self.word.fetch_sub(1, Ordering::SeqCst) & USERS == 1
    }

    /// The system's number, which means this file while the descriptor is in use.
    #[inline]
    pub(super) fn raw_fd(&self) -> RawFd {
        self.fd.load(Ordering::Relaxed)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.word.load(Ordering::SeqCst) & KEPT != 0
    }

    /// The caller uses it.
    pub(super) fn keep(&self) {
        self.word.fetch_or(KEPT, Ordering::SeqCst);
    }

    /// True if it was kept.
    pub(super) fn let_go(&self) -> bool {
        self.word.fetch_and(!KEPT, Ordering::SeqCst) & KEPT != 0
    }

    /// There are writes that are not flushed, or none any more. The caller uses it.
    pub(super) fn set_unflushed(&self, unflushed: bool) {
        if unflushed {
            self.word.fetch_or(UNFLUSHED, Ordering::SeqCst);
        } else {
            self.word.fetch_and(!UNFLUSHED, Ordering::SeqCst);
        }
    }

    /// Opens it again, in use once. Only one thread opens it at a time.
    fn reopen(&self, fd: OwnedFd) {
        self.fd.store(std::os::fd::IntoRawFd::into_raw_fd(fd), Ordering::Relaxed);
        let was = self.word.swap(1 | USED_LATELY, Ordering::SeqCst);
        assert_eq!(was, CLOSED, "a descriptor is opened once");
    }

    /// Closes it, if it was not used since this was asked last.
    fn close_if_idle(&self) -> Closing {
        let word = self.word.load(Ordering::SeqCst);
        if word & USERS != 0 {
            return Closing::InUse;
        }
        if word & (KEPT | UNFLUSHED) != 0 {
            return Closing::Kept;
        }
        if word & USED_LATELY != 0 {
            self.word.fetch_and(!USED_LATELY, Ordering::SeqCst);
            return Closing::UsedLately;
        }
        match self.word.compare_exchange(0, CLOSED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {
                self.close_number();
                Closing::Done
            }
            Err(_) => Closing::InUse,
        }
    }

    /// The word says that it is closed, or the file has no handle any more.
    fn close_number(&self) {
        // SAFETY: the number is the descriptor's own, and it is idle: the callers have seen to that.
        drop(unsafe { OwnedFd::from_raw_fd(self.fd.swap(NO_NUMBER, Ordering::Relaxed)) });
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if *self.word.get_mut() & CLOSED == 0 {
            self.close_number();
        }
    }
}

/// The descriptors of a device's segment files.
pub(super) struct Descriptors {
    most: usize,
    clock: Mutex<Clock>,
    /// A use has ended, or a descriptor need not stay open any more: a waiter looks again whether one can be closed.
    let_go: Condvar,
    /// Threads that wait, or are about to. SeqCst: see [`Descriptor::word`].
    waiting: AtomicU32,
}

/// Open descriptors in a circle. The hand passes over descriptors that were used since it came by last.
#[derive(Default)]
struct Clock {
    ring: Vec<Arc<Descriptor>>,
    hand: usize,
    /// Descriptors that are being opened: each has a place already.
    opening: usize,
}

/// The outcome of the wish to close a descriptor.
enum Found {
    Closed,
    /// One can be closed as soon as a use ends.
    InUse,
    /// All descriptors have to stay open.
    Nothing,
}

impl Clock {
    fn close_one(&mut self) -> Found {
        let mut in_use = false;
        // On the first way round all may have been used lately, and on the second some may have been used again since.
        for _ in 0..2 * self.ring.len() {
            self.hand = if self.hand < self.ring.len() { self.hand } else { 0 };
            match self.ring[self.hand].close_if_idle() {
                Closing::Done => {
                    self.take_out(self.hand);
                    return Found::Closed;
                }
                Closing::InUse | Closing::UsedLately => in_use = true,
                Closing::Kept => {}
            }
            self.hand += 1;
        }
        if in_use { Found::InUse } else { Found::Nothing }
    }

    /// Puts one in behind the hand, where it comes last.
    fn put_in(&mut self, descriptor: Arc<Descriptor>) {
        let (end, place) = (self.ring.len(), self.hand.min(self.ring.len()));
        self.ring.push(descriptor);
        self.ring.swap(place, end);
        for place in [place, end] {
            self.ring[place].place.store(place, Ordering::Relaxed);
        }
        self.hand = place + 1;
    }

    fn take_out(&mut self, place: usize) {
        self.ring.swap_remove(place);
        if let Some(moved) = self.ring.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
    }

    fn open(&self) -> usize {
        self.ring.len() + self.opening
    }
}

/// A place in the table for a descriptor that is being opened; given back when this is dropped.
pub(super) struct Place<'a>(&'a Descriptors);

impl Place<'_> {
    /// Puts in a descriptor that was just opened.
    pub(super) fn fill(self, descriptor: &Arc<Descriptor>) {
        let mut clock = self.0.clock();
        clock.put_in(Arc::clone(descriptor));
        // At once, so that it is not counted twice.
        clock.opening -= 1;
        drop(clock);
        self.0.tell_waiters();
        std::mem::forget(self);
    }

    /// The same with one that was closed; it is in use once.
    pub(super) fn fill_again(self, descriptor: &Arc<Descriptor>, fd: OwnedFd) {
        // First: descriptors in the table are open.
        descriptor.reopen(fd);
        self.fill(descriptor);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.clock().opening -= 1;
        self.0.tell_waiters();
    }
}

/// Counts a thread that waits.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicU32) -> Waiting<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Descriptors {
    /// An empty table of at most so many; 0 for as many as the process's limit leaves.
    pub(super) fn new(most: usize) -> Arc<Descriptors> {
        let most = if most == 0 { bound_for(descriptor_limit()) } else { most.max(LEAST_OPEN_FILES) };
        let table =
            Arc::new(Descriptors { most, clock: Mutex::default(), let_go: Condvar::new(), waiting: AtomicU32::new(0) });
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|table| table.strong_count() > 0);
        all.push(Arc::downgrade(&table));
        table
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    pub(super) fn open(&self) -> usize {
        self.clock().open()
    }

    /// A place for one more; where there is none, an idle descriptor is closed. `None` if the caller would have to wait
    /// for a use to end and `wait` is false: a thread that uses a descriptor must not wait.
    pub(super) fn place(&self, wait: bool) -> io::Result<Option<Place<'_>>> {
        let mut waiting = None;
        let mut clock = self.clock();
        loop {
            let found = if clock.open() < self.most { Found::Closed } else { clock.close_one() };
            match found {
                Found::Closed => {
                    clock.opening += 1;
                    return Ok(Some(Place(self)));
                }
                Found::Nothing if clock.opening == 0 => return Err(io::Error::from_raw_os_error(libc::EMFILE)),
                Found::InUse | Found::Nothing if !wait => return Ok(None),
                Found::InUse | Found::Nothing => clock = self.wait(clock, &mut waiting),
            }
        }
    }

    /// Opens a file for which the system may have no descriptor: then idle ones are closed. `None` as for [`Descriptors::place`].
    pub(super) fn open_with<T>(&self, wait: bool, mut open: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
        for _ in 0..MOST_REPETITIONS {
            match open() {
                Err(error) if is_shortage(&error) => match (close_some(), wait) {
                    (Found::Closed, _) => {}
                    (Found::InUse, true) => self.wait_for_one(),
                    (Found::InUse, false) => return Ok(None),
                    (Found::Nothing, _) => return Err(error),
                },
                opened => return opened.map(Some),
            }
        }
        open().map(Some)
    }

    /// Takes a descriptor out whose file has no handle any more.
    pub(super) fn remove(&self, descriptor: &Descriptor) {
        let mut clock = self.clock();
        let place = descriptor.place.load(Ordering::Relaxed);
        if clock.ring.get(place).is_some_and(|found| std::ptr::eq(&raw const **found, descriptor)) {
            clock.take_out(place);
        }
        drop(clock);
        self.tell_waiters();
    }

    /// Wakes the waiters, after a use has ended or a descriptor need not stay open any more.
    #[inline]
    pub(super) fn tell_waiters(&self) {
        // A waiter counts itself before it looks at the descriptors, and the caller has changed a descriptor before this: so
        // one of the two sees the other.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.clock());
            self.let_go.notify_all();
        }
    }

    /// Waits for a use to end, or for a descriptor to be closed otherwise.
    fn wait_for_one(&self) {
        let mut waiting = None;
        let mut clock = self.clock();
        while matches!(clock.close_one(), Found::InUse) {
            clock = self.wait(clock, &mut waiting);
        }
    }

    /// Sleeps until [`Descriptors::tell_waiters`]. The first time it returns at once, for the caller to look again: a thread that
    /// ended its use before this has not known that there is a waiter to be told.
    fn wait<'a>(&'a self, clock: MutexGuard<'a, Clock>, waiting: &mut Option<Waiting<'a>>) -> MutexGuard<'a, Clock> {
        if waiting.is_none() {
            *waiting = Some(Waiting::begin(&self.waiting));
            return clock;
        }
        self.let_go.wait(clock).expect(UNPOISONED)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "no code panics while it holds the table of descriptors";

/// The tables of all devices of this process: they share its limit.
static ALL: Mutex<Vec<Weak<Descriptors>>> = Mutex::new(Vec::new());

/// Does something that needs descriptors of its own; where the system has none, idle ones of segments are closed.
pub(crate) fn with_descriptors<T, E>(
    mut open: impl FnMut() -> Result<T, E>,
    cause: impl Fn(&E) -> Option<&io::Error>,
) -> Result<T, E> {
    for _ in 0..MOST_REPETITIONS {
        match open() {
            Err(error) if cause(&error).is_some_and(is_shortage) && matches!(close_some(), Found::Closed) => {}
            opened => return opened,
        }
    }
    open()
}

/// [`with_descriptors`] for a call of the system.
pub(super) fn for_system<T>(open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    with_descriptors(open, |error| Some(error))
}

/// Closes some idle descriptors of any store's segments.
fn close_some() -> Found {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    // The tables are dropped after the lock, which the end of a table's last handle must not need.
    let tables: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
    drop(all);
    let (mut closed, mut in_use) = (0, false);
    for table in &tables {
        let mut clock = table.clock();
        while closed < CLOSED_AT_ONCE {
            let found = clock.close_one();
            if !matches!(found, Found::Closed) {
                in_use |= matches!(found, Found::InUse);
                break;
            }
            closed += 1;
        }
    }
    match (closed, in_use) {
        (1.., _) => Found::Closed,
        (0, true) => Found::InUse,
        (0, false) => Found::Nothing,
    }
}

/// How many of a process's descriptors are for segments.
fn bound_for(limit: u64) -> usize {
    let left = (limit / LEFT_SHARE).clamp(LEAST_LEFT, MOST_LEFT);
    usize::try_from(limit.saturating_sub(left)).unwrap_or(usize::MAX).max(LEAST_OPEN_FILES)
}

#[cfg(test)]
mod tests;
