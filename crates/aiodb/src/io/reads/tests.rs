use std::collections::VecDeque;
use std::io::ErrorKind;

use super::*;
use crate::config::Backend;
use crate::io::disk::DiskFile;
use crate::io::{Access, Device, Disk, File, Reaped, WriteSync};

const UNITS: usize = 8;
const FILE_BYTES: usize = UNITS * UNIT_BYTES;

/// Reads a real file, but ends some transfers early or without success, as a kernel may.
struct FaultyQueue {
    random: fastrand::Rng,
    /// Of ten transfers, so many are made short and so many fail with an error that passes.
    short: u32,
    passing: u32,
    queued: Vec<(u32, DiskFile, u64, *mut u8, usize)>,
    results: VecDeque<Reaped>,
    /// The most reads that were handed over at once.
    most_at_once: usize,
}

// SAFETY: the buffers are used by the owner of the queue, and memory is not tied to a thread.
unsafe impl Send for FaultyQueue {}

impl FaultyQueue {
    fn new(seed: u64, short: u32, passing: u32) -> FaultyQueue {
        let random = fastrand::Rng::with_seed(seed);
        FaultyQueue { random, short, passing, queued: Vec::new(), results: VecDeque::new(), most_at_once: 0 }
    }
}

impl Queue for FaultyQueue {
    type File = DiskFile;

    unsafe fn push(&mut self, slot: u32, file: &DiskFile, offset: u64, buffer: *mut u8, length: u32) {
        assert!(offset.is_multiple_of(512) && length.is_multiple_of(512) && buffer.addr().is_multiple_of(512));
        self.queued.push((slot, file.clone(), offset, buffer, length as usize));
    }

    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        self.most_at_once = self.most_at_once.max(self.queued.len());
        for (slot, file, offset, buffer, length) in self.queued.drain(..) {
            let outcome = match self.random.u32(..10) {
                chance if chance < self.short => {
                    let length = self.random.usize(1..=length);
                    // SAFETY: the buffer has at least this length.
                    unsafe { file.read_once(buffer, length, offset) }
                }
                chance if chance < self.short + self.passing => {
                    Err([ErrorKind::Interrupted, ErrorKind::WouldBlock][self.random.usize(..2)].into())
                }
                // SAFETY: the buffer has this length.
                _ => unsafe { file.read_once(buffer, length, offset) },
            };
            self.results.push_back(Reaped { slot, outcome: outcome.map(|transferred| transferred as u32) });
        }
        assert!(wait_for == 0 || !self.results.is_empty(), "waiting for nothing would never end");
        Ok(())
    }

    fn reap(&mut self) -> Option<Reaped> {
        self.results.pop_front()
    }
}

fn random_file() -> (DiskFile, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), Backend::Threads, false).unwrap();
    let file = disk.open(&dir.path().join("file"), Access::CREATE).unwrap();
    let bytes: Vec<u8> = std::iter::repeat_with(|| fastrand::u8(..)).take(FILE_BYTES).collect();
    file.write_at(&bytes, 0, WriteSync::Later).unwrap();
    (file, bytes)
}

#[test]
fn short_transfers_and_passing_errors_do_not_show() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (file, bytes) = random_file();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut reads = Reads::new(FaultyQueue::new(seed, 2, 1), 8, 2 * UNIT_BYTES, 512);
    let mut ranges = Vec::new();
    for token in 0..2000 {
        let length = random.usize(1..=3 * UNIT_BYTES);
        ranges.push((random.usize(..FILE_BYTES - length), length));
        let (offset, length) = ranges[token];
        reads.push(&file, offset as u64, length, token as u64);
        if !reads.has_room() {
            let done = reads.poll(true).unwrap().unwrap();
            done.outcome.unwrap();
            let (offset, length) = ranges[done.token as usize];
            assert_eq!(reads.bytes(done.slot), &bytes[offset..offset + length]);
            reads.release(done.slot);
        }
    }
}

#[test]
fn whoever_does_not_wait_leaves_no_read_behind() {
    let (file, _) = random_file();
    for seed in 0..50 {
        let mut reads = Reads::new(FaultyQueue::new(seed, 3, 3), 8, 2 * UNIT_BYTES, 512);
        (0..8).for_each(|token| reads.push(&file, 512 * token, UNIT_BYTES, token));
        while reads.in_flight() > 0 {
            match reads.poll(false).unwrap() {
                Some(done) => reads.release(done.slot),
                // Who is told of results would wait for ever for that of a read that the queue does not have.
                None => assert_eq!(reads.queue.queued.len(), 0, "seed {seed}: reads are not handed over"),
            }
        }
    }
}

#[test]
fn retries_are_bounded() {
    let (file, _) = random_file();
    let mut reads = Reads::new(FaultyQueue::new(0, 0, 10), 1, UNIT_BYTES, 512);
    reads.push(&file, 0, 1, 0);
    let error = reads.poll(true).unwrap().unwrap().outcome.unwrap_err();
    assert!(is_passing(&error), "{error}");
}

#[test]
fn a_read_past_the_end_says_where_the_file_ends() {
    let (file, _) = random_file();
    let mut reads = Reads::new(FaultyQueue::new(0, 0, 0), 1, UNIT_BYTES, 512);
    reads.push(&file, FILE_BYTES as u64 - 100, 101, 0);
    let error = reads.poll(true).unwrap().unwrap().outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
    assert_eq!(error.to_string(), "the file ends at byte 32768, before the end of the 101 bytes wanted at 32668");
}

#[test]
fn reads_are_submitted_in_batches() {
    let (file, _) = random_file();
    for (depth, batch) in [(1, 1), (4, 2), (16, 4), (17, 8), (64, 32), (256, 32)] {
        let mut reads = Reads::new(FaultyQueue::new(0, 0, 0), depth, UNIT_BYTES, 512);
        for token in 0..1000 {
            if !reads.has_room() {
                let slot = reads.poll(true).unwrap().unwrap().slot;
                reads.release(slot);
            }
            reads.push(&file, 0, 1, token);
        }
        assert_eq!(reads.queue.most_at_once, batch, "at depth {depth}");
    }
}

#[test]
#[should_panic(expected = "only a finished read has bytes")]
fn a_slot_in_flight_has_no_bytes() {
    let (file, _) = random_file();
    let mut reads = Reads::new(FaultyQueue::new(0, 0, 0), 1, UNIT_BYTES, 512);
    reads.push(&file, 0, 1, 0);
    reads.bytes(0);
}

#[test]
#[should_panic(expected = "is released")]
fn a_slot_in_flight_is_not_released() {
    let (file, _) = random_file();
    let mut reads = Reads::new(FaultyQueue::new(0, 0, 0), 1, UNIT_BYTES, 512);
    reads.push(&file, 0, 1, 0);
    reads.release(0);
}
