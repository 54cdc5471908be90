//! The questions of gets to the cache, and the values that are inserted there.

use crate::IndexKind;
use crate::cache::{Cached, Place};
use crate::flow::publish::Publication;
use crate::format::batch::Placed;
use crate::format::location::Location;
use crate::format::place::{Counting, footprint};
use crate::format::record::{Form, Kind, Origin};
use crate::format::settings::MERGED_IN_MEMORY_BYTES;
use crate::index::Candidate;
use crate::index::chain::Entry;
use crate::index::hash::hash_location;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::log::commit::Over;
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::read_path::ReadPath;
use crate::store::sums::Sum;

impl<D: Device> ReadPath<D> {
    /// The cached value of a key at a candidate's place, if the view asks the cache. The caller holds a guard of the epoch or a
    /// moment, so that the segment's life is still that of the look-up. The record of another key there counts as not
    /// cached: the path through the log deals with it.
    pub(crate) fn cached(
        &self,
        candidate: &Candidate,
        generation: &Generation,
        key: &[u8],
        view: &View,
    ) -> Option<Cached> {
        let may_be_cached =
            |entry: &Entry| entry.kind == Kind::Put && !entry.form.chunked && entry.form.expires_ms.is_none();
        if !candidate.known.as_ref().is_none_or(may_be_cached) {
            return None;
        }
        self.cached_at(candidate, (generation, generation.id), key, view)
    }

    /// [`ReadPath::cached`] for an operand that the index knows to be one.
    pub(crate) fn cached_operand(
        &self,
        candidate: &Candidate,
        generation: &Generation,
        key: &[u8],
        view: &View,
    ) -> Option<Cached> {
        if !candidate.is_operand() {
            return None;
        }
        self.cached_at(candidate, (generation, operands_of(generation.id)), key, view)
    }

    /// [`ReadPath::cached`] for the whole value of a key with this one candidate: a put, or an operand that is the value alone.
    pub(crate) fn cached_alone(
        &self,
        candidate: &Candidate,
        generation: &Generation,
        key: &[u8],
        view: &View,
    ) -> Option<Cached> {
        if candidate.is_operand() && self.is_value_alone(generation) {
            return self.cached_operand(candidate, generation, key, view);
        }
        self.cached(candidate, generation, key, view)
    }

    /// The entry at a candidate's place, of a table and in its cache under this number.
    fn cached_at(
        &self,
        candidate: &Candidate,
        (generation, number): (&Generation, u32),
        key: &[u8],
        view: &View,
    ) -> Option<Cached> {
        if !self.cache.is_on() || !view.cached {
            return None;
        }
        let found = self.cache.get(self.place(candidate.location)?).filter(|cached| cached.is_of(number, key));
        if found.is_some() {
            generation.value_hits.count();
        } else {
            generation.value_misses.count();
        }
        found
    }

    /// Whether it is worth asking [`ReadPath::cached`] and [`ReadPath::cached_operand`] for the record at a place.
    pub(crate) fn is_cached(&self, location: Location, view: &View) -> bool {
        self.cache.is_on() && view.cached && self.place(location).is_some_and(|place| self.cache.holds(place))
    }

    /// Whether the cache has an entry of a place; it does not count as a look-up.
    pub(crate) fn has_cached(&self, location: Location) -> bool {
        self.place(location).is_some_and(|place| self.cache.has(place))
    }

    /// [`ReadPath::cache_value`] for an operand that the index knows to be one.
    pub(crate) fn cache_operand(&self, location: Location, table: u32, key: &[u8], operand: &[u8]) {
        self.cache_value(location, operands_of(table), key, operand);
    }

    /// Caches the value that a write makes visible, if the options or the table's modes say so and a get could find it. Compressed values are
    /// left to the first get. The caller has not said yet that it is published, so the segment's life is still that of
    /// the batch.
    pub(crate) fn cache_written(&self, generation: &Generation, publication: &Publication<'_>, stored: &[u8]) {
        self.keep_sum(generation, publication, stored);
        let is_wanted = self.options.cache_writes || generation.prefers_values();
        if is_wanted && generation.is_cached() && self.cache.is_on() {
            self.cache_published(generation, publication, stored);
        }
    }

    /// Caches a later copy of a record, like [`ReadPath::cache_written`], if its former place has an entry.
    pub(crate) fn cache_moved(
        &self,
        generation: &Generation,
        publication: &Publication<'_>,
        origin: Origin,
        stored: &[u8],
    ) {
        self.keep_sum(generation, publication, stored);
        let from = Location { segment: origin.segment, offset: origin.offset, ..publication.placed.location };
        if generation.is_cached() && self.cache.is_on() && self.place(from).is_some_and(|place| self.cache.has(place)) {
            self.cache_published(generation, publication, stored);
        }
    }

    /// Keeps the short value of a put in a `hash` table that merges. One that expires is none to merge into.
    fn keep_sum(&self, generation: &Generation, publication: &Publication<'_>, stored: &[u8]) {
        let Publication { key, hash, placed, kind, form, .. } = *publication;
        let merges = generation.kind() == IndexKind::Hash && generation.settings.merge.is_some();
        let is_plain = form == Form::default() && stored.len() <= MERGED_IN_MEMORY_BYTES;
        if merges && kind == Kind::Put && is_plain && !generation.is_gone() {
            let Placed { location, sequence, .. } = *placed;
            let life = self.segments.get(location.segment).life();
            let over = Over { location: hash_location(location), life, sequence };
            self.sums.insert((generation.id, hash), key, Sum { over, value: stored.into() });
        }
    }

    fn cache_published(&self, generation: &Generation, publication: &Publication<'_>, stored: &[u8]) {
        let Publication { key, placed, kind, form, .. } = publication;
        if form.chunked || form.compressed || form.expires_ms.is_some() {
            return;
        }
        match (kind, &generation.index) {
            (Kind::Put, _) => self.cache_value(placed.location, generation.id, key, stored),
            (Kind::Merge, TableIndex::Ordered) => self.cache_operand(placed.location, generation.id, key, stored),
            _ => {}
        }
    }

    /// Caches the whole value of a put that was found at a location and checked. A record that expires must not be cached:
    /// entries do not know when.
    pub(crate) fn cache_value(&self, location: Location, table: u32, key: &[u8], value: &[u8]) {
        if !self.cache.is_on() {
            return;
        }
        if let Some(place) = self.place(location) {
            self.cache.insert(place, table, key, value);
        }
    }

    /// Counts a record that a hash index no longer refers to, and forgets its entry in the cache.
    pub(crate) fn remove_live(&self, location: Location) {
        self.remove_live_bytes(location, footprint(location.length));
    }

    /// How the live bytes of a table's records are counted.
    pub(crate) fn counting_of(&self, generation: &Generation) -> Counting {
        match generation.index {
            TableIndex::Hash(_) => Counting::ByLength,
            TableIndex::Ordered => self.catalog.counting(),
        }
    }

    /// [`ReadPath::remove_live`] of a record of an ordered index, which counts so many bytes.
    pub(crate) fn remove_live_bytes(&self, location: Location, bytes: i64) {
        self.segments.remove_live(location.segment, bytes);
        if self.cache.is_on()
            && let Some(place) = self.place(location)
        {
            self.cache.forget(place);
        }
    }

    fn place(&self, location: Location) -> Option<Place> {
        let life = self.segments.find(location.segment)?.life();
        let life = if planted::is_on(Bug::CachedLifeForgotten) { 0 } else { life };
        Some(Place { segment: location.segment, offset: location.offset, life })
    }
}

/// Operands are cached as records of a table of their own: an unordered index knows only places, and a get takes the entry
/// of a place for the value.
fn operands_of(table: u32) -> u32 {
    !table
}
