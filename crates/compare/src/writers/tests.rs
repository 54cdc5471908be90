use super::Writers;
use crate::class::{Class, INTERVAL};
use crate::engine::{Engine, EngineSpec, Resources};
use crate::error::Result;
use crate::records::{Records, Shape};
use crate::soak::settings::named;
use crate::store::check_acknowledged;
use ::aiodb::IndexKind;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How late puts are in a test.
const LATE: Duration = Duration::from_secs(30);

const SHAPE: Shape = Shape { key_bytes: 25, value_bytes: 25 };

fn open(spec: &EngineSpec) -> (TempDir, Box<dyn Engine>) {
    let directory = tempfile::tempdir().unwrap();
    let engine = spec.open(&directory.path().join("store"), Resources::default()).unwrap();
    (directory, engine)
}

fn aiodb() -> (TempDir, Box<dyn Engine>) {
    open(&EngineSpec::Aiodb(IndexKind::Lsm))
}

/// Puts the records of the thread's own sequence until the run is over.
fn put(writers: &Writers, shape: Shape, thread: u32) -> Result<u64> {
    let mut records = Records::new(shape, thread.into());
    writers.write_until_over(thread, |_| {
        let (key, value) = records.next();
        writers.engine.put_in_class(key, value, writers.class)
    })
}

fn put_all(writers: &Writers) -> Vec<u64> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..writers.threads()).map(|thread| scope.spawn(move || put(writers, SHAPE, thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap()).collect()
    })
}

#[test]
fn writers_put_as_many_keys_as_were_asked_for_and_each_is_timed_once() {
    let (_directory, engine) = aiodb();
    for class in [Class::None, Class::Interval, Class::Sync] {
        let writers = Writers::new(&*engine, class, 4, 1_000, None);
        let acknowledged = put_all(&writers);
        assert_eq!(acknowledged.iter().sum::<u64>(), 1_000, "{class}");
        check_acknowledged(&*engine, "aiodb", SHAPE, &acknowledged).unwrap();
        assert_eq!(writers.take_latencies_ns().len(), 1_000, "{class}");
        assert_eq!(writers.take_latencies_ns().len(), 0, "{class}: they were taken");
    }
}

#[test]
fn a_run_that_is_over_puts_nothing_more() {
    let (_directory, engine) = aiodb();
    for puts_per_s in [None, Some(0.001)] {
        let writers = Writers::new(&*engine, Class::None, 2, 1_000, puts_per_s);
        writers.end();
        assert_eq!(put_all(&writers), [0, 0], "{puts_per_s:?}");
    }
}

#[test]
fn puts_at_a_rate_do_not_begin_before_they_are_due() {
    let (_directory, engine) = aiodb();
    let writers = Writers::new(&*engine, Class::None, 2, 100, Some(1_000.0));
    assert_eq!(put_all(&writers).iter().sum::<u64>(), 100);
    assert!(writers.start().elapsed() >= Duration::from_millis(99), "the last one was due then");
}

#[test]
fn a_put_that_comes_late_counts_from_when_it_was_due() {
    let (_directory, engine) = aiodb();
    let mut writers = Writers::new(&*engine, Class::None, 2, 100, Some(1_000.0));
    writers.start = Instant::now().checked_sub(LATE).expect("the machine has run for so long");
    put_all(&writers);
    let latencies_ns = writers.take_latencies_ns();
    assert_eq!(latencies_ns.len(), 100);
    assert!(latencies_ns.min() >= (LATE - Duration::from_secs(1)).as_nanos() as u64, "{} ns", latencies_ns.min());
}

#[test]
fn an_error_ends_the_run_for_all() {
    let (_directory, engine) = aiodb();
    let no_key = Shape { key_bytes: 1 << 20, value_bytes: 0 };
    let writers = Writers::new(&*engine, Class::None, 1, 1_000, None);
    assert!(put(&writers, no_key, 0).is_err());
    assert_eq!(put(&writers, SHAPE, 0).unwrap(), 0);
}

#[test]
fn only_engines_that_do_not_sync_themselves_want_syncs() {
    let (_directory, ours) = aiodb();
    let (_directory, theirs) = open(&named("rocksdb-level").unwrap());
    for (engine, class, wanted) in [
        (&ours, Class::Interval, false),
        (&theirs, Class::Interval, true),
        (&theirs, Class::Sync, false),
        (&theirs, Class::None, false),
    ] {
        let writers = Writers::new(&**engine, class, 1, 1, None);
        assert_eq!(writers.want_syncs(), wanted, "{class}");
    }
}

#[test]
fn syncs_end_with_the_run() {
    let (_directory, engine) = open(&named("rocksdb-level").unwrap());
    let writers = Writers::new(&*engine, Class::Interval, 1, 1_000, None);
    thread::scope(|scope| {
        let syncs = scope.spawn(|| writers.sync_until_over());
        thread::sleep(INTERVAL * 3 / 2);
        writers.end();
        syncs.join().unwrap().unwrap();
    });
}
