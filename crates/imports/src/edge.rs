//! One import.

use std::fmt;
use std::path::{Path, PathBuf};

/// A line of one file that names something in another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The file that imports, from the crate's directory: `src/load/csv.rs`.
    pub from: PathBuf,
    /// The line in it, from 1.
    pub line: usize,
    /// The file that has what is imported.
    pub to: PathBuf,
    /// The path as the line has it: `super::input::Raw`; braces are taken apart.
    pub name: String,
}

impl Edge {
    /// The two files.
    pub(crate) fn files(&self) -> (&Path, &Path) {
        (&self.from, &self.to)
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{} names {} of {}", self.from.display(), self.line, self.name, self.to.display())
    }
}
