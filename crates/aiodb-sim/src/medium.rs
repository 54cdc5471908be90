//! Damage of the medium: what it changes, and that it was damaged.

use std::path::Path;

use aiodb::io::Device;

use crate::run::{Run, Violation, is_segment};

/// Bytes before a value that say what it is: changed as often as so many of its own.
const BYTES_BEFORE: usize = 32;

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

    /// Changes a byte of a key's value, or one just before it, in every segment that holds these bytes.
    pub(crate) fn rot_value(&mut self, table: usize, key: usize, byte: usize, mask: u8) -> Result<(), Violation> {
        let now_ms = self.device.wall_ms();
        let Some(value) = self.model.held(table, key).and_then(|held| held.bytes_at(now_ms)) else { return Ok(()) };
        if value.len() < LEAST_BYTES {
            return Ok(());
        }
        self.medium_fault();
        let segments: Vec<_> = self.device.file_names().into_iter().filter(|name| is_segment(name)).collect();
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
