//! The files of the ordered index: where they lie, and how they are opened, made again and removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::manifest::Manifest;
use crate::index::lmdb::LmdbIndex;
use crate::io::Device;
use crate::io::disk::with_descriptors;
use crate::planted::{self, Bug};
use crate::store::read_path::ReadPath;
use crate::{Error, IndexKind, Result};

impl<D: Device> ReadPath<D> {
    /// Opens the ordered index; true if it must be made again from the log. Then it is empty: entries of an index older than the
    /// checkpoint may have been deleted since, and the log need not have those deletes any more.
    pub(crate) fn open_lmdb(&self, manifest: &Manifest) -> Result<bool> {
        let path = self.lmdb_path()?;
        if self.options.rebuild_index {
            self.remove_lmdb()?;
        }
        let mut index = self.new_lmdb(&path)?;
        let committed = index.position()?.map_or(0, |position| position.batch);
        let lacks_what_came_after = committed < manifest.position.batch || index.taken_out() < manifest.taken_out;
        let older = lacks_what_came_after && !planted::is_on(Bug::OldIndexBelieved);
        if older && committed > 0 && !self.options.read_only && !planted::is_on(Bug::OldIndexKept) {
            index.close();
            self.remove_lmdb()?;
            index = self.new_lmdb(&path)?;
        }
        index.count_taken_out_from(manifest.taken_out);
        let opened = self.lmdb.set(index).is_ok();
        assert!(opened, "an index is opened once");
        Ok(older)
    }

    /// Removes the files of the ordered index. Where the checkpoint knows no table of this kind, the log after it has all their
    /// entries.
    pub(crate) fn remove_lmdb(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        let path = self.lmdb_path()?;
        match with_descriptors(|| std::fs::remove_dir_all(&path), |error| Some(error)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", &path, &error)),
            _ => Ok(()),
        }
    }

    /// Opens the index that tables of this kind share.
    pub(crate) fn open_index_of(&self, kind: IndexKind) -> Result<()> {
        if kind != IndexKind::Lmdb || self.lmdb.get().is_some() {
            return Ok(());
        }
        let index = self.new_lmdb(&self.lmdb_path()?)?;
        // Another thread may have been faster only if it opened the same; LMDB refuses a second environment.
        let _ = self.lmdb.set(index);
        Ok(())
    }

    fn new_lmdb(&self, path: &Path) -> Result<LmdbIndex> {
        let index = LmdbIndex::open(path, self.segments.store, Arc::clone(&self.snapshots), self.options.read_only)?;
        let device = self.device.clone();
        index.ask_for_room(move || device.has_room_for_index());
        Ok(index)
    }

    fn lmdb_path(&self) -> Result<PathBuf> {
        let path = self.root.join("index").join("lmdb");
        self.device.real_path(&path).map_err(|e| Error::io("find a place for", path, &e))
    }
}
