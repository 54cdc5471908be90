//! What every [`Device`] promises, checked on each implementation through the public interface.

mod descriptors;
mod files;
mod queues;

use std::path::Path;

use aiodb::Backend;
use aiodb::io::sim::SimDevice;
use aiodb::io::{Access, AlignedBuffer, Device, Disk, File, SECTOR_BYTES, UNIT_BYTES, WriteSync};
use descriptors::{files_take_each_others_place, many_files, many_threads_on_many_files};
use files::{clock_and_randomness, lock, mapping, names, reservation, round_trip, the_end_of_a_file};
use queues::{
    drop_with_reads_in_flight, errors_concern_one_read, large_reads, many_reads, queues_move_between_threads,
    unaligned_ranges,
};

/// Units in the file that most reads go to.
const FILE_UNITS: usize = 256;
const FILE_BYTES: usize = FILE_UNITS * UNIT_BYTES;

#[test]
fn uring() {
    on_disk(Backend::Uring, true);
    on_disk(Backend::Uring, false);
}

#[test]
fn libaio() {
    on_disk(Backend::Libaio, true);
    on_disk(Backend::Libaio, false);
}

#[test]
fn threads() {
    on_disk(Backend::Threads, true);
    on_disk(Backend::Threads, false);
}

/// A file system in memory, which refuses `O_DIRECT` on many kernels.
#[test]
fn memory_file_system() {
    if !Path::new("/dev/shm").is_dir() {
        return println!("skipped: there is no /dev/shm here");
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    contract(Disk::open(dir.path(), Backend::Auto, true).unwrap(), dir.path());
}

/// The simulated machine keeps the same promises, with results in a seeded order and short reads among them.
#[test]
fn simulator() {
    for block_bytes in [SECTOR_BYTES, UNIT_BYTES] {
        contract(SimDevice::with_block_bytes(7, block_bytes), Path::new("/contract"));
    }
}

fn on_disk(backend: Backend, direct: bool) {
    // Not the system's temporary directory, which may be in memory.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = Disk::open(dir.path(), backend, direct).unwrap();
    assert_eq!(disk.list(dir.path()).unwrap(), Vec::<String>::new(), "probing leaves nothing behind");
    println!("{:?}", disk.report());
    contract(disk.clone(), dir.path());
    // The same with fewer descriptors than there are files.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    contract(disk.with_max_open_files(8), dir.path());
}

/// Everything below, on one device. `dir` is a directory of the device with nothing in it; what is made there stays.
fn contract<D: Device>(device: D, dir: &Path) {
    device.create_dir(dir).unwrap();
    round_trip(&device, dir);
    the_end_of_a_file(&device, dir);
    names(&device, dir);
    reservation(&device, dir);
    mapping(&device, dir);
    lock(&device, dir);
    clock_and_randomness(&device);
    let file = patterned_file(&device, &dir.join("patterned"));
    for depth in [1, 7, 64, 1024] {
        many_reads(&device, &file, depth);
    }
    unaligned_ranges(&device, &file);
    large_reads(&device, &file);
    errors_concern_one_read(&device, &file);
    drop_with_reads_in_flight(&device, &file);
    queues_move_between_threads(&device, &file);
    files_take_each_others_place(&device, dir);
    many_files(&device, dir);
    many_threads_on_many_files(&device, dir);
}

/// The byte at an offset of a patterned file: sectors differ, and the seed tells files apart.
fn pattern(seed: u64, offset: usize) -> u8 {
    let sector = (seed << 32) + (offset / SECTOR_BYTES) as u64;
    (sector.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u8 ^ (offset % 251) as u8
}

fn patterned_bytes(seed: u64, length: usize) -> AlignedBuffer {
    let mut bytes = AlignedBuffer::new(length);
    bytes.iter_mut().enumerate().for_each(|(offset, byte)| *byte = pattern(seed, offset));
    bytes
}

fn patterned_file<D: Device>(device: &D, path: &Path) -> D::File {
    let file = device.open(path, Access::NEW_SEGMENT).unwrap();
    file.write_at(&patterned_bytes(0, FILE_BYTES), 0, WriteSync::Now).unwrap();
    file
}

#[track_caller]
fn assert_patterned(bytes: &[u8], seed: u64, offset: usize) {
    let wrong = bytes.iter().enumerate().position(|(at, byte)| *byte != pattern(seed, offset + at));
    assert_eq!(wrong, None, "first wrong byte of a read of {} at {offset}", bytes.len());
}
