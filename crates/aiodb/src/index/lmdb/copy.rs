//! Copying the environment while it is in use.

use std::fs::File;

use heed::CompactionOption;

use super::LmdbIndex;
use crate::{Error, Result};

impl LmdbIndex {
    /// Writes the environment as it is at one moment, without its free pages, to the start of an empty file. Commits and
    /// look-ups go on; the map cannot grow meanwhile, and a commit that needs it to grow waits.
    pub(crate) fn copy_to(&self, file: &mut File) -> Result<()> {
        let _copying = self.copying.lock().expect("no code panics while it copies the environment");
        let env = self.env();
        let env = env.as_ref().ok_or(Error::Closed)?;
        env.copy_to_file(file, CompactionOption::Enabled).map_err(|e| self.failed(&e))
    }
}
