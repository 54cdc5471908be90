//! From failures of the engine to exceptions.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni::JNIEnv;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a native method has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine's own error.
    Engine(aiodb::Error),
    /// The handle was closed, or never was one.
    Closed {
        /// What it was a handle of.
        kind: &'static str,
    },
    /// The table was dropped.
    Dropped,
    /// More objects are open than anybody needs.
    TooManyOpen {
        /// What kind of object.
        kind: &'static str,
        /// The limit.
        max: usize,
    },
    /// The Java half passed something that it never should.
    Argument(&'static str),
    /// The virtual machine refused; it has an exception pending or is out of memory.
    Jni(jni::errors::Error),
    /// A broken invariant of the engine.
    Panic(String),
}

impl From<aiodb::Error> for Failure {
    fn from(error: aiodb::Error) -> Failure {
        Failure::Engine(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Failure {
        Failure::Jni(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => error.fmt(f),
            Failure::Closed { kind } => write!(f, "the {kind} was closed"),
            Failure::Dropped => f.write_str("the table was dropped: a new one of its name has a handle of its own"),
            Failure::TooManyOpen { kind, max } => {
                write!(f, "{max} open handles of kind {kind}: close those that are no longer used")
            }
            Failure::Argument(what) => write!(f, "{what}: the Java classes do not fit this native library"),
            Failure::Jni(error) => write!(f, "the virtual machine refused a call of the native library: {error}"),
            Failure::Panic(message) => write!(
                f,
                "a broken invariant in the native library ({message}): close the store and open it again, and report this"
            ),
        }
    }
}

impl Failure {
    /// The exception's class, a member of `StoreException`.
    pub(crate) fn class(&self) -> &'static str {
        use aiodb::Error::*;
        match self {
            Failure::Engine(error) => match error {
                NoStore { .. }
                | NotAStore { .. }
                | Directory { .. }
                | Option { .. }
                | TooLittleMemory { .. }
                | Backend { .. } => "Configuration",
                Locked { .. } | RepositoryInUse { .. } => "InUse",
                NewerVersion { .. } => "NewerVersion",
                Corruption { .. } | Index { .. } => "Corruption",
                DiskFull { .. } | StoreFull { .. } | DestinationFull { .. } => "Full",
                Failed { .. } | Io { .. } | TooManyOpenFiles { .. } | Source { .. } => "Failed",
                KeyLength { .. } | ValueLength { .. } | BatchTooLarge { .. } => "Limit",
                SnapshotEnded => "SnapshotEnded",
                NoSuchTable { .. } => "NoSuchTable",
                TableExists { .. } | TableBeingMade { .. } => "TableExists",
                TableName { .. } => "TableName",
                Closed => "Closed",
                NoMergeOperator { .. } | Merge { .. } | Filter { .. } | Unordered { .. } | ReadOnly { .. } => {
                    "Unsupported"
                }
                Unrecovered { .. } | ConditionFailed { .. } | TableEmptied { .. } => "Failed",
                NotAscending { .. } | MergedExpiry { .. } | MadeWithoutModes { .. } | TablesRenamed => "Failed",
                NotARepository { .. } | OtherStore { .. } | NoRestorePoint { .. } | Occupied { .. } => "Failed",
            },
            Failure::Closed { .. } => "Closed",
            Failure::Dropped => "NoSuchTable",
            Failure::TooManyOpen { .. } => "Limit",
            Failure::Argument(_) | Failure::Jni(_) | Failure::Panic(_) => "Defect",
        }
    }
}

/// Runs the body of a native method. Whatever goes wrong in it becomes an exception in Java; nothing unwinds into the
/// virtual machine.
pub(crate) fn guard<'a, T: Default>(env: &mut JNIEnv<'a>, body: impl FnOnce(&mut JNIEnv<'a>) -> Result<T>) -> T {
    caught(|| body(env)).unwrap_or_else(|failure| {
        let class = format!("io/aiodb/store/StoreException${}", failure.class());
        // It fails only where an exception is pending already: then that one is thrown.
        let _ = env.throw_new(class, failure.to_string());
        T::default()
    })
}

/// The engine asserts its invariants with panics, and a lock that a panicking thread held makes later calls panic as
/// well: none of them returns a wrong result, so going on is safe.
fn caught<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(Failure::Panic(message_of(&*panic))))
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_string()
}

#[cfg(test)]
mod tests;
