//! What lies under a tag, as runs have it.

use super::super::filtering::EntryMark;
use super::super::writer::RunWriter;
use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::index::chain::VersionChain;
use crate::index::codec::tag_key;
use crate::index::hash::TagPlaces;
use crate::io::Device;
use crate::{Compression, Result};

/// Bits of a sequence in these runs that tell places of one run apart; those above are the run's number.
pub(super) const RANK_BITS: u32 = 32;

/// Adds what lies under a tag to a file of the run of this number. There must be something.
pub(super) fn add<D: Device>(output: &mut RunWriter<D>, table: u32, tag: &TagPlaces, run: u64) -> Result<()> {
    output.add(&tag_key(table, tag.hash), &chain_of(tag, run), 0, EntryMark::NEVER, &|_| Compression::None)
}

/// What lies under a tag, as a run of this number has it. There must be something.
pub(super) fn chain_of(tag: &TagPlaces, run: u64) -> VersionChain {
    let base = run << RANK_BITS;
    let entry = |kind, rank: usize, location| Entry {
        kind,
        sequence: base + rank as u64,
        location,
        separate: None,
        form: Form::default(),
        inline: None,
    };
    let places = tag.places.iter().zip((1..=tag.places.len()).rev());
    let nowhere = Location { segment: 0, offset: 0, length: 0 };
    let floor = tag.has_floor.then(|| entry(Kind::Delete, 0, nowhere));
    places.map(|(place, rank)| entry(Kind::Merge, rank, *place)).chain(floor).collect()
}

/// The places of a chain from runs, newest first, and whether a floor lies under them.
pub(super) fn places_of(chain: &VersionChain) -> (impl Iterator<Item = Location>, bool) {
    let places = chain.entries().iter().filter(|entry| !entry.is_base()).map(|entry| entry.location);
    (places, chain.entries().last().is_some_and(Entry::is_base))
}
