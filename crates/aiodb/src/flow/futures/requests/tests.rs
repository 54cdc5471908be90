use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::{MAX_QUEUED, Offer, Requests, answer};
use crate::Error;

#[derive(Default)]
struct Calls(AtomicUsize);

impl Calls {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Something that wants a place in the queue.
#[derive(Default)]
struct Guest {
    ticket: Option<u64>,
    calls: Arc<Calls>,
}

impl Guest {
    fn is_taken(&mut self, requests: &Requests<u32>) -> bool {
        let waker = Waker::from(Arc::clone(&self.calls));
        let offer = requests.offer(7, &mut self.ticket, &waker, || Ok(std::thread::spawn(|| ())));
        matches!(offer.expect("the queue is open"), Offer::Taken)
    }
}

fn full() -> Requests<u32> {
    let requests = Requests::default();
    for number in 0..MAX_QUEUED {
        assert!(Guest::default().is_taken(&requests), "there is room for request {number}");
    }
    requests
}

#[test]
fn whoever_finds_no_place_is_called_in_turn() {
    let requests = full();
    let mut guests: Vec<Guest> = (0..4).map(|_| Guest::default()).collect();
    for guest in &mut guests {
        assert!(!guest.is_taken(&requests), "the queue is full");
    }
    let mut taken = Vec::new();
    assert!(requests.take(&mut taken, 2, false));
    let calls: Vec<usize> = guests.iter().map(|guest| guest.calls.count()).collect();
    assert_eq!((taken.len(), calls), (2, vec![1, 1, 0, 0]), "two places, two calls");
    // One of the called goes away without taking its place: the next is called.
    requests.leave(guests[0].ticket.expect("it waits"));
    assert_eq!(guests[2].calls.count(), 1);
    assert!(guests[1].is_taken(&requests) && guests[2].is_taken(&requests));
    assert!(!guests[3].is_taken(&requests), "both places are taken");
    // A future that was not called yet leaves nothing behind.
    requests.leave(guests[3].ticket.expect("it waits"));
    assert!(requests.take(&mut taken, 1, false));
    assert_eq!(guests[3].calls.count(), 0);
}

#[test]
fn a_called_guest_that_was_overtaken_keeps_its_turn() {
    let requests = full();
    let mut guests: Vec<Guest> = (0..2).map(|_| Guest::default()).collect();
    assert!(guests.iter_mut().all(|guest| !guest.is_taken(&requests)));
    let mut taken = Vec::new();
    assert!(requests.take(&mut taken, 1, false));
    assert!(Guest::default().is_taken(&requests), "someone else is faster");
    assert!(!guests[0].is_taken(&requests), "the place is gone");
    assert!(requests.take(&mut taken, 1, false));
    assert_eq!((guests[0].calls.count(), guests[1].calls.count()), (2, 0), "the first is called again");
}

#[test]
fn a_stop_refuses_and_calls_everyone() {
    let requests = full();
    let mut guest = Guest::default();
    assert!(!guest.is_taken(&requests));
    requests.stop();
    assert_eq!(guest.calls.count(), 1);
    let offer = requests.offer(7, &mut guest.ticket, Waker::noop(), || unreachable!("no thread is started"));
    assert!(matches!(offer, Err(Error::Closed)));
    assert!(!requests.take(&mut Vec::new(), 1, true), "the thread is told to end");
}

#[test]
fn an_answer_comes_once_and_always() {
    let calls = Arc::new(Calls::default());
    let waker = Waker::from(Arc::clone(&calls));
    let mut context = Context::from_waker(&waker);
    let (reply, future) = answer::<u32>();
    assert!(future.poll(&mut context).is_pending() && reply.is_wanted());
    reply.give(Ok(5));
    assert_eq!(calls.count(), 1);
    assert!(matches!(future.poll(&mut context), Poll::Ready(Ok(5))));
    let (reply, future) = answer::<u32>();
    drop(reply);
    assert!(matches!(future.poll(&mut context), Poll::Ready(Err(Error::Closed))), "nobody is left to answer");
    let (reply, future) = answer::<u32>();
    drop(future);
    assert!(!reply.is_wanted(), "nobody is left to hear the answer");
    reply.give(Ok(5));
}
