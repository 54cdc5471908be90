//! Why a command failed, with a word for programs and the exit code.

use crate::exit::Exit;
use aiodb_server::{ConfigError, ServeError};
use std::{fmt, io};

/// A command that did not do what it was asked to.
#[derive(Debug)]
pub enum CliError {
    /// The command line asks for something that makes no sense, beyond what the argument parser sees.
    Usage(String),
    /// `get` of a key that the table does not hold.
    KeyAbsent {
        /// The table that was asked.
        table: String,
    },
    /// The store refused or failed.
    Engine(aiodb::Error),
    /// A load could not make its records durable, so it cannot say that they are loaded.
    NotSynced {
        /// Why.
        cause: aiodb::Error,
        /// The records put by this run, all in doubt.
        records: u64,
        /// The value of `--skip-lines` that repeats them.
        skip_lines: u64,
    },
    /// A file or stdin cannot be read, or is not what was announced.
    Input {
        /// The file, or `stdin`.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A line that holds no record, where bad lines are not to be skipped.
    BadLine {
        /// The file, or `stdin`.
        name: String,
        /// The line's number, from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A command of an input was refused.
    BadCommand {
        /// The file, or `stdin`.
        name: String,
        /// The command's number, from 1.
        number: u64,
        /// What a client would have been told.
        reason: String,
    },
    /// A line of a sorted load whose key does not come after that of the line before.
    NotSorted {
        /// The file, or `stdin`.
        name: String,
        /// The line's number, from 1.
        line: u64,
        /// The engine's words, with both keys.
        cause: aiodb::Error,
    },
    /// The result could not be written.
    Output(io::Error),
    /// A benchmark could not be run; the text says why, and what to do.
    Bench(String),
    /// The server could not start, or not end as it should.
    Serve(ServeError),
}

impl CliError {
    /// The exit code that this failure ends the command with.
    pub fn exit(&self) -> Exit {
        match self {
            CliError::KeyAbsent { .. } => Exit::Negative,
            CliError::Usage(_) | CliError::Serve(ServeError::Config(_)) => Exit::Usage,
            _ => Exit::Failed,
        }
    }

    /// One word for programs; it stays the same when the message is reworded.
    pub fn kind(&self) -> &'static str {
        match self {
            CliError::Usage(_) => "usage",
            CliError::KeyAbsent { .. } => "key_absent",
            CliError::Engine(error) | CliError::NotSynced { cause: error, .. } => engine_kind(error),
            CliError::Input { .. } => "input",
            CliError::BadLine { .. } => "bad_line",
            CliError::BadCommand { .. } => "bad_command",
            CliError::NotSorted { cause, .. } => engine_kind(cause),
            CliError::Output(_) => "output",
            CliError::Bench(_) => "bench",
            CliError::Serve(ServeError::Config(_)) => "configuration",
            CliError::Serve(ServeError::Listen { .. }) => "listen",
            CliError::Serve(ServeError::Store(error)) => engine_kind(error),
            CliError::Serve(ServeError::System { .. }) => "io",
        }
    }

    /// A benchmark that could not be run.
    pub fn failed(reason: impl Into<String>) -> CliError {
        CliError::Bench(reason.into())
    }
}

fn engine_kind(error: &aiodb::Error) -> &'static str {
    use aiodb::Error::*;
    match error {
        NoStore { .. } => "no_store",
        NotAStore { .. } => "not_a_store",
        Locked { .. } => "locked",
        Directory { .. } => "directory",
        ReadOnly { .. } => "read_only",
        Unrecovered { .. } => "unrecovered",
        NewerVersion { .. } => "newer_version",
        Io { .. } => "io",
        TooManyOpenFiles { .. } => "too_many_open_files",
        Corruption { .. } => "corruption",
        DiskFull { .. } => "disk_full",
        StoreFull { .. } => "store_full",
        Failed { .. } => "failed",
        KeyLength { .. } => "key_length",
        ValueLength { .. } => "value_length",
        BatchTooLarge { .. } => "batch_too_large",
        ConditionFailed { .. } => "condition_failed",
        SnapshotEnded => "snapshot_ended",
        NoMergeOperator { .. } => "no_merge_operator",
        Merge { .. } => "merge",
        Filter { .. } => "filter",
        Unordered { .. } => "unordered",
        NoSuchTable { .. } => "no_such_table",
        TableExists { .. } => "table_exists",
        TableEmptied { .. } => "table_emptied",
        TableBeingMade { .. } => "table_being_made",
        TablesRenamed => "tables_renamed",
        MadeWithoutModes { .. } => "made_without_modes",
        NotAscending { .. } => "not_ascending",
        MergedExpiry { .. } => "merged_expiry",
        Source { .. } => "source",
        TableName { .. } => "table_name",
        Option { .. } => "option",
        TooLittleMemory { .. } => "too_little_memory",
        Backend { .. } => "backend",
        Closed => "closed",
        NotARepository { .. } => "not_a_repository",
        OtherStore { .. } => "other_store",
        RepositoryInUse { .. } => "repository_in_use",
        NoRestorePoint { .. } => "no_restore_point",
        Occupied { .. } => "occupied",
        DestinationFull { .. } => "destination_full",
        Index { .. } => "index",
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(message) => f.write_str(message),
            CliError::KeyAbsent { table } => write!(f, "the key is not in table `{table}`"),
            // The engine's own message speaks of an option that only programs have.
            CliError::Engine(aiodb::Error::NoStore { path }) => {
                write!(f, "no store at {}: check the path; put, load and create-table make a store", path.display())
            }
            CliError::Engine(error @ aiodb::Error::Directory { fault: aiodb::DirectoryFault::Missing { .. }, .. }) => {
                write!(f, "{error} (--also names another one)")
            }
            CliError::Engine(error) => error.fmt(f),
            CliError::NotSynced { cause, records, skip_lines } => write!(
                f,
                "{cause}; the {records} records put by this run are not known to be durable: once the cause is gone, \
                 load them again with --skip-lines {skip_lines}"
            ),
            CliError::Input { name, reason } => write!(f, "{name}: {reason}"),
            CliError::BadLine { name, line, reason } => {
                write!(f, "{name}:{line}: {reason} (--bad-lines skip goes on after such lines)")
            }
            CliError::BadCommand { name, number, reason } => {
                write!(f, "{name}: command {number}: {reason} (--bad-lines skip goes on after such commands)")
            }
            CliError::NotSorted { name, line, cause } => write!(f, "{name}:{line}: {cause}"),
            CliError::Bench(reason) => f.write_str(reason),
            CliError::Serve(error) => error.fmt(f),
            CliError::Output(error) => write!(f, "cannot write the result: {error}"),
        }
    }
}

impl From<aiodb::Error> for CliError {
    fn from(error: aiodb::Error) -> CliError {
        CliError::Engine(error)
    }
}

impl From<ServeError> for CliError {
    fn from(error: ServeError) -> CliError {
        CliError::Serve(error)
    }
}

impl From<ConfigError> for CliError {
    fn from(error: ConfigError) -> CliError {
        CliError::Serve(error.into())
    }
}
