//! Gets of futures that a task of the caller's carries out.

mod support;

use std::future::{Future, poll_fn};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use aiodb::{Backend, Db, Durability, Error, GetDriver, IndexKind, Options, Table};
use fastrand::Rng;
use futures::executor::block_on;
use futures::future::{join_all, maybe_done};
use support::{KINDS, eventually, open, refusal, scratch, small, value};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const KEYS: u64 = 500;

/// The options of a store whose gets all need the device.
fn uncached() -> Options {
    Options { cache_bytes: 0, ..small() }
}

/// A store that was closed after these values had been written; some lie in several blocks. `None` where the kernel has no io_uring.
fn filled(path: &Path, kind: IndexKind) -> Option<(Db, Table, GetDriver)> {
    let (db, table) = open(path, kind, &uncached());
    for number in 0..KEYS {
        table.put_with(&number.to_be_bytes(), &of_key(number), Durability::None).expect("a put works");
    }
    db.close().expect("the store can be closed");
    let (db, table) = open(path, kind, &uncached());
    let driver = db.get_driver().expect("the store is open");
    match driver {
        Some(driver) => Some((db, table, driver)),
        None => {
            assert_ne!(db.stats().backend, "uring", "a ring can tell of its results");
            println!("skipped: this kernel has no io_uring");
            None
        }
    }
}

fn of_key(number: u64) -> Vec<u8> {
    value(number, if number.is_multiple_of(50) { 300_000 } else { 900 })
}

async fn expect_found(table: &Table, number: u64) {
    let found = table.get_async(&number.to_be_bytes()).await.expect("it can be read");
    support::assert_value(found.as_deref(), Some(&of_key(number)), "the value of the key");
}

/// What a task of a runtime does with a driver.
async fn drive(mut driver: GetDriver) {
    let descriptor: OwnedFd = driver.as_fd().try_clone_to_owned().expect("there are descriptors");
    // SAFETY: nobody else has this descriptor, which is open until it is dropped with the `AsyncFd`.
    let notifications = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    let notifications = notifications.expect("it can be waited for");
    loop {
        poll_fn(|context| match notifications.poll_read_ready(context) {
            Poll::Ready(guard) => {
                guard.expect("the runtime is there").clear_ready();
                Poll::Ready(())
            }
            Poll::Pending => driver.poll_arrived(context, 1),
        })
        .await;
        if !driver.turn() {
            return;
        }
    }
}

fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(threads).enable_all().build().expect("it can be started")
}

/// Whatever waits for ever fails here.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), what).await.expect("nothing waits for ever")
}

#[test]
fn a_task_carries_out_gets_of_any_number_at_a_time() {
    for kind in KINDS {
        for threads in [1, 2] {
            let directory = scratch();
            let Some((db, table, driver)) = filled(directory.path(), kind) else { return };
            let runtime = runtime(threads);
            let driving = runtime.spawn(drive(driver));
            runtime.block_on(in_time(async {
                // One at a time: a notification that is lost leaves it waiting, since no other get comes.
                for number in (0..KEYS).cycle().take(3000) {
                    expect_found(&table, number).await;
                }
                for at_a_time in [2, 7, 64, 400, 5000] {
                    let mut rng = Rng::with_seed(at_a_time);
                    let tasks: Vec<_> = (0..at_a_time)
                        .map(|_| {
                            let (table, number) = (table.clone(), rng.u64(..KEYS));
                            tokio::spawn(async move { expect_found(&table, number).await })
                        })
                        .collect();
                    for task in tasks {
                        task.await.expect("it found the value");
                    }
                }
                assert_eq!(table.get_async(b"absent").await.expect("it can be read"), None);
            }));
            db.close().expect("the store can be closed");
            runtime.block_on(in_time(driving)).expect("the driver ends with the store");
        }
    }
}

#[test]
fn turns_may_come_from_one_thread_after_another() {
    for kind in KINDS {
        let directory = scratch();
        let Some((_db, table, mut driver)) = filled(directory.path(), kind) else { return };
        for round in 0..10u64 {
            let gets = join_all((0..50).map(|number| table.get_async(&((round * 50 + number) % KEYS).to_be_bytes())));
            let mut gets = Box::pin(maybe_done(gets));
            let mut context = Context::from_waker(Waker::noop());
            let mut turns = 0;
            while gets.as_mut().poll(&mut context).is_pending() {
                // A thread may end with reads in flight, which its ring takes with it.
                driver = std::thread::scope(|scope| {
                    let turn = move || {
                        assert!(driver.turn(), "the store is open");
                        driver
                    };
                    scope.spawn(turn).join().expect("a turn does not panic")
                });
                turns += 1;
                assert!(turns < 100_000, "{kind:?}: the gets come to an end");
            }
            for (number, found) in gets.as_mut().take_output().expect("they are done").into_iter().enumerate() {
                let expected = of_key((round * 50 + number as u64) % KEYS);
                support::assert_value(
                    found.expect("it can be read").as_deref(),
                    Some(&expected),
                    "the value of the key",
                );
            }
        }
    }
}

/// Whether a descriptor becomes readable in time. It is made unreadable first, which only a test does.
fn tells(driver: &GetDriver, forget: bool) -> bool {
    let mut descriptor = libc::pollfd { fd: driver.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    if forget {
        let mut count = [0u8; 8];
        // SAFETY: there is room for the eight bytes that the kernel writes.
        unsafe { libc::read(descriptor.fd, count.as_mut_ptr().cast(), count.len()) };
    }
    // SAFETY: the kernel writes to the one descriptor that it is given.
    unsafe { libc::poll(&raw mut descriptor, 1, if forget { 0 } else { 20_000 }) == 1 }
}

#[test]
fn a_get_that_another_thread_starts_is_told_of() {
    for at_once in [1, 3] {
        let directory = scratch();
        let Some((_db, table, mut driver)) = filled(directory.path(), IndexKind::Hash) else { return };
        let mut context = Context::from_waker(Waker::noop());
        let mut gets: Vec<_> =
            (0..=at_once).map(|number: u64| Box::pin(maybe_done(table.get_async(&number.to_be_bytes())))).collect();
        while gets[0].as_mut().poll(&mut context).is_pending() {
            assert!(driver.turn(), "the store is open");
        }
        assert!(driver.turn(), "the store is open");
        assert!(!tells(&driver, true), "nothing is on its way");
        for get in &mut gets[1..] {
            assert!(get.as_mut().poll(&mut context).is_pending());
        }
        // The ring is bound to the first thread. One turn, and no other get that comes to the rescue.
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(driver.turn(), "the store is open"));
        });
        for get in &mut gets[1..] {
            while get.as_mut().poll(&mut context).is_pending() {
                assert!(tells(&driver, false), "{at_once} at once: a read is done");
                assert!(driver.turn(), "the store is open");
            }
        }
    }
}

#[test]
fn a_get_waits_for_a_turn_and_for_nothing_else() {
    let directory = scratch();
    let Some((db, table, mut driver)) = filled(directory.path(), IndexKind::Hash) else { return };
    assert!(db.get_driver().expect("the store is open").is_none(), "there is a driver already");
    let mut context = Context::from_waker(Waker::noop());
    assert!(driver.poll_arrived(&mut context, 1).is_pending(), "no get has come");
    let mut get = Box::pin(maybe_done(table.get_async(&1u64.to_be_bytes())));
    assert!(get.as_mut().poll(&mut context).is_pending());
    assert!(driver.poll_arrived(&mut context, 1).is_ready());
    assert!(driver.poll_arrived(&mut context, 2).is_pending(), "one is less than two");
    std::thread::sleep(Duration::from_millis(50));
    assert!(get.as_mut().poll(&mut context).is_pending(), "nobody else carries it out");
    while get.as_mut().poll(&mut context).is_pending() {
        assert!(driver.turn(), "the store is open");
    }
    let found = get.as_mut().take_output().expect("it is done").expect("it can be read");
    assert_eq!(found, Some(of_key(1)));
    eventually("no claim on a segment is left", || db.metrics().oldest_pin_ms == 0);
}

#[test]
fn a_driver_that_is_dropped_leaves_no_get_waiting() {
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let directory = scratch();
        let Some((db, table, mut driver)) = filled(directory.path(), kind) else { return };
        let mut context = Context::from_waker(Waker::noop());
        let mut gets: Vec<_> =
            (0..300u64).map(|number| Box::pin(maybe_done(table.get_async(&number.to_be_bytes())))).collect();
        for get in &mut gets[..100] {
            let _ = get.as_mut().poll(&mut context);
        }
        assert!(driver.turn(), "the store is open");
        for get in &mut gets[100..200] {
            let _ = get.as_mut().poll(&mut context);
        }
        // Of the first hundred some are answered, others in flight; the second hundred wait in the queue.
        drop(driver);
        for (number, mut get) in gets.into_iter().enumerate() {
            block_on(get.as_mut());
            match get.as_mut().take_output().expect("it is done") {
                Ok(found) => {
                    support::assert_value(found.as_deref(), Some(&of_key(number as u64)), "the value of the key")
                }
                Err(error) => assert!(matches!(error, Error::Closed), "{kind:?}: get {number}: {error}"),
            }
        }
        // What needs no device needs no driver, and calls do without.
        table.put(b"late", b"v").expect("a put works");
        assert_eq!(table.get(&1u64.to_be_bytes()).expect("it can be read"), Some(of_key(1)));
        eventually("no claim on a segment is left", || db.metrics().oldest_pin_ms == 0);
    }
}

#[test]
fn closing_the_store_answers_all_gets_of_a_driver() {
    for (round, kind) in KINDS.into_iter().cycle().take(9).enumerate() {
        let directory = scratch();
        let Some((db, table, mut driver)) = filled(directory.path(), kind) else { return };
        let mut context = Context::from_waker(Waker::noop());
        // More than there are places for.
        let mut gets: Vec<_> =
            (0..6000u64).map(|number| Box::pin(maybe_done(table.get_async(&(number % KEYS).to_be_bytes())))).collect();
        for (number, get) in gets.iter_mut().enumerate() {
            let _ = get.as_mut().poll(&mut context);
            if number == 100 * round {
                assert!(driver.turn(), "the store is open");
            }
        }
        db.close().expect("the store can be closed");
        assert!(driver.poll_arrived(&mut context, 1).is_ready(), "it is told");
        assert!(!driver.turn(), "and has nothing more to do");
        for (number, mut get) in gets.into_iter().enumerate() {
            block_on(get.as_mut());
            match get.as_mut().take_output().expect("it is done") {
                Ok(found) => {
                    support::assert_value(
                        found.as_deref(),
                        Some(&of_key(number as u64 % KEYS)),
                        "the value of the key",
                    );
                }
                Err(error) => assert!(matches!(error, Error::Closed), "{kind:?}: get {number}: {error}"),
            }
        }
        let error = refusal(db.get_driver(), "a driver of a closed store");
        assert!(matches!(error, Error::Closed), "{error}");
    }
}

#[test]
fn a_damaged_record_fails_its_own_get_only() {
    let directory = scratch();
    let Some((db, _, driver)) = filled(directory.path(), IndexKind::Hash) else { return };
    drop(driver);
    db.close().expect("the store can be closed");
    let wanted = of_key(7);
    let damaged = support::segment_files(directory.path()).into_iter().any(|file| {
        let mut bytes = std::fs::read(&file).expect("a segment can be read");
        let Some(at) = bytes.windows(64).position(|window| window == &wanted[100..164]) else { return false };
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).expect("a segment can be written");
        true
    });
    assert!(damaged, "the value lies in a segment");
    let (db, table) = open(directory.path(), IndexKind::Hash, &uncached());
    let driver = db.get_driver().expect("the store is open").expect("the kernel has io_uring");
    let runtime = runtime(1);
    runtime.spawn(drive(driver));
    runtime.block_on(in_time(async {
        let gets = join_all((1..20u64).map(|number| table.get_async(&number.to_be_bytes()))).await;
        for (number, found) in (1..20u64).zip(gets) {
            match found {
                Err(error) => {
                    assert!(number == 7 && matches!(error, Error::Corruption { .. }), "get {number}: {error}")
                }
                Ok(found) => assert!(number != 7 && found == Some(of_key(number)), "get {number}"),
            }
        }
    }));
}

#[test]
fn a_queue_that_cannot_tell_has_no_driver() {
    for backend in [Backend::Libaio, Backend::Threads] {
        let directory = scratch();
        let (db, table) = open(directory.path(), IndexKind::Hash, &Options { backend, ..uncached() });
        assert!(db.get_driver().expect("the store is open").is_none(), "{backend:?}");
        block_on(async {
            table.put_async(b"k", b"v").await.expect("a put works");
            assert_eq!(table.get_async(b"k").await.expect("it can be read"), Some(b"v".to_vec()));
        });
    }
}
