//! What one thread asks of an engine, and the check of what it gets.

use crate::records::{GOLDEN, mix};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of a key, as in the AIODB paper.
pub const KEY_BYTES: usize = 8;

/// The shortest value: a word at either end tells whose it is.
pub const MIN_VALUE_BYTES: usize = 16;

/// The longest value.
pub const MAX_VALUE_BYTES: usize = 1 << 20;

/// Values differ only in which stretch of these random bytes they have between their ends.
const POOL_BYTES: usize = 1 << 20;

/// The pairs of a store, each found by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pairs {
    /// Numbers from 0 to this one, exclusive, are in the store.
    pub count: u64,
    /// Bytes of each value, at least [`MIN_VALUE_BYTES`].
    pub value_bytes: usize,
}

impl Pairs {
    /// Bytes of all keys and values.
    pub fn data_bytes(self) -> u64 {
        self.count * (KEY_BYTES + self.value_bytes) as u64
    }

    /// The key of a number. Neighbours in number are anywhere in key order.
    pub fn key(self, number: u64) -> [u8; KEY_BYTES] {
        mix(number).to_be_bytes()
    }

    /// Whether a value is one that was put under the number, of whichever version. Every page of it is touched.
    pub fn is_value(self, number: u64, value: &[u8]) -> bool {
        self.is_any_value(value) && value.starts_with(&mix(!number).to_le_bytes())
    }

    /// Whether a value is one that was put under some number. Every page of it is touched.
    pub fn is_any_value(self, value: &[u8]) -> bool {
        for page in value.chunks(4096) {
            black_box(page[0]);
        }
        value.len() == self.value_bytes && value[..8] == value[value.len() - 8..]
    }
}

/// The random bytes, shared by all threads: where memory is limited they must not take a share that grows with them.
fn pool() -> &'static [u8] {
    static POOL: OnceLock<Vec<u8>> = OnceLock::new();
    let words = (POOL_BYTES + MAX_VALUE_BYTES) as u64 / 8;
    POOL.get_or_init(|| (0..words).flat_map(|word| mix(word).to_le_bytes()).collect())
}

/// Bytes of any length up to [`MAX_VALUE_BYTES`] that do not compress; a number chooses which.
pub fn random_bytes(number: u64, length: usize) -> &'static [u8] {
    let start = (mix(number) % POOL_BYTES as u64) as usize;
    &pool()[start..start + length]
}

/// Makes values that do not compress.
#[derive(Debug)]
pub struct Values {
    pairs: Pairs,
    value: Vec<u8>,
    version: u64,
}

impl Values {
    /// Values whose versions begin at a number of the caller's choice.
    pub fn new(pairs: Pairs, version: u64) -> Values {
        assert!((MIN_VALUE_BYTES..=MAX_VALUE_BYTES).contains(&pairs.value_bytes), "values of {}", pairs.value_bytes);
        Values { pairs, value: vec![0; pairs.value_bytes], version }
    }

    /// The next version of the value of a number.
    pub fn next(&mut self, number: u64) -> &[u8] {
        self.version += 1;
        let (length, whose) = (self.pairs.value_bytes, mix(!number).to_le_bytes());
        self.value.copy_from_slice(random_bytes(number ^ mix(self.version), length));
        self.value[..8].copy_from_slice(&whose);
        self.value[length - 8..].copy_from_slice(&whose);
        &self.value
    }
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read the value of the pair with this number.
    Get(u64),
    /// Write a new value for it.
    Put(u64),
}

/// Random operations on existing pairs until a time has passed.
#[derive(Debug)]
pub struct Stream {
    values: Values,
    read_percent: u64,
    random: Random,
    /// When the first operation was asked for: an engine may have to prepare before it.
    start: Option<Instant>,
    duration: Duration,
    tally: Tally,
}

/// What came of a thread's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gets that brought the right value.
    pub gets: u64,
    /// Puts that were acknowledged.
    pub puts: u64,
    /// Gets that brought nothing or something else.
    pub wrong: u64,
}

impl Stream {
    /// Gets with this probability in hundredths, else puts. Streams with different seeds have different operations.
    pub fn new(pairs: Pairs, read_percent: u8, seed: u64, duration: Duration) -> Stream {
        Stream {
            values: Values::new(pairs, mix(seed)),
            read_percent: u64::from(read_percent),
            random: Random::new(seed),
            start: None,
            duration,
            tally: Tally::default(),
        }
    }

    /// The next operation; none once the time has passed.
    pub fn next(&mut self) -> Option<Operation> {
        if self.start.get_or_insert_with(Instant::now).elapsed() >= self.duration {
            return None;
        }
        let number = self.random.below(self.values.pairs.count);
        Some(if self.random.below(100) < self.read_percent { Operation::Get(number) } else { Operation::Put(number) })
    }

    /// The key of a pair.
    pub fn key(&self, number: u64) -> [u8; KEY_BYTES] {
        self.values.pairs.key(number)
    }

    /// A new value for a pair.
    pub fn value(&mut self, number: u64) -> &[u8] {
        self.values.next(number)
    }

    /// Takes the answer to a get.
    pub fn answer(&mut self, number: u64, value: Option<&[u8]>) {
        match value.is_some_and(|value| self.values.pairs.is_value(number, value)) {
            true => self.tally.gets += 1,
            false => self.tally.wrong += 1,
        }
    }

    /// Takes the acknowledgement of puts.
    pub fn written(&mut self, puts: u64) {
        self.tally.puts += puts;
    }

    /// What came of the operations so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

/// Random numbers that a seed repeats.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(mix(seed))
    }

    /// The next number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        ((u128::from(mix(self.0)) * u128::from(bound)) >> 64) as u64
    }

    /// The next number from 0 to 1, exclusive.
    pub fn share(&mut self) -> f64 {
        self.below(1 << f64::MANTISSA_DIGITS) as f64 / (1u64 << f64::MANTISSA_DIGITS) as f64
    }
}

#[cfg(test)]
mod tests;
