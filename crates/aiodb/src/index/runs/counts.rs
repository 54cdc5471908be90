//! Counts beside the entries of runs, changed in the same edits, so that both agree after every crash.

use std::collections::BTreeMap;

use super::RunContext;
use crate::format::place::footprint;
use crate::format::run::manifest::{ChunkCount, KeyCount, LiveCount, RunManifest};
use crate::index::accounting::ChunkBytes;
use crate::index::chain::{Entry, FOLD_AT, VersionChain};
use crate::index::codec::table_of;

/// What an edit changes beside the runs themselves.
pub(super) struct Changes<'a> {
    pub(super) context: &'a RunContext<'a>,
    /// Bytes and records, by segment and life.
    live: BTreeMap<(u32, u64), (i64, i64)>,
    /// By table, segment and life.
    chunks: BTreeMap<(u32, u32, u64), i64>,
    /// See [`KeyCount`], by table.
    keys: BTreeMap<u32, (i64, i64)>,
    /// Entries that died, with their tables and the lives of their segments.
    dead: Vec<(u32, Entry, u64)>,
    piled_up: Vec<(Box<[u8]>, usize)>,
}

impl<'a> Changes<'a> {
    pub(super) fn new(context: &'a RunContext<'a>) -> Changes<'a> {
        let (live, chunks, keys, dead, piled_up) = Default::default();
        Changes { context, live, chunks, keys, dead, piled_up }
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

    /// Notes that a run gets an entry; returns the life of its segment.
    pub(super) fn added(&mut self, key: &[u8], entry: &Entry) -> u64 {
        let life = (self.context.life_of)(entry.location.segment);
        self.count(table_of(key), entry, life, 1);
        life
    }

    /// Notes that a run loses an entry that counts, whose segment has this life. The chunks of a table that is gone leave the
    /// counts as a whole.
    pub(super) fn removed(&mut self, key: &[u8], entry: &Entry, life: u64, is_gone: bool) {
        let counted = if is_gone { Entry { form: Default::default(), ..*entry } } else { *entry };
        self.count(table_of(key), &counted, life, -1);
        self.dead.push((table_of(key), *entry, life));
    }

    /// Notes that an entry died which was in no run.
    pub(super) fn died(&mut self, key: &[u8], entry: &Entry) {
        self.dead.push((table_of(key), *entry, (self.context.life_of)(entry.location.segment)));
    }

    fn count(&mut self, table: u32, entry: &Entry, life: u64, sign: i64) {
        if entry.is_delete() {
            return;
        }
        let live = self.live.entry((entry.location.segment, life)).or_default();
        live.0 += sign * footprint(entry.location.length);
        live.1 += sign;
        if entry.form.chunked {
            for ChunkBytes { segment, life, bytes } in (self.context.accounting.chunks_of)(entry) {
                *self.chunks.entry((table, segment, life)).or_default() += sign * bytes;
            }
        }
    }

    /// Changes the counts of a manifest. Those of lives that are over are forgotten.
    pub(super) fn apply(&self, manifest: &mut RunManifest) {
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
        let counts = manifest.chunks.iter();
        let mut chunks: BTreeMap<_, _> = counts.map(|c| ((c.table, c.segment, c.life), c.bytes)).collect();
        self.chunks.iter().for_each(|(key, bytes)| *chunks.entry(*key).or_default() += bytes);
        chunks.retain(|(_, segment, life), bytes| *bytes > 0 && !is_over(*segment, *life));
        let chunks = chunks.into_iter();
        manifest.chunks =
            chunks.map(|((table, segment, life), bytes)| ChunkCount { table, segment, life, bytes }).collect();
        let counts = manifest.keys.iter();
        let mut keys: BTreeMap<_, _> = counts.map(|c| (c.table, (c.keys, c.alive))).collect();
        for (table, (of_runs, alive)) in &self.keys {
            let count = keys.entry(*table).or_default();
            *count = (count.0 + of_runs, count.1 + alive);
        }
        keys.retain(|_, count| count.0 != 0);
        manifest.keys = keys.into_iter().map(|(table, (keys, alive))| KeyCount { table, keys, alive }).collect();
    }

    /// Tells what died and piled up, once that is durable.
    pub(super) fn report(&self) {
        let accounting = self.context.accounting;
        for (table, entry, life) in &self.dead {
            // The segment may have been freed meanwhile, and its counts with it.
            if (self.context.life_of)(entry.location.segment) == *life {
                (accounting.died)(*table, entry);
            }
        }
        self.piled_up.iter().for_each(|(key, operands)| (accounting.piled_up)(key, *operands));
    }
}
