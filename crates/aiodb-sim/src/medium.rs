//! Calls that fail or go wrong, a disk that is full, damage of the medium: what each does, and what may be answered since.

use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::{Call, Effect};
use aiodb::{IndexKind, Step};

use crate::script::Files;
use crate::state::{Allowed, Run, Violation};

/// Bytes before a value that say what it is: changed as often as so many of its own.
const BYTES_BEFORE: usize = 32;

/// What two checkpoints of a hash table with a few keys take, at most.
const HASH_CHECKPOINT_BYTES: u64 = 16 << 10;
/// What an index of runs reserves: the runs of two small memtables, manifests, and merges of what such a store has.
const RUNS_BYTES: u64 = 640 << 10;

/// The manifest of sorted runs, and its copy.
const MANIFEST_OF_RUNS: &str = "/store/index/runs/MANIFEST";
const COPY_OF_MANIFEST: &str = "/store/index/runs/MANIFEST.copy";

/// Shorter values could lie anywhere by chance.
const LEAST_BYTES: usize = 8;

impl Run<'_> {
    /// From now on the medium may have lost or changed anything after the last checkpoint.
    pub(crate) fn medium_fault(&mut self) {
        if !self.allowed.damage {
            self.floor = self.model.checkpointed();
        }
        self.allowed.damage = true;
    }

    /// Disturbs so many calls that concern some files, after some that it does not.
    pub(crate) fn disturb(&mut self, call: Call, effect: Effect, skip: u64, times: u64, files: Files) {
        match effect {
            Effect::Fail | Effect::Shortage => {
                self.allowed.errors = true;
                self.tell_filter();
            }
            Effect::Lose | Effect::Misdirect(_) => self.medium_fault(),
            Effect::Delay(_) => {}
        }
        self.device.disturb(call, effect, skip, times, move |path| files.contain(path));
    }

    /// Leaves the disk room for so many more segments, or for any number. Where what makes room must never be refused, the reserve is
    /// whole first and the indexes have what they need: a disk that other programs fill further promises nothing.
    pub(crate) fn limit_room(&mut self, segments: Option<u64>) -> Result<(), Violation> {
        let setup = &self.script.setup;
        let mut more = segments.map(|segments| segments * setup.segment_bytes);
        if let (Some(more), Some(index_needs)) = (&mut more, setup.index_needs) {
            self.device.set_capacity(None);
            self.step(Step::Prepare)?;
            let hash_tables = setup.tables.iter().filter(|kind| **kind == IndexKind::Hash).count() as u64;
            *more += index_needs + hash_tables * (setup.segment_bytes + HASH_CHECKPOINT_BYTES);
            *more += if setup.tables.contains(&IndexKind::Lsm) { RUNS_BYTES } else { 0 };
        }
        self.allowed.full |= segments.is_some();
        self.tell_filter();
        self.device.set_capacity(more.map(|more| self.device.used_bytes() + more));
        Ok(())
    }

    /// Changes a byte of a file.
    pub(crate) fn rot(&mut self, file: usize, offset: u64, mask: u8) -> Result<(), Violation> {
        self.medium_fault();
        // The open batches lie in mapped memory, the lock's text counts for nothing.
        let names: Vec<_> = self.device.file_names().into_iter().filter(|name| !is_memory(name)).collect();
        let Some(name) = names.get(file % names.len().max(1)) else { return Ok(()) };
        let length = self.device.file_bytes(name).map_or(0, |bytes| bytes.len() as u64);
        if length > 0 {
            self.device.corrupt(name, offset % length, mask);
            self.report.rotten_bytes += 1;
        }
        Ok(())
    }

    /// Changes a bit of the manifest of sorted runs, if that is all that goes wrong in this run: nothing may be lost by it.
    pub(crate) fn rot_manifest_of_runs(&mut self, bit: u64) {
        let Allowed { errors, full, damage } = self.allowed;
        // The first edit of all has no copy before it is done.
        let is_alone = !errors && !full && !damage && self.device.file_bytes(COPY_OF_MANIFEST).is_some();
        let bits = self.device.file_bytes(MANIFEST_OF_RUNS).map_or(0, |bytes| 8 * bytes.len() as u64);
        if is_alone && bits > 0 {
            self.device.corrupt(MANIFEST_OF_RUNS, bit % bits / 8, 1 << (bit % 8));
            self.report.rotten_bytes += 1;
        }
    }

    /// Changes a byte of a key's value, or one just before it, in every segment that holds these bytes.
    pub(crate) fn rot_value(&mut self, table: usize, key: usize, byte: usize, mask: u8) -> Result<(), Violation> {
        let now_ms = self.device.wall_ms();
        let Some(value) = self.model.held(table, key).and_then(|held| held.bytes_at(now_ms)) else { return Ok(()) };
        if value.len() < LEAST_BYTES {
            return Ok(());
        }
        self.medium_fault();
        let segments: Vec<_> = self.device.file_names().into_iter().filter(|name| Files::Log.contain(name)).collect();
        for name in segments {
            let bytes = self.device.file_bytes(&name).unwrap_or_default();
            let starts = bytes.windows(value.len()).enumerate().filter(|(_, found)| found == &value);
            for (start, _) in starts {
                let offset = (start + byte % (BYTES_BEFORE + value.len())).saturating_sub(BYTES_BEFORE);
                self.device.corrupt(&name, offset as u64, mask);
                self.report.rotten_bytes += 1;
            }
        }
        Ok(())
    }
}

fn is_memory(path: &Path) -> bool {
    path.starts_with("/store/pending") || path.ends_with("LOCK")
}
