//! What the store's time may be, by which records expire: the rules of `docs/durability.md`, with what the model cannot
//! know left open.

use crate::model::Moments;

/// Steps of the system's clock up to this are believed at once.
pub(crate) const MAX_STEP_MS: u64 = 60 * 60 * 1000;

/// How long a clock that stepped further must have stood there.
const BELIEVED_AFTER_MS: u64 = 10 * 60 * 1000;

/// The store looks at the clock within this time, as it is driven here, or is closed.
const LOOKS_WITHIN_MS: u64 = 5000;

/// How far time passes in a run for a clock to be believed for certain.
pub(crate) const CERTAIN_AFTER_MS: u64 = BELIEVED_AFTER_MS + LOOKS_WITHIN_MS;

/// A reading of the simulated machine's clocks.
#[derive(Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) wall_ms: u64,
    pub(crate) monotonic_ms: u64,
}

impl Clocks {
    fn offset_ms(&self) -> i64 {
        self.wall_ms as i64 - self.monotonic_ms as i64
    }
}

/// Whether the store believes the system's clock.
#[derive(Clone, Copy, Debug)]
enum Belief {
    /// It does.
    Whole,
    /// It goes by the monotonic clock: since when the system's clock has stood where it is.
    None { since_ms: u64 },
    /// Unknown until a moment; meanwhile its time lies between these offsets from the monotonic clock.
    Unknown { until_ms: u64, lowest_ms: i64, highest_ms: i64 },
}

/// What the time of the store may be.
pub(crate) struct StoreTime {
    belief: Belief,
    /// By how much the system's clock is ahead of the monotonic one, where the store believed it last.
    believed_ms: i64,
    /// The same where it is now.
    shown_ms: i64,
    /// The latest that the store's time may have come to.
    latest_ms: u64,
    /// What the system's clock showed at the latest when the store looked at it and believed it, in this process.
    looked_ms: u64,
    /// The latest that the system's clock has shown since it stepped far.
    shown_latest_ms: u64,
    /// The latest that may be written down as the store's time.
    written_ms: u64,
    /// Whether the clock has stepped far in this run.
    has_jumped: bool,
}

impl StoreTime {
    /// Before the store is opened.
    pub(crate) fn new() -> StoreTime {
        StoreTime {
            belief: Belief::Whole,
            believed_ms: 0,
            shown_ms: 0,
            latest_ms: 0,
            looked_ms: 0,
            shown_latest_ms: 0,
            written_ms: 0,
            has_jumped: false,
        }
    }

    /// What the store's time may be now.
    pub(crate) fn look(&mut self, now: Clocks) -> Moments {
        self.judge(now);
        self.shown_latest_ms = self.shown_latest_ms.max(now.wall_ms);
        let by = |offset_ms: i64| now.monotonic_ms.saturating_add_signed(offset_ms);
        let (from_ms, to_ms) = match self.belief {
            // Set back by little, the store's time stands still.
            Belief::Whole => (now.wall_ms.max(self.looked_ms), now.wall_ms),
            Belief::None { .. } => (by(self.believed_ms), by(self.believed_ms)),
            Belief::Unknown { lowest_ms, highest_ms, .. } => (by(lowest_ms), by(highest_ms)),
        };
        self.latest_ms = self.latest_ms.max(to_ms);
        self.written_ms = self.written_ms.max(self.latest_ms);
        (from_ms, self.latest_ms)
    }

    /// The store has looked at the clock since this reading.
    pub(crate) fn looked(&mut self, then: Clocks) {
        if matches!(self.belief, Belief::Whole) {
            self.looked_ms = self.looked_ms.max(then.wall_ms);
        }
    }

    /// The store was opened, and goes on from a time that was written down.
    pub(crate) fn opened(&mut self, now: Clocks) {
        (self.shown_ms, self.shown_latest_ms) = (now.offset_ms(), now.wall_ms);
        (self.latest_ms, self.looked_ms) = (self.written_ms.max(now.wall_ms), 0);
        self.believed_ms = now.offset_ms();
        self.belief = if self.written_ms > now.wall_ms + MAX_STEP_MS {
            let highest_ms = self.written_ms as i64 - now.monotonic_ms as i64;
            let until_ms = now.monotonic_ms + CERTAIN_AFTER_MS;
            Belief::Unknown { until_ms, lowest_ms: now.offset_ms(), highest_ms }
        } else {
            Belief::Whole
        };
    }

    /// What the store knows of time was written down for good: nothing later will be found.
    pub(crate) fn written(&mut self) {
        if matches!(self.belief, Belief::Whole) {
            self.written_ms = self.latest_ms;
        }
    }

    /// Whether a step to this reading goes so far back that records which have expired may be seen again.
    pub(crate) fn goes_back(&self, now: Clocks) -> bool {
        now.wall_ms + MAX_STEP_MS < self.latest_ms
    }

    /// Whether the clock has ever stepped so far that it is not believed at once.
    pub(crate) fn has_jumped(&self) -> bool {
        self.has_jumped
    }

    /// The latest that the store's time may have come to.
    pub(crate) fn latest_ms(&self) -> u64 {
        self.latest_ms
    }

    /// What the store thinks of a clock that may have been set.
    fn judge(&mut self, now: Clocks) {
        let has_moved = now.offset_ms().abs_diff(self.shown_ms) > MAX_STEP_MS;
        self.has_jumped |= has_moved && self.shown_ms != 0;
        if has_moved {
            self.shown_latest_ms = now.wall_ms;
        }
        self.shown_ms = now.offset_ms();
        let is_near = now.offset_ms().abs_diff(self.believed_ms) <= MAX_STEP_MS && !self.goes_back(now);
        self.belief = match self.belief {
            Belief::Whole | Belief::None { .. } if is_near => Belief::Whole,
            Belief::Whole => Belief::None { since_ms: now.monotonic_ms },
            Belief::None { .. } if has_moved => Belief::None { since_ms: now.monotonic_ms },
            Belief::None { since_ms } if now.monotonic_ms < since_ms + BELIEVED_AFTER_MS => self.belief,
            Belief::None { .. } => {
                let (one, other) = (now.offset_ms(), self.believed_ms);
                let until_ms = now.monotonic_ms + LOOKS_WITHIN_MS;
                Belief::Unknown { until_ms, lowest_ms: one.min(other), highest_ms: one.max(other) }
            }
            Belief::Unknown { lowest_ms, highest_ms, .. } if has_moved => Belief::Unknown {
                until_ms: now.monotonic_ms + CERTAIN_AFTER_MS,
                lowest_ms: lowest_ms.min(now.offset_ms()),
                highest_ms: highest_ms.max(now.offset_ms()),
            },
            Belief::Unknown { until_ms, lowest_ms, highest_ms } if now.monotonic_ms < until_ms => Belief::Unknown {
                until_ms,
                lowest_ms: lowest_ms.min(now.offset_ms()),
                highest_ms: highest_ms.max(now.offset_ms()),
            },
            Belief::Unknown { .. } => {
                (self.latest_ms, self.looked_ms) = (self.shown_latest_ms, 0);
                Belief::Whole
            }
        };
        if matches!(self.belief, Belief::Whole) {
            self.believed_ms = now.offset_ms();
        }
    }
}
