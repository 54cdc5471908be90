//! Asynchronous reads.

use std::io::ErrorKind;

use super::{aligned, failure, machine, path, zeroed};
use crate::io::sim::SimQueue;
use crate::io::{Access, AlignedBuffer, Device, File, Queue, SECTOR_BYTES, UNIT_BYTES, WriteSync};

/// Reads 64 units, each pushed again until it is there. Returns what happened, in order, for comparison.
pub(super) fn read_through_queue(seed: u64) -> Vec<(u32, Result<u32, Option<i32>>)> {
    const READS: usize = 64;
    let device = machine(seed);
    let file = device.open(path(), Access::NEW_SEGMENT).unwrap();
    for unit in 0..READS {
        let buffer = aligned(UNIT_BYTES, unit as u8 + 1);
        file.write_at(&buffer, (unit * UNIT_BYTES) as u64, WriteSync::Now).unwrap();
    }
    let mut queue = device.queue(READS).unwrap();
    let mut buffer = AlignedBuffer::new(READS * UNIT_BYTES);
    let start = buffer.as_mut_ptr();
    let mut done = [0usize; READS];
    let push = |queue: &mut SimQueue, slot: u32, done: usize| {
        let at = slot as usize * UNIT_BYTES + done;
        // SAFETY: the slots are disjoint parts of the buffer, which outlives the queue's reads; each is pushed again
        // only after it was reaped.
        unsafe { queue.push(slot, &file, at as u64, start.add(at), (UNIT_BYTES - done) as u32) };
    };
    (0..READS as u32).for_each(|slot| push(&mut queue, slot, 0));
    let mut history = Vec::new();
    while done.iter().any(|done| *done < UNIT_BYTES) {
        queue.enter(1).unwrap();
        let mut reaped_one = false;
        while let Some(reaped) = queue.reap() {
            reaped_one = true;
            let finished = &mut done[reaped.slot as usize];
            *finished += *reaped.outcome.as_ref().unwrap_or(&0) as usize;
            if *finished < UNIT_BYTES {
                push(&mut queue, reaped.slot, *finished);
            }
            history.push((reaped.slot, reaped.outcome.map_err(|error| error.raw_os_error())));
        }
        assert!(reaped_one, "waiting for a result yields one");
    }
    for unit in 0..READS {
        assert!(buffer[unit * UNIT_BYTES..][..UNIT_BYTES].iter().all(|byte| *byte == unit as u8 + 1));
    }
    history
}

#[test]
fn queued_reads_come_out_of_order_short_and_interrupted() {
    let histories: Vec<_> = (0..8).map(read_through_queue).collect();
    for (seed, history) in histories.iter().enumerate() {
        assert!(!history.is_sorted_by_key(|(slot, _)| *slot), "seed {seed}");
    }
    let outcomes: Vec<_> = histories.into_iter().flatten().map(|(_, outcome)| outcome).collect();
    for error in [libc::EAGAIN, libc::EINTR] {
        assert!(outcomes.contains(&Err(Some(error))));
    }
    let short = |outcome: &&Result<_, _>| outcome.is_ok_and(|bytes| (1..UNIT_BYTES as u32).contains(&bytes));
    assert!(outcomes.iter().any(|outcome| short(&outcome)));
    assert!(outcomes.iter().filter(short).all(|bytes| bytes.unwrap() % SECTOR_BYTES as u32 == 0));
}

#[test]
fn some_queued_reads_complete_only_after_later_enters() {
    let device = machine(1);
    let file = zeroed(&device, UNIT_BYTES);
    let late = (0..100).filter(|_| {
        let mut queue = device.queue(4).unwrap();
        let mut buffer = AlignedBuffer::new(4 * UNIT_BYTES);
        for slot in 0..4 {
            // SAFETY: the buffer is dropped after the queue, and the slots are disjoint.
            unsafe { queue.push(slot, &file, 0, buffer.as_mut_ptr().add(slot as usize * UNIT_BYTES), 512) };
        }
        assert!(queue.reap().is_none(), "nothing happens before the first enter");
        queue.enter(0).unwrap();
        let first = std::iter::from_fn(|| queue.reap()).count();
        drop(queue);
        first < 4
    });
    assert!((1..100).contains(&late.count()));
}

#[test]
fn a_crash_fails_reads_in_flight() {
    let device = machine(1);
    let file = zeroed(&device, UNIT_BYTES);
    let mut buffer = AlignedBuffer::new(UNIT_BYTES);
    let mut queue = device.queue(1).unwrap();
    // SAFETY: the buffer outlives the read, which is reaped below.
    unsafe { queue.push(7, &file, 0, buffer.as_mut_ptr(), 512) };
    device.crash_after(1);
    assert_eq!(failure(queue.enter(1)).to_string(), "simulated crash");
    let reaped = queue.reap().unwrap();
    assert_eq!((reaped.slot, failure(reaped.outcome).to_string().as_str()), (7, "simulated crash"));
    assert!(queue.reap().is_none());
}

#[test]
fn a_queue_does_not_read_through_a_stale_handle() {
    let dead = machine(4);
    let file = zeroed(&dead, UNIT_BYTES);
    let device = dead.process_death();
    let mut queue = device.queue(1).unwrap();
    let mut buffer = AlignedBuffer::new(UNIT_BYTES);
    for _ in 0..1000 {
        // SAFETY: the buffer outlives the loop, in which each read is reaped before the next.
        unsafe { queue.push(0, &file, 0, buffer.as_mut_ptr(), UNIT_BYTES as u32) };
        queue.enter(1).unwrap();
        let error = failure(queue.reap().unwrap().outcome);
        if error.kind() == ErrorKind::Other {
            assert_eq!(error.to_string(), "stale handle");
            return;
        }
    }
    panic!("the read failed with EAGAIN or EINTR a thousand times");
}
