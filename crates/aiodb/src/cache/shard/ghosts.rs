//! What a shard remembers of entries that it has not any more.

/// Fingerprints of entries that left the young queue not long ago; a later one overwrites an earlier one now and then.
pub(super) struct Ghosts {
    fingerprints: Box<[u32]>,
}

impl Ghosts {
    pub(super) fn new(count: usize) -> Ghosts {
        // None where there is no memory: nobody asks then.
        let slots = if count > 0 { count.next_power_of_two() } else { 0 };
        Ghosts { fingerprints: vec![0; slots].into() }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.fingerprints)
    }

    pub(super) fn remember(&mut self, hash: u64) {
        let (position, fingerprint) = self.split(hash);
        self.fingerprints[position] = fingerprint;
    }

    /// Whether the hash was remembered; it is not any more.
    pub(super) fn forget(&mut self, hash: u64) -> bool {
        let (position, fingerprint) = self.split(hash);
        let found = self.fingerprints[position] == fingerprint;
        if found {
            self.fingerprints[position] = 0;
        }
        found
    }

    fn split(&self, hash: u64) -> (usize, u32) {
        // Zero stands for nothing.
        (hash as usize & (self.fingerprints.len() - 1), (hash >> 32) as u32 | 1)
    }
}
