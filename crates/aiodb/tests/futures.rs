//! Gets and writes as futures, on several runtimes.

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use aiodb::{Batch, Condition, Db, Durability, Error, IndexKind, Options, Table};
use fastrand::Rng;
use futures::StreamExt;
use futures::executor::block_on;
use futures::future::{join_all, maybe_done};
use futures::stream::FuturesUnordered;
use support::{KINDS, damage, eventually, open, quiet, refusal, scratch, small, value};

#[test]
fn futures_do_what_calls_do() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        let other = db.create_table("other", kind).expect("a table can be made");
        let large = value(1, 700_000);
        block_on(async {
            let first = table.put_async(b"k", b"1").await.expect("a put works");
            assert_eq!(table.get_async(b"k").await.expect("it can be read"), Some(b"1".to_vec()));
            let second = table.put_async_with(b"large", &large, Durability::None).await.expect("a put works");
            assert!(second > first, "{second} comes after {first}");
            assert!(table.get_async(b"large").await.expect("it can be read") == Some(large.clone()), "the large value");
            other.put_async(b"k", b"elsewhere").await.expect("a put works");
            assert_eq!(other.get_async(b"k").await.expect("it can be read"), Some(b"elsewhere".to_vec()));
            table.delete_async(b"large").await.expect("a delete works");
            assert_eq!(table.get_async(b"large").await.expect("it can be read"), None);
            let batch = || {
                let mut batch = Batch::new();
                batch
                    .require(&table, b"k", Condition::Equals(b"1"))
                    .and_then(|batch| batch.put(&table, b"k", b"2"))
                    .and_then(|batch| batch.put(&other, b"k", b"2"))
                    .expect("the batch is in its limits");
                batch
            };
            db.write_async(batch()).await.expect("the condition holds");
            let error = refusal(db.write_async(batch()).await, "a condition that does not hold any more");
            assert!(matches!(error, Error::ConditionFailed { condition: 0, .. }), "{error}");
            let error = refusal(table.get_async(b"").await, "an empty key");
            assert!(matches!(error, Error::KeyLength { .. }), "{error}");
            let error = refusal(table.put_async(b"", b"v").await, "an empty key");
            assert!(matches!(error, Error::KeyLength { .. }), "{error}");
            db.drop_table("other").expect("a table can be dropped");
            let error = refusal(other.get_async(b"k").await, "a get from a dropped table");
            assert!(matches!(error, Error::NoSuchTable { .. }), "{error}");
            let error = refusal(other.delete_async(b"k").await, "a delete in a dropped table");
            assert!(matches!(error, Error::NoSuchTable { .. }), "{error}");
        });
        db.close().expect("the store can be closed");
        let (_db, table) = open(directory.path(), kind, &small());
        assert_eq!(table.get(b"k").expect("it can be read"), Some(b"2".to_vec()), "after a restart");
    }
}

#[test]
fn what_needs_no_device_completes_where_it_is_polled() {
    const KEYS: u64 = 100;
    for kind in KINDS {
        // Pages of LMDB may have to be read, so its gets go to the thread.
        let in_memory = kind != IndexKind::Lmdb;
        let mut context = Context::from_waker(Waker::noop());
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        for number in 0..KEYS {
            let mut put = table.put_async_with(&number.to_be_bytes(), &value(number, 200), Durability::None);
            assert!(Pin::new(&mut put).poll(&mut context).is_ready(), "{kind:?}: put {number}");
            let mut get = table.get_async(&number.to_be_bytes());
            match Pin::new(&mut get).poll(&mut context) {
                Poll::Ready(found) => assert_eq!(found.expect("it can be read"), Some(value(number, 200))),
                Poll::Pending => assert!(!in_memory, "{kind:?}: get {number}"),
            }
        }
        let mut durable = table.put_async_with(b"durable", b"v", Durability::Sync);
        assert!(Pin::new(&mut durable).poll(&mut context).is_pending(), "{kind:?}: the device has it first");
        block_on(durable).expect("a put works");
        db.close().expect("the store can be closed");

        let (db, table) = open(directory.path(), kind, &Options { cache_bytes: 0, ..small() });
        let (before, mut pending) = (db.metrics(), 0);
        for number in 0..KEYS {
            let mut get = table.get_async(&number.to_be_bytes());
            let found = match Pin::new(&mut get).poll(&mut context) {
                Poll::Pending => {
                    pending += 1;
                    block_on(get)
                }
                Poll::Ready(found) => found,
            };
            assert_eq!(found.expect("it can be read"), Some(value(number, 200)));
        }
        // The value is read by a thread, which may be done before the poll is.
        assert!(pending > KEYS / 2, "{kind:?}: {pending} gets waited");
        assert_eq!(db.metrics().lookups - before.lookups, KEYS, "{kind:?}: a get is looked up once");
    }
}

#[test]
fn a_write_does_not_overtake_one_that_waits() {
    for kind in KINDS {
        let directory = scratch();
        let (_db, table) = open(directory.path(), kind, &small());
        for round in 0..200u64 {
            let first = table.put_async_with(b"k", &value(round, 20), Durability::Sync);
            let second = table.put_async_with(b"k", &value(round, 30), Durability::None);
            let (first, second) = block_on(async { futures::join!(first, second) });
            assert!(first.expect("a put works") < second.expect("a put works"), "{kind:?}: round {round}");
            assert_eq!(table.get(b"k").expect("it can be read"), Some(value(round, 30)), "{kind:?}: round {round}");
        }
    }
}

#[test]
fn puts_in_flight_share_batches() {
    const PUTS: u64 = 2000;
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &small());
    let before = db.stats().batches_written;
    block_on(async {
        let puts = (0..PUTS).map(|number| table.put_async(&number.to_be_bytes(), &value(number, 25)));
        for sequence in join_all(puts).await {
            db.wait_durable(sequence.expect("a put works")).expect("it is durable");
        }
        let gets = join_all((0..PUTS).map(|number| table.get_async(&number.to_be_bytes()))).await;
        for (number, found) in gets.into_iter().enumerate() {
            assert_eq!(found.expect("it can be read"), Some(value(number as u64, 25)), "key {number}");
        }
    });
    let batches = db.stats().batches_written - before;
    assert!(batches < PUTS / 10, "{PUTS} puts at once took {batches} batches");
}

/// Puts, gets and deletes of keys that only this task has, one after the other.
async fn own_keys(table: Table, task: u64) {
    let mut rng = Rng::with_seed(task);
    let mut held = [const { None }; 5];
    for round in 0..40 {
        let number = rng.usize(..5);
        let key = (task << 8 | number as u64).to_be_bytes();
        match rng.u8(..4) {
            0 => {
                let durability = if rng.bool() { Durability::Sync } else { Durability::None };
                let length = if rng.u8(..10) == 0 { 300_000 } else { rng.usize(8..5000) };
                let value = value(task << 32 | round, length);
                table.put_async_with(&key, &value, durability).await.expect("a put works");
                held[number] = Some(value);
            }
            1 => {
                table.delete_async_with(&key, Durability::None).await.expect("a delete works");
                held[number] = None;
            }
            _ => {
                let found = table.get_async(&key).await.expect("it can be read");
                support::assert_value(found.as_deref(), held[number].as_deref(), "only this task writes the key");
            }
        }
    }
}

#[test]
fn tasks_of_a_runtime_with_threads_read_what_they_wrote() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("it can be started");
        runtime.block_on(async {
            let tasks: Vec<_> = (0..50).map(|task| tokio::spawn(own_keys(table.clone(), task))).collect();
            for task in tasks {
                task.await.expect("the task found what it wrote");
            }
        });
        assert_eq!(db.stats().trouble, None, "{}: background work went through", kind.name());
        assert!(damage(&db).is_empty(), "{}: a check finds no damage, but {:?}", kind.name(), damage(&db));
    }
}

/// More futures than the queue has places.
const CROWD: u64 = 10_000;

#[test]
fn more_futures_than_places_all_complete() {
    for kind in KINDS {
        more_gets_and_puts_than_places(kind);
    }
}

fn more_gets_and_puts_than_places(kind: IndexKind) {
    let directory = scratch();
    let options = Options { cache_bytes: 0, ..Options::default() };
    let (db, table) = open(directory.path(), kind, &options);
    block_on(async {
        let mut puts: FuturesUnordered<_> =
            (0..CROWD).map(|number| table.put_async(&number.to_be_bytes(), &number.to_le_bytes())).collect();
        while let Some(put) = puts.next().await {
            put.expect("a put works");
        }
    });
    db.close().expect("the store can be closed");
    // Gets from the device: what lies in memory needs no place.
    let (db, table) = open(directory.path(), kind, &options);
    block_on(async {
        let mut gets: FuturesUnordered<_> = (0..CROWD)
            .map(|number| {
                let get = table.get_async(&number.to_be_bytes());
                async move { (number, get.await) }
            })
            .collect();
        while let Some((number, found)) = gets.next().await {
            assert_eq!(found.expect("it can be read"), Some(number.to_le_bytes().to_vec()));
        }
        // Some are dropped in the queue, some while they wait for a place there: none holds up segments afterwards.
        let mut context = Context::from_waker(Waker::noop());
        for number in 0..CROWD {
            let mut get = table.get_async(&number.to_be_bytes());
            let _ = Pin::new(&mut get).poll(&mut context);
        }
    });
    eventually("no reader is left", || db.metrics().oldest_pin_ms == 0);
}

/// A waker that counts.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_future_can_be_dropped_at_any_stage() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        let keys = 200u64;
        for number in 0..keys {
            let value = value(number, if number % 20 == 0 { 300_000 } else { 4096 });
            table.put_with(&number.to_be_bytes(), &value, Durability::None).expect("a put works");
        }
        db.sync().expect("it becomes durable");
        let mut rng = Rng::with_seed(3);
        let mut context = Context::from_waker(Waker::noop());
        for round in 0..60 {
            let mut gets: Vec<_> = (0..rng.usize(1..300))
                .map(|_| {
                    let number = rng.u64(..keys);
                    (number, Box::pin(maybe_done(table.get_async(&number.to_be_bytes()))))
                })
                .collect();
            // Never polled, waiting for the thread, in flight, answered: whatever they have come to, some are dropped.
            for (_, get) in &mut gets {
                if rng.u8(..4) > 0 {
                    let _ = get.as_mut().poll(&mut context);
                }
            }
            if rng.bool() {
                std::thread::sleep(Duration::from_micros(rng.u64(..2000)));
            }
            rng.shuffle(&mut gets);
            let kept = gets.split_off(gets.len() / 2);
            drop(gets);
            for (number, mut get) in kept {
                block_on(get.as_mut());
                let found = get.as_mut().take_output().expect("it is done").expect("it can be read");
                let found = found.expect("the key is there");
                assert_eq!(found[..8], number.to_le_bytes(), "round {round}: a get of key {number}");
            }
        }
        // Writes that were polled may go on, as a whole; those that were not, do not.
        for number in 0..500u64 {
            let key = (1000 + number).to_be_bytes();
            let mut put = Box::pin(table.put_async(&key, &value(number, 1000)));
            if number % 2 == 0 {
                let _ = put.as_mut().poll(&mut context);
            }
        }
        block_on(table.put_async(b"last", b"v")).expect("a put works");
        for number in 0..500u64 {
            let found = table.get(&(1000 + number).to_be_bytes()).expect("it can be read");
            if number % 2 == 0 {
                assert!(found.is_none_or(|found| found == value(number, 1000)), "all of put {number} or nothing");
            } else {
                assert_eq!(found, None, "put {number} was never polled");
            }
        }
        drop(table);
        db.close().expect("the store can be closed");
    }
}

#[test]
fn those_who_wait_for_a_place_make_room_when_they_go() {
    let directory = scratch();
    let (_db, table) = open(directory.path(), IndexKind::Hash, &Options::default());
    let calls = Arc::new(Calls::default());
    let waker = Waker::from(Arc::clone(&calls));
    let mut context = Context::from_waker(&waker);
    let put = |number: u64| Box::pin(maybe_done(table.put_async(&number.to_be_bytes(), b"v")));
    let mut puts: Vec<_> = (0..CROWD).map(put).collect();
    for put in &mut puts {
        let _ = put.as_mut().poll(&mut context);
    }
    // Three of four go away, many of them while they wait for a place.
    let mut number = 0;
    puts.retain(|_| {
        number += 1;
        number % 4 == 0
    });
    for mut put in puts {
        block_on(put.as_mut());
        put.as_mut().take_output().expect("those that stay get their turn").expect("a put works");
    }
    assert!(calls.0.load(Ordering::SeqCst) > 0, "someone was called");
}

#[test]
fn closing_the_store_completes_all_futures() {
    for round in 0..20 {
        let directory = scratch();
        let (db, table) = open(directory.path(), KINDS[round % KINDS.len()], &small());
        table.put(b"k", b"v").expect("a put works");
        let mut context = Context::from_waker(Waker::noop());
        let mut gets: Vec<_> = (0..6000).map(|_| Box::pin(maybe_done(table.get_async(b"k")))).collect();
        let mut puts: Vec<_> =
            (0..6000u64).map(|number| Box::pin(maybe_done(table.put_async(&number.to_be_bytes(), b"v")))).collect();
        for (get, put) in gets.iter_mut().zip(&mut puts) {
            let _ = get.as_mut().poll(&mut context);
            let _ = put.as_mut().poll(&mut context);
        }
        let unpolled = (table.get_async(b"k"), table.put_async(b"late", b"v"));
        db.close().expect("the store can be closed");
        let mut acknowledged = Vec::new();
        for (number, mut put) in puts.into_iter().enumerate() {
            block_on(put.as_mut());
            match put.as_mut().take_output().expect("it is done") {
                Ok(_) => acknowledged.push(number),
                Err(Error::Closed) => {}
                Err(error) => panic!("round {round}: put {number}: {error}"),
            }
        }
        for mut get in gets {
            block_on(get.as_mut());
            match get.as_mut().take_output().expect("it is done") {
                Ok(found) => assert_eq!(found, Some(b"v".to_vec())),
                Err(Error::Closed) => {}
                Err(error) => panic!("round {round}: a get: {error}"),
            }
        }
        let errors = (refusal(block_on(unpolled.0), "a get"), refusal(block_on(unpolled.1), "a put"));
        assert!(matches!(errors, (Error::Closed, Error::Closed)), "after a close: {errors:?}");
        let (_db, table) = open(directory.path(), KINDS[round % KINDS.len()], &small());
        for number in acknowledged {
            let found = table.get(&(number as u64).to_be_bytes()).expect("it can be read");
            assert_eq!(found, Some(b"v".to_vec()), "round {round}: put {number} was acknowledged");
        }
    }
}

#[test]
fn the_last_handle_may_be_dropped_by_a_future() {
    for round in 0..10 {
        let directory = scratch();
        let (db, table) = open(directory.path(), KINDS[round % KINDS.len()], &small());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("it can be started");
        let puts = runtime.spawn(async move {
            let puts = (0..50u64).map(|number| table.put_async(&number.to_be_bytes(), b"v"));
            let puts: Vec<_> = puts.collect();
            drop((db, table));
            join_all(puts).await
        });
        for put in runtime.block_on(puts).expect("the task comes to its end") {
            put.expect("a put works");
        }
        let reopened = || Db::open(directory.path(), small()).is_ok();
        eventually("the store is closed when nobody has it any more", reopened);
    }
}

#[test]
fn a_store_without_threads_refuses_futures() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    let refusals = [
        refusal(block_on(table.get_async(b"k")), "a get"),
        refusal(block_on(table.put_async(b"k", b"v")), "a put"),
        refusal(block_on(table.delete_async(b"k")), "a delete"),
        refusal(block_on(db.write_async(Batch::new())), "a batch"),
    ];
    for error in refusals {
        assert!(matches!(error, Error::Option { option: "background", .. }), "{error}");
    }
}
