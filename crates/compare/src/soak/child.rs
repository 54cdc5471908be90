//! The measured process: one engine, filled under a memory limit until there are enough keys or the time is up.

use super::settings;
use crate::class::Class;
use crate::engine::{Engine, Resources};
use crate::error::Result;
use crate::host::Disk;
use crate::points::{self, Pace, Point, Watcher, Written};
use crate::records::{KEY_BYTES, Records, Shape};
use crate::runs::{self, Place};
use crate::store::check_acknowledged;
use crate::totals::Totals;
use crate::writers::Writers;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a measured process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// With what.
    pub place: Place,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// What a put has survived when it is acknowledged.
    pub class: Class,
    /// Threads that put.
    pub writers: u32,
    /// Puts per second of all threads together, whatever the engine does; None for as fast as they can.
    pub puts_per_s: Option<f64>,
    /// Keys after which the run is over.
    pub keys: u64,
    /// The time after which it is over all the same.
    pub most_time: Duration,
    /// The length of a point.
    pub point: Duration,
}

impl Request {
    fn shape(&self) -> Shape {
        Shape { key_bytes: KEY_BYTES, value_bytes: self.value_bytes }
    }
}

/// Does what a request says and replies on the standard output.
pub fn run(request: &Request) -> Result<()> {
    let resources = Resources {
        memory_bytes: Some(request.place.memory_bytes),
        data_bytes: Some(request.keys * request.shape().record_bytes()),
        counters: false,
    };
    let spec = settings::named(&request.place.engine);
    runs::serve(&request.place, spec, resources, |engine, disk| Soak { engine, disk, request }.run())
}

/// A run over one store.
struct Soak<'a> {
    engine: &'a dyn Engine,
    disk: &'a Disk,
    request: &'a Request,
}

impl Soak<'_> {
    fn run(&self) -> Result<Totals> {
        let Request { place, .. } = self.request;
        let (written, totals) = Totals::of(self.engine, self.disk, place, || self.write())?;
        check_acknowledged(self.engine, &place.engine, self.request.shape(), &written.acknowledged)?;
        Ok(totals)
    }

    /// Lets each writer put the records of a sequence of its own, and tells of each point when it ends.
    fn write(&self) -> Result<Written> {
        let Request { class, writers, keys, puts_per_s, most_time, point, .. } = *self.request;
        let writers = Writers::new(self.engine, class, writers, keys, puts_per_s);
        let writer = |thread: u32| {
            let mut records = Records::new(self.request.shape(), thread.into());
            move |_: u64| {
                let (key, value) = records.next();
                self.engine.put_in_class(key, value, class)
            }
        };
        points::write(&writers, self.disk, Pace { most_time, point }, writer, &mut Tell)
    }
}

/// Tells of each point.
struct Tell;

impl Watcher for Tell {
    fn point(&mut self, point: Point) -> Result<()> {
        runs::tell(&point)
    }
}
