//! Chooses the segment that is emptied next.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::io::Device;
use crate::log::{Segment, State};
use crate::planted::{self, Bug};
use crate::store::upkeep::Upkeep;

/// Garbage is left alone until dead records are this share of all bytes in sealed segments...
const DEAD_SHARE: f64 = 0.3;
/// ...or dead records and the padding of batches together are this one: to free padding alone, most of a segment is moved...
const GARBAGE_SHARE: f64 = 0.5;
/// ...and a segment is not worth moving if more than this share of it is alive.
const MAX_LIVE_SHARE: f64 = 0.8;

/// Bytes of a delete that must stay, roughly.
pub(crate) const DELETE_BYTES: u64 = 64;

/// On a full disk more is moved for less.
pub(super) const MAX_LIVE_SHARE_WHEN_FULL: f64 = 0.95;

/// Segments whose garbage is always tolerated: a store this small is not worth the writes.
pub(crate) const TOLERATED_SEGMENTS: u64 = 4;

impl<D: Device> Upkeep<D> {
    /// The sealed segment with the smallest live share, if garbage has reached its threshold. Else, of the segments with a life before
    /// `squeezed_until`, the oldest with dead records. Says first whether any is wanted. Deletes in segments of `waiting_life` or later
    /// wait for merges.
    pub(super) fn choose_victim(
        &self,
        damaged: &BTreeSet<u64>,
        squeezed_until: u64,
        waiting_life: u64,
    ) -> (bool, Option<&Segment<D>>) {
        // The log's last batch is needed wherever it lies. It lies in a sealed segment after a recovery, until the next batch is
        // written, and where the next batch has a fresh segment to which no batch has been written yet.
        let end = if planted::is_on(Bug::LogEndFreed) { u64::MAX } else { self.commit.completed_end().0.life };
        let floor = self.staging.floor().min(end);
        let sealed = |segment: &&Segment<D>| {
            let end = segment.end.load(Ordering::Acquire);
            let published = segment.published_end.load(Ordering::Acquire) >= end;
            let life = segment.life();
            segment.state() == State::Sealed && published && life < floor && !damaged.contains(&life)
        };
        let segments: Vec<_> = self.segments.iter().filter(sealed).collect();
        let segment_bytes = self.segments.segment_bytes;
        let total = segments.len() as u64 * segment_bytes;
        let oldest_dead = self.oldest_life_with_dead_records(None);
        let now_ms = self.certain_ms();
        // On a full disk every bit counts; otherwise garbage is cheaper than moving the live records beside it.
        let full = self.segments.is_refused() || squeezed_until > 0;
        let live = |segment: &Segment<D>| {
            let live = if full { segment.bytes_to_move() } else { segment.taken() };
            live.saturating_sub(segment.expired(now_ms)).min(segment_bytes)
        };
        let stays = |segment: &Segment<D>| {
            // The deletes of the oldest segment go with the records that they delete, once those are counted as dead.
            let deletes = if oldest_dead < segment.life() || waiting_life <= segment.life() {
                segment.deletes.load(Ordering::Relaxed)
            } else {
                0
            };
            (live(segment) + deletes * DELETE_BYTES).min(segment_bytes)
        };
        let with_padding = |segment: &Segment<D>| (live(segment) + segment.padding()).min(segment_bytes);
        let garbage = total - segments.iter().map(|segment| live(segment)).sum::<u64>();
        let dead = total - segments.iter().map(|segment| with_padding(segment)).sum::<u64>();
        let tolerated = |share: f64| (TOLERATED_SEGMENTS * segment_bytes).max((total as f64 * share) as u64);
        if dead <= tolerated(DEAD_SHARE) && garbage <= tolerated(GARBAGE_SHARE) && !full {
            return (false, None);
        }
        let most = if full { MAX_LIVE_SHARE_WHEN_FULL } else { MAX_LIVE_SHARE };
        let emptiest = segments.iter().min_by_key(|segment| (stays(segment), segment.life())).copied();
        let victim = emptiest.filter(|segment| stays(segment) as f64 <= segment_bytes as f64 * most);
        if victim.is_some() {
            return (true, victim);
        }
        // Where deletes take the space, the segments whose dead records need them are emptied, from the oldest on.
        let deletes: u64 = segments.iter().map(|segment| segment.deletes.load(Ordering::Relaxed)).sum();
        let are_many = deletes * DELETE_BYTES >= if full { segment_bytes / 2 } else { tolerated(DEAD_SHARE) };
        let oldest = segments.into_iter().filter(|segment| holds_dead(segment)).min_by_key(|segment| segment.life());
        let can_go = |oldest: &&Segment<D>| oldest.life() == oldest_dead && oldest.life() < waiting_life;
        let is_worth_it = |oldest: &&Segment<D>| are_many && can_go(oldest) || oldest.life() < squeezed_until;
        (true, oldest.filter(is_worth_it))
    }

    /// Deletes in all segments that are in use.
    pub(super) fn deletes(&self) -> u64 {
        let in_use = |segment: &&Segment<D>| matches!(segment.state(), State::Active | State::Sealed);
        self.segments.iter().filter(in_use).map(|segment| segment.deletes.load(Ordering::Relaxed)).sum()
    }

    /// The share of a segment that is moved to empty the one with the fewest live records.
    pub(crate) fn least_moved_share(&self) -> f64 {
        let segment_bytes = self.segments.segment_bytes;
        let sealed = self.segments.iter().filter(|segment| segment.state() == State::Sealed);
        let least = sealed.map(|segment| segment.bytes_to_move()).min();
        least.map_or(1.0, |least| least.min(segment_bytes) as f64 / segment_bytes as f64)
    }

    /// The life of the oldest segment, but for one, that holds records which no index refers to; the highest number if there is
    /// none.
    pub(super) fn oldest_life_with_dead_records(&self, but: Option<&Segment<D>>) -> u64 {
        let holds_dead = |segment: &&Segment<D>| {
            matches!(segment.state(), State::Active | State::Sealed | State::Retiring)
                && holds_dead(segment)
                && but.is_none_or(|but| but.number != segment.number)
        };
        self.segments.iter().filter(holds_dead).map(|segment| segment.life()).min().unwrap_or(u64::MAX)
    }
}

/// Whether a segment holds records that no index refers to.
fn holds_dead<D: Device>(segment: &Segment<D>) -> bool {
    segment.live_records.load(Ordering::Relaxed) < segment.records.load(Ordering::Relaxed) as i64
}
