//! The heads of sorted keys: a search compares numbers that lie side by side, and looks at few keys, each somewhere else in memory.

/// The first eight bytes of each of sorted keys, behind those that all of them begin with. The keys themselves lie elsewhere: `key_at`
/// gives the one at a place in their order.
#[derive(Default)]
pub(super) struct Heads {
    /// What all keys begin with.
    common: Vec<u8>,
    heads: Vec<u64>,
}

impl Heads {
    /// Makes them those of so many keys, in their order.
    pub(super) fn set_of<'a>(&mut self, keys: usize, key_at: impl Fn(usize) -> &'a [u8]) {
        self.heads.clear();
        self.common.clear();
        let Some(last) = keys.checked_sub(1) else { return };
        // What the first and the last one begin with, all in between begin with.
        let (first, last) = (key_at(0), key_at(last));
        self.common.extend_from_slice(&first[..common_bytes(first, last)]);
        self.heads.extend((0..keys).map(|at| head_of(&key_at(at)[self.common.len()..])));
    }

    /// Makes room for so many keys.
    pub(super) fn reserve(&mut self, keys: usize) {
        self.heads.reserve_exact(keys);
    }

    /// The place of a key, or, if it is not among them, the place where it would be.
    pub(super) fn search<'a>(&self, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(&*self.common) else {
            return Err(if *key < *self.common { 0 } else { self.heads.len() });
        };
        let head = head_of(rest);
        let mut from = self.heads.partition_point(|other| *other < head);
        // Several keys may have this head.
        let mut to = from + self.heads[from..].partition_point(|other| *other == head);
        while from < to {
            let middle = from + (to - from) / 2;
            match key_at(middle).cmp(key) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// Adds a key at the place that a search has told. `key_at` still gives the others at their old places.
    pub(super) fn insert<'a>(&mut self, place: usize, key: &[u8], key_at: impl Fn(usize) -> &'a [u8]) {
        if self.heads.is_empty() {
            self.common = key.to_vec();
        } else if !key.starts_with(&self.common) {
            let common = common_bytes(key, &self.common);
            self.common.truncate(common);
            for (at, head) in self.heads.iter_mut().enumerate() {
                *head = head_of(&key_at(at)[common..]);
            }
        }
        self.heads.insert(place, head_of(&key[self.common.len()..]));
    }
}

/// Eight bytes as a number that is in the order of keys: of two keys the smaller one has no greater number.
fn head_of(rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(head)
        }
    }
}

/// How many bytes two keys begin with are the same.
fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
