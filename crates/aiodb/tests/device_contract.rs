//! What every [`Device`] promises, checked on each implementation through the public interface.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

use aiodb::Backend;
use aiodb::io::reads::Reads;
use aiodb::io::sim::SimDevice;
use aiodb::io::{Access, AlignedBuffer, Device, Disk, File, SECTOR_BYTES, UNIT_BYTES, WriteSync};

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

fn reads_of<D: Device>(device: &D, depth: usize, buffer_bytes: usize) -> Reads<D::Queue> {
    Reads::new(device.queue(depth).unwrap(), depth, buffer_bytes, device.report().block_bytes)
}

#[track_caller]
fn assert_patterned(bytes: &[u8], seed: u64, offset: usize) {
    let wrong = bytes.iter().enumerate().position(|(at, byte)| *byte != pattern(seed, offset + at));
    assert_eq!(wrong, None, "first wrong byte of a read of {} at {offset}", bytes.len());
}

fn round_trip<D: Device>(device: &D, dir: &Path) {
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

fn the_end_of_a_file<D: Device>(device: &D, dir: &Path) {
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

fn names<D: Device>(device: &D, dir: &Path) {
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

fn reservation<D: Device>(device: &D, dir: &Path) {
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

fn mapping<D: Device>(device: &D, dir: &Path) {
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

fn lock<D: Device>(device: &D, dir: &Path) {
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

fn clock_and_randomness<D: Device>(device: &D) {
    let before = device.clock_ms();
    assert!(device.clock_ms() >= before);
    let numbers: HashSet<u64> = (0..64).map(|_| device.random()).collect();
    assert_eq!(numbers.len(), 64, "64 random numbers of 64 bits are different");
}

/// Keeps the queue full with reads of one unit each, several times as many as fit into it.
fn many_reads<D: Device>(device: &D, file: &D::File, depth: usize) {
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

fn unaligned_ranges<D: Device>(device: &D, file: &D::File) {
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
fn large_reads<D: Device>(device: &D, file: &D::File) {
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

fn errors_concern_one_read<D: Device>(device: &D, file: &D::File) {
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
fn drop_with_reads_in_flight<D: Device>(device: &D, file: &D::File) {
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
fn queues_move_between_threads<D: Device>(device: &D, file: &D::File) {
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

/// A closed file's descriptor soon means another file, which must not be taken for the first.
fn files_take_each_others_place<D: Device>(device: &D, dir: &Path) {
    let mut reads = reads_of(device, 2, UNIT_BYTES);
    for seed in 0..20 {
        let path = dir.join("place");
        let file = device.open(&path, Access::NEW_SEGMENT).unwrap();
        file.write_at(&patterned_bytes(seed, UNIT_BYTES), 0, WriteSync::Later).unwrap();
        reads.push(&file, 0, UNIT_BYTES, 0);
        // The read holds the file open by itself.
        drop(file);
        device.remove(&path).unwrap();
        let done = reads.poll(true).unwrap().unwrap();
        done.outcome.unwrap();
        assert_patterned(reads.bytes(done.slot), seed, 0);
        reads.release(done.slot);
    }
}

/// Segments that were made under another name; each is patterned with its number as the seed.
fn segments<D: Device>(device: &D, dir: &Path, count: usize) -> Vec<D::File> {
    device.create_dir(dir).unwrap();
    let make = |number: usize| {
        let (unfinished, path) = (dir.join(format!("{number}.new")), dir.join(format!("{number}.seg")));
        let file = device.open(&unfinished, Access::NEW_SEGMENT).unwrap();
        file.write_at(&patterned_bytes(number as u64, 2 * UNIT_BYTES), 0, WriteSync::Later).unwrap();
        file.sync().unwrap();
        device.rename(&unfinished, &path).unwrap();
        assert_bounded(device);
        file
    };
    (0..count).map(make).collect()
}

#[track_caller]
fn assert_bounded<D: Device>(device: &D) {
    let files = device.open_files();
    assert!(files.open <= files.most, "{files:?}");
}

/// More files than a device may have descriptors for are read, written and flushed like few.
fn many_files<D: Device>(device: &D, dir: &Path) {
    const FILES: usize = 40;
    let files = segments(device, &dir.join("many"), FILES);
    let mut buffer = AlignedBuffer::new(UNIT_BYTES);
    for (seed, file) in files.iter().enumerate() {
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), UNIT_BYTES);
        assert_patterned(&buffer, seed as u64, 0);
        assert_bounded(device);
    }
    // All in flight at once, and pushed before any is handed over.
    for depth in [8, 200] {
        let mut reads = reads_of(device, depth, UNIT_BYTES);
        let (mut pushed, mut seen) = (0, 0);
        while seen < 5 * FILES {
            while pushed < 5 * FILES && reads.has_room() {
                reads.push(&files[pushed * 7 % FILES], UNIT_BYTES as u64, UNIT_BYTES, pushed as u64);
                pushed += 1;
            }
            let done = reads.poll(true).unwrap().unwrap();
            done.outcome.unwrap();
            assert_patterned(reads.bytes(done.slot), done.token * 7 % FILES as u64, UNIT_BYTES);
            reads.release(done.slot);
            assert_bounded(device);
            seen += 1;
        }
    }
    // What is kept open, and what is not flushed, leaves room for the others.
    files[..2].iter().for_each(|file| file.keep_open().unwrap());
    for file in &files[..4] {
        file.write_at(&patterned_bytes(99, UNIT_BYTES), 0, WriteSync::Later).unwrap();
    }
    for file in &files[4..] {
        file.write_at(&patterned_bytes(98, UNIT_BYTES), 0, WriteSync::Now).unwrap();
        assert_bounded(device);
    }
    files[..4].iter().for_each(|file| file.sync().unwrap());
    files[..2].iter().for_each(File::let_go);
    for (number, file) in files.iter().enumerate() {
        assert_eq!(file.length().unwrap(), 2 * UNIT_BYTES as u64);
        file.read_at(&mut buffer, 0).unwrap();
        assert_patterned(&buffer, if number < 4 { 99 } else { 98 }, 0);
    }
}

/// Blocking reads and queues compete for the descriptors; each read gets the bytes of its own file.
fn many_threads_on_many_files<D: Device>(device: &D, dir: &Path) {
    const FILES: usize = 24;
    let files = segments(device, &dir.join("shared"), FILES);
    let seed = fastrand::u64(..);
    println!("threads on files with seed {seed}");
    std::thread::scope(|scope| {
        for thread in 0..12 {
            let (files, device) = (&files, device.clone());
            let mut random = fastrand::Rng::with_seed(seed + thread);
            scope.spawn(move || {
                let mut reads = reads_of(&device, 16, UNIT_BYTES);
                for _ in 0..300 {
                    let number = random.usize(..FILES);
                    if thread % 2 == 0 {
                        let mut buffer = AlignedBuffer::new(UNIT_BYTES);
                        files[number].read_at(&mut buffer, 0).unwrap();
                        assert_patterned(&buffer, number as u64, 0);
                        continue;
                    }
                    if !reads.has_room() {
                        let done = reads.poll(true).unwrap().unwrap();
                        done.outcome.unwrap();
                        assert_patterned(reads.bytes(done.slot), done.token, 0);
                        reads.release(done.slot);
                    }
                    reads.push(&files[number], 0, UNIT_BYTES, number as u64);
                }
            });
        }
    });
    assert_bounded(device);
}

/// A descriptor that is opened again is of the same file, or the use of it fails.
#[test]
fn a_file_that_was_replaced_or_removed_is_an_error() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let disk = Disk::open(dir.path(), Backend::Auto, true).unwrap().with_max_open_files(8);
    let files = segments(&disk, dir.path(), 20);
    let read = |number: usize| files[number].read_at(&mut AlignedBuffer::new(UNIT_BYTES), 0);
    let close = |but: usize| {
        (0..20).filter(|number| *number != but).for_each(|number| assert_eq!(read(number).unwrap(), UNIT_BYTES))
    };
    let path = dir.path().join("3.seg");
    let kept = dir.path().join("elsewhere");
    close(3);
    std::fs::rename(&path, &kept).unwrap();
    let error = read(3).unwrap_err();
    assert!(error.kind() != ErrorKind::NotFound && error.to_string().contains("removed or moved"), "{error}");
    std::fs::copy(&kept, &path).unwrap();
    let error = read(3).unwrap_err();
    assert!(error.to_string().contains("another file has taken its place"), "{error}");
    let mut reads = reads_of(&disk, 2, UNIT_BYTES);
    reads.push(&files[3], 0, UNIT_BYTES, 0);
    reads.push(&files[4], 0, UNIT_BYTES, 1);
    let mut failed = Vec::new();
    while let Some(done) = reads.poll(true).unwrap() {
        failed.extend(done.outcome.is_err().then_some(done.token));
        reads.release(done.slot);
    }
    assert_eq!(failed, [0], "the error concerns one read");
    std::fs::rename(&kept, &path).unwrap();
    assert_eq!(read(3).unwrap(), UNIT_BYTES, "it is there again");
}
