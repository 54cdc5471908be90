//! The runs in a backup, of `lsm` and of `hash` tables: each file comes into the repository once.

use std::collections::BTreeMap;

use super::Backup;
use super::pipe::{Job, Pace, pump};
use super::point::{FileKind, PointFile};
use super::repository::Repository;
use crate::checksum::{crc32c, crc32c_append};
use crate::index::runs::{CapturedFile, CapturedRuns, Runs};
use crate::io::{Access, AlignedBuffer, Device, File, UNIT_BYTES, WriteSync};
use crate::planted::{self, Bug};
use crate::{Error, IndexKind, Result};

/// Files of runs in the repository that a store's file of the same number may be.
type Known = BTreeMap<u64, Vec<PointFile>>;

/// The files that a restore point refers to, and those of them that are to be copied.
struct Plan<D: Device> {
    files: Vec<PointFile>,
    jobs: Vec<Job<D::File>>,
    /// The place in `files` of each job.
    copied: Vec<usize>,
}

impl<D: Device, T: Device> Backup<'_, D, T> {
    /// Copies the runs of `lsm` tables as they are now, and those of `hash` tables as the copied checkpoints name them. What they refer to is
    /// in the log already.
    pub(super) fn copy_runs(&mut self, pace: &Pace<'_>, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<PointFile>> {
        let mut captured = std::mem::take(&mut self.captured.spilled);
        let ordered = self.engine.ordered.get(IndexKind::Lsm);
        let of_lsm = ordered.and_then(|ordered| ordered.committed.runs()).map(Runs::capture).transpose()?;
        let manifest = of_lsm.as_ref().map(CapturedRuns::manifest);
        captured.extend(of_lsm);
        if captured.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.repository.known_runs();
        let mut plan = Plan { files: Vec::new(), jobs: Vec::new(), copied: Vec::new() };
        captured.iter().try_for_each(|captured| self.plan_runs(captured, &known, pace, &mut plan))?;
        // Merges go on meanwhile; the files that they merge away stay as long as this is held.
        let _held = (!planted::is_on(Bug::BackupLetsRunsGo)).then_some(captured);
        if !plan.jobs.is_empty() {
            self.repository.make_runs_directory()?;
            self.copy_run_files(&mut plan, pace, progress)?;
            self.mend_known(&mut plan, &known)?;
        }
        let mut files = plan.files;
        if planted::is_on(Bug::BackupForgetsRun) {
            files.pop();
        }
        if let Some(manifest) = manifest {
            files.push(self.write_runs_manifest(&manifest)?);
        }
        Ok(files)
    }

    fn plan_runs(&self, captured: &CapturedRuns<D>, known: &Known, pace: &Pace<'_>, plan: &mut Plan<D>) -> Result<()> {
        // Points are numbered one by one.
        let brought_by = u32::try_from(self.number).expect("nobody makes four thousand million restore points");
        captured.each_file(|file| {
            for candidate in known.get(&file.number).into_iter().flatten().rev() {
                if self.repository.has(candidate, &file, pace)? {
                    plan.files.push(*candidate);
                    return Ok(());
                }
            }
            let kind = FileKind::Run { number: file.number, brought_by };
            plan.copied.push(plan.files.len());
            plan.files.push(PointFile { kind, length: file.bytes, checksum: crc32c(&[]) });
            let (handle, path) = (file.file.clone(), file.path.to_path_buf());
            plan.jobs.push(Job { file: handle, path, from: 0, to: file.bytes });
            Ok(())
        })
    }

    fn copy_run_files(
        &mut self,
        plan: &mut Plan<D>,
        pace: &Pace<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<()> {
        let total = self.copied_bytes + plan.jobs.iter().map(|job| job.to).sum::<u64>();
        let mut current = None;
        let (files, copied) = (&mut plan.files, &plan.copied);
        pump(&plan.jobs, pace, &mut |job, offset, bytes| {
            // Once it is closed, another process may have the files.
            self.engine.check_open()?;
            let file = &mut files[copied[job]];
            if offset == 0 {
                let path = self.repository.file_path(self.number, file.kind);
                let opened = self.repository.device.open(&path, Access::NEW_SEGMENT);
                current = Some((opened.map_err(|e| Error::io("create", &path, &e))?, path));
            }
            let (to, path) = current.as_ref().expect("a job's first piece comes first");
            file.checksum = crc32c_append(file.checksum, bytes);
            to.write_at(bytes, offset, WriteSync::Later).map_err(|e| Error::io("write", path, &e))?;
            if offset + bytes.len() as u64 == file.length {
                to.sync().map_err(|e| Error::io("flush", path, &e))?;
            }
            self.copied_bytes += bytes.len() as u64;
            progress(self.copied_bytes, total);
            Ok(())
        })
    }

    /// Puts copies in the place of files that are damaged or missing and were the same.
    fn mend_known(&self, plan: &mut Plan<D>, known: &Known) -> Result<()> {
        for position in &plan.copied {
            let file = &mut plan.files[*position];
            let FileKind::Run { number, .. } = file.kind else { unreachable!("only files of runs are planned") };
            let is_same = |other: &&PointFile| (other.length, other.checksum) == (file.length, file.checksum);
            let Some(same) = known.get(&number).and_then(|known| known.iter().rev().find(is_same)) else { continue };
            let [from, to] = [file.kind, same.kind].map(|kind| self.repository.file_path(self.number, kind));
            self.repository.device.rename(&from, &to).map_err(|e| Error::io("name", &to, &e))?;
            *file = *same;
        }
        Ok(())
    }

    fn write_runs_manifest(&mut self, bytes: &[u8]) -> Result<PointFile> {
        let kind = FileKind::Runs;
        let path = self.repository.file_path(self.number, kind);
        let file = self.repository.device.open(&path, Access::CREATE).map_err(|e| Error::io("create", &path, &e))?;
        file.write_at(bytes, 0, WriteSync::Later).map_err(|e| Error::io("write", &path, &e))?;
        file.sync().map_err(|e| Error::io("flush", &path, &e))?;
        self.copied_bytes += bytes.len() as u64;
        Ok(PointFile { kind, length: bytes.len() as u64, checksum: crc32c(bytes) })
    }
}

impl<T: Device> Repository<T> {
    /// Whether a file of a run that is here is the store's. Its first and its last unit tell that, unless an earlier program has written
    /// it: then all of the store's file is read.
    fn has<D: Device>(&self, known: &PointFile, file: &CapturedFile<'_, D>, pace: &Pace<'_>) -> Result<bool> {
        if known.length != file.bytes {
            return Ok(false);
        }
        let path = self.file_path(0, known.kind);
        let here = match self.device.open(&path, Access::READ_SEGMENT) {
            // A lost file is copied again.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(|e| Error::io("open", &path, &e))?,
        };
        if here.length().map_err(|e| Error::io("look at", &path, &e))? < known.length {
            return Ok(false);
        }
        let unit = UNIT_BYTES as u64;
        for offset in [0, file.bytes - unit] {
            let (mut ours, mut theirs) = (AlignedBuffer::new(UNIT_BYTES), AlignedBuffer::new(UNIT_BYTES));
            file.file.read_at(&mut theirs, offset).map_err(|e| Error::io("read", file.path, &e))?;
            // Nor is one that cannot be read.
            if here.read_at(&mut ours, offset).is_err() || ours[..] != theirs[..] {
                return Ok(false);
            }
        }
        Ok(file.is_told_by_end || checksum_of(file, pace)? == known.checksum)
    }
}

/// The checksum of a whole file of a run of the store.
fn checksum_of<D: Device>(file: &CapturedFile<'_, D>, pace: &Pace<'_>) -> Result<u32> {
    let job = Job { file: file.file.clone(), path: file.path.to_path_buf(), from: 0, to: file.bytes };
    let mut checksum = crc32c(&[]);
    pump(&[job], pace, &mut |_, _, bytes| {
        checksum = crc32c_append(checksum, bytes);
        Ok(())
    })?;
    Ok(checksum)
}
