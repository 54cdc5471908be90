//! Files, names, space, mappings and locks.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

use super::queues::reads_of;
use super::{assert_patterned, patterned_bytes};
use aiodb::io::{Access, AlignedBuffer, Device, File, UNIT_BYTES, WriteSync};

pub(crate) fn round_trip<D: Device>(device: &D, dir: &Path) {
    for (name, direct) in [("direct", true), ("cached", false)] {
        let path = dir.join(name);
        let missing = device.open(&path, Access { create: false, write: false, direct }).map(drop);
        assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
        let file = device.open(&path, Access { create: true, write: true, direct }).unwrap();
        assert_eq!(file.length().unwrap(), 0);
        file.write_at(&patterned_bytes(1, 4 * UNIT_BYTES), 0, WriteSync::Later).unwrap();
        file.write_at(&patterned_bytes(2, UNIT_BYTES), UNIT_BYTES as u64, WriteSync::Now).unwrap();
        file.sync().unwrap();
        assert_eq!(file.length().unwrap(), 4 * UNIT_BYTES as u64);
        drop(file);
        let file = device.open(&path, Access { create: false, write: false, direct }).unwrap();
        let mut buffer = AlignedBuffer::new(4 * UNIT_BYTES);
        assert_eq!(file.clone().read_at(&mut buffer, 0).unwrap(), 4 * UNIT_BYTES);
        assert_patterned(&buffer[..UNIT_BYTES], 1, 0);
        assert_patterned(&buffer[UNIT_BYTES..2 * UNIT_BYTES], 2, 0);
        assert_patterned(&buffer[2 * UNIT_BYTES..], 1, 2 * UNIT_BYTES);
        assert!(file.write_at(&buffer, 0, WriteSync::Later).is_err(), "the file was opened for reading");
    }
}

pub(crate) fn the_end_of_a_file<D: Device>(device: &D, dir: &Path) {
    let path = dir.join("short");
    let length = 2 * UNIT_BYTES + 100;
    let file = device.open(&path, Access::CREATE).unwrap();
    file.write_at(&patterned_bytes(0, 3 * UNIT_BYTES)[..length], 0, WriteSync::Now).unwrap();
    for direct in [false, true] {
        let file = device.open(&path, Access { create: false, write: false, direct }).unwrap();
        let mut buffer = AlignedBuffer::new(4 * UNIT_BYTES);
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), length);
        assert_patterned(&buffer[..length], 0, 0);
        assert_eq!(file.read_at(&mut buffer, 4 * UNIT_BYTES as u64).unwrap(), 0);
        let mut reads = reads_of(device, 4, UNIT_BYTES);
        // What ends with the file can be read, although the file's last block is not whole; one byte more cannot.
        let offset = 2 * UNIT_BYTES + 40;
        reads.push(&file, offset as u64, 60, 0);
        reads.push(&file, offset as u64, 61, 1);
        reads.push(&file, UNIT_BYTES as u64, 2 * UNIT_BYTES, 2);
        reads.push(&file, 1 << 40, 1, 3);
        let mut outcomes = [None; 4];
        while let Some(done) = reads.poll(true).unwrap() {
            if done.outcome.is_ok() {
                assert_patterned(reads.bytes(done.slot), 0, offset);
            }
            outcomes[done.token as usize] = Some(done.outcome.map_err(|error| error.kind()));
            reads.release(done.slot);
        }
        let too_short = Some(Err(ErrorKind::UnexpectedEof));
        assert_eq!(outcomes, [Some(Ok(())), too_short, too_short, too_short]);
    }
}

pub(crate) fn names<D: Device>(device: &D, dir: &Path) {
    let dir = dir.join("a/b");
    device.create_dir(&dir).unwrap();
    device.create_dir(&dir).unwrap();
    for name in ["2", "1", "3"] {
        let file = device.open(&dir.join(name), Access::CREATE).unwrap();
        file.write_at(name.as_bytes(), 0, WriteSync::Later).unwrap();
    }
    device.sync_dir(&dir).unwrap();
    assert_eq!(device.list(&dir).unwrap(), ["1", "2", "3"]);
    device.rename(&dir.join("2"), &dir.join("3")).unwrap();
    assert_eq!(device.list(&dir).unwrap(), ["1", "3"]);
    let mut byte = [0];
    let renamed = device.open(&dir.join("3"), Access::READ).unwrap();
    assert_eq!(renamed.read_at(&mut byte, 0).unwrap(), 1);
    assert_eq!(&byte, b"2", "the renamed file has replaced the other");
    device.remove(&dir.join("3")).unwrap();
    assert_eq!(renamed.read_at(&mut byte, 0).unwrap(), 1, "an open file outlives its name");
    assert_eq!(device.list(&dir).unwrap(), ["1"]);
    assert_eq!(device.remove(&dir.join("3")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(device.rename(&dir.join("3"), &dir.join("4")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(device.list(&dir.join("missing")).unwrap_err().kind(), ErrorKind::NotFound);
}

pub(crate) fn reservation<D: Device>(device: &D, dir: &Path) {
    let file = device.open(&dir.join("reserved"), Access::NEW_SEGMENT).unwrap();
    file.reserve(8 * UNIT_BYTES as u64).unwrap();
    assert_eq!(file.length().unwrap(), 8 * UNIT_BYTES as u64);
    file.write_at(&patterned_bytes(0, UNIT_BYTES), 7 * UNIT_BYTES as u64, WriteSync::Later).unwrap();
    file.reserve(UNIT_BYTES as u64).unwrap();
    assert_eq!(file.length().unwrap(), 8 * UNIT_BYTES as u64, "a reservation never makes a file shorter");
    let mut buffer = AlignedBuffer::new(8 * UNIT_BYTES);
    assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 8 * UNIT_BYTES);
    assert!(buffer[..7 * UNIT_BYTES].iter().all(|byte| *byte == 0), "reserved space reads as zeros");
    assert_patterned(&buffer[7 * UNIT_BYTES..], 0, 0);
}

pub(crate) fn mapping<D: Device>(device: &D, dir: &Path) {
    let path = dir.join("mapped");
    let mut mapping = device.map(&path, 3 * UNIT_BYTES).unwrap();
    assert_eq!(mapping.len(), 3 * UNIT_BYTES);
    assert!(mapping.iter().all(|byte| *byte == 0));
    let seam = UNIT_BYTES - 2..UNIT_BYTES + 2;
    mapping[seam.clone()].copy_from_slice(b"seam");
    let file = device.open(&path, Access::READ).unwrap();
    assert_eq!(file.length().unwrap(), 3 * UNIT_BYTES as u64);
    let mut buffer = [0; 4];
    assert_eq!(file.read_at(&mut buffer, seam.start as u64).unwrap(), 4);
    assert_eq!(&buffer, b"seam", "what is stored in a mapping is in the file");
    drop(mapping);
    for units in [3, 5, 2] {
        let mapping = device.map(&path, units * UNIT_BYTES).unwrap();
        assert_eq!(mapping.len(), units * UNIT_BYTES);
        assert_eq!(file.length().unwrap(), (units * UNIT_BYTES) as u64);
        assert_eq!(&mapping[seam.clone()], b"seam", "remapped with {units} units");
    }
}

pub(crate) fn lock<D: Device>(device: &D, dir: &Path) {
    let path = dir.join("lock");
    let held = device.lock(&path).unwrap().unwrap_or_else(|holder| panic!("held by {holder}"));
    let holder = device.lock(&path).unwrap().err().expect("the lock is exclusive");
    assert!(!holder.is_empty(), "the holder is named");
    assert!(device.lock_shared(&path).unwrap().is_err(), "the lock excludes those who share one");
    drop(held);
    let shared = device.lock_shared(&path).unwrap().unwrap_or_else(|holder| panic!("held by {holder}"));
    assert!(device.lock(&path).unwrap().is_err(), "a shared lock excludes the other kind");
    drop(shared);
    assert!(device.lock(&path).unwrap().is_ok(), "a dropped lock is free");
}

pub(crate) fn clock_and_randomness<D: Device>(device: &D) {
    let before = device.clock_ms();
    assert!(device.clock_ms() >= before);
    let numbers: HashSet<u64> = (0..64).map(|_| device.random()).collect();
    assert_eq!(numbers.len(), 64, "64 random numbers of 64 bits are different");
}
