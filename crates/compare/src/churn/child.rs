//! The measured process: one engine, loaded and then overwritten under a memory limit.

use super::settings;
use super::versions::{Sample, Versions};
use crate::class::Class;
use crate::engine::{Engine, Resources};
use crate::error::Result;
use crate::host::Disk;
use crate::memory;
use crate::points::{self, Pace, Point, Watcher, Written};
use crate::ranks::{Pattern, Ranks};
use crate::rest;
use crate::runs::{self, Place};
use crate::stream::Random;
use crate::totals::Totals;
use crate::writers::Writers;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// The directory is looked at so often.
const LOOKED_EVERY: Duration = Duration::from_millis(100);

/// What a measured process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// With what.
    pub place: Place,
    /// How overwrites are spread over records.
    pub pattern: Pattern,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// What an overwrite has survived when it is acknowledged.
    pub class: Class,
    /// Records, all of which are alive all the time.
    pub records: u64,
    /// Overwrites after which the run is over.
    pub overwrites: u64,
    /// Threads that overwrite.
    pub writers: u32,
    /// The time after which it is over all the same.
    pub most_time: Duration,
    /// The length of a point.
    pub point: Duration,
}

/// One stretch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChurnPoint {
    /// Its overwrites.
    #[serde(flatten)]
    pub point: Point,
    /// What the store's files took on the disk at its end.
    pub directory_bytes: u64,
    /// The most that they took in it, as seen about ten times a second.
    pub most_directory_bytes: u64,
}

/// What a whole run took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChurnTotals {
    /// The overwrites, and what they left for later.
    #[serde(flatten)]
    pub totals: Totals,
    /// How long the load took, with all that it left for later.
    pub load_seconds: f64,
    /// Keys and values of all records.
    pub live_bytes: u64,
    /// Keys and values of all overwrites.
    pub user_bytes: u64,
    /// What the store's files took on the disk before the first overwrite.
    pub directory_bytes_before: u64,
    /// The most that they took from then on, as seen about ten times a second while there were overwrites, and in the end.
    pub most_directory_bytes: u64,
    /// Records that were read back: each had the version that was acknowledged last.
    pub checked_records: usize,
}

/// Does what a request says and replies on the standard output.
pub fn run(request: &Request) -> Result<()> {
    let records = Versions::new(request.records, request.value_bytes);
    let resources = Resources {
        memory_bytes: Some(request.place.memory_bytes),
        data_bytes: Some(records.live_bytes()),
        counters: false,
    };
    let spec = settings::named(&request.place.engine);
    runs::serve(&request.place, spec, resources, |engine, disk| {
        Churn { engine, disk, request, records, sample: Sample::new(request.records) }.run()
    })
}

/// A run over one store.
struct Churn<'a> {
    engine: &'a dyn Engine,
    disk: &'a Disk,
    request: &'a Request,
    records: Versions,
    sample: Sample,
}

impl Churn<'_> {
    fn run(&self) -> Result<ChurnTotals> {
        let start = Instant::now();
        self.records.load(self.engine)?;
        rest::catch_up(self.engine, self.disk)?;
        let load_seconds = start.elapsed().as_secs_f64();

        let place = &self.request.place;
        let directory_bytes_before = memory::disk_bytes(&place.directory)?;
        let mut space = Space::new(&place.directory, directory_bytes_before);
        let (_, totals) = Totals::of(self.engine, self.disk, place, || self.overwrite(&mut space))?;
        self.sample.read_back(self.engine, &place.engine, &self.records)?;
        Ok(ChurnTotals {
            load_seconds,
            live_bytes: self.records.live_bytes(),
            user_bytes: totals.puts * self.records.record_bytes(),
            directory_bytes_before,
            most_directory_bytes: space.most.max(totals.disk_bytes),
            checked_records: self.sample.len(),
            totals,
        })
    }

    /// Lets each writer put the next version of records as the pattern has them, and tells of each point when it ends.
    fn overwrite(&self, space: &mut Space) -> Result<Written> {
        let Request { pattern, class, overwrites, writers, most_time, point, .. } = *self.request;
        let writers = Writers::new(self.engine, class, writers, overwrites, None);
        let ranks = Ranks::new(pattern, self.records.count());
        let writer = |thread: u32| {
            let (mut random, mut value) = (Random::new(thread.into()), self.records.value());
            move |number: u64| {
                let (rank, version) = (ranks.draw(&mut random), number + 1);
                self.records.fill(rank, version, &mut value);
                let key = self.records.key(rank);
                let begun = self.sample.begin(rank);
                self.engine.put_in_class(&key, &value, class)?;
                begun.into_iter().for_each(|begun| self.sample.end(begun, version));
                Ok(())
            }
        };
        points::write(&writers, self.disk, Pace { most_time, point }, writer, space)
    }
}

/// Looks at the space that the store's files take, and tells of each point.
struct Space<'a> {
    directory: &'a Path,
    looked: Instant,
    most: u64,
    most_in_point: u64,
}

impl<'a> Space<'a> {
    fn new(directory: &'a Path, bytes: u64) -> Space<'a> {
        Space { directory, looked: Instant::now(), most: bytes, most_in_point: bytes }
    }

    fn bytes(&mut self) -> Result<u64> {
        let bytes = memory::disk_bytes(self.directory)?;
        self.looked = Instant::now();
        self.most = self.most.max(bytes);
        self.most_in_point = self.most_in_point.max(bytes);
        Ok(bytes)
    }
}

impl Watcher for Space<'_> {
    fn look(&mut self) -> Result<()> {
        if self.looked.elapsed() >= LOOKED_EVERY {
            self.bytes()?;
        }
        Ok(())
    }

    fn point(&mut self, point: Point) -> Result<()> {
        let directory_bytes = self.bytes()?;
        let most_directory_bytes = std::mem::replace(&mut self.most_in_point, directory_bytes);
        runs::tell(&ChurnPoint { point, directory_bytes, most_directory_bytes })
    }
}

#[cfg(test)]
pub(crate) mod tests;
