//! One pass over all the data, in one way.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aiodb::io::AlignedBuffer;
use aiodb::{BackupOptions, Db, Options, Scan, TableOptions};

use super::super::counters::process_cpu_time;
use super::super::dataset::{Dataset, random_bytes};
use super::super::raw::{ReadArea, open_for_direct_reads};
use crate::CliError;

/// What a pass has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub(super) bytes_per_s: f64,
    pub(super) cpu_us_per_value: f64,
}

/// How plain loops read a disk from front to back: so many threads, each with a piece of so many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    threads: usize,
    piece_bytes: usize,
}

const WAYS: [Way; 4] = [
    Way { threads: 2, piece_bytes: 4 << 20 },
    Way { threads: 4, piece_bytes: 1 << 20 },
    Way { threads: 8, piece_bytes: 1 << 20 },
    Way { threads: 16, piece_bytes: 256 << 10 },
];

/// A disk is asked for the same in each way so often before one is chosen.
const TRIES: usize = 3;

/// How the raw copy is made, and a file written.
const COPY_WAY: Way = Way { threads: 4, piece_bytes: 1 << 20 };

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} threads with pieces of {} KiB", self.threads, self.piece_bytes >> 10)
    }
}

/// Times a pass over all values of the data.
fn timed(data_bytes: u64, values: u64, pass: impl FnOnce() -> Result<(), CliError>) -> Result<Pass, CliError> {
    let (start, cpu) = (Instant::now(), process_cpu_time());
    pass()?;
    let (elapsed, cpu): (Duration, Duration) = (start.elapsed(), process_cpu_time() - cpu);
    Ok(Pass {
        bytes_per_s: data_bytes as f64 / elapsed.as_secs_f64(),
        cpu_us_per_value: cpu.as_secs_f64() * 1e6 / values.max(1) as f64,
    })
}

/// All records of a scan, each looked at.
pub(super) fn scan(mut scan: Scan, data: Dataset) -> Result<Pass, CliError> {
    timed(data.pairs * data.value_bytes as u64, data.pairs, || {
        let mut count = 0;
        while let Some((_, value)) = scan.next_record()? {
            if value.len() != data.value_bytes {
                return Err(CliError::failed(format!("a scan brought a value of {} bytes", value.len())));
            }
            black_box(value);
            count += 1;
        }
        match count == data.pairs {
            true => Ok(()),
            false => Err(CliError::failed(format!("a scan of {} pairs brought {count}", data.pairs))),
        }
    })
}

/// A full backup into a new repository, which is removed afterwards.
pub(super) fn backup(
    db: &Db,
    repository: &Path,
    bytes_per_second: Option<u64>,
    data: Dataset,
) -> Result<Pass, CliError> {
    let options = BackupOptions { bytes_per_second };
    let pass = timed(data.pairs * data.value_bytes as u64, data.pairs, || {
        db.backup(repository, &options, &mut |_, _| ())?;
        Ok(())
    });
    std::fs::remove_dir_all(repository).map_err(|error| failed(&error))?;
    pass
}

/// All pairs ingested into a new store, in the order of their keys. The store is removed afterwards.
pub(super) fn ingest(store: &Path, options: &TableOptions, sorted: &[u64], data: Dataset) -> Result<Pass, CliError> {
    let db = Db::open(store, Options::default())?;
    let mut value = vec![0; data.value_bytes];
    let pass = timed(data.pairs * data.value_bytes as u64, data.pairs, || {
        let mut ingest = db.ingest("bench", options.clone())?;
        for &number in sorted {
            data.fill_value(number, &mut value);
            ingest.put(&data.key(number), &value)?;
        }
        ingest.finish()?;
        Ok(())
    });
    db.close()?;
    std::fs::remove_dir_all(store).map_err(|error| failed(&error))?;
    pass
}

/// As many bytes as the values of the data written to a new file in this directory, durably.
pub(super) fn write(directory: &Path, data: Dataset) -> Result<Pass, CliError> {
    let path = directory.join("written");
    let bytes = (data.pairs * data.value_bytes as u64).next_multiple_of(4096);
    let pass = timed(bytes, data.pairs, || write_file(&path, bytes).map_err(|error| failed(&error)));
    std::fs::remove_file(&path).map_err(|error| failed(&error))?;
    pass
}

fn write_file(path: &Path, bytes: u64) -> io::Result<()> {
    let (file, next) = (open_for_direct_writes(path)?, AtomicU64::new(0));
    let work = || -> io::Result<()> {
        let mut buffer = AlignedBuffer::new(COPY_WAY.piece_bytes);
        buffer.copy_from_slice(&random_bytes(COPY_WAY.piece_bytes));
        loop {
            let offset = next.fetch_add(COPY_WAY.piece_bytes as u64, Ordering::Relaxed);
            let Some(left) = bytes.checked_sub(offset).filter(|left| *left > 0) else { return Ok(()) };
            file.write_all_at(&buffer[..left.min(COPY_WAY.piece_bytes as u64) as usize], offset)?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..COPY_WAY.threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a writer does not panic"))
    })?;
    file.sync_all()
}

/// The way in which this disk is read fastest.
pub(super) fn fastest_way(area: &ReadArea) -> Result<Way, CliError> {
    let mut best = (WAYS[0], 0.0);
    for _ in 0..TRIES {
        for way in WAYS {
            let rate = sequential(area, way)?.bytes_per_s;
            if rate > best.1 {
                best = (way, rate);
            }
        }
    }
    Ok(best.0)
}

/// Everything read once.
pub(super) fn sequential(area: &ReadArea, way: Way) -> Result<Pass, CliError> {
    timed(area.data_bytes(), area.data_bytes() / 4096, || {
        let pieces = Pieces::of(area, way).map_err(|error| failed(&error))?;
        pieces.each(way, &|_, _| Ok(())).map_err(|error| failed(&error))
    })
}

/// Everything read once and written to a new file in this directory, durably.
pub(super) fn copy(area: &ReadArea, directory: &Path) -> Result<Pass, CliError> {
    let path = directory.join("copy");
    let pass = timed(area.data_bytes(), area.data_bytes() / 4096, || {
        let copied = || {
            let pieces = Pieces::of(area, COPY_WAY)?;
            let file = open_for_direct_writes(&path)?;
            pieces.each(COPY_WAY, &|offset, bytes| file.write_all_at(bytes, offset))?;
            file.sync_all()
        };
        copied().map_err(|error| failed(&error))
    });
    std::fs::remove_file(&path).map_err(|error| failed(&error))?;
    pass
}

/// The pieces of all files, to be taken by any thread in their order.
struct Pieces {
    /// A file and the offset in it of each piece.
    pieces: Vec<(usize, u64)>,
    files: Vec<File>,
    /// Relaxed: it only shares out numbers.
    next: AtomicU64,
}

impl Pieces {
    fn of(area: &ReadArea, way: Way) -> io::Result<Pieces> {
        let files = area.files().iter().map(|file| open_for_direct_reads(&file.path)).collect::<io::Result<_>>()?;
        let of_file = |number: usize, bytes: u64| {
            (0..bytes).step_by(way.piece_bytes).map(move |offset| (number, offset)).collect::<Vec<_>>()
        };
        let pieces = area.files().iter().enumerate().flat_map(|(number, file)| of_file(number, file.data_bytes));
        Ok(Pieces { pieces: pieces.collect(), files, next: AtomicU64::new(0) })
    }

    /// Reads all pieces and hands each to `take`, with its place among all of them in bytes.
    fn each(&self, way: Way, take: &(dyn Fn(u64, &[u8]) -> io::Result<()> + Sync)) -> io::Result<()> {
        let work = || {
            let mut buffer = AlignedBuffer::new(way.piece_bytes);
            loop {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                let Some(&(file, offset)) = self.pieces.get(number as usize) else { return Ok(()) };
                let length = self.files[file].read_at(&mut buffer, offset)?;
                take(number * way.piece_bytes as u64, &buffer[..length])?;
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..way.threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("a reader does not panic"))
        })
    }
}

fn open_for_direct_writes(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options.clone().custom_flags(libc::O_DIRECT).open(path).or_else(|_| options.open(path))
}

fn failed(error: &io::Error) -> CliError {
    CliError::failed(format!("the raw loop failed: {error}"))
}
