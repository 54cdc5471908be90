//! Power cuts below the file system: ext4 lies on a loop device over a file in user space that records every write and
//! flush. Any flushed prefix of the recording, with any part of what was written after it, is a disk as a power cut may
//! leave it: it is mounted, the store is recovered, and compared with what had been acknowledged by then.

mod cut;
mod disk;
mod history;

use crate::model;
use crate::process::{Aiodb, Applying, Event, create};
use crate::workload::{Operation, WRITERS};
use aiodb::{Db, Options};
use cut::Cuts;
use disk::{Disk, LoopDevice, Mount, run_command};
use fastrand::Rng;
use history::History;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the recorded disk. The store is far smaller, so that it never meets its end.
const DISK_BYTES: u64 = 64 << 20;

/// Processes that work on the store one after the other; all but the last are killed.
const LIVES: u64 = 3;

/// Operations of each writer in each life, if it is not killed before.
const OPERATIONS_PER_LIFE: u64 = 400;

/// What was done and held.
#[derive(Debug, Default)]
pub struct Report {
    /// Disks recorded.
    pub runs: u64,
    /// Disks as a power cut may have left them that were recovered and compared.
    pub cuts: u64,
    /// Writes and flushes that the disks recorded.
    pub writes: u64,
    /// See `writes`.
    pub flushes: u64,
    /// Unflushed writes that the cuts took, wholly or in part.
    pub lost_writes: u64,
    /// Among them those of which some sectors were kept.
    pub torn_writes: u64,
    /// Acknowledged operations that had to be there, summed over the cuts.
    pub required: u64,
}

impl Report {
    /// Sums two reports.
    pub fn add(&mut self, other: Report) {
        self.runs += other.runs;
        self.cuts += other.cuts;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.lost_writes += other.lost_writes;
        self.torn_writes += other.torn_writes;
        self.required += other.required;
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Report { runs, cuts, writes, flushes, lost_writes, torn_writes, required } = self;
        write!(
            f,
            "{runs} disks recorded ({writes} writes, {flushes} flushes), {cuts} power cuts ({lost_writes} writes lost, \
             {torn_writes} of them torn), {required} acknowledged writes that had to be there and were"
        )
    }
}

/// Whether this machine lets this user do it; if not, why.
pub fn is_possible() -> Result<(), String> {
    for device in ["/dev/fuse", "/dev/loop-control"] {
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(device);
        opened.map_err(|error| format!("power cuts need root and {device}: {error}"))?;
    }
    for (program, argument) in [("mkfs.ext4", "-V"), ("losetup", "-V"), ("mount", "-V")] {
        run_command(program, &[argument.as_ref()]).map_err(|error| format!("power cuts need {program}: {error}"))?;
    }
    Ok(())
}

/// Records a disk under load, and checks it as this many power cuts may have left it.
pub fn run(aiodb: &Aiodb, directory: &Path, seed: u64, cuts: u64) -> Result<Report, String> {
    let mut rng = Rng::with_seed(seed);
    let disk = Disk::format(&directory.join("blank.img"), DISK_BYTES)?;
    let mut history = History::default();
    record(aiodb, directory, &disk, seed, &mut rng, &mut history).map_err(|what| format!("seed {seed}: {what}"))?;
    let recording = disk.into_recording();
    let (writes, flushes) = recording.counts();
    let mut report = Report { runs: 1, writes, flushes, ..Report::default() };
    let image = image_path(directory);
    let mut possible = Cuts::new(recording, history.begin(), cuts, &mut rng);
    while let Some(cut) = possible.next(&mut rng) {
        cut.write(&image).map_err(|error| format!("{}: {error}", image.display()))?;
        let held = check(directory, &image, &history, cut.entries);
        let removed = std::fs::remove_file(&image);
        let required = held.map_err(|what| {
            // As it was found, to be looked at.
            let kept = directory.join("cut.img");
            let saved = cut.write(&kept).map_or_else(|error| error.to_string(), |()| kept.display().to_string());
            let (after, fate) = (cut.entries, cut.kept);
            format!("seed {seed}, a power cut after {after} disk requests, {fate}: {what}\nthe disk: {saved}")
        })?;
        removed.map_err(|error| format!("{}: {error}", image.display()))?;
        report.cuts += 1;
        report.lost_writes += cut.lost;
        report.torn_writes += cut.torn;
        report.required += required;
    }
    Ok(report)
}

/// Where an image is mounted from: in memory if possible, since recovery flushes it again and again.
fn image_path(directory: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    let name = format!("aiodb-crash-{}.img", std::process::id());
    if memory.is_dir() { memory.join(name) } else { directory.join(name) }
}

/// Lets the command work on the recorded disk.
fn record(
    aiodb: &Aiodb,
    directory: &Path,
    disk: &Disk,
    seed: u64,
    rng: &mut Rng,
    history: &mut History,
) -> Result<(), String> {
    let served = disk.serve(&directory.join("disk"))?;
    let device = LoopDevice::over(served.file())?;
    let mounted = Mount::new(device.path(), &directory.join("live"), &[])?;
    let store = mounted.path().join("store");
    create(aiodb, &store)?;
    history.created(disk.entries());
    let mut numbers = [0; WRITERS];
    for life in 1..=LIVES {
        let applying = Applying::start(aiodb, &store);
        if life < LIVES {
            let (kill, after) = (applying.killer(), Duration::from_millis(rng.u64(100..1500)));
            std::thread::spawn(move || {
                std::thread::sleep(after);
                kill();
            });
        }
        history.process_begins();
        let last = numbers.map(|number| number + OPERATIONS_PER_LIFE);
        let next = |writer: usize| {
            numbers[writer] += 1;
            (numbers[writer] <= last[writer]).then(|| Operation::new(seed, writer, numbers[writer]))
        };
        let ended = applying.run(next, |operation, event| match event {
            Event::Sent => history.sent(operation),
            Event::Acknowledged => history.acknowledged(operation, disk.entries()),
        });
        if ended {
            history.process_ended(disk.entries());
        }
    }
    Ok(())
}

/// Mounts an image and compares the store in it; returns how many acknowledged operations had to be there.
fn check(directory: &Path, image: &Path, history: &History, entries: usize) -> Result<u64, String> {
    let device = LoopDevice::over(image)?;
    let mounted = Mount::new(device.path(), &directory.join("after"), &[])?;
    let options = Options { create: false, ..Options::default() };
    let db = Db::open(mounted.path().join("store"), options)
        .map_err(|error| format!("the store cannot be opened: {error}"))?;
    let mut required = 0;
    for writer in 0..WRITERS {
        required += history.check(writer, entries, &model::contents(&db, writer)?)?;
    }
    model::verify(&db)?;
    db.close().map_err(|error| format!("the store cannot be closed: {error}"))?;
    Ok(required)
}
