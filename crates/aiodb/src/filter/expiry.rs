//! Records that say themselves until when they count.

use super::{CompactionFilter, FilterEntry, FilterPass, FilterRange, Mark, Verdict};

/// Gives up records whose values begin with a time that is over: eight bytes, little-endian, milliseconds since 1970; 0 = never. A filter
/// named `expiry`. The table's index must have the values ([`crate::TableOptions::inline_bytes`]): others are kept, as
/// are shorter ones. For values of any kind and length there is [`crate::WriteOptions::expires_ms`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Expiry;

/// The time with which a value begins; `None` = never.
fn expires_ms(entry: &FilterEntry<'_>) -> Option<u64> {
    let bytes = entry.value?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes)).filter(|expires_ms| *expires_ms > 0)
}

impl CompactionFilter for Expiry {
    fn name(&self) -> &str {
        "expiry"
    }

    fn mark(&self, entry: &FilterEntry<'_>) -> Mark {
        expires_ms(entry).map_or(Mark::Never, Mark::From)
    }

    fn begin(&self, range: &FilterRange<'_>) -> Box<dyn FilterPass> {
        Box::new(Pass { now_ms: range.now_ms })
    }
}

struct Pass {
    now_ms: u64,
}

impl FilterPass for Pass {
    fn judge(&mut self, entries: &[FilterEntry<'_>], verdicts: &mut [Verdict]) {
        for (entry, verdict) in entries.iter().zip(verdicts) {
            if expires_ms(entry).is_some_and(|expires_ms| expires_ms <= self.now_ms) {
                *verdict = Verdict::Drop;
            }
        }
    }
}
