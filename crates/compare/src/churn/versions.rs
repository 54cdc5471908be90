//! What is overwritten: records whose values say which record and which version of it they are, and the versions that a
//! sample of them may have, so that a lost, an old or a foreign value is found.

use crate::batch::Batch;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::ranks::Scatter;
use crate::records::{KEY_BYTES, key_of};
use crate::stream::random_bytes;
use std::ops::Range;
use std::sync::Mutex;

/// Bytes of a value's number and version.
pub const STAMP_BYTES: usize = 16;

/// Bytes in one write of the load.
const LOAD_BYTES: u64 = 256 << 10;

/// The most frequent records are all in the sample, and of the others some that lie apart by equal numbers of ranks.
const SAMPLED_FIRST: u64 = 1_000;
const SAMPLED_OTHERS: u64 = 9_000;

/// Records with values of so many bytes. Version 0 of each is what was loaded.
#[derive(Clone, Copy, Debug)]
pub struct Versions {
    count: u64,
    value_bytes: usize,
    scatter: Scatter,
}

impl Versions {
    /// At least one record, with values that have room for their stamp.
    pub fn new(count: u64, value_bytes: usize) -> Versions {
        assert!(value_bytes >= STAMP_BYTES, "a value has room for its stamp");
        Versions { count, value_bytes, scatter: Scatter::new(count) }
    }

    /// How many records there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of a record's key and value.
    pub fn record_bytes(&self) -> u64 {
        (KEY_BYTES + self.value_bytes) as u64
    }

    /// Bytes of all keys and values.
    pub fn live_bytes(&self) -> u64 {
        self.count * self.record_bytes()
    }

    /// An empty value, to be filled.
    pub fn value(&self) -> Vec<u8> {
        vec![0; self.value_bytes]
    }

    /// The key of the record with a rank.
    pub fn key(&self, rank: u64) -> [u8; KEY_BYTES] {
        key_of(self.scatter.number(rank))
    }

    /// Writes a version of the value of the record with a rank.
    pub fn fill(&self, rank: u64, version: u64, value: &mut [u8]) {
        fill_value(self.scatter.number(rank), version, value);
    }

    /// Puts version 0 of all records, in the order of their numbers: that of their keys has nothing to do with it, nor that
    /// of their ranks.
    pub fn load(&self, engine: &dyn Engine) -> Result<()> {
        let per_write = (LOAD_BYTES / self.record_bytes()).max(1);
        let (mut batch, mut value, mut next) = (Batch::default(), self.value(), 0);
        while next < self.count {
            batch.clear();
            let end = (next + per_write).min(self.count);
            for number in next..end {
                fill_value(number, 0, &mut value);
                batch.push(&key_of(number), &value);
            }
            engine.write(&batch)?;
            next = end;
        }
        Ok(())
    }

    /// What is wrong with a value that should be one of these versions of the record with a rank.
    fn fault(&self, rank: u64, versions: &[u64], found: Option<&[u8]>) -> Option<String> {
        let Some(found) = found else { return Some("is missing".to_owned()) };
        let mut value = self.value();
        let is_version = |&version: &u64| {
            self.fill(rank, version, &mut value);
            value == found
        };
        if versions.iter().any(is_version) {
            return None;
        }
        let word = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let stamp = |range: Range<usize>| found.get(range).and_then(word);
        Some(match (stamp(0..8), stamp(8..STAMP_BYTES)) {
            (Some(number), _) if number != self.scatter.number(rank) => format!("has the value of record {number}"),
            (Some(_), Some(version)) if !versions.contains(&version) => format!("has version {version}"),
            _ => format!("has {} bytes that were never put", found.len()),
        })
    }
}

fn fill_value(number: u64, version: u64, value: &mut [u8]) {
    let (stamp, rest) = value.split_at_mut(STAMP_BYTES);
    stamp[..8].copy_from_slice(&number.to_le_bytes());
    stamp[8..].copy_from_slice(&version.to_le_bytes());
    rest.copy_from_slice(random_bytes(number ^ version.rotate_left(32), rest.len()));
}

/// The versions that some records may have.
pub struct Sample {
    newest: Vec<Mutex<Newest>>,
    count: u64,
    /// Of ranks, beyond the first.
    step: u64,
}

/// The versions of a record that may be its newest: of puts at the same time either may be, and no engine says which.
struct Newest {
    /// Puts of the record that began or ended so far.
    steps: u64,
    /// Each version with the step at which its put ended. None of these puts began after another one had ended, so there
    /// are no more of them than threads.
    versions: Vec<(u64, u64)>,
}

/// A put of a record in the sample that has begun.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    place: usize,
    step: u64,
}

impl Sample {
    /// Of so many records, all at version 0.
    pub fn new(count: u64) -> Sample {
        let others = count.saturating_sub(SAMPLED_FIRST);
        let step = others.div_ceil(SAMPLED_OTHERS).max(1);
        let places = count.min(SAMPLED_FIRST) + others.div_ceil(step);
        let loaded = || Mutex::new(Newest { steps: 0, versions: vec![(0, 0)] });
        Sample { newest: (0..places).map(|_| loaded()).collect(), count, step }
    }

    /// Records in it.
    pub fn len(&self) -> usize {
        self.newest.len()
    }

    fn place(&self, rank: u64) -> Option<usize> {
        assert!(rank < self.count, "rank {rank} of {}", self.count);
        let Some(other) = rank.checked_sub(SAMPLED_FIRST) else { return Some(rank as usize) };
        other.is_multiple_of(self.step).then_some((SAMPLED_FIRST + other / self.step) as usize)
    }

    /// The ranks, each at its place.
    fn ranks(&self) -> impl Iterator<Item = u64> {
        let first = self.count.min(SAMPLED_FIRST);
        (0..first).chain((first..self.count).step_by(self.step as usize))
    }

    /// Takes note of a put that is about to begin, if its record is in the sample.
    pub fn begin(&self, rank: u64) -> Option<Begun> {
        let place = self.place(rank)?;
        let mut newest = self.newest[place].lock().expect(NO_PANIC);
        newest.steps += 1;
        Some(Begun { place, step: newest.steps })
    }

    /// Takes note of its acknowledgement: it has overwritten all that had ended when it began.
    pub fn end(&self, begun: Begun, version: u64) {
        let mut newest = self.newest[begun.place].lock().expect(NO_PANIC);
        newest.steps += 1;
        let ended = newest.steps;
        newest.versions.retain(|&(end, _)| end > begun.step);
        newest.versions.push((ended, version));
    }

    /// Reads all of the sample, once nothing is put any more: an error if a record has none of the versions that it may
    /// have.
    pub fn read_back(&self, engine: &dyn Engine, name: &str, records: &Versions) -> Result<()> {
        for (rank, newest) in self.ranks().zip(&self.newest) {
            let found = engine.get(&records.key(rank))?;
            let newest = newest.lock().expect(NO_PANIC);
            let versions: Vec<u64> = newest.versions.iter().map(|&(_, version)| version).collect();
            if let Some(fault) = records.fault(rank, &versions, found.as_deref()) {
                let number = records.scatter.number(rank);
                let last = format!("what was acknowledged last is version {versions:?}");
                return Err(Error::Request(format!("record {number} of {name} {fault}; {last}")));
            }
        }
        Ok(())
    }
}

const NO_PANIC: &str = "no code panics while it takes note";

#[cfg(test)]
mod tests;
