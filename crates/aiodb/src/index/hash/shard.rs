//! One shard: a table sorted by tag, with linear probing.
//!
//! A tag's home is `tag * homes / 2^27`. An entry lies at its home or behind it, with no empty position between, and
//! entries ascend by tag. (This is Robin Hood hashing with a home that grows with the tag.) So entries with equal tags,
//! a _run_, are neighbours in an order that the caller chooses, and a rebuild is one sweep through both tables. Nothing
//! wraps around: behind the homes there is slack for the last entries, and a table that runs out of it is rebuilt.

#[cfg(test)]
mod tests;

use std::ops::Range;

use super::memory::Memory;
use super::slot::{SLOT_BYTES, Slot, TAG_BITS};

/// Entries per 100 homes above which a table grows, by an eighth, to about 80.
const LOAD_MAX: usize = 90;

/// Entries per 100 homes right after a table was shrunk or loaded.
const LOAD_FRESH: usize = 80;

/// Entries per 100 homes below which a table is shrunk.
const LOAD_MIN: usize = 40;

/// The least number of homes that a table has or grows by.
const HOMES_MIN: usize = 16;

/// Positions behind the homes of a large table. At the highest load of random tags the last entries reach so far about
/// once in 300,000 tables.
const SLACK_MAX: usize = 64;

/// Bytes of [`Slot::low`].
const LOW_BYTES: usize = SLOT_BYTES - 1;

type Low = [u8; LOW_BYTES];

const EMPTY: Low = [0; LOW_BYTES];

/// The table. Its memory holds the `low` parts of all slots, little-endian, then all `high` parts: a search touches
/// only the former. The default has no memory and no homes.
#[derive(Default)]
pub(super) struct Shard {
    memory: Memory,
    homes: usize,
    /// Slots that the memory holds, full or empty. Four bytes each, so that a shard and its lock fit a cache line.
    capacity: u32,
    count: u32,
}

impl Shard {
    /// A table of slots that ascend by tag.
    pub(super) fn from_sorted(slots: impl ExactSizeIterator<Item = Slot> + Clone) -> Shard {
        if slots.len() == 0 { Shard::default() } else { Shard::build(fresh_homes(slots.len()), slots) }
    }

    /// Entries in the table.
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Bytes of memory held for the slots.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory.held_bytes()
    }

    /// The positions of the entries with this tag. If there is none, the range is empty and starts where one belongs.
    pub(super) fn run(&self, tag: u64) -> Range<usize> {
        let low = self.low();
        let tag_at = |position: usize| low.get(position).filter(|&low| *low != EMPTY).map(|&low| tag_of(low));
        let mut start = self.home(tag);
        while tag_at(start).is_some_and(|other| other < tag) {
            start += 1;
        }
        let mut end = start;
        while tag_at(end) == Some(tag) {
            end += 1;
        }
        start..end
    }

    /// The positions of the places with this tag, and whether a floor lies under them.
    pub(super) fn places(&self, tag: u64) -> (Range<usize>, bool) {
        let run = self.run(tag);
        let has_floor = !run.is_empty() && self.slot(run.end - 1).is_floor();
        (run.start..run.end - usize::from(has_floor), has_floor)
    }

    /// The position of the place with this tag and granule.
    pub(super) fn find(&self, tag: u64, granule: u64) -> Option<usize> {
        self.places(tag).0.find(|&position| self.slot(position).granule() == granule)
    }

    /// The slot at a position.
    pub(super) fn slot(&self, position: usize) -> Slot {
        let (low, high) = self.parts();
        Slot { low: u64::from_le_bytes(low[position]), high: high[position] }
    }

    /// The entries in order.
    pub(super) fn live(&self) -> impl Iterator<Item = Slot> + Clone {
        let (low, high) = self.parts();
        let slots = low.iter().zip(high).filter(|(low, _)| **low != EMPTY);
        slots.map(|(low, high)| Slot { low: u64::from_le_bytes(*low), high: *high })
    }

    /// The table without the entries at some positions, which ascend.
    pub(super) fn without(&self, taken: &[Range<usize>]) -> Shard {
        let (low, high) = self.parts();
        let (mut left, mut taken) = (Vec::with_capacity(self.len()), taken.iter().peekable());
        for (position, (low, high)) in low.iter().zip(high).enumerate().filter(|(_, (low, _))| **low != EMPTY) {
            while taken.next_if(|range| range.end <= position).is_some() {}
            if taken.peek().is_none_or(|range| position < range.start) {
                left.push(Slot { low: u64::from_le_bytes(*low), high: *high });
            }
        }
        Shard::from_sorted(left.iter().copied())
    }

    /// Overwrites the slot at a position. An entry there must have the same tag.
    pub(super) fn set(&mut self, position: usize, slot: Slot) {
        let (low, high) = self.parts_mut();
        low[position] = slot.low.to_le_bytes();
        high[position] = slot.high;
    }

    /// Inserts an entry in front of the one at `position`, which is within the run of its tag or at the run's end.
    pub(super) fn insert(&mut self, position: usize, slot: Slot) {
        let (position, empty) = match self.first_empty(position) {
            Some(empty) if !self.is_full() => (position, empty),
            _ => self.grow(position, slot.tag()),
        };
        let (low, high) = self.parts_mut();
        low.copy_within(position..empty, position + 1);
        high.copy_within(position..empty, position + 1);
        self.set(position, slot);
        self.count += 1;
    }

    /// Takes out the entry at a position. The entries behind it that are not at home move one back.
    pub(super) fn remove(&mut self, position: usize) {
        let moves = |position: usize, low: &Low| *low != EMPTY && self.home(tag_of(*low)) < position;
        let mut end = position + 1;
        while self.low().get(end).is_some_and(|low| moves(end, low)) {
            end += 1;
        }
        let (low, high) = self.parts_mut();
        low.copy_within(position + 1..end, position);
        high.copy_within(position + 1..end, position);
        low[end - 1] = EMPTY;
        self.count -= 1;
        self.shrink();
    }

    /// Makes room for one entry. Answers where `position`, which belongs to the run of `tag`, is now, and the first
    /// empty position from there on.
    #[cold]
    fn grow(&mut self, position: usize, tag: u64) -> (usize, usize) {
        let rank = position - self.run(tag).start;
        let more = if self.is_full() { (self.homes / 8).max(HOMES_MIN) } else { 0 };
        *self = Shard::build(self.homes + more, self.live());
        let position = self.run(tag).start + rank;
        (position, self.first_empty(position).expect("a fresh table has room at its end"))
    }

    fn shrink(&mut self) {
        if self.count == 0 {
            *self = Shard::default();
        } else if self.homes > 2 * HOMES_MIN && self.len() * 100 < self.homes * LOAD_MIN {
            *self = Shard::build(fresh_homes(self.len()), self.live());
        }
    }

    /// A table of slots that ascend by tag, with room at its end. It has at least `homes` homes, more where its memory
    /// would be rounded up anyway. Usually the first try succeeds; long runs of the highest tags need more slack.
    fn build(homes: usize, slots: impl Iterator<Item = Slot> + Clone) -> Shard {
        let slack = SLACK_MAX.min(HOMES_MIN / 2 + homes / 8);
        let mut capacity = Memory::rounded((homes + slack) * SLOT_BYTES) / SLOT_BYTES;
        let homes = capacity - slack;
        loop {
            let memory = Memory::zeroed(capacity * SLOT_BYTES);
            let slots_held = u32::try_from(capacity).expect("a shard has fewer than 2^32 slots");
            let mut shard = Shard { memory, homes, capacity: slots_held, count: 0 };
            if shard.fill(slots.clone()).is_some_and(|end| end + slack / 2 <= capacity) {
                return shard;
            }
            capacity += capacity - homes;
        }
    }

    /// Places slots that ascend by tag into an empty table. Answers the position behind the last; none if one has no
    /// place.
    fn fill(&mut self, slots: impl Iterator<Item = Slot>) -> Option<usize> {
        let homes = self.homes;
        let (low, high) = self.parts_mut();
        let (mut end, mut count) = (0, 0);
        for slot in slots {
            let position = end.max(home(slot.tag(), homes));
            *low.get_mut(position)? = slot.low.to_le_bytes();
            *high.get_mut(position)? = slot.high;
            end = position + 1;
            count += 1;
        }
        self.count = count;
        Some(end)
    }

    /// The first position at which an entry with this tag may lie.
    fn home(&self, tag: u64) -> usize {
        home(tag, self.homes)
    }

    /// Whether one more entry would exceed the highest load.
    fn is_full(&self) -> bool {
        (self.len() + 1) * 100 > self.homes * LOAD_MAX
    }

    fn first_empty(&self, from: usize) -> Option<usize> {
        let offset = self.low()[from..].iter().position(|low| *low == EMPTY)?;
        Some(from + offset)
    }

    fn low(&self) -> &[Low] {
        self.parts().0
    }

    fn parts(&self) -> (&[Low], &[u8]) {
        let (low, high) = self.memory.bytes().split_at(self.capacity as usize * LOW_BYTES);
        (low.as_chunks().0, high)
    }

    fn parts_mut(&mut self) -> (&mut [Low], &mut [u8]) {
        let (low, high) = self.memory.bytes_mut().split_at_mut(self.capacity as usize * LOW_BYTES);
        (low.as_chunks_mut().0, high)
    }
}

/// Homes for a table of `count` entries that is shrunk or loaded.
fn fresh_homes(count: usize) -> usize {
    (count * 100).div_ceil(LOAD_FRESH).max(HOMES_MIN)
}

fn home(tag: u64, homes: usize) -> usize {
    ((tag * homes as u64) >> TAG_BITS) as usize
}

fn tag_of(low: Low) -> u64 {
    Slot { low: u64::from_le_bytes(low), high: 0 }.tag()
}
