//! How a memtable becomes the newest run.

use std::sync::Arc;

use super::counts::Changes;
use super::file::RunFile;
use super::filtering::{EntryMark, Marker};
use super::merge::{cut, due_ranges, retain};
use super::set::RunSet;
use super::writer::{Making, RunWriter};
use super::{RunContext, Runs};
use crate::Result;
use crate::format::entry::RangeTombstone;
use crate::format::run::manifest::ManifestRun;
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::codec::table_of;
use crate::index::memtable::ImmutableMemtable;
use crate::io::Device;
use crate::planted::{self, Bug};

/// Keys between two reports of a flush's progress.
const KEYS_PER_PROGRESS: usize = 1 << 10;

/// A flush in progress.
struct Flush<'a, D: Device> {
    runs: &'a Runs<D>,
    ranges: &'a [RangeTombstone],
    making: Making,
    /// See [`Runs::file_bytes`].
    file_bytes: u64,
    /// Whether there is no run yet.
    is_oldest: bool,
    changes: Changes<'a>,
    marker: Option<Marker<'a>>,
    output: Option<RunWriter<D>>,
    made: Vec<Arc<RunFile<D>>>,
}

impl<D: Device> Runs<D> {
    /// Writes an immutable memtable as the newest run, and records its position; no older run is read. `ranges` are all range
    /// tombstones before the sequence after that position; `reached` is told now and then how many keys are written. The log must
    /// be durable up to all entries. After an error nothing has changed, and the same memtable can be flushed again.
    pub(crate) fn flush(
        &self,
        memtable: &ImmutableMemtable,
        ranges: &[RangeTombstone],
        context: &RunContext<'_>,
        reached: &dyn Fn(usize),
    ) -> Result<()> {
        let _turn = self.flushes.lock();
        let set = self.set()?;
        let mut flush = Flush::new(self, &set, memtable, ranges, context);
        let outcome = flush.write(memtable, reached);
        // Not removed before: their names are not in use any more.
        let (made, mut changes) = (std::mem::take(&mut flush.made), flush.changes);
        outcome.inspect_err(|_| made.iter().for_each(|file| file.set_dropped(&self.removals)))?;
        let names: Vec<_> = made.iter().map(|file| file.name).collect();
        self.edit(made, |manifest| {
            let until = memtable.next_sequence;
            if !names.is_empty() {
                let number = manifest.next_run;
                manifest.next_run += 1;
                manifest.runs.insert(0, ManifestRun { number, until, files: names, ..ManifestRun::default() });
            } else if memtable.chains.len() == 0
                && let Some(newest) = manifest.runs.first_mut()
            {
                // It has all there is of the empty memtable, too.
                newest.until = until;
            }
            (manifest.position, manifest.next_sequence) = (Some(memtable.position), memtable.next_sequence);
            for range in ranges {
                if let Err(at) = manifest.ranges.binary_search_by_key(&range.sequence, |known| known.sequence) {
                    manifest.ranges.insert(at, range.clone());
                }
            }
            changes.apply(manifest);
        })?;
        changes.report();
        Ok(())
    }
}

impl<'a, D: Device> Flush<'a, D> {
    fn new(
        runs: &'a Runs<D>,
        set: &RunSet<D>,
        memtable: &ImmutableMemtable,
        ranges: &'a [RangeTombstone],
        context: &'a RunContext<'a>,
    ) -> Flush<'a, D> {
        let oldest = |chain: &VersionChain| chain.entries().last().map_or(u64::MAX, |entry| entry.sequence);
        let making = Making {
            base: memtable.chains.iter().map(|(_, chain)| oldest(chain)).min().unwrap_or(0),
            carried_out: due_ranges(context, memtable.next_sequence),
            hash_seed: runs.hash_seed(),
            is_asked_by_puts: false,
        };
        let (changes, is_oldest, file_bytes) = (Changes::new(context), set.runs.is_empty(), runs.file_bytes());
        let marker = context.filtering.map(Marker::new);
        Flush { runs, ranges, making, file_bytes, is_oldest, changes, marker, output: None, made: Vec::new() }
    }

    fn write(&mut self, memtable: &ImmutableMemtable, reached: &dyn Fn(usize)) -> Result<()> {
        let mut bound = None;
        for (number, (key, chain)) in memtable.chains.iter().enumerate() {
            if number.is_multiple_of(KEYS_PER_PROGRESS) {
                reached(number);
            }
            if (self.changes.context.accounting.is_gone)(table_of(key)) {
                chain.entries().iter().for_each(|entry| self.changes.died(key, entry));
                continue;
            }
            let is_last = |entry: &Entry| entry.sequence + 1 == memtable.next_sequence;
            if planted::is_on(Bug::RunPositionAhead) && chain.newest().is_some_and(is_last) {
                continue;
            }
            let mut chain = self.without_deleted(key, chain.clone());
            // A memtable may have longer values than runs.
            let (_, most) = *bound
                .filter(|(table, _)| *table == table_of(key))
                .get_or_insert_with(|| (table_of(key), (self.changes.context.inline_bytes_of)(table_of(key))));
            bound = Some((table_of(key), most));
            chain.leave_out_values(most);
            if !chain.is_empty() {
                self.add(key, &chain)?;
            }
        }
        self.finish_file()
    }

    /// A key's entries without those that range tombstones have deleted, and without what nothing older needs.
    fn without_deleted(&mut self, key: &[u8], mut chain: VersionChain) -> VersionChain {
        let mut superseded = Superseded::new();
        cut(key, &mut chain, self.ranges, self.making.carried_out, &mut superseded);
        superseded.iter().for_each(|(entry, _)| self.changes.died(key, entry));
        retain(key, &superseded, self.changes.context);
        if self.is_oldest { chain.without_delete().entries().iter().cloned().collect() } else { chain }
    }

    fn add(&mut self, key: &[u8], chain: &VersionChain) -> Result<()> {
        if self.output.as_ref().is_some_and(|output| output.bytes() >= self.file_bytes) {
            self.finish_file()?;
        }
        if self.output.is_none() {
            self.output = Some(self.runs.new_writer(self.making)?);
        }
        let output = self.output.as_mut().expect("it was just made");
        let lives = chain.entries().iter().map(|entry| self.changes.added(key, entry));
        let mark = self.marker.as_mut().map_or(EntryMark::NEVER, |marker| marker.mark(key, chain));
        output.add(key, chain, lives.max().unwrap_or(0), mark, self.changes.context.compression_of)?;
        self.changes.key(key, chain, 1);
        self.changes.operands(key, chain);
        Ok(())
    }

    fn finish_file(&mut self) -> Result<()> {
        if let Some(output) = self.output.take() {
            let file = output.finish()?;
            self.changes.finished(file.name.number);
            self.made.push(file);
        }
        Ok(())
    }
}

impl<D: Device> Runs<D> {
    /// Begins a new file.
    pub(super) fn new_writer(&self, making: Making) -> Result<RunWriter<D>> {
        let place = (&*self.directory, &self.removals);
        RunWriter::new((&self.device, &self.accounts), place, self.store, self.new_file_number(), making)
    }
}
