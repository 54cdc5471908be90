//! What is overwritten: records whose values say which record and which version of it they are, and the newest version of a sample of
//! them, so that a lost, an old or a foreign value is found.

use std::sync::Mutex;

use aiodb::{Batch, Db, Durability, Sequence, Table as DbTable};

use crate::CliError;
use crate::bench::dataset::{KEY_BYTES, mix, random_bytes, random_key};
use crate::bench::zipf::Scatter;

/// Bytes of a value's number and version.
pub(super) const STAMP_BYTES: usize = 16;

/// Bytes in one batch while loading.
const LOAD_BATCH_BYTES: usize = 256 << 10;

/// How many different contents values have after their stamps.
const CONTENTS: usize = 4096;

/// The most frequent records are all in the sample, and of the others some that lie apart by equal numbers of ranks.
const SAMPLED_FIRST: u64 = 1000;
const SAMPLED_OTHERS: u64 = 9000;

/// Records of this many bytes of values. Version 0 of each is what was loaded.
pub(super) struct Records {
    pub(super) count: u64,
    pub(super) value_bytes: usize,
    scatter: Scatter,
    contents: Vec<u8>,
}

impl Records {
    pub(super) fn new(count: u64, value_bytes: usize) -> Records {
        assert!(value_bytes >= STAMP_BYTES, "a value has room for its stamp");
        Records { count, value_bytes, scatter: Scatter::new(count), contents: random_bytes(value_bytes + CONTENTS) }
    }

    /// Bytes of keys and values.
    pub(super) fn live_bytes(&self) -> u64 {
        self.count * (KEY_BYTES + self.value_bytes) as u64
    }

    pub(super) fn key(&self, rank: u64) -> [u8; KEY_BYTES] {
        random_key(self.scatter.number(rank))
    }

    /// Writes a version of a record's value.
    pub(super) fn fill(&self, rank: u64, version: u64, value: &mut [u8]) {
        fill(&self.contents, self.scatter.number(rank), version, value);
    }

    fn value(&self, rank: u64, version: u64) -> Vec<u8> {
        let mut value = vec![0; self.value_bytes];
        self.fill(rank, version, &mut value);
        value
    }

    /// Puts version 0 of all records, in the order of their numbers: that of their keys has nothing to do with it, nor that of their ranks.
    pub(super) fn load(&self, db: &Db, table: &DbTable) -> Result<(), CliError> {
        let per_batch = (LOAD_BATCH_BYTES / (KEY_BYTES + self.value_bytes)).max(1) as u64;
        let mut value = vec![0; self.value_bytes];
        let mut next = 0;
        while next < self.count {
            let end = (next + per_batch).min(self.count);
            let mut batch = Batch::new();
            for number in next..end {
                fill(&self.contents, number, 0, &mut value);
                batch.put(table, &random_key(number), &value)?;
            }
            db.write_with(&batch, Durability::None)?;
            next = end;
        }
        Ok(())
    }

    /// What is wrong with a value that should be this version of a record.
    fn fault(&self, rank: u64, version: u64, value: Option<&[u8]>) -> Option<String> {
        let Some(value) = value else { return Some("is missing".to_owned()) };
        if value == self.value(rank, version) {
            return None;
        }
        let number = |range| value.get(range).and_then(|bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        Some(match (number(0..8), number(8..STAMP_BYTES)) {
            (Some(number), _) if number != self.scatter.number(rank) => format!("has the value of record {number}"),
            (Some(_), Some(other)) if other != version => format!("has version {other}"),
            _ => format!("has {} bytes that were never put", value.len()),
        })
    }
}

fn fill(contents: &[u8], number: u64, version: u64, value: &mut [u8]) {
    let (stamp, rest) = value.split_at_mut(STAMP_BYTES);
    stamp[..8].copy_from_slice(&number.to_le_bytes());
    stamp[8..].copy_from_slice(&version.to_le_bytes());
    let from = mix(number ^ version.rotate_left(32)) as usize % CONTENTS;
    rest.copy_from_slice(&contents[from..from + rest.len()]);
}

/// The newest version of some records.
pub(super) struct Sample {
    newest: Vec<Mutex<Newest>>,
    count: u64,
    /// Of ranks, beyond the first.
    step: u64,
}

/// The version with the greatest sequence. Versions are given out before the writes are in order.
#[derive(Clone, Copy, Default)]
struct Newest {
    sequence: Sequence,
    version: u64,
}

impl Sample {
    pub(super) fn new(count: u64) -> Sample {
        let others = count.saturating_sub(SAMPLED_FIRST);
        let step = others.div_ceil(SAMPLED_OTHERS).max(1);
        let places = count.min(SAMPLED_FIRST) + others.div_ceil(step);
        Sample { newest: (0..places).map(|_| Mutex::default()).collect(), count, step }
    }

    pub(super) fn len(&self) -> usize {
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

    /// Takes note of a write that was acknowledged.
    pub(super) fn note(&self, rank: u64, version: u64, sequence: Sequence) {
        let Some(place) = self.place(rank) else { return };
        let mut newest = self.newest[place].lock().expect("no code panics while it takes note");
        if sequence > newest.sequence {
            *newest = Newest { sequence, version };
        }
    }

    /// Reads all of the sample and fails if one record has another value than its newest.
    pub(super) fn read_back(&self, table: &DbTable, records: &Records) -> Result<(), CliError> {
        let ranks: Vec<u64> = self.ranks().collect();
        let keys: Vec<_> = ranks.iter().map(|rank| records.key(*rank)).collect();
        for ((rank, newest), value) in ranks.iter().zip(&self.newest).zip(table.get_many(&keys)?) {
            let version = newest.lock().expect("no code panics while it takes note").version;
            if let Some(fault) = records.fault(*rank, version, value.as_deref()) {
                return Err(CliError::failed(format!(
                    "record {} of table {} {fault}; the newest that was acknowledged is version {version}",
                    records.scatter.number(*rank),
                    table.name(),
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
