//! The keys of an ordered table, in bounded steps.
//!
//! An index key is the key itself, unless that is long: then it has only a prefix and a digest (`index/codec.rs`),
//! and keys that share the prefix are in no order. So they are gathered, their records read, and sorted.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use super::ScanOptions;
use super::fetch::Fetch;
use crate::Result;
use crate::flow::scan::after_prefix;
use crate::index::chain::{Entry, VersionChain};
use crate::index::codec::{LONG_KEY_PREFIX_BYTES, decode_key, prefix_key};
use crate::index::memtable::Reached;
use crate::index::memtable::parts::StoredKey;
use crate::index::runs::scan::RunWalk;
use crate::io::Device;

/// The most keys that are looked up in one step.
const KEYS_PER_STEP: usize = 512;

/// Bytes of a table's id in an index key.
const TABLE_BYTES: usize = 4;

/// A walk through a range of keys.
pub(super) struct Ordered<D: Device> {
    options: ScanOptions,
    /// The rest of the range, in index keys.
    range: (Bound<Vec<u8>>, Bound<Vec<u8>>),
    /// Whether the whole range was looked at.
    finished: bool,
    /// How many keys the last step was to look at, and how many of them were records.
    step: usize,
    records: usize,
    walk: RunWalk<D>,
    /// Keys that the last step has found and for which there was no room yet, in the order of the scan.
    found: VecDeque<(StoredKey, VersionChain)>,
    /// Keys that share a prefix with a shortened one, until the last of them is here.
    alike: Vec<(StoredKey, VersionChain)>,
}

impl<D: Device> Ordered<D> {
    pub(super) fn new(table: u32, options: ScanOptions) -> Ordered<D> {
        let range = (first_index_key(table, &options.from), last_index_key(table, &options.to));
        let finished = is_empty(&range);
        let (walk, found, alike) = (RunWalk::default(), VecDeque::new(), Vec::new());
        Ordered { options, range, finished, step: 0, records: 0, walk, found, alike }
    }

    /// Adds some keys; false when there are no more.
    pub(super) fn add_some(&mut self, fetch: &mut Fetch<D>) -> Result<bool> {
        if self.found.is_empty() {
            if self.finished {
                return Ok(false);
            }
            self.find_some(fetch)?;
        }
        while fetch.room() > 0
            && let Some((key, chain)) = self.found.pop_front()
        {
            self.add(key, chain, fetch)?;
        }
        if self.finished && self.found.is_empty() {
            self.add_alike(fetch)?;
        }
        Ok(true)
    }

    /// Looks at the next keys.
    fn find_some(&mut self, fetch: &Fetch<D>) -> Result<()> {
        let wanted = fetch.room().min(KEYS_PER_STEP);
        // Where most keys were deleted, the next ones may be too. A short step costs about as much as a long one.
        let few = 2 * self.records < self.step;
        self.step = if few { (2 * self.step).clamp(wanted, KEYS_PER_STEP) } else { wanted };
        self.records = 0;
        let (from, to) = &self.range;
        let range = (as_slice(from), as_slice(to));
        let backward = self.options.backward;
        let index = fetch.engine.ordered_of(&fetch.generation);
        let (found, reached) = index.range(range, backward, self.step, &fetch.index_view(), &mut self.walk)?;
        if backward {
            self.found.extend(found.into_iter().rev());
        } else {
            self.found.extend(found);
        }
        match reached {
            Reached::Key(key) if backward => self.range.1 = Bound::Excluded(key.into()),
            Reached::Key(key) => self.range.0 = Bound::Excluded(key.into()),
            Reached::End => self.finished = true,
        }
        self.finished |= is_empty(&self.range);
        if self.finished {
            self.walk = RunWalk::default();
        }
        Ok(())
    }

    fn add(&mut self, key: StoredKey, chain: VersionChain, fetch: &mut Fetch<D>) -> Result<()> {
        let shared = TABLE_BYTES + LONG_KEY_PREFIX_BYTES;
        if self.alike.first().is_some_and(|(first, _)| key.len() <= shared || key[..shared] != first[..shared]) {
            self.add_alike(fetch)?;
        }
        // The place of a delete is not needed, and its entry may be out of date.
        let is_deleted = chain.newest().is_none_or(Entry::is_delete);
        match key.len() > shared {
            _ if is_deleted => {}
            true => self.alike.push((key, chain)),
            false => self.add_key(&key[TABLE_BYTES..], chain, fetch),
        }
        Ok(())
    }

    /// Adds the keys that share a prefix, in their own order.
    fn add_alike(&mut self, fetch: &mut Fetch<D>) -> Result<()> {
        let mut keys = Vec::with_capacity(self.alike.len());
        for (index_key, chain) in std::mem::take(&mut self.alike) {
            let key = match decode_key(&index_key) {
                Some((_, key)) => key.to_vec(),
                None => fetch.whole_key(&chain)?,
            };
            keys.push((key, chain));
        }
        keys.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        if self.options.backward {
            keys.reverse();
        }
        keys.into_iter().for_each(|(key, chain)| self.add_key(&key, chain, fetch));
        Ok(())
    }

    fn add_key(&mut self, key: &[u8], chain: VersionChain, fetch: &mut Fetch<D>) {
        let range = (as_slice(&self.options.from), as_slice(&self.options.to));
        if RangeBounds::<[u8]>::contains(&range, key) && fetch.add_chain(key, chain) {
            self.records += 1;
        }
    }
}

/// The first index key that can stand for a key of the range.
fn first_index_key(table: u32, from: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match from {
        Bound::Unbounded => Bound::Included(prefix_key(table, &[])),
        Bound::Included(key) | Bound::Excluded(key) if key.len() > LONG_KEY_PREFIX_BYTES => {
            Bound::Included(prefix_key(table, &key[..LONG_KEY_PREFIX_BYTES]))
        }
        Bound::Included(key) => Bound::Included(prefix_key(table, key)),
        Bound::Excluded(key) => Bound::Excluded(prefix_key(table, key)),
    }
}

/// The last index key that can stand for a key of the range.
fn last_index_key(table: u32, to: &Bound<Vec<u8>>) -> Bound<Vec<u8>> {
    match to {
        Bound::Unbounded => Bound::Excluded(prefix_key(table + 1, &[])),
        Bound::Included(key) | Bound::Excluded(key) if key.len() > LONG_KEY_PREFIX_BYTES => {
            let next = after_prefix(&prefix_key(table, &key[..LONG_KEY_PREFIX_BYTES]));
            Bound::Excluded(next.expect("a table's id is not the highest number"))
        }
        Bound::Included(key) => Bound::Included(prefix_key(table, key)),
        Bound::Excluded(key) => Bound::Excluded(prefix_key(table, key)),
    }
}

/// Whether no key can be in a range; an ordered map panics over such a range.
fn is_empty(range: &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    match range {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        _ => false,
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
