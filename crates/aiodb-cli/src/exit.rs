//! How a command ended.

use std::process::ExitCode;

/// How a command ended, as the process's exit code. `aiodb --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Everything asked for was done.
    Success = 0,
    /// The answer is no: the key is absent, or the store is damaged.
    Negative = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The operation failed.
    Failed = 3,
    /// A load finished but skipped bad lines.
    SkippedLines = 4,
    /// Stopped cleanly by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
