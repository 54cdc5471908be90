//! A backup repository: a directory with restore points of one store, and the segments that they share.
//!
//! A segment is stored once for each of its lives, however many restore points refer to it. Since the acknowledged bytes of
//! a life never change, a restore point needs the first so many bytes of the file, and a later backup only appends to
//! it. A file of a run never changes, and is stored once. A restore point exists once its `.point` file does; bytes that no
//! such file refers to are left over from a backup that did not come to its end, and the next one removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::pipe::{Job, Pace, pump};
use super::point::{FileKind, Point, PointFile, PointSegment, decode_repository, encode_repository};
use crate::checksum::{crc32c, crc32c_append};
use crate::flow::directories::spilled_of;
use crate::format::manifest::MANIFEST_NAMES;
use crate::format::manifest::{Identity, damage_error};
use crate::index::runs::path_of;
use crate::io::disk::{is_trial, remove_trials};
use crate::io::small_file::{read_file, replace_file};
use crate::io::{Access, Device, Disk};
use crate::{Error, Result};

const IDENTITY_NAME: &str = "REPOSITORY";
const POINT_SUFFIX: &str = ".point";

/// The names that a repository may contain before it has an identity.
const OURS: [&str; 6] = ["LOCK", "REPOSITORY.new", "lost+found", "pending", "points", "segments"];

/// The directory of the files of runs; the first restore point that has some makes it.
const RUNS_NAME: &str = "runs";

/// One life of a segment: its number and life.
pub(super) type Life = (u32, u64);

/// A restore point as users see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// Its number in the repository: 1 is the first.
    pub number: u64,
    /// When the backup was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// The sequence of the last write that is in it.
    pub last_sequence: u64,
    /// Bytes of all files that it refers to, also of files that other restore points refer to too.
    pub bytes: u64,
    /// Segments that it refers to.
    pub segments: u64,
}

/// The findings of [`Repository::verify`].
#[derive(Clone, Debug, Default)]
pub struct RepositoryReport {
    /// Files read.
    pub files: u64,
    /// Bytes read.
    pub bytes: u64,
    /// One [`Error::Corruption`] for each damaged file, or an [`Error::Io`] for one that the device does not give.
    pub damage: Vec<Error>,
    /// The restore points that cannot be restored because of it.
    pub damaged_points: BTreeSet<u64>,
    /// The restore points that can be restored all the same, but without the index of their tables with runs: the first opening makes it
    /// again from the log.
    pub points_without_index: BTreeSet<u64>,
}

/// An open backup repository. No backup into it and no restore from it can run elsewhere meanwhile.
pub struct Repository<T: Device = Disk> {
    pub(super) device: T,
    pub(super) root: PathBuf,
    pub(super) identity: Identity,
    pub(super) points: Vec<Point>,
    /// Missing only where the repository cannot be written to.
    _lock: Option<T::Lock>,
}

impl Repository {
    /// Opens a repository to list, check and restore its restore points; it may lie on a read-only file system.
    ///
    /// Fails with [`Error::NotARepository`], [`Error::RepositoryInUse`], [`Error::Corruption`] (also if a restore point's
    /// own file is damaged), [`Error::NewerVersion`] or [`Error::Io`].
    pub fn open(path: impl AsRef<Path>) -> Result<Repository> {
        Repository::open_on(Disk::plain(), path)
    }
}

impl<T: Device> Repository<T> {
    /// Like [`Repository::open`] on another device.
    pub fn open_on(device: T, path: impl AsRef<Path>) -> Result<Repository<T>> {
        let root = path.as_ref();
        let identity = read_identity(&device, root)?.ok_or_else(|| not_a_repository(root))?;
        let lock = match lock(&device, root) {
            Err(Error::Io { kind, .. }) if is_read_only(kind) => None,
            taken => Some(taken?),
        };
        Self::load(device, root, identity, lock)
    }

    /// Opens the repository of a store to add to it, or makes one. Removes the leftovers of an unfinished backup.
    pub(super) fn open_or_create(device: T, root: &Path, identity: &Identity) -> Result<Repository<T>> {
        let names = match read_identity(&device, root)? {
            None => refuse_foreign_directory(&device, root)?,
            Some(_) => Vec::new(),
        };
        let lock = lock(&device, root)?;
        remove_trials(&device, root, &names)?;
        match read_identity(&device, root)? {
            Some(found) if found != *identity => return Err(Error::OtherStore { path: root.to_path_buf() }),
            // The process that made it may have died, or failed, before its name survived a power cut.
            Some(_) => device.sync_dir(root).map_err(|e| Error::io("flush", root, &e))?,
            None => create(&device, root, identity)?,
        }
        let repository = Self::load(device, root, *identity, Some(lock))?;
        repository.remove_leftovers()?;
        Ok(repository)
    }

    fn load(device: T, root: &Path, identity: Identity, lock: Option<T::Lock>) -> Result<Repository<T>> {
        let directory = root.join("points");
        let mut points = Vec::new();
        for name in device.list(&directory).map_err(|e| Error::io("list", &directory, &e))? {
            if !name.ends_with(POINT_SUFFIX) {
                continue;
            }
            let path = directory.join(&name);
            let bytes = read_file(&device, &path)?.unwrap_or_default();
            let advice = "without this file the restore point is given up; remove it to go on with the others";
            let point = Point::decode(&bytes, &identity.store);
            points.push(point.map_err(|damage| damage_error(&path, 0, damage, advice))?);
        }
        points.sort_by_key(|point| point.number);
        Ok(Repository { device, root: root.to_path_buf(), identity, points, _lock: lock })
    }

    /// The restore points, the oldest first.
    pub fn points(&self) -> Vec<RestorePoint> {
        let described = self.points.iter().map(|point| RestorePoint {
            number: point.number,
            created_ms: point.created_ms,
            last_sequence: point.next_sequence - 1,
            bytes: point.bytes(),
            segments: point.segments.len() as u64,
        });
        described.collect()
    }

    /// Removes a restore point and the files that no other one refers to.
    pub fn remove(&mut self, number: u64) -> Result<()> {
        self.find(Some(number))?;
        let path = self.point_path(number);
        self.device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
        self.sync_dir("points")?;
        self.points.retain(|point| point.number != number);
        self.remove_leftovers()
    }

    /// Reads every file and compares it with its checksums. `progress` is told the bytes read and the bytes in all.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<RepositoryReport> {
        let mut report = RepositoryReport::default();
        let total: u64 = self.expectations().values().map(|expected| longest(expected)).sum();
        for (path, expected) in self.expectations() {
            report.files += 1;
            let (before, mut sound) = (report.bytes, 0);
            let mut tell = |read| progress(before + read, total);
            let outcome = self.verify_file(&path, &expected, &mut sound, &mut report, &mut tell);
            let (damage, offset) = match outcome {
                Ok(()) => continue,
                Err(damage @ Error::Corruption { offset, .. }) => (damage, offset),
                // The other files, and what they say of restore points, are checked all the same.
                Err(error @ Error::Io { action: "read" | "open", .. }) if !error.is_passing() => {
                    (error.at_byte(sound), sound)
                }
                Err(error) => return Err(error),
            };
            for hit in expected.iter().filter(|expected| expected.length > offset) {
                let points = if hit.is_needed { &mut report.damaged_points } else { &mut report.points_without_index };
                points.insert(hit.point);
            }
            report.damage.push(damage);
        }
        report.points_without_index.retain(|point| !report.damaged_points.contains(point));
        Ok(report)
    }

    /// The expectations of the restore points of each file, shortest first.
    fn expectations(&self) -> BTreeMap<PathBuf, Vec<Expected>> {
        let mut files: BTreeMap<PathBuf, Vec<Expected>> = BTreeMap::new();
        for point in &self.points {
            for segment in &point.segments {
                let PointSegment { length, checksum, .. } = *segment;
                let expected = Expected { length, checksum, point: point.number, is_needed: true };
                files.entry(self.segment_path((segment.number, segment.life))).or_default().push(expected);
            }
            for file in &point.files {
                let PointFile { kind, length, checksum } = *file;
                let expected = Expected { length, checksum, point: point.number, is_needed: !kind.is_of_runs() };
                files.entry(self.file_path(point.number, file.kind)).or_default().push(expected);
            }
        }
        files.values_mut().for_each(|expected| expected.sort_by_key(|expected| expected.length));
        files
    }

    /// Up to `sound` a file has what is expected of it.
    fn verify_file(
        &self,
        path: &Path,
        expected: &[Expected],
        sound: &mut u64,
        report: &mut RepositoryReport,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let mut checksum = crc32c(&[]);
        for expected in expected {
            // Many points may expect the same of it.
            let more = *sound == 0 || expected.length > *sound;
            let jobs = more.then(|| self.read_job(path, Access::READ, *sound, expected.length)).transpose()?;
            pump(jobs.as_slice(), &self.unpaced(), &mut |_, offset, bytes| {
                checksum = crc32c_append(checksum, bytes);
                report.bytes += bytes.len() as u64;
                progress(offset + bytes.len() as u64);
                Ok(())
            })?;
            if checksum != expected.checksum {
                return Err(damaged_backup(path, *sound));
            }
            *sound = expected.length;
        }
        Ok(())
    }

    /// The restore point of this number, or the latest.
    pub(super) fn find(&self, number: Option<u64>) -> Result<&Point> {
        let found = match number {
            None => self.points.last(),
            Some(number) => self.points.iter().find(|point| point.number == number),
        };
        let point = number.map_or_else(|| "at all".to_string(), |number| number.to_string());
        found.ok_or_else(|| Error::NoRestorePoint { path: self.root.clone(), point })
    }

    /// Prefixes of segments that are here: their lengths and checksums, shortest first.
    pub(super) fn known_segments(&self) -> BTreeMap<Life, Vec<PointSegment>> {
        let mut known: BTreeMap<Life, Vec<PointSegment>> = BTreeMap::new();
        for segment in self.points.iter().flat_map(|point| &point.segments) {
            known.entry((segment.number, segment.life)).or_default().push(*segment);
        }
        known.values_mut().for_each(|lengths| lengths.sort_by_key(|segment| segment.length));
        known
    }

    /// Files of runs that are here, by their numbers in the store: the ones brought last come last.
    pub(super) fn known_runs(&self) -> BTreeMap<u64, Vec<PointFile>> {
        let mut known: BTreeMap<u64, Vec<PointFile>> = BTreeMap::new();
        for file in self.points.iter().flat_map(|point| &point.files) {
            if let FileKind::Run { number, .. } = file.kind {
                let files = known.entry(number).or_default();
                files.retain(|other| other.kind != file.kind);
                files.push(*file);
            }
        }
        known
    }

    /// Makes the directory of the files of runs if it is missing.
    pub(super) fn make_runs_directory(&self) -> Result<()> {
        let path = self.root.join(RUNS_NAME);
        self.device.create_dir(&path).map_err(|e| Error::io("create", &path, &e))?;
        self.device.sync_dir(&self.root).map_err(|e| Error::io("flush", &self.root, &e))
    }

    pub(super) fn next_number(&self) -> u64 {
        self.points.last().map_or(1, |point| point.number + 1)
    }

    pub(super) fn segment_path(&self, (number, life): Life) -> PathBuf {
        self.root.join("segments").join(segment_name((number, life)))
    }

    pub(super) fn file_path(&self, point: u64, kind: FileKind) -> PathBuf {
        let directory = if matches!(kind, FileKind::Run { .. }) { RUNS_NAME } else { "points" };
        self.root.join(directory).join(file_name(point, kind))
    }

    fn point_path(&self, number: u64) -> PathBuf {
        self.root.join("points").join(format!("{number:08}{POINT_SUFFIX}"))
    }

    pub(super) fn read_job(&self, path: &Path, access: Access, from: u64, to: u64) -> Result<Job<T::File>> {
        let opened = self.device.open(path, access);
        let file = opened.map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                let what = "the file is missing; restore it from another copy of the repository".to_string();
                Error::Corruption { path: path.to_path_buf(), offset: 0, what }
            }
            _ => Error::io("open", path, &e),
        })?;
        Ok(Job { file, path: path.to_path_buf(), from, to })
    }

    pub(super) fn unpaced(&self) -> Pace<'static> {
        Pace { bytes_per_second: None, clock_ms: &|| 0 }
    }

    /// Adds a restore point whose files are durable. It exists when this returns.
    pub(super) fn add(&mut self, point: Point) -> Result<()> {
        self.sync_dir("segments")?;
        if point.files.iter().any(|file| matches!(file.kind, FileKind::Run { .. })) {
            self.sync_dir(RUNS_NAME)?;
        }
        self.sync_dir("points")?;
        replace_file(&self.device, &self.point_path(point.number), &point.encode(&self.identity.store))?;
        self.points.push(point);
        Ok(())
    }

    fn sync_dir(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        self.device.sync_dir(&path).map_err(|e| Error::io("flush", &path, &e))
    }

    /// Removes every file that no restore point refers to.
    fn remove_leftovers(&self) -> Result<()> {
        let named = |path: PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let mut wanted: BTreeSet<String> = self.expectations().into_keys().filter_map(named).collect();
        wanted.extend(self.points.iter().filter_map(|point| named(self.point_path(point.number))));
        for directory in ["segments", "points", RUNS_NAME].map(|name| self.root.join(name)) {
            let names = match self.device.list(&directory) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && directory.ends_with(RUNS_NAME) => {
                    continue;
                }
                names => names.map_err(|e| Error::io("list", &directory, &e))?,
            };
            for name in names {
                let path = directory.join(&name);
                if !wanted.contains(&name) {
                    self.device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
                }
            }
        }
        Ok(())
    }
}

/// The expectation of a restore point of a file.
struct Expected {
    length: u64,
    checksum: u32,
    point: u64,
    /// Whether the point cannot be restored without it.
    is_needed: bool,
}

fn longest(expected: &[Expected]) -> u64 {
    expected.last().map_or(0, |expected| expected.length)
}

fn segment_name((number, life): Life) -> String {
    format!("{number:08}-{life:016}.seg")
}

fn file_name(point: u64, kind: FileKind) -> String {
    match kind {
        FileKind::Lmdb => format!("{point:08}.lmdb"),
        FileKind::Hash { table, .. } => format!("{point:08}-{table:08}.hash"),
        FileKind::Runs => format!("{point:08}.runs"),
        FileKind::Run { number, brought_by } => format!("{number:012}-{brought_by:08}.run"),
    }
}

/// A file of the repository differs from the written bytes, somewhere from `offset` on.
pub(super) fn damaged_backup(path: &Path, offset: u64) -> Error {
    let what = "from here on the checksum does not match; restore the file from another copy of the repository";
    Error::Corruption { path: path.to_path_buf(), offset, what: what.to_string() }
}

fn not_a_repository(root: &Path) -> Error {
    Error::NotARepository { path: root.to_path_buf() }
}

fn is_read_only(kind: std::io::ErrorKind) -> bool {
    matches!(kind, std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied)
}

fn lock<T: Device>(device: &T, root: &Path) -> Result<T::Lock> {
    let path = root.join("LOCK");
    let lock = device.lock(&path).map_err(|e| Error::io("lock", &path, &e))?;
    lock.map_err(|holder| Error::RepositoryInUse { path: root.to_path_buf(), holder })
}

fn read_identity<T: Device>(device: &T, root: &Path) -> Result<Option<Identity>> {
    let path = root.join(IDENTITY_NAME);
    let Some(bytes) = read_file(device, &path)? else { return Ok(None) };
    let advice = "the repository's identity is damaged: restore the file from another copy of the repository";
    decode_repository(&bytes).map(Some).map_err(|damage| damage_error(&path, 0, damage, advice))
}

/// Without an identity, a directory may only contain the leftovers of an interrupted creation, so no restore point. Returns
/// the names that are there.
fn refuse_foreign_directory<T: Device>(device: &T, root: &Path) -> Result<Vec<String>> {
    let names = device.list(root).map_err(|e| Error::io("list", root, &e))?;
    let points = device.list(&root.join("points")).unwrap_or_default();
    let foreign = |name: &String| !OURS.contains(&name.as_str()) && !is_trial(name);
    if names.iter().any(foreign) || !points.is_empty() {
        return Err(not_a_repository(root));
    }
    Ok(names)
}

fn create<T: Device>(device: &T, root: &Path, identity: &Identity) -> Result<()> {
    for name in ["segments", "points"] {
        let path = root.join(name);
        device.create_dir(&path).map_err(|e| Error::io("create", &path, &e))?;
    }
    device.sync_dir(root).map_err(|e| Error::io("flush", root, &e))?;
    // The identity comes last: with it the repository exists.
    replace_file(device, &root.join(IDENTITY_NAME), &encode_repository(identity))
}

impl PointFile {
    /// Where the file lies in a store; the manifest of runs has a copy beside it.
    pub(super) fn path_in_store(&self, root: &Path) -> PathBuf {
        let index = root.join("index");
        let runs = index.join("runs");
        match self.kind {
            FileKind::Lmdb => index.join("lmdb").join("data.mdb"),
            FileKind::Hash { table, checkpoint } => index.join(format!("hash-{table:08}-{checkpoint:08}.ckp")),
            FileKind::Runs => runs.join(MANIFEST_NAMES[0]),
            FileKind::Run { number, .. } if self.kind.is_spilled() => path_of(&spilled_of(&index), number),
            FileKind::Run { number, .. } => path_of(&runs, number),
        }
    }
}
