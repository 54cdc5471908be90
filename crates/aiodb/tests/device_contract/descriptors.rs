//! More files than descriptors.

use std::io::ErrorKind;
use std::path::Path;

use super::queues::reads_of;
use super::{assert_patterned, patterned_bytes};
use aiodb::Backend;
use aiodb::io::{Access, AlignedBuffer, Device, Disk, File, UNIT_BYTES, WriteSync};

/// A closed file's descriptor soon means another file, which must not be taken for the first.
pub(crate) fn files_take_each_others_place<D: Device>(device: &D, dir: &Path) {
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
pub(crate) fn many_files<D: Device>(device: &D, dir: &Path) {
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
pub(crate) fn many_threads_on_many_files<D: Device>(device: &D, dir: &Path) {
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
