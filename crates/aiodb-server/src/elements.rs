//! Elements of collections as a group of commands sees and changes them.

use std::collections::btree_map::Entry as Place;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::Mutex;

use bytes::Bytes;

use crate::collection::{Owner, Span};
use crate::keyspace::Keyspace;
use crate::packed::{Packed, Packing};
use crate::refusal::Refusal;

/// So many rows are deleted one by one rather than as a range.
const FEW: usize = 64;

/// The elements of the databases with changes that are not written yet.
pub(crate) struct Elements<'a> {
    keyspace: &'a Keyspace,
    known: BTreeMap<Owner, BTreeMap<Bytes, Known>>,
    /// Collections of which nothing is stored.
    made: HashSet<Owner>,
    /// All that is stored of small collections.
    packed: BTreeMap<Owner, Packed>,
    /// [`Elements::packed`] of collections that were gone through, until [`Elements::take_read`].
    read: Mutex<BTreeMap<Owner, Packed>>,
    /// Collections whose elements were taken out one by one.
    emptied: HashSet<Owner>,
}

struct Known {
    value: Option<Bytes>,
    is_changed: bool,
}

impl<'a> Elements<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace) -> Elements<'a> {
        Elements {
            keyspace,
            known: BTreeMap::new(),
            made: HashSet::new(),
            packed: BTreeMap::new(),
            read: Mutex::default(),
            emptied: HashSet::new(),
        }
    }

    /// Says that nothing of a collection is stored.
    pub(crate) fn begin(&mut self, owner: Owner) {
        self.made.insert(owner);
    }

    /// Says that a collection has no elements left, and its stored ones were deleted here.
    pub(crate) fn end(&mut self, owner: Owner) {
        self.emptied.insert(owner);
    }

    /// Takes an element that was read ahead.
    pub(crate) fn learn(&mut self, owner: Owner, name: Bytes, value: Option<Bytes>) {
        if let Place::Vacant(place) = self.known.entry(owner).or_default().entry(name) {
            place.insert(Known { value, is_changed: false });
        }
    }

    /// Takes all that is stored of a collection.
    pub(crate) fn learn_all(&mut self, owner: Owner, packed: Packed) {
        self.packed.insert(owner, packed);
    }

    /// Whether all that is stored of a collection is known.
    pub(crate) fn has_all(&self, owner: Owner) -> bool {
        self.made.contains(&owner) || self.packed.contains_key(&owner)
    }

    /// Some of the small collections that were gone through since this was last asked, with all that is stored of them, which is known
    /// from now on.
    pub(crate) fn take_read(&mut self) -> BTreeMap<Owner, Packed> {
        let read = std::mem::take(self.read.get_mut().expect(NO_PANIC));
        self.packed.extend(read.iter().map(|(owner, packed)| (*owner, packed.clone())));
        read
    }

    /// All that will be stored of a collection, if that is known and not too much.
    pub(crate) fn packed_after(&self, owner: Owner) -> Option<Packed> {
        let nothing = Packed::default();
        let before = if self.made.contains(&owner) { &nothing } else { self.packed.get(&owner)? };
        before.changed(self.changes(owner))
    }

    /// The value of an element. Reads with the calling thread what was not read ahead.
    pub(crate) fn get(&mut self, owner: Owner, name: &[u8]) -> Result<Option<Bytes>, Refusal> {
        if let Some(known) = self.known.get(&owner).and_then(|known| known.get(name)) {
            return Ok(known.value.clone());
        }
        if self.made.contains(&owner) {
            return Ok(None);
        }
        if let Some(packed) = self.packed.get(&owner) {
            return Ok(packed.get(name));
        }
        // It was not known before which collection this is: another thread takes this thread's other connections.
        let value = tokio::task::block_in_place(|| self.keyspace.element_blocking(owner, name))?;
        self.learn(owner, Bytes::copy_from_slice(name), value.clone());
        Ok(value)
    }

    /// Whether there is such an element; unlike [`Elements::get`], keeps nothing of what it reads.
    pub(crate) fn contains(&self, owner: Owner, name: &[u8]) -> Result<bool, Refusal> {
        match self.known.get(&owner).and_then(|known| known.get(name)) {
            Some(known) => Ok(known.value.is_some()),
            None if self.made.contains(&owner) => Ok(false),
            None => match self.packed.get(&owner) {
                Some(packed) => Ok(packed.get(name).is_some()),
                None => {
                    let value = tokio::task::block_in_place(|| self.keyspace.element_blocking(owner, name))?;
                    Ok(value.is_some())
                }
            },
        }
    }

    pub(crate) fn put(&mut self, owner: Owner, name: Bytes, value: Bytes) {
        self.change(owner, name, Some(value));
    }

    pub(crate) fn delete(&mut self, owner: Owner, name: Bytes) {
        self.change(owner, name, None);
    }

    /// Elements in the order of their names, for as long as `visit` wants more. Where not all of them are known, the calling thread reads
    /// them, and another one takes this thread's other connections meanwhile.
    pub(crate) fn visit(
        &self,
        owner: Owner,
        span: &Span,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        if span.is_empty() {
            return Ok(());
        }
        let mut own = self.own(owner, span).peekable();
        let mut wants_more = true;
        if !self.made.contains(&owner) {
            let comes_before = |own: &[u8], name: &[u8]| if span.is_backward { own > name } else { own < name };
            self.visit_stored(owner, span, |name, value| {
                while let Some((own_name, own)) = own.next_if(|(own, _)| comes_before(own, name)) {
                    if !own.value.as_ref().is_none_or(|value| visit(own_name, value)) {
                        wants_more = false;
                        return false;
                    }
                }
                wants_more = match own.next_if(|(own, _)| **own == *name) {
                    Some((_, own)) => own.value.as_ref().is_none_or(|value| visit(name, value)),
                    None => visit(name, value),
                };
                wants_more
            })?;
        }
        while let Some((name, own)) = own.next().filter(|_| wants_more) {
            wants_more = own.value.as_ref().is_none_or(|value| visit(name, value));
        }
        Ok(())
    }

    /// [`Elements::visit`] without the changes.
    fn visit_stored(
        &self,
        owner: Owner,
        span: &Span,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let read = || self.read.lock().expect(NO_PANIC).get(&owner).cloned();
        if let Some(packed) = self.packed.get(&owner).cloned().or_else(read) {
            packed.visit(span, visit);
            return Ok(());
        }
        let has_room = || self.read.lock().expect(NO_PANIC).len() < MOST_READ;
        let mut packing = (span.is_all() && has_room()).then(Packing::default);
        tokio::task::block_in_place(|| {
            self.keyspace.visit_elements(owner, span, |name, value| {
                packing.take_if(|packing| !packing.add(name, value));
                let wants_more = visit(name, value);
                packing.take_if(|_| !wants_more);
                wants_more
            })
        })?;
        let packed = packing.map(|packing| (owner, packing.finish()));
        self.read.lock().expect(NO_PANIC).extend(packed);
        Ok(())
    }

    /// What was changed in a span, in its order.
    fn own(&self, owner: Owner, span: &Span) -> Box<dyn Iterator<Item = (&Bytes, &Known)> + '_> {
        let Some(known) = self.known.get(&owner) else { return Box::new(std::iter::empty()) };
        let bounds = (borrowed(&span.from), borrowed(&span.to));
        let range = known.range::<[u8], _>(bounds).filter(|(_, known)| known.is_changed);
        if span.is_backward { Box::new(range.rev()) } else { Box::new(range) }
    }

    /// What is to be written of a collection: names with their values, or none.
    pub(crate) fn changes(&self, owner: Owner) -> impl Iterator<Item = (&Bytes, Option<&Bytes>)> {
        let known = self.known.get(&owner).into_iter().flatten();
        known.filter(|(_, known)| known.is_changed).map(|(name, known)| (name, known.value.as_ref()))
    }

    /// Collections that were emptied element by element, of few: many go as those do that are deleted as a whole.
    pub(crate) fn emptied(&self) -> impl Iterator<Item = Owner> {
        self.emptied.iter().copied().filter(|owner| self.changes(*owner).nth(FEW).is_none())
    }

    fn change(&mut self, owner: Owner, name: Bytes, value: Option<Bytes>) {
        self.known.entry(owner).or_default().insert(name, Known { value, is_changed: true });
    }
}

/// So many of the collections that a group goes through are kept at most.
const MOST_READ: usize = 64;

/// Why the lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it holds the collections that were read";

fn borrowed(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
