//! The environment of LMDB: how its file is opened and judged, and its errors in the engine's words.

use std::io::ErrorKind;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, MdbError};

use super::limits::PAGE_BYTES;
use super::unwritten;
use crate::error::is_shortage;
use crate::io::disk::{free_bytes, with_descriptors};
use crate::{Error, Result};

pub(super) const INITIAL_MAP_BYTES: usize = 1 << 30;

pub(super) const MAX_READERS: u32 = 4096;

pub(super) fn make_database(env: &Env) -> heed::Result<Database<'static, Bytes, Bytes>> {
    let txn = env.write_txn()?;
    let made = env.create_databases_and_commit(txn, |opener, txn| -> heed::Result<_> {
        Ok(CommitOrAbort::<_, ()>::Commit(opener.create_database(txn, None)?))
    })?;
    Ok(made.unwrap_commit())
}

pub(super) fn open_database(env: &Env) -> heed::Result<Database<'static, Bytes, Bytes>> {
    let txn = env.read_txn()?;
    let opened = env.open_databases_and_commit(txn, |opener, txn| -> heed::Result<_> {
        let database = opener.open_database(txn, None)?.ok_or(heed::Error::Mdb(MdbError::NotFound))?;
        Ok(CommitOrAbort::<_, ()>::Commit(database))
    })?;
    Ok(opened.unwrap_commit())
}

/// The bytes of all pages that LMDB knows, free ones among them.
pub(super) fn known_bytes(env: &Env) -> u64 {
    (env.info().last_page_number as u64 + 1) * PAGE_BYTES
}

/// See [`unwritten::are_free`].
pub(super) fn lacks_only_free_pages(path: &Path) -> Result<bool> {
    let path = path.join("data.mdb");
    let file = with_descriptors(|| std::fs::File::open(&path), |error| Some(error));
    file.and_then(|file| unwritten::are_free(&file)).map_err(|e| Error::io("read", &path, &e))
}

pub(super) fn existing_bytes(path: &Path) -> usize {
    let bytes = std::fs::metadata(path.join("data.mdb")).map_or(0, |metadata| metadata.len() as usize);
    // Room to grow, in whole pages.
    (bytes * 2).next_multiple_of(1 << 20)
}

/// The system's error behind one of LMDB's.
pub(super) fn cause(error: &heed::Error) -> Option<&std::io::Error> {
    match error {
        heed::Error::Io(error) => Some(error),
        _ => None,
    }
}

pub(super) fn index_error(path: &Path, error: &heed::Error) -> Error {
    if let Some(error) = cause(error) {
        if is_shortage(error) {
            return Error::io("open the index in", path, error);
        }
        // LMDB says EIO when only a part of a write found room.
        let cut_short = error.raw_os_error() == Some(libc::EIO) && is_full(path);
        if cut_short || matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) {
            return Error::DiskFull { path: path.to_path_buf() };
        }
    }
    Error::Index { path: path.to_path_buf(), reason: error.to_string() }
}

/// Whether next to nothing is free on the file system of a path.
fn is_full(path: &Path) -> bool {
    const NEXT_TO_NOTHING_BYTES: u64 = 1 << 20;
    free_bytes(path).is_ok_and(|free| free < NEXT_TO_NOTHING_BYTES)
}
