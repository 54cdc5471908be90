//! From a restore point to a store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::destination_full;
use super::pipe::pump;
use super::point::{FileKind, Point, PointFile, PointSegment};
use super::repository::{Repository, damaged_backup};
use crate::checksum::{crc32c, crc32c_append};
use crate::format::manifest::{Identity, MANIFEST_NAMES, Manifest};
use crate::format::segment::{SegmentHeader, put};
use crate::index::hash::checkpoint::names_runs;
use crate::io::disk::{is_trial, remove_trials};
use crate::io::small_file::{read_file, replace_file};
use crate::io::{Access, AlignedBuffer, Device, Disk, File, UNIT_BYTES, WriteSync};
use crate::{Backend, Error, Result};

/// A file that marks a directory as a store that is being restored.
const MARKER_NAME: &str = "RESTORING";

/// The names that a directory may contain before it is marked so. A restore that was interrupted as it began leaves them, beside files of
/// trials.
const BEFORE_MARKER: [&str; 3] = ["LOCK", "RESTORING.new", "lost+found"];

/// Where a store has the runs of `lsm` tables, and those of `hash` tables.
const RUNS: &str = "index/runs";
const SPILLED: &str = "index/spilled";

/// Zeros are written in pieces of this size.
const FILL_BYTES: usize = 1 << 20;

/// The lives of a restored store begin at random up to this far ahead, so that no life is one of the original's.
const LIFE_LEAP_BITS: u32 = 40;

/// The outcome of [`Repository::restore`].
#[derive(Clone, Debug)]
pub struct RestoreReport {
    /// The restore point.
    pub point: u64,
    /// The sequence of the last write that is in the store.
    pub last_sequence: u64,
    /// Bytes read from the repository, all checked.
    pub bytes: u64,
    /// Why the index of the tables with runs was left out, if it was: a file of it is damaged or missing. Nothing is lost by that. The first
    /// opening, which must be one for writing, makes the index again from the log.
    pub index_damage: Option<Error>,
}

impl<T: Device> Repository<T> {
    /// Makes a store in the directory `target` (made if it is missing, else empty) from the restore point of this number,
    /// or from the latest. Every byte is checked against its checksum. `progress` is told the bytes done and in all.
    ///
    /// The store is durable when this returns, and is opened like any other; its first opening replays the writes made
    /// during the backup. It has the original's identity, so that later backups of either can go into the repository; it
    /// is a store of its own all the same, and files of the two must not be mixed. A restore that did not come to its end
    /// leaves a file `RESTORING` and no store; it can be repeated on the same directory.
    ///
    /// Of the files that a restore point has, only those of runs may be damaged, see [`RestoreReport::index_damage`].
    ///
    /// Fails with [`Error::NoRestorePoint`], [`Error::Occupied`], [`Error::Locked`], [`Error::DestinationFull`],
    /// [`Error::Corruption`] or [`Error::Io`].
    pub fn restore(
        &self,
        point: Option<u64>,
        target: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<RestoreReport> {
        let root = target.as_ref();
        self.find(point)?;
        let made = std::fs::create_dir_all(root).map_err(|e| Error::io("create", root, &e));
        // Before anything is written there, also by the device's trial.
        made.and_then(|()| refuse_occupied(&Disk::plain(), root).map(drop)).map_err(destination_full)?;
        let device = Disk::open(root, Backend::Threads, true).map_err(destination_full)?;
        self.restore_on(point, device, root, progress)
    }

    /// Like [`Repository::restore`] onto another device; the directory must exist.
    pub fn restore_on<S: Device>(
        &self,
        point: Option<u64>,
        device: S,
        target: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<RestoreReport> {
        let (root, point) = (target.as_ref(), self.find(point)?);
        let names = refuse_occupied(&device, root)?;
        let lock_path = root.join("LOCK");
        let lock = device.lock(&lock_path).map_err(|e| Error::io("lock", &lock_path, &e));
        let lock = lock.map_err(destination_full)?;
        let _lock = lock.map_err(|holder| Error::Locked { path: root.to_path_buf(), holder })?;
        let restore = Restore { repository: self, point, device, root, names };
        let (bytes, index_damage) = restore.run(progress).map_err(destination_full)?;
        Ok(RestoreReport { point: point.number, last_sequence: point.next_sequence - 1, bytes, index_damage })
    }
}

/// Only an empty directory will do, or one in which a restore was interrupted. Returns the names that are there.
fn refuse_occupied<S: Device>(device: &S, root: &Path) -> Result<Vec<String>> {
    let names = device.list(root).map_err(|e| Error::io("list", root, &e))?;
    let has = |name: &str| names.iter().any(|found| found == name);
    if has("LOCK") {
        let path = root.join("LOCK");
        let lock = device.lock(&path).map_err(|e| Error::io("lock", &path, &e))?;
        lock.map_err(|holder| Error::Locked { path: root.to_path_buf(), holder })?;
    }
    let unfinished = has(MARKER_NAME) && !has("STORE");
    let empty = names.iter().all(|name| BEFORE_MARKER.contains(&name.as_str()) || is_trial(name));
    if empty || unfinished { Ok(names) } else { Err(Error::Occupied { path: root.to_path_buf() }) }
}

/// A restore in progress.
struct Restore<'a, T: Device, S: Device> {
    repository: &'a Repository<T>,
    point: &'a Point,
    device: S,
    root: &'a Path,
    /// What was in the directory.
    names: Vec<String>,
}

impl<T: Device, S: Device> Restore<'_, T, S> {
    /// Returns the bytes read, and why the runs were left out, if they were.
    fn run(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<(u64, Option<Error>)> {
        let identity = &self.repository.identity;
        self.prepare()?;
        let checked = self.copy_indexes(progress)?;
        let with_runs = checked + self.runs().map(|file| file.length).sum::<u64>();
        let index_damage = match self.copy_runs(checked, progress) {
            Err(damage @ (Error::Corruption { .. } | Error::Io { action: "read" | "open", .. })) => {
                self.leave_out_runs()?;
                Some(damage)
            }
            copied => copied.map(|()| None)?,
        };
        let unchecked = if index_damage.is_some() { with_runs - checked } else { 0 };
        let bytes = self.copy_segments(with_runs, progress)? - unchecked;
        self.write_void_segment(identity)?;
        for directory in ["log", "index"] {
            self.sync_dir(directory)?;
        }
        let manifest = self.manifest().encode(&identity.store);
        for name in MANIFEST_NAMES {
            replace_file(&self.device, &self.root.join(name), &manifest)?;
        }
        // The identity comes last: with it the store exists.
        replace_file(&self.device, &self.root.join("STORE"), &identity.encode())?;
        let marker = self.root.join(MARKER_NAME);
        self.device.remove(&marker).map_err(|e| Error::io("remove", &marker, &e))?;
        self.device.sync_dir(self.root).map_err(|e| Error::io("flush", self.root, &e))?;
        Ok((bytes, index_damage))
    }

    /// Marks the directory, and removes the leftovers of an interrupted restore from it.
    fn prepare(&self) -> Result<()> {
        let marker = self.root.join(MARKER_NAME);
        let text =
            b"A store is being restored here. If nobody is doing so, repeat the restore or remove the directory.\n";
        replace_file(&self.device, &marker, text)?;
        remove_trials(&self.device, self.root, &self.names)?;
        let mut directories = vec!["log", "index", "pending", "index/lmdb"];
        // One that is interrupted may have been of another restore point.
        let of_hash = |file: &&PointFile| file.kind.is_spilled();
        for (name, has_files) in
            [(RUNS, self.runs().any(|file| !of_hash(&file))), (SPILLED, self.runs().any(|file| of_hash(&file)))]
        {
            if has_files || self.device.list(&self.root.join(name)).is_ok() {
                directories.push(name);
            }
        }
        for directory in directories.into_iter().map(|name| self.root.join(name)) {
            self.device.create_dir(&directory).map_err(|e| Error::io("create", &directory, &e))?;
            self.clear(&directory)?;
        }
        self.device.sync_dir(self.root).map_err(|e| Error::io("flush", self.root, &e))
    }

    /// Removes the files of a directory.
    fn clear(&self, directory: &Path) -> Result<()> {
        for name in self.device.list(directory).map_err(|e| Error::io("list", directory, &e))? {
            let path = directory.join(name);
            if !["index/lmdb", RUNS, SPILLED].iter().any(|directory| path.ends_with(directory)) {
                self.device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
            }
        }
        Ok(())
    }

    /// Leaves out all runs, and the checkpoints of `hash` indexes that name some.
    fn leave_out_runs(&self) -> Result<()> {
        for name in [RUNS, SPILLED].into_iter().filter(|name| self.device.list(&self.root.join(name)).is_ok()) {
            self.clear(&self.root.join(name))?;
            self.sync_dir(name)?;
        }
        for file in self.point.files.iter().filter(|file| matches!(file.kind, FileKind::Hash { .. })) {
            let path = file.path_in_store(self.root);
            if read_file(&self.device, &path)?.is_some_and(|bytes| names_runs(&bytes)) {
                self.device.remove(&path).map_err(|e| Error::io("remove", &path, &e))?;
            }
        }
        Ok(())
    }

    /// The files of runs.
    fn runs(&self) -> impl Iterator<Item = &PointFile> {
        self.point.files.iter().filter(|file| file.kind.is_of_runs())
    }

    fn copy_indexes(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let mut done = 0;
        for file in self.point.files.iter().filter(|file| !file.kind.is_of_runs()) {
            self.copy_index_file(file, &file.path_in_store(self.root), Access::CREATE, &mut done, progress)?;
        }
        self.sync_dir("index/lmdb")?;
        Ok(done)
    }

    /// Copies the files of runs, and then the manifest that names them, twice.
    fn copy_runs(&self, mut done: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let (manifests, files): (Vec<_>, Vec<_>) = self.runs().partition(|file| file.kind == FileKind::Runs);
        for file in &files {
            self.copy_index_file(file, &file.path_in_store(self.root), Access::NEW_SEGMENT, &mut done, progress)?;
        }
        for manifest in &manifests {
            let path = manifest.path_in_store(self.root);
            for path in [&path, &path.with_file_name(MANIFEST_NAMES[1])] {
                // They are read twice, and count once.
                let mut copied = done;
                self.copy_index_file(manifest, path, Access::CREATE, &mut copied, progress)?;
            }
            done += manifest.length;
        }
        let is_any = |of_hash| self.runs().any(|file| file.kind.is_spilled() == of_hash);
        let mut directories = [(RUNS, false), (SPILLED, true)].into_iter().filter(|(_, of_hash)| is_any(*of_hash));
        directories.try_for_each(|(name, _)| self.sync_dir(name))
    }

    fn copy_index_file(
        &self,
        file: &PointFile,
        to: &Path,
        access: Access,
        done: &mut u64,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let from = self.repository.file_path(self.point.number, file.kind);
        let out = self.device.open(to, access).map_err(|e| Error::io("create", to, &e))?;
        let mut checksum = crc32c(&[]);
        let job = self.repository.read_job(&from, Access::READ, 0, file.length)?;
        pump(&[job], &self.repository.unpaced(), &mut |_, offset, bytes| {
            checksum = crc32c_append(checksum, bytes);
            *done += bytes.len() as u64;
            progress(*done, self.point.bytes());
            out.write_at(bytes, offset, WriteSync::Later).map_err(|e| Error::io("write", to, &e))
        })?;
        if checksum != file.checksum {
            return Err(damaged_backup(&from, 0));
        }
        out.sync().map_err(|e| Error::io("flush", to, &e))
    }

    fn copy_segments(&self, mut done: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let segments = &self.point.segments;
        let mut jobs = Vec::new();
        for segment in segments {
            let path = self.repository.segment_path((segment.number, segment.life));
            // All are opened before the first is read: as segments they need not all have a descriptor.
            jobs.push(self.repository.read_job(&path, Access::READ_SEGMENT, 0, segment.length)?);
        }
        let mut current: Option<(S::File, PathBuf, u32)> = None;
        pump(&jobs, &self.repository.unpaced(), &mut |job, offset, bytes| {
            if offset == 0 {
                let (file, path) = self.create_segment(segments[job].number)?;
                current = Some((file, path, crc32c(&[])));
            }
            let (file, path, checksum) = current.as_mut().expect("a job's first piece comes first");
            file.write_at(bytes, offset, WriteSync::Later).map_err(|e| Error::io("write", &*path, &e))?;
            *checksum = crc32c_append(*checksum, bytes);
            let end = offset + bytes.len() as u64;
            if end == segments[job].length {
                if *checksum != segments[job].checksum {
                    return Err(damaged_backup(&jobs[job].path, 0));
                }
                self.fill(file, path, end)?;
            }
            done += bytes.len() as u64;
            progress(done, self.point.bytes());
            Ok(())
        })?;
        self.create_absent_segments()?;
        Ok(done)
    }

    fn create_segment(&self, number: u32) -> Result<(S::File, PathBuf)> {
        let path = self.root.join("log").join(format!("{number:08}.seg"));
        let file = self.device.open(&path, Access::NEW_SEGMENT).map_err(|e| Error::io("create", &path, &e))?;
        let reserved = file.reserve(self.repository.identity.segment_bytes);
        reserved.map_err(|e| Error::io("create", &path, &e))?;
        Ok((file, path))
    }

    /// Fills a segment with zeros from `offset` on: later writes must find their space taken.
    fn fill(&self, file: &S::File, path: &Path, mut offset: u64) -> Result<()> {
        let end = self.repository.identity.segment_bytes;
        let zeros = AlignedBuffer::new(FILL_BYTES.min(end as usize));
        while offset < end {
            let length = (end - offset).min(zeros.len() as u64);
            let written = file.write_at(&zeros[..length as usize], offset, WriteSync::Later);
            written.map_err(|e| Error::io("write", path, &e))?;
            offset += length;
        }
        file.sync().map_err(|e| Error::io("flush", path, &e))
    }

    /// Segment numbers that are not in use get empty files, or they would never be used again.
    fn create_absent_segments(&self) -> Result<()> {
        let used: BTreeMap<u32, &PointSegment> =
            self.point.segments.iter().map(|segment| (segment.number, segment)).collect();
        for number in (0..self.void_number()).filter(|number| !used.contains_key(number)) {
            let path = self.root.join("log").join(format!("{number:08}.seg"));
            let file = self.device.open(&path, Access::CREATE).map_err(|e| Error::io("create", &path, &e))?;
            file.truncate(0).and_then(|()| file.sync()).map_err(|e| Error::io("create", &path, &e))?;
        }
        Ok(())
    }

    fn void_number(&self) -> u32 {
        self.point.segments.iter().map(|segment| segment.number + 1).max().unwrap_or(0)
    }

    /// A segment without records that is on no chain, but says which life was the last one: so the store's next lives
    /// are none that the original had or will have, and its segments never pass for the original's.
    fn write_void_segment(&self, identity: &Identity) -> Result<()> {
        let (file, path) = self.create_segment(self.void_number())?;
        let leap = self.device.random() >> (u64::BITS - LIFE_LEAP_BITS);
        let header = SegmentHeader {
            store: identity.store,
            segment: self.void_number(),
            segment_bytes: identity.segment_bytes,
            life: self.point.end.life + 1 + leap,
            first_batch: 0,
            previous_checksum: 0,
            previous_segment: 0,
            previous_end: 0,
            durable_batch: 0,
            directories: 1,
        };
        let mut unit = AlignedBuffer::new(UNIT_BYTES);
        put(&mut unit, 0, &header.encode());
        file.write_at(&unit, 0, WriteSync::Later).map_err(|e| Error::io("write", &path, &e))?;
        self.fill(&file, &path, UNIT_BYTES as u64)
    }

    /// The checkpoint's manifest. The log goes on after it, so it is not that of a closed store.
    fn manifest(&self) -> Manifest {
        let mut manifest = Manifest { closed: false, ..self.point.manifest.clone() };
        let position = manifest.position;
        for segment in manifest.segments.iter_mut().filter(|segment| segment.life == position.life) {
            // It may have been read a moment later.
            segment.end = position.offset;
        }
        manifest
    }

    fn sync_dir(&self, name: &str) -> Result<()> {
        let path = self.root.join(name);
        self.device.sync_dir(&path).map_err(|e| Error::io("flush", &path, &e))
    }
}
