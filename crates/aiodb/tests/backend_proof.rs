//! Proof by the kernel's own counters that the backend asked for is the one that serves the reads, from the device.
//!
//! This is a test program of its own, with a single test, because the counters are those of the whole process.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;

use aiodb::Backend;
use aiodb::io::reads::Reads;
use aiodb::io::{Access, AlignedBuffer, Device, Disk, File, UNIT_BYTES, WriteSync};

const DEPTH: usize = 64;
const FILE_UNITS: usize = 256;
const READS: u64 = 1000;
/// More than the counters themselves cost to read, far fewer than the reads.
const STRAY_CALLS: u64 = 200;

/// What the kernel has counted for this process.
#[derive(Debug)]
struct Counters {
    /// Completions in the only io_uring; `None` when there is no ring.
    uring: Option<u32>,
    /// The only AIO context's position in its ring of events, and the ring's length; `None` without a context.
    libaio: Option<(u32, u32)>,
    /// Calls of `read` and `pread` by other threads than this one.
    reads_elsewhere: u64,
    /// The same by this thread.
    reads_here: u64,
    /// Bytes that this process caused to be fetched from a device.
    device_bytes: u64,
}

impl Counters {
    fn now() -> Counters {
        let (process, thread) = (fields("/proc/self/io"), fields("/proc/thread-self/io"));
        Counters {
            uring: uring_completions(),
            libaio: libaio_position(),
            reads_elsewhere: process["syscr"].saturating_sub(thread["syscr"]),
            reads_here: thread["syscr"],
            device_bytes: process["read_bytes"],
        }
    }

    /// The backends that served exactly [`READS`] reads since `before`.
    fn servers_since(&self, before: &Counters) -> Vec<&'static str> {
        let mut servers = Vec::new();
        if let (Some(before), Some(after)) = (before.uring, self.uring)
            && u64::from(after.wrapping_sub(before)) == READS
        {
            servers.push("uring");
        }
        if let (Some((before, length)), Some((after, _))) = (before.libaio, self.libaio)
            && u64::from(after + length - before) % u64::from(length) == READS % u64::from(length)
        {
            servers.push("libaio");
        }
        let elsewhere = self.reads_elsewhere - before.reads_elsewhere;
        if (READS..READS + STRAY_CALLS).contains(&elsewhere) {
            servers.push("threads");
        }
        servers
    }
}

/// A file of `name: number` lines.
fn fields(path: &str) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.filter_map(|(name, value)| Some((name.to_owned(), value.trim().parse().ok()?))).collect()
}

fn uring_completions() -> Option<u32> {
    let mut rings = Vec::new();
    for entry in fs::read_dir("/proc/self/fd").unwrap() {
        let entry = entry.unwrap();
        // The directory's own descriptor is in the list, and gone when it is looked at.
        if fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy() == "anon_inode:[io_uring]") {
            rings.push(fields(&format!("/proc/self/fdinfo/{}", entry.file_name().to_string_lossy()))["CqTail"] as u32);
        }
    }
    assert!(rings.len() <= 1, "one queue has one ring");
    rings.pop()
}

/// The kernel keeps each context's events in a mapping that begins with four 32-bit numbers: the context's number, the
/// ring's length, and its head and tail.
fn libaio_position() -> Option<(u32, u32)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let contexts: Vec<&str> = maps.lines().filter(|line| line.contains("/[aio]")).collect();
    assert!(contexts.len() <= 1, "one queue has one context");
    let address = u64::from_str_radix(contexts.first()?.split('-').next()?, 16).unwrap();
    let mut head = [0; 16];
    fs::File::open("/proc/self/mem").unwrap().read_exact_at(&mut head, address).unwrap();
    let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
    Some((number(12), number(4)))
}

#[test]
fn the_forced_backend_serves_the_reads() {
    for (name, backend) in [("uring", Backend::Uring), ("libaio", Backend::Libaio), ("threads", Backend::Threads)] {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let disk = Disk::open(dir.path(), backend, true).unwrap();
        assert_eq!(disk.report().backend, name);
        if !disk.report().direct {
            return println!("skipped: {} has no O_DIRECT", dir.path().display());
        }
        let file = disk.open(&dir.path().join("file"), Access::NEW_SEGMENT).unwrap();
        file.write_at(&AlignedBuffer::new(FILE_UNITS * UNIT_BYTES), 0, WriteSync::Now).unwrap();
        let queue = disk.queue(DEPTH).unwrap();
        let before = Counters::now();
        let reads = read_all(Reads::new(queue, DEPTH, UNIT_BYTES, disk.report().block_bytes), &file);
        let after = Counters::now();
        drop(reads);
        assert_eq!(after.servers_since(&before), [name], "{before:?} {after:?}");
        assert!(after.reads_here - before.reads_here < STRAY_CALLS, "this thread has read by itself");
        let device_bytes = after.device_bytes - before.device_bytes;
        assert!(device_bytes >= READS * UNIT_BYTES as u64, "only {device_bytes} bytes came from the device");
    }
}

/// Gives the queue back, so that its counters can still be looked at.
fn read_all(
    mut reads: Reads<<Disk as Device>::Queue>,
    file: &<Disk as Device>::File,
) -> Reads<<Disk as Device>::Queue> {
    let (mut pushed, mut finished) = (0, 0);
    while finished < READS {
        while pushed < READS && reads.has_room() {
            reads.push(file, (pushed as usize % FILE_UNITS * UNIT_BYTES) as u64, UNIT_BYTES, pushed);
            pushed += 1;
        }
        let done = reads.poll(true).unwrap().unwrap();
        done.outcome.unwrap();
        reads.release(done.slot);
        finished += 1;
    }
    reads
}
