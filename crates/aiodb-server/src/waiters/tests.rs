use super::*;

fn key(name: &'static str) -> Key {
    Key { database: 0, name: name.into() }
}

/// Whether a client was woken since it was asked last.
fn is_woken(waiter: &Waiter) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::ZERO, waiter.woken()).await.is_ok() })
}

#[test]
fn who_came_first_is_woken_and_the_next_one_after_him() {
    let waiters = Waiters::default();
    let (a, b) = (key("a"), key("b"));
    let first = waiters.add(&[a.clone(), a.clone()], Kind::List);
    let other = waiters.add(std::slice::from_ref(&a), Kind::SortedSet);
    let second = waiters.add(&[b.clone(), a.clone()], Kind::List);
    assert!(waiters.is_first(&a, &first) && !waiters.is_first(&a, &second) && waiters.is_first(&b, &second));
    assert!(waiters.is_first(&key("c"), &first));
    waiters.wake([&a].into_iter());
    assert_eq!((is_woken(&first), is_woken(&other), is_woken(&second)), (true, true, false));
    waiters.remove(&[a.clone(), a.clone()], &first);
    // It may be told twice, and a client may wait for nothing at all.
    waiters.remove(&[a.clone(), a.clone()], &first);
    waiters.remove(&[], &waiters.add(&[], Kind::List));
    assert_eq!(waiters.count(), 2);
    assert!(is_woken(&second) && waiters.is_first(&a, &second) && !is_woken(&other));
    waiters.remove(&[b, a.clone()], &second);
    waiters.remove(&[a], &other);
    assert_eq!(waiters.count(), 0);
    assert!(waiters.lock().is_empty());
}

#[test]
fn timeouts_are_read_as_redis_does() {
    let read = |text: &'static str| parse_timeout(&text.into(), 1_700_000_000_000).map_err(|refusal| refusal.line());
    assert_eq!(read("0"), Ok(None));
    assert_eq!(read("0.0001"), Ok(Some(Duration::from_millis(1))));
    assert_eq!(read("2.5"), Ok(Some(Duration::from_millis(2500))));
    for text in ["-1", "1e30", "inf", "-inf", "9223372036854776"] {
        assert_eq!(read(text).unwrap_err(), "ERR timeout is negative", "{text}");
    }
    for text in ["", "x", " 1", "nan"] {
        assert_eq!(read(text).unwrap_err(), "ERR timeout is not a float or out of range", "{text}");
    }
    assert_eq!(read("9223370400000000").unwrap_err(), "ERR timeout is out of range");
}
