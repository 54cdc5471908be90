//! The files of the ordered indexes: where they lie, and how they are opened, made again and removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::manifest::MANIFEST_NAMES;
use crate::format::manifest::Manifest;
use crate::index::lmdb::LmdbIndex;
use crate::index::ordered::{Committed, OrderedIndex};
use crate::index::range_tombstones::Ranges;
use crate::index::runs::Runs;
use crate::io::Device;
use crate::io::disk::with_descriptors;
use crate::planted::{self, Bug};
use crate::store::read_path::ReadPath;
use crate::{Error, IndexKind, Result};

impl<D: Device> ReadPath<D> {
    /// Opens the index of `lmdb` tables; true if it must be made again from the log. Then it is empty: entries of an index older than
    /// the checkpoint may have been deleted since, and the log need not have those deletes any more.
    pub(crate) fn open_lmdb(&self, manifest: &Manifest) -> Result<bool> {
        let path = self.lmdb_path()?;
        if self.options.rebuild_index {
            self.remove_lmdb()?;
        }
        let ranges = Arc::<Ranges>::default();
        let mut lmdb = self.new_lmdb(&path, &ranges)?;
        let committed = lmdb.position()?.map_or(0, |position| position.batch);
        let lacks_what_came_after = committed < manifest.position.batch || lmdb.taken_out() < manifest.taken_out;
        let older = lacks_what_came_after && !planted::is_on(Bug::OldIndexBelieved);
        // Also one without a position may have entries: of an earlier attempt to make it again.
        if older && !self.options.read_only && !planted::is_on(Bug::OldIndexKept) {
            lmdb.close();
            self.remove_lmdb()?;
            ranges.forget(|_| true);
            lmdb = self.new_lmdb(&path, &ranges)?;
        }
        lmdb.count_taken_out_from(manifest.taken_out);
        let opened = self.ordered.set(self.ordered_index(Committed::Lmdb(lmdb), ranges));
        assert!(opened, "an index is opened once");
        Ok(older)
    }

    /// Removes the files of the index of `lmdb` tables. Where the checkpoint knows no table of this kind, the log after it has all
    /// their entries.
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

    /// Opens the index of `lsm` tables; true if it must be made again from the log, as [`ReadPath::open_lmdb`] says.
    pub(crate) fn open_runs(&self, manifest: &Manifest) -> Result<bool> {
        if self.options.rebuild_index {
            self.remove_runs()?;
        }
        let ranges = Arc::<Ranges>::default();
        let mut runs = self.new_runs(&ranges)?;
        let position = runs.position()?;
        let older = position.map_or(0, |position| position.batch) < manifest.position.batch;
        // Those of an earlier attempt to make them again are at the start.
        if older && position.is_some() && !self.options.read_only {
            runs.close();
            self.remove_runs()?;
            ranges.forget(|_| true);
            runs = self.new_runs(&ranges)?;
        }
        let opened = self.ordered.set(self.ordered_index(Committed::Runs(runs), ranges));
        assert!(opened, "an index is opened once");
        Ok(older)
    }

    /// Opens the index of `lsm` tables where the checkpoint knows no table of this kind: a table may have been ingested since, whose
    /// records come before the record that makes it. An index that is older than the checkpoint is removed, and one that has nothing.
    pub(crate) fn open_runs_since(&self, manifest: &Manifest) -> Result<()> {
        let is_there = || {
            self.device.list(&self.runs_path()).is_ok_and(|names| names.iter().any(|name| name == MANIFEST_NAMES[0]))
        };
        if self.options.rebuild_index || !is_there() {
            return self.remove_runs();
        }
        let ranges = Arc::<Ranges>::default();
        let runs = match self.new_runs(&ranges) {
            Err(Error::Corruption { .. }) => return self.remove_runs(),
            opened => opened?,
        };
        let position = runs.position()?.map_or(0, |position| position.batch);
        if position == 0 || position < manifest.position.batch || runs.tables()?.is_empty() {
            runs.close();
            return self.remove_runs();
        }
        let opened = self.ordered.set(self.ordered_index(Committed::Runs(runs), ranges));
        assert!(opened, "an index is opened once");
        Ok(())
    }

    /// Removes the files of the index of `lsm` tables, see [`ReadPath::remove_lmdb`].
    pub(crate) fn remove_runs(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        Runs::remove_all(&self.device, &self.runs_path(), &self.segments.store)
    }

    fn new_runs(&self, ranges: &Ranges) -> Result<Runs<D>> {
        let runs = Runs::open(
            (&self.device, &self.memory.accounts),
            &self.runs_path(),
            self.segments.store,
            self.options.read_only,
        )?;
        runs.range_tombstones()?.into_iter().for_each(|range| ranges.insert(range));
        Ok(runs.with_cache(Arc::clone(&self.block_cache)).merged_by(self.options.merge_policy))
    }

    fn runs_path(&self) -> PathBuf {
        self.root.join("index").join("runs")
    }

    /// Opens the index that tables of this kind share.
    pub(crate) fn open_index_of(&self, kind: IndexKind) -> Result<()> {
        if self.ordered.get(kind).is_some() {
            return Ok(());
        }
        let ranges = Arc::<Ranges>::default();
        let committed = match kind {
            IndexKind::Hash => return Ok(()),
            IndexKind::Lmdb => Committed::Lmdb(self.new_lmdb(&self.lmdb_path()?, &ranges)?),
            IndexKind::Lsm => Committed::Runs(self.new_runs(&ranges)?),
        };
        // Another thread may have been faster only if it opened the same; LMDB refuses a second environment.
        let index = self.ordered_index(committed, ranges);
        self.share_memory_with(&index);
        let _ = self.ordered.set(index);
        Ok(())
    }

    fn ordered_index(&self, committed: Committed<D>, ranges: Arc<Ranges>) -> OrderedIndex<D> {
        OrderedIndex::new(committed, ranges, Arc::clone(&self.snapshots))
    }

    fn new_lmdb(&self, path: &Path, ranges: &Arc<Ranges>) -> Result<LmdbIndex> {
        let (snapshots, ranges) = (Arc::clone(&self.snapshots), Arc::clone(ranges));
        let index = LmdbIndex::open(path, self.segments.store, snapshots, ranges, self.options.read_only)?;
        let device = self.device.clone();
        index.ask_for_room(move || device.has_room_for_index());
        Ok(index)
    }

    fn lmdb_path(&self) -> Result<PathBuf> {
        let path = self.root.join("index").join("lmdb");
        self.device.real_path(&path).map_err(|e| Error::io("find a place for", path, &e))
    }
}
