//! The records that are written: random bytes, no key twice, made without remembering any of them.

/// Bytes of a key where an experiment does not ask for another length.
pub const KEY_BYTES: usize = 25;

/// Lengths of the records, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a key, at least [`Shape::MIN_KEY_BYTES`].
    pub key_bytes: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

impl Shape {
    /// A key's first eight bytes tell it from every other key.
    pub const MIN_KEY_BYTES: usize = 8;

    /// Bytes that the user hands over with each record.
    pub fn record_bytes(self) -> u64 {
        (self.key_bytes + self.value_bytes) as u64
    }
}

/// A sequence of records. Sequences of different numbers share no key, so every thread takes one of its own.
#[derive(Debug)]
pub struct Records {
    sequence: u64,
    next: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Records {
    const INDEX_BITS: u32 = 40;

    /// The records of the sequence with this number, from the first on.
    pub fn new(shape: Shape, sequence: u64) -> Records {
        assert!(shape.key_bytes >= Shape::MIN_KEY_BYTES, "keys of fewer than 8 bytes would not be distinct");
        assert!(sequence < 1 << (u64::BITS - Records::INDEX_BITS), "sequence {sequence} has no number of its own");
        Records { sequence, next: 0, key: vec![0; shape.key_bytes], value: vec![0; shape.value_bytes] }
    }

    /// The next key and value; both are overwritten by the next call.
    pub fn next(&mut self) -> (&[u8], &[u8]) {
        let index = self.next;
        self.next += 1;
        self.record(index)
    }

    /// The record at `index` of this sequence.
    pub fn record(&mut self, index: u64) -> (&[u8], &[u8]) {
        assert!(index < 1 << Records::INDEX_BITS, "a sequence ends after 2^40 records");
        let ordinal = self.sequence << Records::INDEX_BITS | index;
        fill(&mut self.key, mix(ordinal));
        fill(&mut self.value, mix(!ordinal));
        (&self.key, &self.value)
    }
}

/// The finaliser of splitmix64 (Steele, Lea and Flood, 2014): a bijection, so distinct ordinals give distinct words.
pub fn mix(ordinal: u64) -> u64 {
    let mut word = ordinal.wrapping_add(GOLDEN);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The step of splitmix64: 2^64 divided by the golden ratio.
pub const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of a number, where records have numbers. Neighbours in number are anywhere in key order.
pub fn key_of(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    fill(&mut key, mix(number));
    key
}

/// Fills bytes with what follows from a word.
fn fill(bytes: &mut [u8], first_word: u64) {
    let mut word = first_word;
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        word = mix(word);
    }
}

#[cfg(test)]
mod tests;
