//! Restore points made during a run, and the stores that come of them.

use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{BackupOptions, CompactionFilters, Db, Error, Options, Repository, Step};
use fastrand::Rng;

use crate::model::{Cell, Found};
use crate::script::{key_bytes, table_name};
use crate::state::{Point, ROOT, Run, Violation};

/// Where backups go.
const REPOSITORY: &str = "/backup";

/// The work that goes on during a backup; merges more often than other steps.
const STEPS_BESIDE: [Step; 8] = [
    Step::Merge,
    Step::Merge,
    Step::Merge,
    Step::CommitAhead,
    Step::Settle,
    Step::DeleteRanges,
    Step::Reclaim,
    Step::Checkpoint,
];

/// Steps between two reports of a backup's progress are fewer than these.
const MOST_STEPS_BESIDE: usize = 4;

/// Restore points that are remembered.
const MOST_POINTS: usize = 3;

impl Run<'_> {
    /// Makes a restore point.
    pub(crate) fn back_up(&mut self) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let (db, device, mut beside) = (self.db().clone(), self.device.clone(), Ok(()));
        let mut random = Rng::with_seed(self.script.seed ^ self.at as u64);
        let outcome = self
            .device
            .create_dir(Path::new(REPOSITORY))
            .map_err(|e| Error::Io { action: "create", path: REPOSITORY.into(), kind: e.kind(), reason: e.to_string() })
            .and_then(|()| {
                db.backup_on(device, REPOSITORY, &BackupOptions::default(), &mut |_, _| {
                    if beside.is_ok() {
                        beside = self.work_beside(&mut random);
                    }
                })
            });
        beside?;
        match outcome {
            Ok(report) if !self.device.has_crashed() => {
                // It has made everything durable that was in the log.
                self.notice_published();
                let (contents, moments) = (self.model.current().clone(), self.moments(from));
                self.points.push(Point { number: report.point.number, contents, moments });
                if self.points.len() > MOST_POINTS {
                    self.points.remove(0);
                }
                self.report.backups += 1;
                // Not before: what went meanwhile may have gone after the end of the backup.
                self.notice_dropped()
            }
            Err(Error::DestinationFull { .. }) if self.allowed.full => Ok(()),
            Err(error) if self.allowed.damage && is_lost_repository(&error) => Ok(()),
            // A store that refuses writes has no checkpoint to back up.
            outcome => self.unexpected("a backup", outcome.map(drop)),
        }
    }

    /// Some work behind the scenes, while a backup is being made.
    fn work_beside(&mut self, random: &mut Rng) -> Result<(), Violation> {
        if !self.script.setup.works_beside_backups {
            return Ok(());
        }
        (0..random.usize(..MOST_STEPS_BESIDE)).try_for_each(|_| match self.device.has_crashed() {
            true => Ok(()),
            false => self.step_unnoticed(STEPS_BESIDE[random.usize(..STEPS_BESIDE.len())]),
        })
    }

    /// Makes a store on another machine from a restore point, and compares what it holds.
    pub(crate) fn restore(&mut self, number: usize) -> Result<(), Violation> {
        if self.points.is_empty() {
            return Ok(());
        }
        let point = &self.points[number % self.points.len()];
        let target = SimDevice::with_block_bytes(self.script.seed, self.script.setup.block_bytes);
        target.set_wall_clock(self.device.wall_ms() as i64 - target.wall_ms() as i64);
        let restored = self.restored(point.number, &target);
        if self.device.has_crashed() {
            return Ok(());
        }
        // Files of runs that cannot be read are left out.
        let is_whole = !self.allowed.damage && !self.allowed.errors;
        let found = match restored {
            Ok((_, true)) if is_whole => return Err("a restored store has made an index again".into()),
            Ok((found, _)) => found,
            Err(error) if self.allowed.damage && is_lost_repository(&error) => return Ok(()),
            Err(error) => return self.unexpected("a restore", Err(error)),
        };
        // Time has passed there; it may have been put right since the point was made.
        let (from_ms, to_ms) = (point.moments.0.min(target.wall_ms()), point.moments.1.max(target.wall_ms()));
        let moments = self.moments((from_ms, to_ms));
        let point = &self.points[number % self.points.len()];
        for (table, (found, wanted)) in found.iter().zip(&point.contents).enumerate() {
            let (Some(found), Some(wanted)) = (found, wanted) else {
                if found.is_some() == wanted.is_some() {
                    continue;
                }
                return Err(format!("a restored store has table {table} or lacks it, other than its restore point"));
            };
            for (key, (found, held)) in found.iter().zip(wanted).enumerate() {
                if !held.shows(*found, moments) && !held.shows(*found, point.moments) {
                    let wanted = held.at(moments.1);
                    return Err(format!(
                        "a restored store has {found:x?} at key {key} of table {table}, not {wanted:x?}"
                    ));
                }
            }
        }
        self.report.restores += 1;
        Ok(())
    }

    /// What a restored store holds, and whether it had to make an index again.
    fn restored(&self, point: u64, target: &SimDevice) -> aiodb::Result<(Found, bool)> {
        let created = target.create_dir(Path::new(ROOT));
        created.expect("a machine without faults makes a directory");
        let repository = Repository::open_on(self.device.clone(), REPOSITORY)?;
        repository.restore_on(Some(point), target.clone(), ROOT, &mut |_, _| {})?;
        // Whoever opens it need not know the filters.
        let options = Options { compaction_filters: CompactionFilters::default(), ..self.options(false) };
        let db = Db::open_on(target.clone(), ROOT, options)?;
        let found = (0..self.script.setup.tables.len())
            .map(|table| {
                let Ok(table) = db.table(&table_name(table)) else { return Ok(None) };
                let keys = 0..self.script.setup.keys;
                let cells = keys.map(|key| table.get(&key_bytes(key)).map(|value| Cell::of(value.as_deref())));
                cells.collect::<aiodb::Result<Vec<Cell>>>().map(Some)
            })
            .collect::<aiodb::Result<Found>>()?;
        Ok((found, db.stats().rebuilt_indexes))
    }
}

/// What a repository reports whose own files a damaged medium has lost.
fn is_lost_repository(error: &Error) -> bool {
    matches!(
        error,
        Error::NotARepository { .. }
            | Error::OtherStore { .. }
            | Error::NoRestorePoint { .. }
            | Error::NewerVersion { .. }
    )
}
