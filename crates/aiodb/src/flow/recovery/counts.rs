//! The counts of live bytes before the log is replayed: of records from the hash indexes and the ordered one, of chunks
//! of hash tables from the checkpoint, of chunks of ordered tables from the ordered index.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use crate::format::manifest::{Manifest, ManifestSegment, ManifestTable};
use crate::format::segment::SegmentHeader;
use crate::index::lmdb::counters::ChunkBytes;
use crate::io::Device;
use crate::store::catalog::TableIndex;
use crate::store::read_path::ReadPath;
use crate::{IndexKind, Result};

impl<D: Device> ReadPath<D> {
    /// Whether a table exists and its index is in memory.
    pub(super) fn is_hash(&self, table: u32) -> bool {
        let generation = self.catalog.generation(table);
        generation.is_some_and(|generation| matches!(generation.index, TableIndex::Hash(_)))
    }

    /// The ordered index's counts of chunks, by table. Earlier programs counted them in the checkpoint: then the counts there
    /// are taken over.
    pub(super) fn chunks_in_lmdb(
        &self,
        manifest: &Manifest,
        rebuild: &BTreeSet<u32>,
    ) -> Result<Vec<(u32, ChunkBytes)>> {
        let Some(lmdb) = self.lmdb.get() else { return Ok(Vec::new()) };
        let is_ordered =
            |table: &&ManifestTable| table.settings.kind == IndexKind::Lmdb && !rebuild.contains(&table.id);
        let ordered: BTreeSet<u32> = manifest.tables.iter().filter(is_ordered).map(|table| table.id).collect();
        let mut listed = Vec::new();
        for ManifestSegment { number, life, live_chunks, .. } in &manifest.segments {
            for (table, bytes) in live_chunks.iter().copied().filter(|(table, _)| ordered.contains(table)) {
                listed.push((table, ChunkBytes { segment: *number, life: *life, bytes }));
            }
        }
        if listed.is_empty() {
            return lmdb.live_chunks();
        }
        if !self.options.read_only {
            lmdb.set_live_chunks(&listed)?;
        }
        Ok(listed)
    }

    /// The segments to which the entries of the ordered index lead, by themselves or by the chunks that they name.
    pub(super) fn referred_by_lmdb(
        &self,
        headers: &BTreeMap<u32, SegmentHeader>,
        chunks: &[(u32, ChunkBytes)],
    ) -> Result<BTreeSet<u32>> {
        let Some(lmdb) = self.lmdb.get() else { return Ok(BTreeSet::new()) };
        let live = lmdb.live()?.into_iter().filter(|(_, (_, records))| *records != 0);
        let is_there = |chunks: &&ChunkBytes| headers.get(&chunks.segment).is_some_and(|h| h.life == chunks.life);
        let named = chunks.iter().map(|(_, chunks)| chunks).filter(is_there).map(|chunks| chunks.segment);
        Ok(live.map(|(number, _)| number).chain(named).collect())
    }

    /// Takes the live bytes of the checkpointed indexes into the segments' counters.
    pub(super) fn count_live(&self, chunks_in_lmdb: &[(u32, ChunkBytes)]) -> Result<()> {
        for generation in self.catalog.generations() {
            if let TableIndex::Hash(index) = &generation.index {
                index.for_each(&mut |location| self.segments.add_live(location));
            }
        }
        self.count_live_in_lmdb(chunks_in_lmdb)
    }

    /// Takes the live bytes of the ordered index into the segments' counters, also of tables that replay will make or that
    /// wait to be purged.
    fn count_live_in_lmdb(&self, chunks: &[(u32, ChunkBytes)]) -> Result<()> {
        let Some(lmdb) = self.lmdb.get() else { return Ok(()) };
        for (number, (bytes, records)) in lmdb.live()? {
            if let Some(segment) = self.segments.find(number) {
                segment.live_bytes.fetch_add(bytes, Relaxed);
                segment.live_records.fetch_add(records, Relaxed);
            }
        }
        for (table, chunks) in chunks {
            if let Some(segment) = self.segments.find(chunks.segment).filter(|segment| segment.life() == chunks.life) {
                self.segments.load_live_chunks(segment, std::iter::once((*table, chunks.bytes)));
            }
        }
        Ok(())
    }
}
