//! The counts of live bytes before the log is replayed: of records from the hash indexes and the ordered ones, of chunks
//! of hash tables from the checkpoint, of chunks of ordered tables from their indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use crate::format::location::Location;
use crate::format::manifest::{Manifest, ManifestSegment, ManifestTable};
use crate::format::place::footprint;
use crate::format::segment::SegmentHeader;
use crate::format::spilled::SpilledLive;
use crate::index::accounting::ChunkBytes;
use crate::index::ordered::Live;
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

    /// The counts of chunks of the ordered indexes, by table. Earlier programs counted them in the checkpoint: then the counts there
    /// are taken over.
    pub(super) fn chunks_in_ordered(
        &self,
        manifest: &Manifest,
        rebuild: &BTreeSet<u32>,
    ) -> Result<Vec<(u32, ChunkBytes)>> {
        let is_ordered = |table: &&ManifestTable| table.settings.kind.is_ordered() && !rebuild.contains(&table.id);
        let ordered: BTreeSet<u32> = manifest.tables.iter().filter(is_ordered).map(|table| table.id).collect();
        let mut listed = Vec::new();
        for ManifestSegment { number, life, live_chunks, .. } in &manifest.segments {
            for (table, bytes) in live_chunks.iter().copied().filter(|(table, _)| ordered.contains(table)) {
                listed.push((table, ChunkBytes { segment: *number, life: *life, bytes }));
            }
        }
        let lmdb = self.ordered.get(IndexKind::Lmdb).and_then(|ordered| ordered.committed.lmdb());
        if let Some(lmdb) = lmdb.filter(|_| !listed.is_empty()) {
            if !self.options.read_only {
                lmdb.set_live_chunks(&listed)?;
            }
            return Ok(listed);
        }
        self.ordered.open().try_fold(Vec::new(), |mut chunks, ordered| {
            chunks.extend(ordered.committed.live_chunks()?);
            Ok(chunks)
        })
    }

    /// The segments to which the entries of the ordered indexes lead, by themselves or by the chunks that they name.
    pub(super) fn referred_by_ordered(
        &self,
        headers: &BTreeMap<u32, SegmentHeader>,
        chunks: &[(u32, ChunkBytes)],
    ) -> Result<BTreeSet<u32>> {
        let is_there = |chunks: &&ChunkBytes| headers.get(&chunks.segment).is_some_and(|h| h.life == chunks.life);
        let named = chunks.iter().map(|(_, chunks)| chunks).filter(is_there).map(|chunks| chunks.segment);
        let mut referred: BTreeSet<u32> = named.collect();
        for ordered in self.ordered.open() {
            let is_there =
                |live: &Live| live.life.is_none_or(|life| headers.get(&live.segment).is_some_and(|h| h.life == life));
            let live = ordered.committed.live()?.into_iter().filter(|live| live.records != 0 && is_there(live));
            referred.extend(live.map(|live| live.segment));
        }
        Ok(referred)
    }

    /// Takes the live bytes of the checkpointed indexes into the segments' counters.
    pub(super) fn count_live(&self, chunks_in_ordered: &[(u32, ChunkBytes)]) -> Result<()> {
        for generation in self.catalog.generations() {
            if let TableIndex::Hash(index) = &generation.index {
                let count = |location: Location| self.segments.add_live(location.segment, footprint(location.length));
                index.for_each(&mut |location| count(location));
                for SpilledLive { segment, bytes, records } in self.live_in_runs(&generation) {
                    if let Some(segment) = self.segments.find(segment) {
                        segment.live_bytes.fetch_add(bytes, Relaxed);
                        segment.live_records.fetch_add(records, Relaxed);
                    }
                }
            }
        }
        self.count_live_in_ordered(chunks_in_ordered)
    }

    /// Takes the live bytes of the ordered indexes into the segments' counters, also of tables that replay will make or that
    /// wait to be purged.
    fn count_live_in_ordered(&self, chunks: &[(u32, ChunkBytes)]) -> Result<()> {
        for ordered in self.ordered.open() {
            for Live { segment, life, bytes, records } in ordered.committed.live()? {
                let segment = self.segments.find(segment);
                if let Some(segment) = segment.filter(|segment| life.is_none_or(|life| segment.life() == life)) {
                    segment.live_bytes.fetch_add(bytes, Relaxed);
                    segment.live_records.fetch_add(records, Relaxed);
                }
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
