//! Expected failures, in words for the person who must act on them.

use std::any::Any;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The result of an operation on a store.
pub type Result<T> = std::result::Result<T, Error>;

/// An expected failure. Broken invariants of the engine itself are panics instead.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// There is no store and none was to be made.
    #[error("no store at {path}: create one by opening it with `create`, or check the path")]
    NoStore {
        /** The directory asked for. */
        path: PathBuf,
    },
    /// The directory holds something else.
    #[error("{path} is not a store and not empty: choose an empty directory or an existing store")]
    NotAStore {
        /** The directory asked for. */
        path: PathBuf,
    },
    /// Another process has the store open.
    #[error("the store at {path} is in use by {holder}: close it there first")]
    Locked {
        /** The store. */
        path: PathBuf,
        /** Who holds it. */
        holder: String,
    },
    /// One of the directories given is not the store's, or is not all of it.
    #[error("{path}: {fault}")]
    Directory {
        /** The directory. */
        path: PathBuf,
        /** What is wrong with it. */
        fault: DirectoryFault,
    },
    /// The store was opened with [`crate::Options::read_only`].
    #[error("the store at {path} was opened for reading only: open it for writing to change it")]
    ReadOnly {
        /** The store. */
        path: PathBuf,
    },
    /// The store cannot be opened for reading only before it was opened for writing once, to finish the work of its last process.
    #[error("the store at {path} was not closed and {reason}: open it once for writing, then for reading only")]
    Unrecovered {
        /** The store. */
        path: PathBuf,
        /** What is to be done there. */
        reason: String,
    },
    /// The files were written by a newer version of this software.
    #[error("{path} has format version {found}, this program knows versions up to {known}: use a newer aiodb")]
    NewerVersion {
        /** The file. */
        path: PathBuf,
        /** Its version. */
        found: u32,
        /** Ours. */
        known: u32,
    },
    /// The operating system refused an operation on a file.
    #[error("cannot {action} {path}: {reason}")]
    Io {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's error kind, for programs.
        kind: io::ErrorKind,
        /// The system's message.
        reason: String,
    },
    /// No file descriptor was left for something, also after the store had closed idle ones of its own. Nothing has
    /// happened; the store goes on as soon as there are some again.
    #[error(
        "cannot {action} {path}: {} Nothing acknowledged is lost, and the store goes on as soon as there are some",
        no_descriptor(*limit)
    )]
    TooManyOpenFiles {
        /// What was attempted.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// How many this process may have; `None` if the machine has no more for any process.
        limit: Option<u64>,
    },
    /// Stored bytes are not the bytes that were written.
    #[error("{path} is damaged at byte {offset}: {what}")]
    Corruption {
        /// The damaged file.
        path: PathBuf,
        /// Where in the file, in bytes.
        offset: u64,
        /// The content that was expected there, and what can be done.
        what: String,
    },
    /// There is no space for another segment or for an index. Reads go on, and so do deletes and the dropping and
    /// truncating of tables; other writes resume once there is space.
    #[error(
        "no space left for new data at {path}: delete records, drop or truncate a table, or free disk space; reads go on"
    )]
    DiskFull {
        /** The store. */
        path: PathBuf,
    },
    /// The log has its greatest length.
    #[error(
        "the store at {path} has reached its limit of {max_bytes} bytes of log: delete records, or use a second store"
    )]
    StoreFull {
        /** The store. */
        path: PathBuf,
        /** The limit. */
        max_bytes: u64,
    },
    /// An earlier write or flush failed and its outcome is unknown.
    #[error(
        "the store no longer accepts writes because an earlier one failed ({cause}): reopen it to recover what is durable"
    )]
    Failed {
        /** The failure. */
        cause: String,
    },
    /// A key's length is outside 1 byte to 64 KiB.
    #[error("a key of {length} bytes: keys have 1 to {max} bytes in this store")]
    KeyLength {
        /** Its length in bytes. */
        length: usize,
        /** The limit. */
        max: usize,
    },
    /// A value is too long.
    #[error("a value of {length} bytes: values have at most {max} bytes in this store")]
    ValueLength {
        /** Its length in bytes. */
        length: usize,
        /** The limit. */
        max: usize,
    },
    /// An atomic batch does not fit.
    #[error("an atomic batch of {length} bytes: it may have at most {max}; split it")]
    BatchTooLarge {
        /** Its encoded length in bytes. */
        length: usize,
        /** The limit. */
        max: usize,
    },
    /// A condition of a batch does not hold.
    #[error(
        "condition {condition} of the batch (counted from 0), on a key of table `{table}`, does not hold: nothing was \
        written; read what it is about and decide again"
    )]
    ConditionFailed {
        /** Which condition, in the order in which they were added, from 0. */
        condition: usize,
        /** The table of its key. */
        table: String,
    },
    /// A snapshot, or a scan, was ended so that the store could go on.
    #[error(
        "the store ended this snapshot: the disk had no room for what it held back, or too many range deletes waited behind it; take a new one"
    )]
    SnapshotEnded,
    /// A table merges with an operator that the program has not registered, or with none.
    #[error("{}", no_merge_operator(name.as_deref()))]
    NoMergeOperator {
        /** The operator that the table names. */
        name: Option<String>,
    },
    /// A merge operator refused its operands.
    #[error("the merge operator `{operator}` failed: {reason}; put or delete the key to go on without its operands")]
    Merge {
        /** The operator. */
        operator: String,
        /** Its message. */
        reason: String,
    },
    /// A compaction filter panicked. Nobody's call fails for it: [`crate::Stats::trouble`] has it.
    #[error("the compaction filter `{filter}` failed: {reason}; what it was asked about is kept")]
    Filter {
        /** The filter. */
        filter: String,
        /** Its message. */
        reason: String,
    },
    /// The table's index does not keep keys in order.
    #[error(
        "the table `{name}` is unordered: use `iterate` for all its records, or make it with an ordered index (`lsm`, `lmdb`)"
    )]
    Unordered {
        /** The table. */
        name: String,
    },
    /// No table has this name.
    #[error("there is no table `{name}`")]
    NoSuchTable {
        /** The name. */
        name: String,
    },
    /// The table is there already, with another index or none wanted.
    #[error("the table `{name}` exists already, with index `{kind}`")]
    TableExists {
        /** The name. */
        name: String,
        /** Its index. */
        kind: &'static str,
    },
    /// A table of this name is being made with its contents, see [`crate::Db::ingest`].
    #[error("the table `{name}` is being ingested: it is there once that is finished; choose another name, or wait")]
    TableBeingMade {
        /** The name. */
        name: String,
    },
    /// While a backup copied the indexes tables got other names, again and again: no restore point was made.
    #[error(
        "tables were renamed or swapped again and again while the backup was made: no restore point was added; try again"
    )]
    TablesRenamed,
    /// A table was made, and is there, but the checkpoint failed that was to keep its modes: it has none.
    #[error(
        "the table `{name}` was made and is there, without its storage modes: {cause}; set them once that is mended (`aiodb alter-table`, \
         `Db::set_table_modes`)"
    )]
    MadeWithoutModes {
        /** The name. */
        name: String,
        /** Why there was no checkpoint. */
        cause: Box<Error>,
    },
    /// The keys of an ingest do not rise.
    #[error(
        "record {record} has the key {}, which {} that of the record before, {}: sort the records by their keys, byte by byte, \
         and leave out duplicates; nothing was stored",
        shown(key), if key == previous { "is" } else { "comes before" }, shown(previous)
    )]
    NotAscending {
        /** Which record, from 1. */
        record: u64,
        /** Its key. */
        key: Vec<u8>,
        /** The key of the record before. */
        previous: Vec<u8>,
    },
    /// A value that expires has operands, which stay: one record cannot say both.
    #[error(
        "the key {} of table `{table}` has operands on a value that expires, which no copy can keep: put the key anew, or wait \
         until the value has expired; nothing was copied",
        shown(key)
    )]
    MergedExpiry {
        /** The table. */
        table: String,
        /** The key. */
        key: Vec<u8>,
    },
    /// The table was emptied, or another one got its name, while a value was streamed into it or it was filled with a copy.
    #[error("the table `{name}` was emptied or swapped while it was written to: nothing was stored; write it again")]
    TableEmptied {
        /** The name. */
        name: String,
    },
    /// The source of a streamed value failed.
    #[error("the source of the value failed after {bytes} bytes: {cause}; nothing was stored")]
    Source {
        /** Bytes that it had given before. */
        bytes: u64,
        /** Its own error. */
        cause: Arc<io::Error>,
    },
    /// A table's name is empty, too long or not printable.
    #[error("`{name}` cannot name a table: use 1 to 255 bytes without control characters")]
    TableName {
        /** The name. */
        name: String,
    },
    /// An option is outside its range.
    #[error("{option} = {value}: {allowed}")]
    Option {
        /** The option. */
        option: &'static str,
        /** What was given. */
        value: String,
        /** What may be given. */
        allowed: &'static str,
    },
    /// The budget of memory is smaller than what a store takes that has nothing yet.
    #[error("memory_bytes = {bytes}: this store takes {least} at least")]
    TooLittleMemory {
        /** What was given. */
        bytes: u64,
        /** The least that may be given, in bytes. */
        least: u64,
    },
    /// A forced backend does not work here.
    #[error("the device backend `{backend}` does not work here: {reason}; use `auto` or another one")]
    Backend {
        /** The backend. */
        backend: &'static str,
        /** The system's message. */
        reason: String,
    },
    /// The store was closed.
    #[error("the store was closed")]
    Closed,
    /// The directory for backups holds something else.
    #[error("{path} is not a backup repository and not empty: choose an empty directory or an existing repository")]
    NotARepository {
        /** The directory asked for. */
        path: PathBuf,
    },
    /// The repository's restore points are of another store, or of a copy of this one with a history of its own.
    #[error(
        "the backups at {path} are of another store, or of a copy of this one that has changed on its own: choose another directory"
    )]
    OtherStore {
        /** The repository. */
        path: PathBuf,
    },
    /// Another process uses the repository.
    #[error("the backup repository at {path} is in use by {holder}: wait until that is done")]
    RepositoryInUse {
        /** The repository. */
        path: PathBuf,
        /** Who holds it. */
        holder: String,
    },
    /// The repository does not have this restore point, or none at all.
    #[error("{path} has no restore point {point}: `aiodb backup --list` shows what is there")]
    NoRestorePoint {
        /** The repository. */
        path: PathBuf,
        /** The number asked for, or `latest`. */
        point: String,
    },
    /// The directory to write a store into is not empty.
    #[error("{path} is not empty: choose a new or an empty directory")]
    Occupied {
        /** The directory asked for. */
        path: PathBuf,
    },
    /// There is no space for a backup, a restored or a salvaged store. Restore points that were complete still are.
    #[error("no space left at {path}: free some and run this again; restore points that were complete still are")]
    DestinationFull {
        /** Where space is missing. */
        path: PathBuf,
    },
    /// The index library failed.
    #[error("the index in {path} failed: {reason}; if it is damaged, rebuild it from the log")]
    Index {
        /** The index. */
        path: PathBuf,
        /** The library's message. */
        reason: String,
    },
}

/// The fault of a directory in which a store was looked for, see [`crate::Db::open_several`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryFault {
    /// The store has another directory, which was not given.
    #[error(
        "the store lies in {count} directories, and the one with ordinal {ordinal} was not given: give all of them"
    )]
    Missing {
        /** The ordinal of the first that was not given, from 0. */
        ordinal: u16,
        /** The number of the store's directories. */
        count: u16,
    },
    /// There is no part of the store in it.
    #[error(
        "no part of the store is here: if this is a mount point, mount its disk, else give the store's own directory"
    )]
    NoPart,
    /// Another store's.
    #[error("the directory belongs to another store than the others given: give the directories of one store")]
    Foreign,
    /// It is the same as another one, or a copy of it.
    #[error("this is the same directory of the store as {other}: give each of them once")]
    Twice {
        /** The other. */
        other: PathBuf,
    },
}

impl From<Error> for io::Error {
    /// For readers and writers with the traits of `std::io`; [`io::Error::downcast`] gives the error itself back.
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Io { kind, .. } => *kind,
            Error::DiskFull { .. } => io::ErrorKind::StorageFull,
            Error::Corruption { .. } => io::ErrorKind::InvalidData,
            Error::ValueLength { .. } => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

/// A key as people read it, cut if it is long.
fn shown(key: &[u8]) -> String {
    const MOST_SHOWN_BYTES: usize = 64;
    let cut = if key.len() > MOST_SHOWN_BYTES { "..." } else { "" };
    format!("`{}{cut}`", key[..key.len().min(MOST_SHOWN_BYTES)].escape_ascii())
}

fn no_descriptor(limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!(
            "this process may have {limit} files, connections and the like open, and has: close some, or raise the limit \
             (`ulimit -Hn`, LimitNOFILE)."
        ),
        None => "this machine has no more open files to give: close some, or raise fs.file-max (sysctl).".to_string(),
    }
}

fn no_merge_operator(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("the table merges with the operator `{name}`: register it in `Options::merge_operators`"),
        None => "the table has no merge operator: it is chosen when a table is made".to_string(),
    }
}

/// The error kinds by which the system says that there is no space.
const FULL: [io::ErrorKind; 2] = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];

impl Error {
    /// Whether there was no space for something: on the disk, or in the store, which has a limit of its own. Deletes and reclaim make some.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Error::DiskFull { .. } | Error::StoreFull { .. })
    }

    /// Whether stored bytes could not be read: they are damaged, or the device does not give them.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Error::Corruption { .. } | Error::Io { action: "read", .. })
    }

    /// Whether the error says nothing of the bytes that were asked for: the same read may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Io { kind, .. } => PASSING.contains(kind),
            Error::TooManyOpenFiles { .. } => true,
            _ => false,
        }
    }

    /// Whether stored bytes could not be read, and will not be at the next attempt either.
    pub(crate) fn is_damage(&self) -> bool {
        self.is_unreadable() && !self.is_passing()
    }

    /// Says of an [`Error::Io`] which bytes of the file it is about.
    pub(crate) fn at_byte(self, offset: u64) -> Error {
        match self {
            Error::Io { action, path, kind, reason } => {
                Error::Io { action, path, kind, reason: format!("{reason} (from byte {offset} on)") }
            }
            error => error,
        }
    }

    /// An [`Error::Io`] from the system's error; a full disk and a want of descriptors have errors of their own.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, error: &io::Error) -> Error {
        let path = path.into();
        if FULL.contains(&error.kind()) {
            return Error::DiskFull { path };
        }
        if is_shortage(error) {
            let limit = (error.raw_os_error() == Some(libc::EMFILE)).then(descriptor_limit);
            return Error::TooManyOpenFiles { action, path, limit };
        }
        Error::Io { action, path, kind: error.kind(), reason: error.to_string() }
    }
}

/// The message of a panic.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_string()
}

/// The error kinds of calls that may succeed later, whatever they are for.
const PASSING: [io::ErrorKind; 3] = [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock, io::ErrorKind::OutOfMemory];

/// Whether the same call may succeed later: [`Error::is_passing`] of an error of the system.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    is_shortage(error) || PASSING.contains(&error.kind())
}

/// Whether the process, or the machine, has no descriptor left.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// How many descriptors this process may have.
pub(crate) fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call takes a pointer to a valid structure. It fails only for a resource that it does not know.
    unsafe { libc::getrlimit64(libc::RLIMIT_NOFILE, &mut limit) };
    limit.rlim_cur
}
