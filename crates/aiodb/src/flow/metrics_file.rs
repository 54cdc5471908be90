//! The metrics of an open store for other processes: a file that is replaced as a whole.

use std::path::Path;
use std::sync::atomic::Ordering;

use crate::io::small_file::new_name;
use crate::io::{Access, Device, File, WriteSync};
use crate::store::engine::Engine;
use crate::{Error, Result};

/// How often the file is written at most.
const PERIOD_MS: u64 = 1000;

impl<D: Device> Engine<D> {
    /// Writes the metrics file if there is to be one and the last is old enough. A failure is noted as trouble.
    pub(crate) fn refresh_metrics_file(&self) {
        let Some(path) = &self.options.metrics_file else { return };
        let now = self.device.clock_ms();
        if now < self.meters.file_written_ms.load(Ordering::Relaxed) + PERIOD_MS {
            return;
        }
        self.meters.file_written_ms.store(now, Ordering::Relaxed);
        if let Err(error) = self.write_metrics_file(path) {
            self.note_trouble(&error);
        }
    }

    /// Never flushed: after a power cut it is of no use. Replaced, so that no reader sees half of it.
    fn write_metrics_file(&self, path: &Path) -> Result<()> {
        let new_path = new_name(path);
        let failed = |e: std::io::Error| Error::io("write", &new_path, &e);
        let file = self.device.open(&new_path, Access::CREATE).map_err(failed)?;
        file.truncate(0).map_err(failed)?;
        file.write_at(self.metrics().to_prometheus().as_bytes(), 0, WriteSync::Later).map_err(failed)?;
        self.device.rename(&new_path, path).map_err(|e| Error::io("name", path, &e))
    }

    /// A closed store has no metrics. If the file cannot be removed, its readers see that it grows old.
    pub(crate) fn remove_metrics_file(&self) {
        if let Some(path) = &self.options.metrics_file {
            let _ = self.device.remove(path);
        }
    }
}
