//! A sorted stream of entries of a new table becomes runs, without a memtable.
//!
//! No other run has a key of the table, so the runs may have any place in the order of all: that which has least merged for their sake.
//! Their files are named by one edit, at the end; until then they are files that no manifest names.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::counts::{Changes, IngestCounts};
use super::file::{Removals, RunFile};
use super::filtering::mark_of;
use super::policy::{Shape, place_of_new};
use super::writer::{Making, RunWriter};
use super::{RunContext, Runs};
use crate::filter::TableFilter;
use crate::format::place::{Counting, footprint};
use crate::format::record::Chunk;
use crate::format::run::manifest::{ChunkCount, ManifestRun, RunFileName};
use crate::index::accounting::Accounting;
use crate::index::chain::{Entry, VersionChain};
use crate::index::codec::{Key, LONG_KEY_PREFIX_BYTES};
use crate::io::{Device, UNIT_BYTES};
use crate::{Compression, Error, Result};

/// Index keys of long keys are in order only as far as their first bytes tell: so many with the same first bytes are sorted in memory.
/// Where there are more of them, another run is begun.
const GROUP_KEYS: usize = 1 << 10;

/// Bytes of an index key that tell the order of all keys.
const ORDERED_BYTES: usize = 4 + LONG_KEY_PREFIX_BYTES;

/// An entry on its way into a run.
pub(crate) struct Ingested {
    pub(crate) key: Key,
    pub(crate) entry: Entry,
    /// The life of the segment to which it leads.
    pub(crate) life: u64,
    /// The chunks that it names, with the lives of their segments.
    pub(crate) chunks: Vec<(Chunk, u64)>,
}

/// Runs that are being made of a stream. Their files are removed if it does not come to its end.
pub(crate) struct RunIngest<D: Device> {
    /// No entry has a lower sequence.
    base: u64,
    hash_seed: u64,
    filter: TableFilter,
    compression: Compression,
    counting: Counting,
    removals: Arc<Removals>,
    output: Option<RunWriter<D>>,
    /// See [`Runs::file_bytes`].
    file_bytes: u64,
    /// The files of each run, in the order of their keys; entries go to the last run.
    runs: Vec<Vec<Arc<RunFile<D>>>>,
    last_key: Key,
    /// Entries whose keys begin alike, not sorted yet.
    group: Vec<Ingested>,
    /// Of the file in progress, by segment and life.
    chunks: BTreeMap<(u32, u64), i64>,
    counts: IngestCounts,
}

impl<D: Device> RunIngest<D> {
    /// Adds a key, which comes after all others in the order of keys.
    pub(crate) fn add(&mut self, runs: &Runs<D>, new: Ingested) -> Result<()> {
        let begin = |key: &Key| key.get(..ORDERED_BYTES).map(<[u8]>::to_vec);
        let is_alike = self.group.first().is_some_and(|first| begin(&first.key) == begin(&new.key));
        if !self.group.is_empty() && (!is_alike || self.group.len() >= GROUP_KEYS) {
            self.add_group(runs)?;
        }
        if new.key.len() < ORDERED_BYTES {
            return self.write(runs, new);
        }
        self.group.push(new);
        Ok(())
    }

    fn add_group(&mut self, runs: &Runs<D>) -> Result<()> {
        let mut group = std::mem::take(&mut self.group);
        group.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        if group.first().is_some_and(|first| first.key <= self.last_key) {
            self.finish_file()?;
            self.runs.push(Vec::new());
        }
        group.into_iter().try_for_each(|one| self.write(runs, one))
    }

    fn write(&mut self, runs: &Runs<D>, Ingested { key, entry, life, chunks }: Ingested) -> Result<()> {
        if self.output.as_ref().is_some_and(|output| output.bytes() >= self.file_bytes) {
            self.finish_file()?;
        }
        if self.output.is_none() {
            self.output = Some(self.begin_file(runs)?);
        }
        let bytes = Accounting { counting: self.counting, ..Accounting::NONE }.bytes_of(&key, &entry);
        let live = self.counts.live.entry((entry.location.segment, life)).or_default();
        *live = (live.0 + bytes, live.1 + 1);
        for (chunk, life) in &chunks {
            *self.chunks.entry((chunk.location.segment, *life)).or_default() += footprint(chunk.location.length);
        }
        self.counts.keys += 1;
        let chain: VersionChain = [entry].into_iter().collect();
        let output = self.output.as_mut().expect("it was just made");
        // A filter that panics is asked again by a merge, which says so.
        let mark = mark_of(&mut self.filter, &key, &chain, &|_| ());
        output.add(&key, &chain, life, mark, &|_| self.compression)?;
        self.last_key = key;
        Ok(())
    }

    /// Begins a file where the disk has room for it beside what flushes and merges may need.
    fn begin_file(&mut self, runs: &Runs<D>) -> Result<RunWriter<D>> {
        self.file_bytes = runs.file_bytes();
        if runs.free_bytes() < self.file_bytes + runs.memtable_room().reserved_bytes {
            return Err(Error::DiskFull { path: runs.directory.clone() });
        }
        let (base, hash_seed) = (self.base, self.hash_seed);
        let making = Making { base, carried_out: 0, hash_seed, is_asked_by_puts: false };
        runs.new_writer(making)
    }

    fn finish_file(&mut self) -> Result<()> {
        let Some(output) = self.output.take() else { return Ok(()) };
        let file = output.finish()?;
        let (table, number) = (self.counts.table, file.name.number);
        let chunks = std::mem::take(&mut self.chunks).into_iter();
        let counts = chunks.map(|((segment, life), bytes)| ChunkCount { file: number, table, segment, life, bytes });
        self.counts.of_files.extend(counts);
        self.runs.last_mut().expect("there is one to write to").push(file);
        Ok(())
    }

    /// Flushes what is written of the file in progress: its descriptor may be closed while the stream pauses, for however long.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.output.as_mut().map_or(Ok(()), RunWriter::flush)
    }

    /// Finishes the last file: all bytes are durable when this returns, and nothing names them yet.
    pub(crate) fn complete(&mut self, runs: &Runs<D>) -> Result<()> {
        self.add_group(runs)?;
        self.finish_file()
    }

    /// What its entries count.
    pub(crate) fn counts(&self) -> &IngestCounts {
        &self.counts
    }
}

impl<D: Device> Drop for RunIngest<D> {
    fn drop(&mut self) {
        self.runs.iter().flatten().for_each(|file| file.set_dropped(&self.removals));
    }
}

fn bytes_of(files: &[RunFileName]) -> u64 {
    files.iter().map(|file| u64::from(file.units) * UNIT_BYTES as u64).sum()
}

fn shape_of(run: &ManifestRun) -> Shape {
    Shape { merge: run.merge, bytes: bytes_of(&run.files) }
}

impl<D: Device> Runs<D> {
    /// Begins to make runs of the entries of a new table with this filter and this compression of its blocks, and to count them so. No entry has
    /// a lower sequence than `base`.
    pub(crate) fn begin_ingest(
        &self,
        table: u32,
        base: u64,
        filter: TableFilter,
        compression: Compression,
        counting: Counting,
    ) -> RunIngest<D> {
        RunIngest {
            base,
            hash_seed: self.hash_seed(),
            filter,
            compression,
            counting,
            removals: Arc::clone(&self.removals),
            output: None,
            file_bytes: self.file_bytes(),
            runs: vec![Vec::new()],
            last_key: Key::new(),
            group: Vec::new(),
            chunks: BTreeMap::new(),
            counts: IngestCounts { table, keys: 0, live: BTreeMap::new(), of_files: Vec::new() },
        }
    }

    /// Names the files of an ingest that is complete, all in one edit: all its entries are found from then on, after a crash too.
    /// `durable` is the last batch that is durable: the log has all these entries before its end. After an error nothing has changed.
    pub(crate) fn name_ingested(&self, mut ingest: RunIngest<D>, durable: u64, context: &RunContext<'_>) -> Result<()> {
        // A step counts on the runs that it merges to follow each other.
        let _no_step = self.turns.lock_alone();
        let _turn = self.flushes.lock();
        let mut changes = Changes::of_ingest(context, ingest.counts());
        // Not removed before: from the edit on they may be named.
        let runs: Vec<_> = std::mem::take(&mut ingest.runs).into_iter().filter(|files| !files.is_empty()).collect();
        let names: Vec<Vec<_>> = runs.iter().map(|files| files.iter().map(|file| file.name).collect()).collect();
        self.edit(runs.into_iter().flatten().collect(), |manifest| {
            let shapes: Vec<_> = manifest.runs.iter().map(shape_of).collect();
            let at = place_of_new(&shapes, names.iter().map(|files| bytes_of(files)).max().unwrap_or(0));
            // They have nothing of any memtable.
            let until = manifest.runs.get(at).or(manifest.runs.last()).map_or(manifest.next_sequence, |run| run.until);
            for files in names {
                let number = manifest.next_run;
                manifest.next_run += 1;
                manifest.runs.insert(at, ManifestRun { number, until, files, ..ManifestRun::default() });
            }
            manifest.durable_batch = manifest.durable_batch.max(durable);
            changes.apply(manifest);
        })
        .map(drop)
    }
}
