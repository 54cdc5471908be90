//! The store's time, by which records expire: the system's clock as far as it can be believed.
//!
//! A wall clock may be wrong, and may be put right. Small steps are followed: ahead at once; back by standing still, so that
//! expired records stay so. A clock that is more than [`MAX_STEP_MS`] away from the time that the monotonic clock implies
//! is doubted: the store's time goes on with the monotonic clock, until the wall clock either is back or has stood
//! there for [`BELIEVED_AFTER_MS`]; then it is believed, whichever way it went. So one wrong reading does nothing, and no wrong
//! clock holds the store's time for longer than that once it was put right.

use std::cmp::Ordering::{Greater, Less};

use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use crate::sync::{Mutex, Rank};

/// Steps of the system's clock up to this are believed at once, and its time stands still no longer after a step back.
pub(crate) const MAX_STEP_MS: u64 = 60 * 60 * 1000;

/// How long a clock that stepped further must have stood there, by the monotonic clock, before it is believed.
const BELIEVED_AFTER_MS: u64 = 10 * 60 * 1000;

/// Both clocks are not read in one moment, and the system's is slewed: readings so far apart count as the same.
const MAX_DRIFT_MS: u64 = 1000;

/// A reading of both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// The system's clock, in milliseconds since 1970.
    pub(crate) wall_ms: u64,
    /// Milliseconds of the clock that never goes back.
    pub(crate) monotonic_ms: u64,
}

impl Reading {
    /// By how much the system's clock is ahead of the monotonic one: the same all the time, unless it is set.
    fn offset_ms(&self) -> i64 {
        self.wall_ms.wrapping_sub(self.monotonic_ms) as i64
    }

    /// The time that the system's clock would show with this offset.
    fn with_offset(&self, offset_ms: i64) -> u64 {
        self.monotonic_ms.saturating_add_signed(offset_ms)
    }
}

/// The moment since which the system's clock is not believed, and its offset meanwhile.
#[derive(Clone, Copy)]
struct Doubt {
    since_ms: u64,
    offset_ms: i64,
}

/// The time of a store that has written down one time and then another: the later of the two, unless time has come back
/// in between.
pub(crate) fn later(first_ms: u64, then_ms: u64) -> u64 {
    if then_ms.saturating_add(MAX_STEP_MS) < first_ms { then_ms } else { first_ms.max(then_ms) }
}

/// The time of one store.
pub(crate) struct StoreClock {
    /// Only [`StoreClock::resume`] and the end of a doubt set it back. Release and Acquire, which is more than it needs, as for
    /// `is_held`: no other data is read by it.
    time_ms: AtomicU64,
    /// [`Reading::offset_ms`] as it is believed. Relaxed: it is changed under `doubt`, and a thread that reads an old one looks again
    /// under that lock.
    offset_ms: AtomicI64,
    /// Whether there is a doubt.
    is_held: AtomicBool,
    doubt: Mutex<Option<Doubt>, { Rank::Doubt as u8 }>,
}

impl StoreClock {
    /// The time of a store that knows nothing of it yet.
    pub(crate) fn new() -> StoreClock {
        StoreClock {
            time_ms: AtomicU64::new(0),
            offset_ms: AtomicI64::new(0),
            is_held: AtomicBool::new(false),
            doubt: Mutex::new(None),
        }
    }

    /// Goes on from a time that was written down: from the later of that and the system's clock, unless the store's time is so far
    /// ahead that one of them must be wrong. Then the store's time goes on from its own, as it does when the clock is set back, or,
    /// where it cannot be written down again (`believes_wall`), from the system's clock.
    pub(crate) fn resume(&self, written_ms: u64, reading: Reading, believes_wall: bool) {
        let mut doubt = self.doubt.lock().expect(NO_PANIC);
        let is_far_ahead = written_ms > reading.wall_ms.saturating_add(MAX_STEP_MS);
        if is_far_ahead && !believes_wall {
            *doubt = Some(Doubt { since_ms: reading.monotonic_ms, offset_ms: reading.offset_ms() });
            self.offset_ms.store(written_ms.wrapping_sub(reading.monotonic_ms) as i64, Ordering::Relaxed);
            self.time_ms.store(written_ms, Ordering::Release);
        } else {
            *doubt = None;
            self.offset_ms.store(reading.offset_ms(), Ordering::Relaxed);
            let time_ms = if is_far_ahead { reading.wall_ms } else { written_ms.max(reading.wall_ms) };
            self.time_ms.store(time_ms, Ordering::Release);
        }
        self.is_held.store(doubt.is_some(), Ordering::Release);
    }

    /// The store's time now, in milliseconds since 1970.
    pub(crate) fn now_ms(&self, reading: Reading) -> u64 {
        let drift_ms = reading.offset_ms().abs_diff(self.offset_ms.load(Ordering::Relaxed));
        if drift_ms <= MAX_DRIFT_MS && !self.is_held.load(Ordering::Acquire) {
            return self.advance(reading.wall_ms);
        }
        self.judge(reading)
    }

    /// The time that no doubt can make too late: for decisions that cannot be taken back.
    pub(crate) fn certain_ms(&self, reading: Reading) -> u64 {
        let now_ms = self.now_ms(reading);
        if self.is_held.load(Ordering::Acquire) { now_ms.min(reading.wall_ms) } else { now_ms }
    }

    /// By how much the system's clock is ahead of the store's time, in milliseconds; behind if negative.
    pub(crate) fn ahead_ms(&self, reading: Reading) -> i64 {
        let now_ms = self.now_ms(reading);
        let distance_ms = i64::try_from(reading.wall_ms.abs_diff(now_ms)).unwrap_or(i64::MAX);
        match reading.wall_ms.cmp(&now_ms) {
            Greater => distance_ms,
            Less => -distance_ms,
            std::cmp::Ordering::Equal => 0,
        }
    }

    /// Judges a clock that is not where it was.
    #[cold]
    fn judge(&self, reading: Reading) -> u64 {
        let mut doubt = self.doubt.lock().expect(NO_PANIC);
        let expected_ms = reading.with_offset(self.offset_ms.load(Ordering::Relaxed));
        let is_near = reading.wall_ms.abs_diff(expected_ms) <= MAX_STEP_MS
            && self.time_ms.load(Ordering::Acquire) <= reading.wall_ms.saturating_add(MAX_STEP_MS);
        let is_ahead = reading.wall_ms > expected_ms;
        if is_near || (is_ahead && planted::is_on(Bug::ClockJumpBelieved)) {
            self.believe(&mut doubt, reading);
            return self.advance(reading.wall_ms);
        }
        let same = doubt.filter(|doubt| doubt.offset_ms.abs_diff(reading.offset_ms()) <= MAX_STEP_MS);
        let since_ms = same.map_or(reading.monotonic_ms, |doubt| doubt.since_ms);
        let has_stood = reading.monotonic_ms.saturating_sub(since_ms) >= BELIEVED_AFTER_MS;
        if has_stood && (is_ahead || !planted::is_on(Bug::TimeNeverComesBack)) {
            self.believe(&mut doubt, reading);
            self.time_ms.store(reading.wall_ms, Ordering::Release);
            return reading.wall_ms;
        }
        *doubt = Some(Doubt { since_ms, offset_ms: reading.offset_ms() });
        self.is_held.store(true, Ordering::Release);
        self.advance(expected_ms)
    }

    fn believe(&self, doubt: &mut Option<Doubt>, reading: Reading) {
        *doubt = None;
        self.offset_ms.store(reading.offset_ms(), Ordering::Relaxed);
        self.is_held.store(false, Ordering::Release);
    }

    /// Goes on to a time, or stands still if it is past already.
    fn advance(&self, to_ms: u64) -> u64 {
        if planted::is_on(Bug::TimeGoesBack) {
            self.time_ms.store(to_ms, Ordering::Release);
        }
        let time_ms = self.time_ms.load(Ordering::Acquire);
        if to_ms <= time_ms { time_ms } else { self.time_ms.fetch_max(to_ms, Ordering::AcqRel).max(to_ms) }
    }
}

/// Why the lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it judges a clock";

#[cfg(test)]
mod tests;
