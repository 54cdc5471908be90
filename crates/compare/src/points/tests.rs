use super::{Pace, Point, Watcher, write};
use crate::class::Class;
use crate::engine::{EngineSpec, Resources};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::writers::Writers;
use ::aiodb::IndexKind;
use std::time::Duration;

/// A run in points of ten seconds with these rates.
pub(crate) fn points(rates: &[f64]) -> Vec<Point> {
    let mut at_s = 0.0;
    let point = |&puts_per_s: &f64| {
        at_s += 10.0;
        Point {
            at_s,
            seconds: 10.0,
            keys: 0,
            puts_per_s,
            p50_us: 1.0,
            p99_us: 2.0,
            p999_us: 3.0,
            longest_us: 4.0,
            resident_bytes: 1 << 20,
            processors: 0.5,
            device_written_bytes_per_s: Some(1e6),
            device_reads_per_s: None,
        }
    };
    rates.iter().map(point).collect()
}

/// Keeps what it is told, and ends the run at a look if it is to.
#[derive(Default)]
struct Follower {
    points: Vec<Point>,
    looks: u64,
    fails: bool,
}

impl Watcher for Follower {
    fn look(&mut self) -> Result<()> {
        self.looks += 1;
        if self.fails { Err(Error::Request("enough was seen".to_owned())) } else { Ok(()) }
    }

    fn point(&mut self, point: Point) -> Result<()> {
        self.points.push(point);
        Ok(())
    }
}

const LONG: Duration = Duration::from_secs(3600);

#[test]
fn every_write_is_in_a_point_or_after_the_last_whole_one() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    let engine =
        EngineSpec::Aiodb(IndexKind::Hash).open(&directory.path().join("store"), Resources::default()).unwrap();
    let writers = Writers::new(&*engine, Class::None, 3, 60, Some(1_000.0));
    let mut follower = Follower::default();
    let pace = Pace { most_time: LONG, point: Duration::from_millis(10) };
    let written = write(&writers, &disk, pace, |_| |_| Ok(()), &mut follower).unwrap();
    assert_eq!(written.acknowledged.iter().sum::<u64>(), 60);
    assert_eq!((written.acknowledged.len(), written.latencies_ns.len()), (3, 60));
    assert!(follower.looks > 0 && !follower.points.is_empty());
    assert!(follower.points.is_sorted_by_key(|point| point.keys));
    assert!(follower.points.last().unwrap().keys <= 60);
    engine.close().unwrap();
}

#[test]
fn a_run_ends_with_its_time_and_with_an_error_of_who_follows_it() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    let engine =
        EngineSpec::Aiodb(IndexKind::Hash).open(&directory.path().join("store"), Resources::default()).unwrap();
    // The second write is due in an hour.
    let writers = || Writers::new(&*engine, Class::None, 1, u64::MAX, Some(1.0 / LONG.as_secs_f64()));
    let pace = Pace { most_time: Duration::from_millis(50), point: LONG };
    let mut follower = Follower::default();
    let written = write(&writers(), &disk, pace, |_| |_| Ok(()), &mut follower).unwrap();
    assert_eq!((written.acknowledged, follower.points.len()), (vec![1], 1), "a short run has one point");
    let mut follower = Follower { fails: true, ..Follower::default() };
    let pace = Pace { most_time: LONG, point: LONG };
    let Err(error) = write(&writers(), &disk, pace, |_| |_| Ok(()), &mut follower) else { panic!("it went on") };
    assert!(error.to_string().contains("enough was seen"), "{error}");
    engine.close().unwrap();
}
