//! The compaction filter of a run. It gives up records by their keys, or by their values where the index has those, some of them from a
//! time on, and looks whether it is asked as promised.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use aiodb::CompactionFilter;
use aiodb::filter::{FilterEntry, FilterPass, FilterRange, Mark, Verdict};

use crate::model::fingerprint;

/// The name by which tables know it.
pub(crate) const NAME: &str = "droppings";

/// One key, and one value, in so many goes.
const DROPPED: u64 = 4;

/// The time from which on some go, and the span over which others follow: when a run begins its machine is close to it.
const FIRST_MS: u64 = 1_780_000_000_000;
const SPAN_MS: u64 = 20_000;

/// Before this time, or after it, the clock of no run has been.
const EARLIEST_MS: u64 = FIRST_MS / 2;
const LATEST_MS: u64 = FIRST_MS * 3;

/// Whether a record may be given up, sooner or later.
pub(crate) fn may_go(key: &[u8], value: &[u8]) -> bool {
    by_key(key) || by_value(value)
}

fn by_key(key: &[u8]) -> bool {
    fingerprint(key).is_multiple_of(DROPPED)
}

fn by_value(value: &[u8]) -> bool {
    value.first().is_some_and(|first| u64::from(*first).is_multiple_of(DROPPED))
}

/// What the filter and the run know of each other.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The oldest snapshot sees no record with a later sequence.
    pub(crate) oldest_snapshot: AtomicU64,
    /// What was asked that should not have been.
    wrong: Mutex<Option<String>>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch { oldest_snapshot: AtomicU64::new(u64::MAX), wrong: Mutex::default() }
    }
}

impl Watch {
    /// Snapshots end with their process.
    pub(crate) fn forget_snapshots(&self) {
        self.oldest_snapshot.store(u64::MAX, Ordering::SeqCst);
    }

    /// What was wrong since this was asked last.
    pub(crate) fn take_wrong(&self) -> Option<String> {
        self.wrong.lock().expect("nobody panics with it").take()
    }

    fn note(&self, wrong: String) {
        self.wrong.lock().expect("nobody panics with it").get_or_insert(wrong);
    }
}

/// The filter.
pub(crate) struct Droppings(pub(crate) Arc<Watch>);

/// From when on a record goes, if it does.
fn time_of(entry: &FilterEntry<'_>) -> Option<Mark> {
    let goes = by_key(entry.key) || entry.value.is_some_and(by_value);
    let number = fingerprint(entry.key) / DROPPED;
    let mark = match number % 3 {
        0 => Mark::Always,
        1 => Mark::From(0),
        _ => Mark::From(FIRST_MS + number % SPAN_MS),
    };
    goes.then_some(mark)
}

impl CompactionFilter for Droppings {
    fn name(&self) -> &str {
        NAME
    }

    fn mark(&self, entry: &FilterEntry<'_>) -> Mark {
        // Some are asked about in vain.
        let kept = if fingerprint(entry.key).is_multiple_of(7) { Mark::From(0) } else { Mark::Never };
        time_of(entry).unwrap_or(kept)
    }

    fn begin(&self, range: &FilterRange<'_>) -> Box<dyn FilterPass> {
        let (watch, last_key) = (Arc::clone(&self.0), range.first.to_vec());
        if !(EARLIEST_MS..LATEST_MS).contains(&range.now_ms) {
            watch.note(format!("a filter was asked at {} milliseconds since 1970", range.now_ms));
        }
        Box::new(Pass { watch, now_ms: range.now_ms, last_key, has_begun: false })
    }
}

struct Pass {
    watch: Arc<Watch>,
    now_ms: u64,
    last_key: Vec<u8>,
    has_begun: bool,
}

impl FilterPass for Pass {
    fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
        for (entry, verdict) in entries.iter().zip(verdicts) {
            let comes_after = if self.has_begun { *entry.key > *self.last_key } else { *entry.key == *self.last_key };
            if !comes_after {
                self.watch.note(format!("a filter was asked about {:?} after {:?}", entry.key, self.last_key));
            }
            let oldest = self.watch.oldest_snapshot.load(Ordering::SeqCst);
            if entry.sequence.number() > oldest {
                let sequence = entry.sequence;
                self.watch
                    .note(format!("a filter was asked about sequence {sequence}, a snapshot sees up to {oldest}"));
            }
            (self.last_key, self.has_begun) = (entry.key.to_vec(), true);
            *verdict = match time_of(entry) {
                Some(Mark::Always) => Verdict::Drop,
                Some(Mark::From(time_ms)) if time_ms <= self.now_ms => Verdict::Drop,
                _ => Verdict::Keep,
            };
        }
    }
}
