//! Many keys in few words: spans from one key to another.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::{Included, Unbounded};

/// Keys of one table, in at most so many spans. Spans are joined with their neighbours only when there are too many.
pub(super) struct Spans {
    most: usize,
    /// By the first key: the last one, and how many keys there are.
    spans: BTreeMap<Vec<u8>, (Vec<u8>, u64)>,
}

impl Spans {
    /// No keys yet; `most` is at least 1.
    pub(super) fn new(most: usize) -> Spans {
        Spans { most: most.max(1), spans: BTreeMap::new() }
    }

    /// Adds a key that was not added before.
    pub(super) fn add(&mut self, key: &[u8]) {
        let before = self.spans.range_mut::<[u8], _>((Unbounded, Included(key))).next_back();
        match before {
            Some((_, (last, keys))) if key <= last.as_slice() => *keys += 1,
            _ => {
                self.spans.insert(key.to_vec(), (key.to_vec(), 1));
            }
        }
        // Joined rarely, so that each key is looked at a few times.
        if self.spans.len() > 2 * self.most {
            self.join();
        }
    }

    /// The spans in the order of their keys, each with its first and its last key and how many keys it has.
    pub(super) fn finish(mut self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>, u64)> {
        while self.spans.len() > self.most {
            self.join();
        }
        self.spans.into_iter().map(|(first, (last, keys))| (first, last, keys))
    }

    /// Joins each second span with the one before.
    fn join(&mut self) {
        let mut open: Option<Vec<u8>> = None;
        for (first, (last, keys)) in std::mem::take(&mut self.spans) {
            match open.take().map(|open| self.spans.entry(open)) {
                Some(Entry::Occupied(mut joined)) => {
                    let count = joined.get().1;
                    joined.insert((last, count + keys));
                }
                _ => {
                    self.spans.insert(first.clone(), (last, keys));
                    open = Some(first);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
