//! Counts beside the entries of runs, changed in the same edits, so that both agree after every crash.

use std::collections::{BTreeMap, BTreeSet};

use super::RunContext;
use crate::format::record::Form;
use crate::format::run::manifest::{ChunkCount, KeyCount, LiveCount, RunManifest};
use crate::index::accounting::ChunkBytes;
use crate::index::chain::{Entry, FOLD_AT, VersionChain};
use crate::index::codec::table_of;

/// What an edit changes beside the runs themselves.
pub(super) struct Changes<'a> {
    pub(super) context: &'a RunContext<'a>,
    /// Bytes and records, by segment and life.
    live: BTreeMap<(u32, u64), (i64, i64)>,
    /// Chunks that the entries of the file in progress name, by table, segment and life.
    chunks: BTreeMap<(u32, u32, u64), i64>,
    /// The same of each file that is finished.
    of_files: Vec<ChunkCount>,
    /// The same of files that are named no more.
    of_dropped: Vec<ChunkCount>,
    /// See [`KeyCount`], by table.
    keys: BTreeMap<u32, (i64, i64)>,
    /// Entries that died, with their tables, the lives of their segments and the bytes that they counted.
    dead: Vec<(u32, Entry, u64, i64)>,
    piled_up: Vec<(Box<[u8]>, usize)>,
}

/// What the entries of an ingest count.
#[derive(Clone)]
pub(crate) struct IngestCounts {
    pub(super) table: u32,
    pub(super) keys: i64,
    /// Bytes and records, by segment and life.
    pub(crate) live: BTreeMap<(u32, u64), (i64, i64)>,
    /// Chunks that are named, by file, segment and life.
    pub(crate) of_files: Vec<ChunkCount>,
}

impl IngestCounts {
    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Bytes of all records and chunks.
    pub(crate) fn live_bytes(&self) -> u64 {
        let records: i64 = self.live.values().map(|(bytes, _)| bytes).sum();
        let chunks: i64 = self.of_files.iter().map(|count| count.bytes).sum();
        (records + chunks).max(0) as u64
    }
}

impl<'a> Changes<'a> {
    pub(super) fn new(context: &'a RunContext<'a>) -> Changes<'a> {
        let (live, chunks, keys, dead, piled_up) = Default::default();
        Changes { context, live, chunks, of_files: Vec::new(), of_dropped: Vec::new(), keys, dead, piled_up }
    }

    /// The counts of an ingest, which has made all its files already.
    pub(super) fn of_ingest(context: &'a RunContext<'a>, counts: &IngestCounts) -> Changes<'a> {
        let mut changes = Changes::new(context);
        changes.live.clone_from(&counts.live);
        changes.of_files.clone_from(&counts.of_files);
        changes.keys.insert(counts.table, (counts.keys, counts.keys));
        changes
    }

    /// Notes that a run gets a key, or loses it.
    pub(super) fn key(&mut self, key: &[u8], chain: &VersionChain, sign: i64) {
        let count = self.keys.entry(table_of(key)).or_default();
        let is_delete = chain.newest().is_some_and(Entry::is_delete);
        count.0 += sign;
        count.1 += if is_delete { -sign } else { sign };
    }

    /// Notes a key's operands, which may be worth folding.
    pub(super) fn operands(&mut self, key: &[u8], chain: &VersionChain) {
        if chain.operands() >= FOLD_AT {
            self.piled_up.push((key.into(), chain.operands()));
        }
    }

    /// Notes that a run gets an entry that was in none; returns the life of its segment.
    pub(super) fn added(&mut self, key: &[u8], entry: &Entry) -> u64 {
        let life = (self.context.life_of)(entry.location.segment);
        self.count(key, entry, life, 1);
        self.written(key, entry);
        life
    }

    /// Notes that the file in progress gets an entry.
    pub(super) fn written(&mut self, key: &[u8], entry: &Entry) {
        if entry.form.chunked {
            for ChunkBytes { segment, life, bytes } in (self.context.accounting.chunks_of)(entry) {
                *self.chunks.entry((table_of(key), segment, life)).or_default() += bytes;
            }
        }
    }

    /// Notes that the file in progress is finished.
    pub(super) fn finished(&mut self, file: u64) {
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        let of_file = chunks.map(|((table, segment, life), bytes)| ChunkCount { file, table, segment, life, bytes });
        self.of_files.extend(of_file);
    }

    /// Notes that a run loses an entry that counts, whose segment has this life. Chunks are counted by file.
    pub(super) fn removed(&mut self, key: &[u8], entry: &Entry, life: u64) {
        self.count(key, entry, life, -1);
        let form = Form { chunked: false, ..entry.form };
        let bytes = self.context.accounting.bytes_of(key, entry);
        self.dead.push((table_of(key), Entry { form, ..entry.without_value() }, life, bytes));
    }

    /// Notes that an entry died which was in no run.
    pub(super) fn died(&mut self, key: &[u8], entry: &Entry) {
        let life = (self.context.life_of)(entry.location.segment);
        let bytes = self.context.accounting.bytes_of(key, entry);
        self.dead.push((table_of(key), entry.without_value(), life, bytes));
    }

    fn count(&mut self, key: &[u8], entry: &Entry, life: u64, sign: i64) {
        if !entry.is_delete() {
            let live = self.live.entry((entry.location.segment, life)).or_default();
            live.0 += sign * self.context.accounting.bytes_of(key, entry);
            live.1 += sign;
        }
    }

    /// Changes the counts of a manifest whose files have changed. Those of lives that are over are forgotten.
    pub(super) fn apply(&mut self, manifest: &mut RunManifest) {
        let is_over = |segment, life| (self.context.life_of)(segment) != life;
        let counts = manifest.live.iter();
        let mut live: BTreeMap<_, _> = counts.map(|c| ((c.segment, c.life), (c.bytes, c.records))).collect();
        for (key, (bytes, records)) in &self.live {
            let count = live.entry(*key).or_default();
            *count = (count.0 + bytes, count.1 + records);
        }
        live.retain(|(segment, life), (_, records)| *records > 0 && !is_over(*segment, *life));
        let live = live.into_iter();
        manifest.live =
            live.map(|((segment, life), (bytes, records))| LiveCount { segment, life, bytes, records }).collect();
        manifest.chunks.extend(&self.of_files);
        manifest.chunks.retain(|count| !is_over(count.segment, count.life));
        let named: BTreeSet<u64> = manifest.files().map(|file| file.number).collect();
        let is_named = |count: &ChunkCount| named.contains(&count.file);
        (manifest.chunks, self.of_dropped) = manifest.chunks.iter().partition(|count| is_named(count));
        let counts = manifest.keys.iter();
        let mut keys: BTreeMap<_, _> = counts.map(|c| (c.table, (c.keys, c.alive))).collect();
        for (table, (of_runs, alive)) in &self.keys {
            let count = keys.entry(*table).or_default();
            *count = (count.0 + of_runs, count.1 + alive);
        }
        keys.retain(|_, count| count.0 != 0);
        manifest.keys = keys.into_iter().map(|(table, (keys, alive))| KeyCount { table, keys, alive }).collect();
    }

    /// Tells what a merge has changed, once that is durable.
    pub(super) fn report_merged(&self) {
        let signed = [(&self.of_files, 1), (&self.of_dropped, -1)];
        for (count, sign) in signed.into_iter().flat_map(|(counts, sign)| counts.iter().map(move |count| (count, sign)))
        {
            let bytes = sign * count.bytes;
            let chunks = ChunkBytes { segment: count.segment, life: count.life, bytes };
            (self.context.accounting.named)(count.table, chunks);
        }
        self.report();
    }

    /// Tells what died and piled up, once that is durable.
    pub(super) fn report(&self) {
        let accounting = self.context.accounting;
        for (table, entry, life, bytes) in &self.dead {
            // The segment may have been freed meanwhile, and its counts with it.
            if (self.context.life_of)(entry.location.segment) == *life {
                (accounting.died)(*table, entry, *bytes);
            }
        }
        self.piled_up.iter().for_each(|(key, operands)| (accounting.piled_up)(key, *operands));
    }
}
