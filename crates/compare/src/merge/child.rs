//! The measured process: one engine with counters and records under the same keys, which are merged, put and got.

use super::settings;
use crate::batch::Batch;
use crate::class::Class;
use crate::engine::{Engine, Resources};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::memory::MemoryUse;
use crate::points::{self, Pace, Point, Watcher};
use crate::records::{KEY_BYTES, key_of};
use crate::rest;
use crate::runs::{self, Place};
use crate::stream::Random;
use crate::writers::Writers;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of an operand, and of a value beside it.
pub const VALUE_BYTES: usize = size_of::<u64>();

/// Operands are numbers from 1 to this: a sum tells one that was lost, and one that counted twice.
const MOST_ADDED: u64 = 1_000;

/// The bits of a value that have such a number. The others have the number of its key.
const ADDED_BITS: u32 = 10;

/// A thread looks at the clock after so many operations: it would take a good part of the time of a short one.
const OPERATIONS_AT_ONCE: u64 = 16;

/// Records in one write of the load.
const LOAD_RECORDS: u64 = 1_000;

/// What a measured process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// With what.
    pub place: Place,
    /// Keys, of which each operation takes one at random.
    pub keys: u64,
    /// Threads that operate.
    pub writers: u32,
    /// What a merge or a put has survived when it is acknowledged.
    pub class: Class,
    /// How long each kind of operation is measured.
    pub duration: Duration,
    /// From 1. In rounds with an even number puts come before merges, and gets of put keys before those of merged ones.
    pub round: u32,
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Adds a small number to a counter.
    Merge,
    /// Overwrites a record of the same size.
    Put,
    /// Reads a counter.
    GetOfMerged,
    /// Reads a record.
    GetOfPut,
}

impl Operation {
    fn writes(self) -> bool {
        matches!(self, Operation::Merge | Operation::Put)
    }
}

/// For people.
impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Operation::Merge => "merges",
            Operation::Put => "puts",
            Operation::GetOfMerged => "gets of merged keys",
            Operation::GetOfPut => "gets of put keys",
        })
    }
}

/// What was measured of one kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Which.
    pub operation: Operation,
    /// How many were acknowledged.
    pub count: u64,
    /// From the start to the last acknowledgement.
    pub seconds: f64,
    /// From there until the engine had done what they left for later; 0 for gets.
    pub catch_up_seconds: f64,
    /// Processor time of the process, with the catching up.
    pub settled_cpu_seconds: f64,
    /// Written to the device by anyone, with the catching up.
    pub settled_device_written_bytes: Option<u64>,
}

impl Measured {
    /// By the time to the last acknowledgement.
    pub fn per_s(&self) -> f64 {
        self.count as f64 / self.seconds
    }

    /// By the time until the engine had caught up.
    pub fn settled_per_s(&self) -> f64 {
        self.count as f64 / (self.seconds + self.catch_up_seconds)
    }

    /// Processor time of one operation, with the catching up.
    pub fn cpu_us_each(&self) -> f64 {
        self.settled_cpu_seconds * 1e6 / self.count as f64
    }

    /// Bytes of the device for one operation, with the catching up.
    pub fn device_bytes_each(&self) -> Option<f64> {
        Some(self.settled_device_written_bytes? as f64 / self.count as f64)
    }
}

/// What is known in the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergeTotals {
    /// What the process used of memory.
    #[serde(flatten)]
    pub memory: MemoryUse,
    /// How the engine adds.
    pub way_to_add: String,
    /// Counters that were read in the end: each had the sum of all that was added.
    pub checked_counters: usize,
}

/// Does what a request says and replies on the standard output.
pub fn run(request: &Request) -> Result<()> {
    let resources = Resources {
        memory_bytes: Some(request.place.memory_bytes),
        data_bytes: Some(2 * request.keys * (KEY_BYTES + VALUE_BYTES) as u64),
        counters: true,
    };
    let spec = settings::named(&request.place.engine);
    runs::serve(&request.place, spec, resources, |engine, disk| {
        let sums = (0..request.keys).map(|_| AtomicU64::new(0)).collect();
        Merges { engine, disk, request, sums }.run()
    })
}

/// Counters and records with the same keys.
struct Merges<'a> {
    engine: &'a dyn Engine,
    disk: &'a Disk,
    request: &'a Request,
    /// What each counter must have, by the number of its key. Relaxed: they are looked at once all that merge have ended.
    sums: Vec<AtomicU64>,
}

impl Merges<'_> {
    fn run(&self) -> Result<MergeTotals> {
        self.load()?;
        let Request { ref place, round, .. } = *self.request;
        let (mut writes, mut gets) =
            ([Operation::Merge, Operation::Put], [Operation::GetOfMerged, Operation::GetOfPut]);
        if round.is_multiple_of(2) {
            writes.reverse();
            gets.reverse();
        }
        for operation in writes.into_iter().chain(gets) {
            runs::tell(&self.measure(operation)?)?;
        }
        (0..self.request.keys).try_for_each(|number| self.check_sum(number))?;
        Ok(MergeTotals {
            memory: MemoryUse::now(place.group.as_deref())?,
            way_to_add: self.engine.way_to_add().to_owned(),
            checked_counters: self.sums.len(),
        })
    }

    /// All counters have 0, and all records their first value.
    fn load(&self) -> Result<()> {
        let (mut batch, mut next) = (Batch::default(), 0);
        while next < self.request.keys {
            batch.clear();
            let end = (next + LOAD_RECORDS).min(self.request.keys);
            for number in next..end {
                batch.push(&key_of(number), &value_of(number, 0).to_le_bytes());
                self.engine.add(&key_of(number), 0, Class::None)?;
            }
            self.engine.write(&batch)?;
            next = end;
        }
        rest::catch_up(self.engine, self.disk).map(drop)
    }

    fn measure(&self, operation: Operation) -> Result<Measured> {
        let Request { keys, writers, class, duration, .. } = *self.request;
        // Nothing is to be synced beside gets.
        let class = if operation.writes() { class } else { Class::None };
        self.disk.flush()?;
        let before = self.disk.usage()?;
        let writers = Writers::new(self.engine, class, writers, u64::MAX, None);
        let writer = |thread: u32| {
            let mut random = Random::new(u64::from(thread) << 8 | operation as u64);
            move |_: u64| {
                (0..OPERATIONS_AT_ONCE)
                    .try_for_each(|_| self.operate(operation, random.below(keys), 1 + random.below(MOST_ADDED)))
            }
        };
        let pace = Pace { most_time: duration, point: duration };
        let written = points::write(&writers, self.disk, pace, writer, &mut Nobody)?;
        let (catch_up_seconds, after) =
            if operation.writes() { rest::catch_up(self.engine, self.disk)? } else { (0.0, self.disk.usage()?) };
        Ok(Measured {
            operation,
            count: written.acknowledged.iter().sum::<u64>() * OPERATIONS_AT_ONCE,
            seconds: written.seconds,
            catch_up_seconds,
            settled_cpu_seconds: (after.cpu - before.cpu).as_secs_f64(),
            settled_device_written_bytes: after
                .device_bytes
                .zip(before.device_bytes)
                .map(|(after, before)| after - before),
        })
    }

    /// Does one operation. Each get checks what it brings: nobody writes meanwhile.
    fn operate(&self, operation: Operation, number: u64, added: u64) -> Result<()> {
        let (key, class) = (key_of(number), self.request.class);
        match operation {
            Operation::Merge => {
                self.engine.add(&key, added, class)?;
                self.sums[number as usize].fetch_add(added, Ordering::Relaxed);
                Ok(())
            }
            Operation::Put => self.engine.put_in_class(&key, &value_of(number, added).to_le_bytes(), class),
            Operation::GetOfMerged => self.check_sum(number),
            Operation::GetOfPut => {
                let value = self.engine.get(&key)?;
                if value.as_deref().is_some_and(|value| is_value_of(number, value)) {
                    return Ok(());
                }
                Err(self.wrong(format!("record {number} is {value:?}, which was never put")))
            }
        }
    }

    /// An error if a counter has another sum than that of all that was merged.
    fn check_sum(&self, number: u64) -> Result<()> {
        let sum = self.sums[number as usize].load(Ordering::Relaxed);
        match self.engine.counter(&key_of(number))? {
            Some(found) if found == sum => Ok(()),
            found => Err(self.wrong(format!("counter {number} is {found:?}; what was merged makes {sum}"))),
        }
    }

    fn wrong(&self, what: String) -> Error {
        Error::Request(format!("{}: {what}", self.request.place.engine))
    }
}

/// A value of a key.
fn value_of(number: u64, added: u64) -> u64 {
    number << ADDED_BITS | added
}

/// Whether bytes are a value of a key.
fn is_value_of(number: u64, value: &[u8]) -> bool {
    value.try_into().is_ok_and(|bytes: [u8; 8]| {
        let value = u64::from_le_bytes(bytes);
        value >> ADDED_BITS == number && value % (1 << ADDED_BITS) <= MOST_ADDED
    })
}

/// Follows nothing: the figures of a kind of operation are those of its whole time.
struct Nobody;

impl Watcher for Nobody {
    fn point(&mut self, _point: Point) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
