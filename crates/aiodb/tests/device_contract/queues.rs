//! Reads through queues.

use std::collections::HashSet;

use super::{FILE_BYTES, FILE_UNITS, assert_patterned};
use aiodb::io::reads::Reads;
use aiodb::io::{AlignedBuffer, Device, UNIT_BYTES};

pub(crate) fn reads_of<D: Device>(device: &D, depth: usize, buffer_bytes: usize) -> Reads<D::Queue> {
    Reads::new(device.queue(depth).unwrap(), depth, buffer_bytes, device.report().block_bytes)
}

/// Keeps the queue full with reads of one unit each, several times as many as fit into it.
pub(crate) fn many_reads<D: Device>(device: &D, file: &D::File, depth: usize) {
    let mut reads = reads_of(device, depth, UNIT_BYTES);
    let total = 3 * depth as u64 + 5;
    let offset = |token: u64| token as usize * 7 % FILE_UNITS * UNIT_BYTES;
    let (mut pushed, mut seen) = (0, HashSet::new());
    while seen.len() < total as usize {
        while pushed < total && reads.has_room() {
            reads.push(file, offset(pushed) as u64, UNIT_BYTES, pushed);
            pushed += 1;
        }
        assert_eq!(reads.in_flight(), pushed as usize - seen.len());
        let done = reads.poll(true).unwrap().expect("reads are in flight");
        done.outcome.unwrap();
        assert!(seen.insert(done.token), "read {} came back twice", done.token);
        assert_eq!(reads.bytes(done.slot).len(), UNIT_BYTES);
        assert_patterned(reads.bytes(done.slot), 0, offset(done.token));
        reads.release(done.slot);
    }
    assert!(reads.poll(true).unwrap().is_none(), "with no read in flight there is nothing to wait for");
    // Without waiting, the result comes by polling alone.
    reads.push(file, 0, 1, 0);
    let done = loop {
        match reads.poll(false).unwrap() {
            Some(done) => break done,
            None => std::thread::yield_now(),
        }
    };
    done.outcome.unwrap();
    assert_patterned(reads.bytes(done.slot), 0, 0);
}

pub(crate) fn unaligned_ranges<D: Device>(device: &D, file: &D::File) {
    let seed = fastrand::u64(..);
    println!("unaligned ranges with seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut ranges = vec![(0, 1), (511, 2), (4095, 2), (4095, 4097), (4096, 8192), (1, 8192), (FILE_BYTES - 1, 1)];
    while ranges.len() < 500 {
        let length = random.usize(1..=3 * UNIT_BYTES);
        ranges.push((random.usize(..FILE_BYTES - length), length));
    }
    read_ranges(device, file, &ranges);
}

/// Reads that do not fit into a slot's buffer, among others that do.
pub(crate) fn large_reads<D: Device>(device: &D, file: &D::File) {
    let ranges = [(0, FILE_BYTES), (5, 10), (100, FILE_BYTES - 200), (UNIT_BYTES, UNIT_BYTES + 1), (7, FILE_BYTES / 2)];
    read_ranges(device, file, &ranges);
}

fn read_ranges<D: Device>(device: &D, file: &D::File, ranges: &[(usize, usize)]) {
    let mut reads = reads_of(device, 16, 2 * UNIT_BYTES);
    let (mut pushed, mut finished) = (0, 0);
    while finished < ranges.len() {
        while pushed < ranges.len() && reads.has_room() {
            reads.push(file, ranges[pushed].0 as u64, ranges[pushed].1, pushed as u64);
            pushed += 1;
        }
        let done = reads.poll(true).unwrap().unwrap();
        done.outcome.unwrap();
        let (offset, length) = ranges[done.token as usize];
        assert_eq!(reads.bytes(done.slot).len(), length);
        assert_patterned(reads.bytes(done.slot), 0, offset);
        reads.release(done.slot);
        finished += 1;
    }
}

pub(crate) fn errors_concern_one_read<D: Device>(device: &D, file: &D::File) {
    let mut reads = reads_of(device, 8, UNIT_BYTES);
    // Beyond the file, beyond any file, and negative where offsets are signed.
    let bad = [FILE_BYTES as u64, i64::MAX as u64 - 4095, u64::MAX - 8191];
    for (token, offset) in bad.into_iter().enumerate() {
        reads.push(file, token as u64 * 100, 100, token as u64);
        reads.push(file, offset, 100, 100 + token as u64);
    }
    let mut failed = 0;
    while let Some(done) = reads.poll(true).unwrap() {
        assert_eq!(done.outcome.is_err(), done.token >= 100, "read {}: {:?}", done.token, done.outcome);
        match done.outcome {
            Ok(()) => assert_patterned(reads.bytes(done.slot), 0, done.token as usize * 100),
            Err(_) => failed += 1,
        }
        reads.release(done.slot);
    }
    assert_eq!(failed, bad.len());
}

/// The buffers are freed with the queue, and nothing may be written to them afterwards. What comes to lie there next is
/// looked at. The queue is dropped by the thread that used it, or by another one.
pub(crate) fn drop_with_reads_in_flight<D: Device>(device: &D, file: &D::File) {
    const DEPTH: usize = 64;
    for round in 0..20 {
        let mut reads = reads_of(device, DEPTH, UNIT_BYTES);
        for token in 0..DEPTH - round {
            reads.push(file, (token * UNIT_BYTES) as u64, UNIT_BYTES, token as u64);
        }
        if round % 2 == 0 {
            drop(reads);
        } else {
            std::thread::scope(|scope| scope.spawn(move || drop(reads)).join().unwrap());
        }
        let next = AlignedBuffer::new(DEPTH * UNIT_BYTES);
        std::thread::yield_now();
        assert!(next.iter().all(|byte| *byte == 0), "freed memory was written to");
    }
}

/// A queue is used by one thread at a time, but not always by the same, nor only by threads that still live.
pub(crate) fn queues_move_between_threads<D: Device>(device: &D, file: &D::File) {
    let mut reads = reads_of(device, 8, UNIT_BYTES);
    for round in 0..6 {
        reads = std::thread::scope(|scope| {
            let use_it = move || {
                // Reads of the thread before are still in flight.
                while reads.has_room() {
                    reads.push(file, (round * UNIT_BYTES) as u64, UNIT_BYTES, round as u64);
                }
                for _ in 0..5 {
                    let done = reads.poll(true).unwrap().unwrap();
                    done.outcome.unwrap();
                    assert_patterned(reads.bytes(done.slot), 0, done.token as usize * UNIT_BYTES);
                    reads.release(done.slot);
                }
                reads
            };
            if round % 2 == 0 { use_it() } else { scope.spawn(use_it).join().unwrap() }
        });
    }
    assert_eq!(reads.in_flight(), 3);
}
