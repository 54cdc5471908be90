//! Our own measure of what the device gives: random direct reads with nothing around them.
//!
//! It shares no code with the engine on purpose, so that a mistake there cannot lower the ceiling here.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aiodb::io::AlignedBuffer;
use io_uring::{IoUring, opcode, types};

use super::round::{self, Tally};
use super::terminal::progress;
use crate::CliError;

/// The unit that the warm-up reads at once.
const WARM_UP_READ_BYTES: usize = 1 << 20;

/// The device is measured on at most this many files: each is open once per thread, and a disk does not notice.
const MAX_FILES: usize = 128;

/// A segment file and how much of it holds data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DataFile {
    pub path: PathBuf,
    pub data_bytes: u64,
}

/// The part of a store's files that the device is measured on: only blocks with data, since a hole or a block that was
/// never written is answered without the device.
#[derive(Clone, Debug)]
pub(crate) struct ReadArea {
    files: Vec<DataFile>,
}

impl ReadArea {
    pub(crate) fn new(files: Vec<DataFile>) -> ReadArea {
        assert!(!files.is_empty(), "there is something to read");
        ReadArea { files }
    }

    pub(crate) fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// Bytes of data in all files.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.data_bytes).sum()
    }

    /// The directories that the files lie in.
    pub(crate) fn directories(&self) -> Vec<&Path> {
        let mut directories: Vec<&Path> =
            self.files.iter().map(|file| file.path.parent().expect("a segment file lies in a directory")).collect();
        directories.dedup();
        directories
    }

    /// Reads every segment file under the directories of a store once, front to back, with direct I/O, and keeps the full ones (or the
    /// fullest, if the store is smaller than one).
    ///
    /// The reading itself matters: below a virtual disk a block that the host has not cached takes five times as long,
    /// for the engine and for the device alike.
    pub(crate) fn warmed(store: &[PathBuf], segment_bytes: u64) -> Result<ReadArea, CliError> {
        let mut files = Vec::new();
        for directory in store {
            let found = files_of_length(directory, segment_bytes);
            for path in found.map_err(|error| cannot("list", directory, &error))? {
                let data_bytes = read_to_end(&path).map_err(|error| cannot("read", &path, &error))?;
                files.push(DataFile { path, data_bytes });
            }
        }
        progress(&format!("segment files read once: {}", files.len()));
        let Some(fullest) = files.iter().max_by_key(|file| file.data_bytes).filter(|file| file.data_bytes > 0).cloned()
        else {
            return Err(CliError::failed(format!("no segment file with data was found in {}", store[0].display())));
        };
        // A segment is closed when the next batch does not fit, so a full one still ends with some unused blocks.
        files.retain(|file| file.data_bytes >= segment_bytes / 16 * 15);
        Ok(ReadArea::new(if files.is_empty() { vec![fullest] } else { evenly_chosen(files, MAX_FILES) }))
    }
}

/// At most `count` of the files, at equal distances.
fn evenly_chosen(files: Vec<DataFile>, count: usize) -> Vec<DataFile> {
    let kept = files.len().min(count);
    (0..kept).map(|index| files[index * files.len() / kept].clone()).collect()
}

fn files_of_length(dir: &Path, length: u64) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            found.extend(files_of_length(&entry.path(), length)?);
        } else if metadata.is_file() && metadata.len() == length {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a file once and returns where its data ends; blocks of zeros after that were never used.
fn read_to_end(path: &Path) -> io::Result<u64> {
    let file = open_for_direct_reads(path)?;
    let mut buffer = AlignedBuffer::new(WARM_UP_READ_BYTES);
    let (mut offset, mut data_bytes) = (0, 0);
    loop {
        let length = file.read_at(&mut buffer, offset)?;
        if length == 0 {
            return Ok(data_bytes);
        }
        for (index, block) in buffer[..length].chunks(4096).enumerate() {
            if block.iter().any(|byte| *byte != 0) {
                data_bytes = offset + (index as u64 + 1) * 4096;
            }
        }
        offset += length as u64;
    }
}

/// Opens a file past the page cache where the file system allows it.
pub(crate) fn open_for_direct_reads(path: &Path) -> io::Result<File> {
    let direct = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
    direct.or_else(|_| File::open(path))
}

fn cannot(action: &str, path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("cannot {action} {}: {error}", path.display()))
}

/// A rate of reads and what each cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ReadSample {
    pub reads_per_s: f64,
    pub cpu_us_per_read: f64,
}

/// Random reads of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawReads<'a> {
    pub area: &'a ReadArea,
    /// Bytes per read: a multiple of 512.
    pub read_bytes: u32,
    /// Each thread has a ring of its own and keeps `depth` reads in flight.
    pub threads: usize,
    pub depth: usize,
}

impl RawReads<'_> {
    /// Reads start on multiples of this many bytes: 4 KiB if the size is whole blocks, else 512-byte sectors.
    pub(crate) fn alignment_bytes(&self) -> u32 {
        if self.read_bytes.is_multiple_of(4096) { 4096 } else { 512 }
    }

    /// Reads for `duration` through io_uring as fast as one knows how.
    pub(crate) fn run(&self, duration: Duration) -> Result<ReadSample, CliError> {
        let failed = |error: io::Error| CliError::failed(format!("the raw read loop failed: {error}"));
        let round = round::run(
            self.threads,
            None,
            |_| RawReader::new(self).map_err(failed),
            |mut reader, _| reader.run(duration).map_err(failed),
        )?;
        Ok(ReadSample { reads_per_s: round.operations_per_s, cpu_us_per_read: round.cpu_us_per_operation })
    }
}

/// One thread's ring, with registered files and one registered buffer.
struct RawReader {
    // Dropped first: the kernel must let go of the buffer before it is freed.
    ring: IoUring,
    buffer: AlignedBuffer,
    free_slots: Vec<u32>,
    in_flight: usize,
    depth: usize,
    read_bytes: u32,
    alignment_bytes: u64,
    /// Positions that a read can start at, per registered file.
    starts: Vec<u64>,
    random: fastrand::Rng,
    _files: Vec<File>,
}

impl RawReader {
    fn new(reads: &RawReads) -> io::Result<RawReader> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .build(reads.depth.next_power_of_two() as u32)?;
        let files =
            reads.area.files.iter().map(|file| open_for_direct_reads(&file.path)).collect::<io::Result<Vec<_>>>()?;
        let descriptors: Vec<_> = files.iter().map(|file| file.as_raw_fd()).collect();
        ring.submitter().register_files(&descriptors)?;
        let mut buffer = AlignedBuffer::new(reads.depth * slot_bytes(reads.read_bytes));
        let memory = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: the buffer lives in the same struct as the ring and is dropped after it.
        unsafe { ring.submitter().register_buffers(&[memory])? };
        let alignment_bytes = u64::from(reads.alignment_bytes());
        let starts = reads.area.files.iter().map(|file| {
            assert!(file.data_bytes >= u64::from(reads.read_bytes), "a file with data holds at least one read");
            (file.data_bytes - u64::from(reads.read_bytes)) / alignment_bytes + 1
        });
        Ok(RawReader {
            starts: starts.collect(),
            ring,
            buffer,
            free_slots: (0..reads.depth as u32).collect(),
            in_flight: 0,
            depth: reads.depth,
            read_bytes: reads.read_bytes,
            alignment_bytes,
            random: fastrand::Rng::new(),
            _files: files,
        })
    }

    /// Reads until the time is up. The clock starts when as many reads have ended as are kept in flight.
    fn run(&mut self, duration: Duration) -> io::Result<Tally> {
        // A few entries per system call keep the device busy while others finish; refilling everything at once and
        // then waiting makes reads go in lockstep.
        let batch = if self.depth <= 16 { 2 } else { 4 };
        let (mut finished, mut next_look) = (0, self.depth as u64);
        let mut start: Option<(u64, Instant)> = None;
        loop {
            for _ in 0..batch.min(self.free_slots.len()) {
                self.push();
            }
            let wait_for = if self.free_slots.is_empty() { 1 } else { 0 };
            self.enter(wait_for)?;
            finished += self.reap()?;
            if finished < next_look {
                continue;
            }
            next_look = finished + 8;
            let now = Instant::now();
            let (before, start) = *start.get_or_insert((finished, now));
            if now - start >= duration {
                let in_time = finished - before;
                while self.in_flight > 0 {
                    self.enter(1)?;
                    finished += self.reap()?;
                }
                return Ok(Tally::untimed(in_time, finished, now - start));
            }
        }
    }

    fn push(&mut self) {
        let slot = self.free_slots.pop().expect("the caller counted the free slots");
        let file = self.random.usize(..self.starts.len());
        let offset = self.random.u64(..self.starts[file]) * self.alignment_bytes;
        // SAFETY: slots are below `depth`, so the address is inside the buffer.
        let address = unsafe { self.buffer.as_mut_ptr().add(slot as usize * slot_bytes(self.read_bytes)) };
        let read = opcode::ReadFixed::new(types::Fixed(file as u32), address, self.read_bytes, 0)
            .offset(offset)
            .build()
            .user_data(u64::from(slot));
        // SAFETY: the slot's memory is used by this read alone until it is reaped, and outlives the ring.
        unsafe { self.ring.submission().push(&read).expect("the ring holds `depth` entries") };
        self.in_flight += 1;
    }

    /// Hands over what was pushed and runs the kernel's completion work, even if nothing is waited for.
    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        const IORING_ENTER_GETEVENTS: u32 = 1;
        loop {
            let pushed = self.ring.submission().len() as u32;
            // SAFETY: no argument is passed, so none can be invalid; the entries were checked when they were pushed.
            let entered = unsafe { self.ring.submitter().enter::<()>(pushed, wait_for, IORING_ENTER_GETEVENTS, None) };
            match entered {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes all results that are there; a short read or an error ends the measurement.
    fn reap(&mut self) -> io::Result<u64> {
        let mut reaped = 0;
        for completion in self.ring.completion() {
            if completion.result() != self.read_bytes as i32 {
                return Err(match completion.result() {
                    error if error < 0 => io::Error::from_raw_os_error(-error),
                    length => io::Error::other(format!("a read of {} bytes returned {length}", self.read_bytes)),
                });
            }
            self.free_slots.push(completion.user_data() as u32);
            reaped += 1;
        }
        self.in_flight -= reaped;
        Ok(reaped as u64)
    }
}

/// The memory of one slot: whole pages, since direct I/O wants aligned addresses.
fn slot_bytes(read_bytes: u32) -> usize {
    (read_bytes as usize).next_multiple_of(4096)
}

#[cfg(test)]
mod tests;
