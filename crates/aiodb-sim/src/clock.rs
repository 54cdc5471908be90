//! The clocks of the simulated machine: they are read, set and moved on, and what they make due is done.

use aiodb::Step;
use aiodb::io::Device;

use crate::model::Moments;
use crate::process::Client;
use crate::state::{Run, Violation};
use crate::store_time::{Clocks, MAX_STEP_MS};

/// Longer sleeps are made of pieces of this length.
const SLEEP_PIECE_MS: u64 = 60_000;

/// Calls of the clock-driven work that are further apart than this are late: intervals are then not promised.
const MAX_TICK_MS: u64 = 40;

/// Time passes in pieces of this length.
const WAIT_PIECE_MS: u64 = 10;

impl Run<'_> {
    /// What the store's time may be now. When the system's clock was set back, the store may go by the latest time that it
    /// has shown, or has not looked at it meanwhile.
    pub(crate) fn look_at_clock(&mut self) -> Moments {
        self.time.look(self.read_clocks())
    }

    /// What the store's time may have been since a look at the clock.
    pub(crate) fn moments(&mut self, from: Moments) -> Moments {
        let now = self.look_at_clock();
        (from.0.min(now.0), from.1.max(now.1))
    }

    pub(crate) fn read_clocks(&self) -> Clocks {
        Clocks { wall_ms: self.device.wall_ms(), monotonic_ms: self.device.clock_ms() }
    }

    /// The store's time was written down where a damaged medium cannot have lost it.
    pub(crate) fn time_is_written(&mut self) {
        if !self.allowed.damage {
            self.time.written();
        }
    }

    /// Sets the system's clock.
    pub(crate) fn set_clock(&mut self, offset_ms: i64) -> Result<(), Violation> {
        self.look_at_clock();
        let before_ms = self.device.wall_ms();
        self.device.set_wall_clock(offset_ms);
        if self.device.wall_ms().abs_diff(before_ms) <= MAX_STEP_MS {
            return Ok(());
        }
        if self.time.goes_back(self.read_clocks()) {
            self.model.time_comes_back(self.time.latest_ms());
        }
        // Gets in flight might be answered by either time.
        self.life().clients.iter_mut().for_each(|client| *client = Client::default());
        self.look_at_clock();
        self.step(Step::WriteBehind)
    }

    /// Lets a long time pass: too long for intervals to be kept.
    pub(crate) fn sleep(&mut self, ms: u64) -> Result<(), Violation> {
        let mut left = ms;
        while left > 0 && !self.device.has_crashed() {
            let piece = left.min(SLEEP_PIECE_MS);
            self.device.advance_clock(piece);
            left -= piece;
            self.tick()?;
            self.look_at_clock();
        }
        Ok(())
    }

    /// Lets time pass; what the clock makes due is done.
    pub(crate) fn wait(&mut self, ms: u64) -> Result<(), Violation> {
        let mut left = ms;
        while left > 0 && !self.device.has_crashed() {
            let piece = left.min(WAIT_PIECE_MS);
            self.device.advance_clock(piece);
            left -= piece;
            self.tick()?;
        }
        Ok(())
    }

    /// What the clock makes due is done.
    pub(crate) fn tick(&mut self) -> Result<(), Violation> {
        let now = self.device.clock_ms();
        if now == self.last_tick {
            return Ok(());
        }
        self.on_time &= self.is_on_time();
        self.last_tick = now;
        self.look_at_clock();
        let before = self.read_clocks();
        let outcome = self.db().step(Step::WriteBehind);
        if !self.device.has_crashed() {
            self.time.looked(before);
        }
        self.done("writing behind", outcome, |_| {})
    }

    /// Whether the clock-driven work was called as often as an interval needs.
    pub(crate) fn is_on_time(&self) -> bool {
        self.device.clock_ms() - self.last_tick <= MAX_TICK_MS
    }

    /// A new process: nothing is late yet.
    pub(crate) fn restart_clock(&mut self) {
        self.last_tick = self.device.clock_ms();
        self.on_time = true;
    }
}
