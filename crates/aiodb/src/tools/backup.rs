//! Online backup: a consistent copy of the store, made while it is in use.
//!
//! A restore point is a checkpoint and the log up to a position after it, as a crash at that position would have left
//! them. So a backup makes a checkpoint, remembers its manifest and its files, copies the indexes, notes how far the log
//! has come meanwhile, and copies the log up to there. The copied indexes may be ahead of the checkpoint, never of the
//! noted position; replay makes them exact. A hold retains the bytes of segments that are retired while they are copied, and
//! the set of runs that is copied retains its files.

mod pipe;
mod point;
mod repository;
mod restore;
mod runs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::checksum::{crc32c, crc32c_append};
use crate::format::manifest::{Identity, Manifest, damage_error};
use crate::format::position::Position;
use crate::format::segment::{SegmentHeader, put};
use crate::index::runs::CapturedRuns;
use crate::io::disk::with_descriptors;
use crate::io::small_file::read_file;
use crate::io::{Access, AlignedBuffer, Device, Disk, File, UNIT_BYTES, WriteSync};
use crate::log::{Segment, State};
use crate::retention::Retention;
use crate::store::catalog::TableIndex;
use crate::store::upkeep::Upkeep;
use crate::{Backend, Db, Error, IndexKind, Result};
use pipe::{Job, Pace, pump};
use point::{FileKind, Point, PointFile, PointSegment};
use repository::Life;
pub use repository::{Repository, RepositoryReport, RestorePoint};
pub use restore::RestoreReport;

/// How a backup is made.
#[derive(Clone, Debug, Default)]
pub struct BackupOptions {
    /// The most bytes of the log, of runs and of checkpoints that are read in a second, so that other readers are not slowed down.
    /// Default `None`: as fast as both devices can.
    pub bytes_per_second: Option<u64>,
}

/// The outcome of [`Db::backup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// The restore point that was made.
    pub point: RestorePoint,
    /// Bytes that were copied for it; the others were in the repository before.
    pub copied_bytes: u64,
}

impl<D: Device> Db<D> {
    /// Copies the store into the backup repository at `destination`, which is made if it is missing, while reads and writes
    /// go on. The new restore point holds every write acknowledged before the call, the writes during it up to some moment,
    /// and no later ones; of an atomic batch all or nothing. Bytes that earlier restore points have brought there are not
    /// copied again.
    ///
    /// `progress` is told the bytes copied and the bytes to copy. When this returns the restore point is durable. After an
    /// error, or a crash, the earlier ones are as they were; the next backup removes the files that this one left.
    ///
    /// Fails with [`Error::NotARepository`], [`Error::OtherStore`], [`Error::RepositoryInUse`],
    /// [`Error::DestinationFull`], [`Error::TablesRenamed`], or as [`Db::checkpoint`] does.
    pub fn backup(
        &self,
        destination: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        let root = destination.as_ref();
        let made = std::fs::create_dir_all(root).map_err(|e| Error::io("create", root, &e));
        let opened = made.and_then(|()| Disk::open(root, Backend::Threads, true));
        self.backup_on(opened.map_err(destination_full)?, root, options, progress)
    }

    /// Like [`Db::backup`] onto another device; the directory must exist. A store with `lmdb` tables needs a destination
    /// in the file system.
    pub fn backup_on<T: Device>(
        &self,
        device: T,
        destination: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        let engine = &self.engine;
        engine.check_open()?;
        let identity = engine.identity()?;
        let opened = Repository::open_or_create(device, destination.as_ref(), &identity);
        let repository = opened.map_err(destination_full)?;
        // Before the checkpoint: nothing that its manifest names may be gone before the hold begins.
        let _hold = Hold { retention: &engine.retention, number: engine.retention.begin() };
        let captured = engine.capture()?;
        let number = repository.next_number();
        let mut backup = Backup { engine, repository, number, captured, copied_bytes: 0 };
        backup.make(options, progress).map_err(destination_full)
    }
}

/// So often the indexes are copied where tables get other names meanwhile.
const MOST_CAPTURES: usize = 4;

/// A hold that ends with its scope.
struct Hold<'a> {
    retention: &'a Retention,
    number: u64,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.retention.end(self.number);
    }
}

/// A checkpoint, with its files opened: the next checkpoint removes their names.
struct Captured<D: Device> {
    manifest: Manifest,
    /// See `Catalog::namings`.
    namings: u64,
    hashes: Vec<(FileKind, Job<D::File>)>,
    /// The runs that the checkpoints of `hash` indexes name.
    spilled: Vec<CapturedRuns<D>>,
}

/// A segment's bytes up to the end of the restore point.
struct Wanted<'a, D: Device> {
    segment: &'a Segment<D>,
    life: u64,
    length: u64,
}

impl<D: Device> Upkeep<D> {
    /// The store's identity as if it lay in one directory: a restored store has this one.
    fn identity(&self) -> Result<Identity> {
        let path = self.root.join("STORE");
        let bytes = read_file(&self.device, &path)?.unwrap_or_default();
        let advice = "the store's identity is damaged: restore the file from a backup";
        let decoded = Identity::decode(&bytes).map_err(|damage| damage_error(&path, 0, damage, advice))?;
        Ok(Identity { ordinal: 0, count: 1, ..decoded })
    }

    fn capture(&self) -> Result<Captured<D>> {
        // The manifest has no names that are not there yet.
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let namings = self.catalog.namings();
        let mut captured = None;
        self.checkpoint_and(&mut |manifest| {
            let (mut hashes, mut spilled) = (Vec::new(), Vec::new());
            for table in manifest.tables.iter().filter(|table| table.checkpoint > 0) {
                let Some(generation) = self.catalog.generation(table.id) else { continue };
                if !matches!(generation.index, TableIndex::Hash(_)) {
                    continue;
                }
                let path = self.hash_checkpoint_path(table.id, table.checkpoint);
                let file = self.device.open(&path, Access::READ).map_err(|e| Error::io("open", &path, &e))?;
                let to = file.length().map_err(|e| Error::io("look at", &path, &e))?;
                let kind = FileKind::Hash { table: table.id, checkpoint: table.checkpoint };
                hashes.push((kind, Job { file, path, from: 0, to }));
                spilled.extend(self.spilled.capture(table.id));
            }
            captured = Some(Captured { manifest: manifest.clone(), namings, hashes, spilled });
            Ok(())
        })?;
        Ok(captured.expect("a checkpoint that was made was remembered"))
    }

    /// The segments that a restart from this manifest needs to come to `end`, and how much of each.
    fn segments_up_to(&self, manifest: &Manifest, end: &Position) -> Vec<Wanted<'_, D>> {
        let listed: BTreeMap<u32, u64> = manifest.segments.iter().map(|entry| (entry.number, entry.life)).collect();
        let wanted = self.segments.iter().filter_map(|segment| {
            // A segment that is not held may begin another life at any time, but one that begins after the end.
            let (life, state) = (segment.life(), segment.state());
            let needed = listed.get(&segment.number) == Some(&life) || life >= manifest.next_life;
            let used = matches!(state, State::Active | State::Sealed | State::Retiring);
            let written = || segment.written_end.load(std::sync::atomic::Ordering::Acquire);
            let length = if life == end.life { end.offset } else { written() };
            let wanted = used && needed && life <= end.life && length > UNIT_BYTES as u64;
            wanted.then_some(Wanted { segment, life, length })
        });
        wanted.collect()
    }
}

/// A backup in progress.
struct Backup<'a, D: Device, T: Device> {
    engine: &'a Upkeep<D>,
    repository: Repository<T>,
    number: u64,
    captured: Captured<D>,
    copied_bytes: u64,
}

impl<D: Device, T: Device> Backup<'_, D, T> {
    fn make(&mut self, options: &BackupOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupReport> {
        let engine = self.engine;
        let clock_ms = || engine.device.clock_ms();
        let pace = Pace { bytes_per_second: options.bytes_per_second, clock_ms: &clock_ms };
        let (files, end, next_sequence) = self.copy_indexes(&pace, progress)?;
        engine.flush()?;
        let wanted = engine.segments_up_to(&self.captured.manifest, &end);
        let segments = self.copy_segments(&wanted, &pace, progress)?;
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The copied indexes, or the log, may have what came to be known of since the checkpoint.
        let manifest = Manifest { features: engine.catalog.features(), ..self.captured.manifest.clone() };
        let point = Point {
            number: self.number,
            // For people: nothing is decided by it.
            created_ms: since_1970.as_millis() as u64,
            end,
            next_sequence,
            segments,
            files,
            manifest,
        };
        // Once it is closed, another process may use segments that the hold protected.
        engine.check_open()?;
        self.repository.add(point)?;
        let point = self.repository.points().pop().expect("just added");
        Ok(BackupReport { point, copied_bytes: self.copied_bytes })
    }

    /// Copies the indexes, and says how far the log belongs to them.
    fn copy_indexes(
        &mut self,
        pace: &Pace<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Vec<PointFile>, Position, u64)> {
        for _ in 0..MOST_CAPTURES {
            let mut files = self.copy_hashes(pace, progress)?;
            files.extend(self.copy_lmdb()?);
            files.extend(self.copy_runs(pace, progress)?);
            // Whatever the copied indexes refer to was in the log before them.
            let (end, next_sequence) = self.engine.commit.completed_end();
            if self.engine.catalog.are_names_of(self.captured.namings) {
                return Ok((files, end, next_sequence));
            }
            // The log goes on with other names than the manifest has. The files get names of their own.
            self.captured = self.engine.capture()?;
            self.number += 1;
        }
        Err(Error::TablesRenamed)
    }

    fn copy_hashes(&mut self, pace: &Pace<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<PointFile>> {
        let total: u64 = self.captured.hashes.iter().map(|(_, job)| job.to).sum();
        let mut files = Vec::new();
        for (kind, job) in &self.captured.hashes {
            let path = self.repository.file_path(self.number, *kind);
            let file = self.repository.device.open(&path, Access::CREATE);
            let file = file.map_err(|e| Error::io("create", &path, &e))?;
            let mut checksum = crc32c(&[]);
            let copied_before = self.copied_bytes;
            pump(std::slice::from_ref(job), pace, &mut |_, offset, bytes| {
                self.engine.check_open()?;
                checksum = crc32c_append(checksum, bytes);
                file.write_at(bytes, offset, WriteSync::Later).map_err(|e| Error::io("write", &path, &e))?;
                progress(copied_before + offset + bytes.len() as u64, total);
                Ok(())
            })?;
            file.sync().map_err(|e| Error::io("flush", &path, &e))?;
            self.copied_bytes += job.to;
            files.push(PointFile { kind: *kind, length: job.to, checksum });
        }
        Ok(files)
    }

    fn copy_lmdb(&mut self) -> Result<Option<PointFile>> {
        let ordered = self.engine.ordered.get(IndexKind::Lmdb);
        let Some(lmdb) = ordered.and_then(|ordered| ordered.committed.lmdb()) else { return Ok(None) };
        let path = self.repository.file_path(self.number, FileKind::Lmdb);
        // LMDB writes its own file.
        let mut options = std::fs::File::options();
        options.read(true).write(true).create(true).truncate(true);
        let file = with_descriptors(|| options.open(&path), |error| Some(error));
        let mut file = file.map_err(|e| Error::io("create", &path, &e))?;
        lmdb.copy_to(&mut file)?;
        file.sync_all().map_err(|e| Error::io("flush", &path, &e))?;
        let length = file.metadata().map_err(|e| Error::io("look at", &path, &e))?.len();
        let job = self.repository.read_job(&path, Access::READ, 0, length)?;
        let mut checksum = crc32c(&[]);
        pump(&[job], &self.repository.unpaced(), &mut |_, _, bytes| {
            checksum = crc32c_append(checksum, bytes);
            Ok(())
        })?;
        self.copied_bytes += length;
        Ok(Some(PointFile { kind: FileKind::Lmdb, length, checksum }))
    }

    /// Copies the bytes that the repository does not have yet.
    fn copy_segments(
        &mut self,
        wanted: &[Wanted<'_, D>],
        pace: &Pace<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<PointSegment>> {
        let known = self.repository.known_segments();
        let (mut segments, mut jobs, mut plans) = (Vec::new(), Vec::new(), Vec::new());
        for wanted in wanted {
            let (number, life) = (wanted.segment.number, wanted.life);
            let plan = self.plan(wanted, known.get(&(number, life)).map_or(&[], Vec::as_slice))?;
            segments.push(PointSegment { number, life, length: wanted.length, checksum: plan.checksum });
            if plan.from < wanted.length {
                let path = self.engine.segments.path(number);
                jobs.push(Job { file: wanted.segment.file.clone(), path, from: plan.from, to: wanted.length });
                plans.push((segments.len() - 1, plan));
            }
        }
        let total = self.copied_bytes + jobs.iter().map(|job| job.to - job.from).sum::<u64>();
        let mut current: Option<Target<'_, T>> = None;
        let mut copied = self.copied_bytes;
        pump(&jobs, pace, &mut |job, offset, bytes| {
            self.engine.check_open()?;
            let (position, plan) = &plans[job];
            if offset == plan.from {
                let life = (segments[*position].number, segments[*position].life);
                current = Some(Target::open(&self.repository, life, plan)?);
            }
            let target = current.as_mut().expect("a job's first piece comes first");
            let header = (offset == 0).then(|| in_one_directory(bytes)).flatten();
            target.write(offset, header.as_deref().unwrap_or(bytes))?;
            if offset + bytes.len() as u64 == jobs[job].to {
                segments[*position].checksum = target.finish()?;
            }
            copied += bytes.len() as u64;
            progress(copied, total);
            Ok(())
        })?;
        self.copied_bytes = copied;
        Ok(segments)
    }

    /// Finds out how much of a segment the repository has, and that it is of this store's history.
    fn plan(&self, wanted: &Wanted<'_, D>, known: &[PointSegment]) -> Result<Plan> {
        let nothing = Plan { from: 0, stored: 0, checksum: crc32c(&[]) };
        let Some(longest) = known.last() else { return Ok(nothing) };
        let path = self.repository.segment_path((wanted.segment.number, wanted.life));
        let file = match self.repository.device.open(&path, Access::SEGMENT) {
            // A lost file is copied again.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(nothing),
            opened => opened.map_err(|e| Error::io("open", &path, &e))?,
        };
        let length = file.length().map_err(|e| Error::io("look at", &path, &e))?;
        // Bytes beyond those that restore points refer to are left over from an unfinished backup.
        let stored = longest.length.min(length / UNIT_BYTES as u64 * UNIT_BYTES as u64);
        let usable = |known: &&PointSegment| known.length <= wanted.length.min(stored);
        let Some(start) = known.iter().rev().find(usable) else { return Ok(Plan { stored, ..nothing }) };
        let source_path = self.engine.segments.path(wanted.segment.number);
        for offset in [0, start.length - UNIT_BYTES as u64] {
            let (mut here, mut there) = (AlignedBuffer::new(UNIT_BYTES), AlignedBuffer::new(UNIT_BYTES));
            let read = wanted.segment.file.read_at(&mut here, offset);
            read.map_err(|e| Error::io("read", &source_path, &e))?;
            if offset == 0 {
                here = in_one_directory(&here).unwrap_or(here);
            }
            file.read_at(&mut there, offset).map_err(|e| Error::io("read", &path, &e))?;
            if here[..] != there[..] {
                return Err(Error::OtherStore { path: self.repository.root.clone() });
            }
        }
        Ok(Plan { from: start.length, stored, checksum: start.checksum })
    }
}

/// How a segment comes into the repository.
struct Plan {
    /// Where copying begins, and the checksum up to there.
    from: u64,
    checksum: u32,
    /// Bytes that restore points refer to: they are compared, never written again.
    stored: u64,
}

/// The repository's file of a segment that is being copied.
struct Target<'a, T: Device> {
    repository: &'a Repository<T>,
    file: T::File,
    path: PathBuf,
    stored: u64,
    checksum: u32,
    compared: AlignedBuffer,
}

impl<'a, T: Device> Target<'a, T> {
    fn open(repository: &'a Repository<T>, life: Life, plan: &Plan) -> Result<Target<'a, T>> {
        let path = repository.segment_path(life);
        let file = repository.device.open(&path, Access::NEW_SEGMENT).map_err(|e| Error::io("create", &path, &e))?;
        let (stored, checksum, compared) = (plan.stored, plan.checksum, AlignedBuffer::new(UNIT_BYTES));
        Ok(Target { repository, file, path, stored, checksum, compared })
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.checksum = crc32c_append(self.checksum, bytes);
        let old = self.stored.saturating_sub(offset).min(bytes.len() as u64) as usize;
        if old > 0 {
            if self.compared.len() < old {
                self.compared = AlignedBuffer::new(old);
            }
            let read = self.file.read_at(&mut self.compared[..old], offset);
            read.map_err(|e| Error::io("read", &self.path, &e))?;
            if self.compared[..old] != bytes[..old] {
                return Err(Error::OtherStore { path: self.repository.root.clone() });
            }
        }
        if old == bytes.len() {
            return Ok(());
        }
        let written = self.file.write_at(&bytes[old..], offset + old as u64, WriteSync::Later);
        written.map_err(|e| Error::io("write", &self.path, &e))
    }

    /// Makes the written bytes durable; returns the checksum of the whole.
    fn finish(&self) -> Result<u32> {
        self.file.sync().map_err(|e| Error::io("flush", &self.path, &e))?;
        Ok(self.checksum)
    }
}

/// The first bytes of a segment with a header that says that the store lies in one directory, as a restored store does;
/// `None` if they say so already. So later backups of the original and of the restored store agree.
fn in_one_directory(bytes: &[u8]) -> Option<AlignedBuffer> {
    let header = SegmentHeader::decode(bytes).ok().filter(|header| header.directories > 1)?;
    let mut changed = AlignedBuffer::new(bytes.len());
    changed.copy_from_slice(bytes);
    put(&mut changed, 0, &SegmentHeader { directories: 1, ..header }.encode());
    Some(changed)
}

/// A full disk on the side that is written to.
fn destination_full(error: Error) -> Error {
    match error {
        Error::DiskFull { path } => Error::DestinationFull { path },
        other => other,
    }
}
