//! The records of a scan ahead of the caller, in its order: where the value of each comes from, and what it is.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::num::NonZeroU64;
use std::sync::Arc;

use smallvec::SmallVec;

use super::stretches::Stretches;
use crate::Result;
use crate::flow::lifecycle::Handle;
use crate::flow::read::Outcome;
use crate::flow::snapshot::Moment;
use crate::format::location::Location;
use crate::format::record::{Kind, Record};
use crate::index::chain::{Entry, VersionChain};
use crate::index::snapshots::View;
use crate::index::{Candidate, Candidates};
use crate::io::Device;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::read_path::ReadPath;

/// Bytes read ahead of the caller, or about to be.
const LOOK_AHEAD_BYTES: usize = 4 << 20;
/// Records ahead of the caller, once the scan has come far.
const LOOK_AHEAD_RECORDS: usize = 4096;
/// Records ahead of the caller at first: many scans want few records.
const FIRST_AHEAD_RECORDS: usize = 16;
/// A scan that has read no more records than this has not come far: it also asks the cache.
const SHORT_RECORDS: usize = 64;

/// The records between the index and the caller.
pub(super) struct Fetch<D: Device> {
    pub(super) engine: Arc<Handle<D>>,
    pub(super) generation: Arc<Generation>,
    moment: Arc<Moment<D>>,
    values: bool,
    /// Records that the caller can still want: no more are read ahead.
    wanted: u64,
    /// Records that were taken, without those out of the cache.
    read: usize,
    ahead: VecDeque<Ahead>,
    /// Bytes of the inline values in `ahead`.
    inline_bytes: usize,
    /// All keys are here.
    complete: bool,
    stretches: Stretches<D>,
    current: Current,
}

/// A record on its way.
struct Ahead {
    /// Empty if only the record itself knows it.
    key: SmallVec<[u8; 32]>,
    from: From,
    lifetime: Lifetime,
}

/// What is to be known of a value to write it elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lifetime {
    /// The time from which on the value, or the base of its operands, counts as deleted, in milliseconds since 1970.
    pub(crate) expires_ms: Option<NonZeroU64>,
    /// Whether operands came after it.
    pub(crate) is_merged: bool,
}

/// The source of its value.
enum From {
    /// Nowhere: the key is enough.
    Key,
    /// A stretch.
    Stretch { number: u64, place: Place },
    /// Bytes that were copied out of a pending batch.
    Copy { bytes: Vec<u8>, place: Place },
    /// The index, as it was put.
    Entry(Arc<[u8]>),
    /// Several records or chunks, read when it is this record's turn; or inline values.
    Candidates(Box<Candidates>),
    /// The cache or, where that has lost them meanwhile, these records.
    Cached(Box<Candidates>),
    /// A look-up, when it is this record's turn.
    LookUp,
}

impl From {
    /// Bytes of the values that came with the entries of the index.
    fn inline_bytes(&self) -> usize {
        match self {
            From::Entry(value) => value.len(),
            From::Candidates(candidates) | From::Cached(candidates) => {
                candidates.iter().map(Candidate::inline_bytes).sum()
            }
            From::Key | From::Stretch { .. } | From::Copy { .. } | From::LookUp => 0,
        }
    }
}

/// The place of a record that lies whole at one place.
struct Place {
    candidate: Candidate,
    /// A record of one of these keys is left out.
    listed: Option<Arc<BTreeSet<Vec<u8>>>>,
}

/// The meaning of some bytes for the current record.
enum Said {
    /// There is no record.
    Nothing,
    /// These of the bytes are its value.
    Lent(std::ops::Range<usize>),
    /// Its value.
    Owned(Vec<u8>),
    /// Its key must be looked up.
    LookUp,
}

/// Where a value lies that was not copied.
enum Lent {
    /// In this part of a slot of the reads.
    Slot(u32, std::ops::Range<usize>),
    /// In the entry of the index, all of it.
    Entry(Arc<[u8]>),
}

/// The record that the caller has.
#[derive(Default)]
struct Current {
    key: Vec<u8>,
    /// Unless it is lent.
    value: Vec<u8>,
    lent: Option<Lent>,
    lifetime: Lifetime,
}

impl<D: Device> Fetch<D> {
    pub(super) fn new(
        engine: &Arc<Handle<D>>,
        generation: Arc<Generation>,
        moment: Arc<Moment<D>>,
        values: bool,
        wanted: u64,
    ) -> Result<Fetch<D>> {
        Ok(Fetch {
            engine: Arc::clone(engine),
            generation,
            moment,
            values,
            wanted,
            read: 0,
            ahead: VecDeque::new(),
            inline_bytes: 0,
            complete: false,
            stretches: Stretches::default(),
            current: Current::default(),
        })
    }

    /// What it sees of values.
    fn view(&self) -> View {
        let wants_cache = self.is_short() || self.generation.prefers_values();
        View { cached: wants_cache && self.generation.is_cached(), ..self.moment.view }
    }

    /// What it sees of the index.
    pub(super) fn index_view(&self) -> View {
        View { cached: self.is_short() || self.generation.prefers_blocks(), ..self.moment.view }
    }

    /// Whether the scan has not come far.
    fn is_short(&self) -> bool {
        self.read <= SHORT_RECORDS
    }

    /// How many records may be ahead of the caller: about as many as were taken.
    fn window(&self) -> usize {
        let most = self.read.clamp(FIRST_AHEAD_RECORDS, LOOK_AHEAD_RECORDS);
        most.min(usize::try_from(self.wanted).unwrap_or(usize::MAX))
    }

    /// Whether more keys should be added before the next record is taken.
    pub(super) fn wants_more(&self) -> bool {
        let bytes = self.stretches.bytes() + self.inline_bytes;
        !self.complete && self.ahead.len() < self.window().div_ceil(2) && bytes < LOOK_AHEAD_BYTES
    }

    /// How many keys may be added.
    pub(super) fn room(&self) -> usize {
        self.window().saturating_sub(self.ahead.len())
    }

    pub(super) fn add_no_more(&mut self) {
        self.complete = true;
    }

    /// Adds a key of an ordered table with its records; false if they are none.
    pub(super) fn add_chain(&mut self, key: &[u8], chain: VersionChain) -> bool {
        let Some(newest) = chain.newest() else { return false };
        let gone = newest.is_delete()
            || (newest.kind == Kind::Put && self.engine.has_expired(&newest.form, &self.moment.view));
        if gone {
            return false;
        }
        let from = if self.values { self.source_of(&chain, newest) } else { From::Key };
        self.inline_bytes += from.inline_bytes();
        let lifetime = self.lifetime_of(&chain);
        self.ahead.push_back(Ahead { key: key.into(), from, lifetime });
        true
    }

    fn lifetime_of(&self, chain: &VersionChain) -> Lifetime {
        let base = chain.entries().last().filter(|entry| entry.kind == Kind::Put);
        let counts = |entry: &&Entry| !self.engine.has_expired(&entry.form, &self.moment.view);
        let expires_ms = base.filter(counts).and_then(|entry| entry.form.expires_ms);
        Lifetime { expires_ms, is_merged: chain.newest().is_some_and(|newest| newest.kind == Kind::Merge) }
    }

    /// The source of the value of a key in an ordered index.
    fn source_of(&mut self, chain: &VersionChain, newest: &Entry) -> From {
        let is_whole = newest.kind == Kind::Put && !newest.form.chunked && !newest.form.compressed;
        if let Some(value) = newest.inline.as_ref().filter(|_| is_whole) {
            return From::Entry(Arc::clone(value));
        }
        let view = self.view();
        let candidates: Box<Candidates> = Box::new(chain.candidates(0).collect());
        if candidates.iter().all(Candidate::is_inline) {
            From::Candidates(candidates)
        } else if candidates.iter().all(|candidate| self.engine.is_cached(candidate.location, &view)) {
            From::Cached(candidates)
        } else if !newest.form.chunked && (newest.kind == Kind::Put || chain.is_one_operand()) {
            self.place(Place { candidate: newest.candidate(), listed: None })
        } else {
            From::Candidates(candidates)
        }
    }

    /// Adds a place that an unordered index has alone under its tag. Records of the `listed` keys are left out.
    pub(super) fn add_place(&mut self, location: Location, listed: Option<Arc<BTreeSet<Vec<u8>>>>) {
        let from = self.place(Place { candidate: Candidate { location, known: None }, listed });
        self.ahead.push_back(Ahead { key: SmallVec::new(), from, lifetime: Lifetime::default() });
    }

    /// Adds a key that is looked up when its turn comes.
    pub(super) fn add_key(&mut self, key: &[u8]) {
        self.ahead.push_back(Ahead { key: key.into(), from: From::LookUp, lifetime: Lifetime::default() });
    }

    /// The different keys of the records at some places.
    pub(super) fn keys_at(&self, places: &[Location]) -> Result<BTreeSet<Vec<u8>>> {
        let mut keys = BTreeSet::new();
        for place in places {
            let mut add = |record: &Record<'_>| keys.extend([record.key.to_vec()]);
            self.in_epoch(|| self.engine.with_record(*place, &mut add))?;
        }
        Ok(keys)
    }

    /// The key of a record that an ordered index has only in part.
    pub(super) fn whole_key(&self, chain: &VersionChain) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        if let Some(entry) = chain.newest() {
            let mut take = |record: &Record<'_>| key.extend_from_slice(record.key);
            self.in_epoch(|| self.engine.with_record(entry.location, &mut take))?;
        }
        Ok(key)
    }

    /// Makes the next record the current one: `None` at the end, `Some(false)` where the view sees no record.
    pub(super) fn take_next(&mut self) -> Result<Option<bool>> {
        self.current.lent = None;
        self.stretches.give_back();
        if !self.reads_alone() {
            self.stretches.start(&self.engine, self.wants_more(), None)?;
        }
        let Some(ahead) = self.ahead.pop_front() else { return Ok(None) };
        self.inline_bytes -= ahead.from.inline_bytes();
        self.read += usize::from(!matches!(ahead.from, From::Cached(_)));
        self.current.key.clear();
        self.current.key.extend_from_slice(&ahead.key);
        self.current.value.clear();
        self.current.lifetime = ahead.lifetime;
        let taken = self.take(ahead);
        // Bytes that were read count only if the moment has not ended.
        self.moment.check()?;
        let seen = taken?;
        self.wanted -= u64::from(seen);
        Ok(Some(seen))
    }

    /// The current record.
    pub(super) fn current(&self) -> (&[u8], &[u8]) {
        let Current { key, value, lent, .. } = &self.current;
        match lent {
            Some(Lent::Slot(slot, range)) => (key, &self.stretches.bytes_in(*slot)[range.clone()]),
            Some(Lent::Entry(value)) => (key, value),
            None => (key, value),
        }
    }

    /// What is to be known of the current record to write it elsewhere.
    pub(super) fn lifetime(&self) -> Lifetime {
        self.current.lifetime
    }

    fn take(&mut self, ahead: Ahead) -> Result<bool> {
        let said = match ahead.from {
            From::Key => return Ok(true),
            From::LookUp => Said::LookUp,
            From::Entry(value) => {
                self.current.lent = Some(Lent::Entry(value));
                return Ok(true);
            }
            From::Cached(candidates) if self.take_cached(&candidates) => return Ok(true),
            From::Candidates(candidates) | From::Cached(candidates) => {
                let (key, view) = (&ahead.key, self.view());
                let resolved = self.in_epoch(|| self.engine.resolve(&self.generation, key, &candidates, &view));
                resolved?.map_or(Said::Nothing, Said::Owned)
            }
            From::Copy { bytes, place } => {
                let view = self.view();
                let said = place.say(&self.engine, &self.generation, &view, &mut self.current, &bytes)?;
                said.out_of(&bytes)
            }
            From::Stretch { number, place } => return self.take_from_stretch(number, &place),
        };
        self.show(said)
    }

    /// Makes what was said the current record's value; false if it has none.
    fn show(&mut self, said: Said) -> Result<bool> {
        match said {
            Said::Nothing => return Ok(false),
            Said::Lent(..) => unreachable!("it is lent out of a slot, or owned"),
            Said::Owned(value) => self.current.value = value,
            Said::LookUp => {
                let (key, view) = (&self.current.key, self.view());
                let value = self.engine.get(&self.generation, key, &view)?;
                let Some(value) = value else { return Ok(false) };
                if matches!(self.generation.index, TableIndex::Hash(_)) {
                    let chain = self.in_epoch(|| self.engine.chain(&self.generation, key, &view))?;
                    self.current.lifetime = self.lifetime_of(&chain);
                }
                self.current.value = value;
            }
        }
        Ok(true)
    }

    /// Copies the current key's value out of the cache, if one record there is all of it.
    fn take_cached(&mut self, candidates: &[Candidate]) -> bool {
        let [candidate] = candidates else { return false };
        let (key, view) = (&self.current.key, self.view());
        let found = self.in_epoch(|| self.engine.cached_alone(candidate, &self.generation, key, &view));
        if let Some(cached) = &found {
            self.current.value.extend_from_slice(cached.value());
        }
        found.is_some()
    }

    fn take_from_stretch(&mut self, number: u64, place: &Place) -> Result<bool> {
        let (view, location) = (self.view(), place.candidate.location);
        let length = self.engine.read_length(location);
        let alone = self.reads_alone();
        let may_grow = self.wants_more();
        if alone {
            self.stretches.read_alone(&self.engine, number)?;
        }
        let (slot, bytes) = self.stretches.take(&self.engine, number, may_grow, location, length)?;
        let said = place.say(&self.engine, &self.generation, &view, &mut self.current, bytes)?;
        match (slot, said) {
            (Some((slot, start)), Said::Lent(range)) => {
                self.current.lent = Some(Lent::Slot(slot, start + range.start..start + range.end));
                Ok(true)
            }
            (_, said) => {
                let said = said.out_of(bytes);
                self.show(said)
            }
        }
    }

    /// Whether the caller's thread reads the next stretch, since a queue would not be worth making.
    fn reads_alone(&self) -> bool {
        self.is_short() && self.stretches.are_few()
    }

    /// The source of a record that lies whole at one place: a stretch that it joins or begins, unless it is still in
    /// memory.
    fn place(&mut self, place: Place) -> From {
        let location = place.candidate.location;
        let length = self.engine.read_length(location);
        if let Some(segment) = self.engine.segments.find(location.segment)
            && !self.engine.is_written(segment, location)
        {
            let mut bytes = Vec::with_capacity(length);
            if self.engine.commit.read_pending(Location { length: length as u32, ..location }, &mut bytes) {
                return From::Copy { bytes, place };
            }
            // It has been written in the meantime.
        }
        From::Stretch { number: self.stretches.join(location, length), place }
    }

    fn in_epoch<T>(&self, read: impl FnOnce() -> T) -> T {
        let _guard = self.engine.epochs.pin();
        read()
    }
}

impl Place {
    /// What the bytes here say. A record that is alone under its tag says what the current key is.
    fn say<D: Device>(
        &self,
        engine: &ReadPath<D>,
        generation: &Generation,
        view: &View,
        Current { key, lifetime, .. }: &mut Current,
        bytes: &[u8],
    ) -> Result<Said> {
        if self.candidate.known.is_none() {
            let record = engine.decode(self.candidate.location, bytes)?;
            if self.listed.as_ref().is_some_and(|listed| listed.contains(record.key)) || record.kind == Kind::Delete {
                return Ok(Said::Nothing);
            }
            key.extend_from_slice(record.key);
            lifetime.expires_ms = record.form.expires_ms;
        }
        Ok(match engine.interpret(generation.id, key, &self.candidate, view, bytes)? {
            Outcome::Value(Cow::Borrowed(value)) => {
                let start = value.as_ptr().addr() - bytes.as_ptr().addr();
                Said::Lent(start..start + value.len())
            }
            Outcome::Value(Cow::Owned(value)) => Said::Owned(value),
            Outcome::Deleted => Said::Nothing,
            // Of the index's operands only single ones are read here.
            Outcome::Operand(operand) if self.candidate.known.is_some() => {
                Said::Owned(engine.merged(generation, key, None, &mut vec![operand.into_owned()])?)
            }
            // More has to be read, or the moment sees an older record.
            Outcome::Chunks(..) | Outcome::Operand(_) | Outcome::Unseen => Said::LookUp,
        })
    }
}

impl Said {
    /// The same without a loan.
    fn out_of(self, bytes: &[u8]) -> Said {
        match self {
            Said::Lent(range) => Said::Owned(bytes[range].to_vec()),
            said => said,
        }
    }
}
