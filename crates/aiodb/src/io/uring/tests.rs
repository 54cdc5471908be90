use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;

use super::*;
use crate::config::Backend;
use crate::io::reads::Reads;
use crate::io::{Access, AlignedBuffer, Device, Disk, File, UNIT_BYTES, WriteSync};

const UNITS: usize = 16;

/// A file whose unit `n` is full of bytes `n`.
fn numbered_file() -> DiskFile {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), Backend::Threads, true).unwrap();
    let file = disk.open(&dir.path().join("file"), Access::NEW_SEGMENT).unwrap();
    let mut bytes = AlignedBuffer::new(UNITS * UNIT_BYTES);
    bytes.iter_mut().enumerate().for_each(|(offset, byte)| *byte = (offset / UNIT_BYTES) as u8);
    file.write_at(&bytes, 0, WriteSync::Now).unwrap();
    file
}

fn queue(depth: usize, mode: Mode) -> Option<UringQueue> {
    let queue = UringQueue::with_mode(depth, mode);
    if let Err(error) = &queue {
        println!("skipped: this kernel refuses a ring in mode {mode:?}: {error}");
    }
    queue.ok()
}

#[test]
fn every_mode_reads() {
    let file = numbered_file();
    for queue in [Mode::Bound, Mode::Shared, Mode::Plain].into_iter().filter_map(|mode| queue(8, mode)) {
        let mut reads = Reads::new(queue, 8, UNIT_BYTES, UNIT_BYTES);
        for token in 0..200 {
            if !reads.has_room() {
                let done = reads.poll(true).unwrap().unwrap();
                done.outcome.unwrap();
                assert!(reads.bytes(done.slot).iter().all(|byte| u64::from(*byte) == done.token % UNITS as u64));
                reads.release(done.slot);
            }
            reads.push(&file, (token % UNITS as u64) * UNIT_BYTES as u64, UNIT_BYTES, token);
        }
    }
}

#[test]
fn a_bound_ring_is_replaced_on_another_thread() {
    let file = numbered_file();
    let Some(mut queue) = queue(4, Mode::Bound) else { return };
    let mut buffer = AlignedBuffer::new(4 * UNIT_BYTES);
    let push = |queue: &mut UringQueue, buffer: &mut AlignedBuffer, slot: usize| {
        // SAFETY: each slot has a unit of the buffer, which outlives the queue and is looked at after the reads ended.
        unsafe {
            let start = buffer.as_mut_ptr().add(slot * UNIT_BYTES);
            queue.push(slot as u32, &file, (slot * UNIT_BYTES) as u64, start, UNIT_BYTES as u32);
        }
    };
    (0..3).for_each(|slot| push(&mut queue, &mut buffer, slot));
    queue.enter(0).unwrap();
    // Pushed, but never handed over.
    push(&mut queue, &mut buffer, 3);
    let mut queue = std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            queue.enter(1).unwrap();
            queue
        });
        other.join().unwrap()
    });
    let mut slots: Vec<u32> = std::iter::from_fn(|| queue.reap())
        .inspect(|reaped| assert_eq!(reaped.outcome.as_ref().unwrap_err().kind(), ErrorKind::Interrupted))
        .map(|reaped| reaped.slot)
        .collect();
    slots.sort_unstable();
    assert_eq!(slots, [0, 1, 2, 3]);
    assert!(queue.ring.end.is_none(), "the new ring is bound to no thread");
    (0..4).for_each(|slot| push(&mut queue, &mut buffer, slot));
    let mut finished = 0;
    while finished < 4 {
        queue.enter(1).unwrap();
        while let Some(reaped) = queue.reap() {
            assert_eq!(reaped.outcome.unwrap(), UNIT_BYTES as u32);
            finished += 1;
        }
    }
    drop(queue);
    assert!(buffer.iter().enumerate().all(|(offset, byte)| usize::from(*byte) == offset / UNIT_BYTES));
}

/// The writing end of a pipe shows when the ring has let go of a file: the reading end comes to an end.
#[test]
fn files_that_nobody_has_open_are_let_go() {
    let Some(mut queue) = queue(2, Mode::Shared) else { return };
    let (mut reader, writer) = io::pipe().unwrap();
    let file = DiskFile::new(OwnedFd::from(writer).into(), 1);
    let other_user = file.clone();
    if queue.ring.registered_file(&file.claim().unwrap()).is_none() {
        return println!("skipped: this kernel has no table of registered files");
    }
    drop(file);
    queue.ring.sweep();
    assert!(queue.ring.files.iter().any(|file| file.strong_count() == 1), "a file that is open stays registered");
    drop(other_user);
    queue.ring.sweep();
    assert!(queue.ring.files.iter().all(|file| file.ptr_eq(&Weak::new())));
    assert_eq!(reader.read(&mut [0]).unwrap(), 0);
}

/// A segment's descriptor can be closed while the file is in use: then the ring need not have it either.
#[test]
fn files_whose_descriptor_was_closed_are_let_go() {
    let Some(mut queue) = queue(2, Mode::Shared) else { return };
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::open(dir.path(), Backend::Threads, true).unwrap().with_max_open_files(8);
    let open = |number: usize| disk.open(&dir.path().join(format!("{number}")), Access::NEW_SEGMENT).unwrap();
    let file = open(0);
    if queue.ring.registered_file(&file.claim().unwrap()).is_none() {
        return println!("skipped: this kernel has no table of registered files");
    }
    queue.ring.sweep();
    let is_registered = |queue: &UringQueue| queue.ring.files.iter().any(|file| file.strong_count() > 0);
    assert!(is_registered(&queue), "it is still open");
    let others: Vec<_> = (1..=16).map(open).collect();
    queue.ring.sweep();
    assert!(!is_registered(&queue), "its descriptor was closed for one of {} others", others.len());
    assert_eq!(file.length().unwrap(), 0, "it is opened again");
}
