//! The runs as of one moment, for a backup.

use std::sync::Arc;

use super::Runs;
use super::file::CapturedFile;
use super::set::{Files, RunSet};
use crate::Result;
use crate::io::Device;

/// The runs as of one edit, or those of one `hash` table as of a checkpoint. Their files stay as long as this is held, whatever is merged meanwhile.
pub(crate) struct CapturedRuns<D: Device> {
    set: Arc<RunSet<D>>,
    store: [u8; 16],
}

impl<D: Device> Runs<D> {
    /// The runs that there are now.
    pub(crate) fn capture(&self) -> Result<CapturedRuns<D>> {
        Ok(CapturedRuns { set: Arc::new(self.set()?.without_filters()), store: self.store })
    }
}

impl<D: Device> CapturedRuns<D> {
    /// The runs of a set.
    pub(super) fn new(set: Arc<RunSet<D>>, store: [u8; 16]) -> CapturedRuns<D> {
        CapturedRuns { set, store }
    }

    /// The manifest that names the files.
    pub(crate) fn manifest(&self) -> Vec<u8> {
        self.set.manifest.encode(&self.store)
    }

    /// Calls a closure with each file, in the order of their numbers.
    pub(crate) fn each_file(&self, mut visit: impl FnMut(CapturedFile<'_, D>) -> Result<()>) -> Result<()> {
        let files: Files<D> = self.set.files();
        let mut files: Vec<_> = files.values().collect();
        files.sort_by_key(|file| file.name.number);
        files.into_iter().try_for_each(|file| visit(file.captured()))
    }
}
