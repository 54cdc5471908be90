//! Looks at what the parts of the store take of its budget of memory, and moves the bounds of those that can give memory back.

use crate::budget::{Demand, MemoryStats, Part};
use crate::cache::Preferences;
use crate::index::memtable::MemtableRoom;
use crate::index::ordered::OrderedIndex;
use crate::index::runs::filters::{Fitted, LeftOut, fit_filters};
use crate::io::{Device, InPhase, Phase};
use crate::planted::{self, Bug};
use crate::store::catalog::Generation;
use crate::store::growth::Sample;
use crate::store::memory::{Shortage, Wishes, listed_of};
use crate::store::read_path::ReadPath;
use crate::{IndexKind, Result, StorageMode};

const MIB: u64 = 1 << 20;

/// Filters that a look brings back to memory where the store has no thread for that.
const LOADED_PER_LOOK: usize = 4;

/// How the parts come to bounds that are lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A step closer: the rest waits for the next look.
    Step,
    /// All the way: nobody writes yet, or nobody will look again.
    AtOnce,
}

impl<D: Device> ReadPath<D> {
    /// Tells caches and budget what tables want in memory by their modes.
    fn prefer_tables(&self) {
        let generations = self.catalog.generations();
        let those = |are: fn(&Generation) -> bool| {
            generations.iter().filter(|generation| are(generation)).map(|generation| generation.id).collect::<Vec<_>>()
        };
        let blocks = Preferences {
            preferred: those(Generation::prefers_blocks),
            refused: those(|generation| generation.modes().keys == StorageMode::Disk),
        };
        let values = Preferences {
            preferred: those(Generation::prefers_values),
            refused: those(|generation| generation.modes().values == StorageMode::Disk),
        };
        let mut wishes =
            Wishes { blocks: !blocks.preferred.is_empty(), values: !values.preferred.is_empty(), ..Wishes::default() };
        if wishes.blocks || wishes.values {
            let of_lsm = self.ordered.get(IndexKind::Lsm).map_or(0, |ordered| ordered.committed.plain_bytes());
            let runs = of_lsm + self.spilled.disk_bytes();
            // An entry of the cache has a header, and its blocks have unused ends.
            wishes.all_block_bytes = runs + runs / 4;
        }
        self.memory.note_wishes(wishes);
        self.block_cache.prefer(blocks);
        self.cache.prefer(values);
    }

    /// [`ReadPath::balance_memory`], if the last look is long enough ago.
    pub(crate) fn balance_memory_if_due(&self) {
        let now_ms = self.device.clock_ms();
        if self.memory.is_due(now_ms) {
            self.memory.refresh_machine(now_ms, || self.device.memory_bytes());
            self.balance_memory(Pace::Step);
            self.balance_filters(LOADED_PER_LOOK);
            self.memory.growth.note_if_due(now_ms, || Sample {
                at_ms: now_ms,
                memory_used: self.memory_stats().used_bytes(),
                disk_free: self.segments.directories().iter().filter_map(|path| self.device.free_bytes(path)).min(),
            });
        }
    }

    /// [`ReadPath::balance_memory_if_due`] where nobody else does it: a store that is open for reading only has no threads of its own, so
    /// those who have read a value from the device look.
    pub(crate) fn balance_memory_of_reader(&self) {
        if self.options.read_only {
            self.balance_memory_if_due();
        }
    }

    /// What there is of memory, and what the parts would take.
    pub(crate) fn memory_demand(&self) -> Demand {
        self.memory.demand(&self.options, self.ordered.open().count() as u64)
    }

    /// Sets what memtables, superseded records and caches may take by what the other parts take now. Memtables and caches come there at a pace.
    pub(crate) fn balance_memory(&self, pace: Pace) {
        self.balance_memory_for(self.ordered.open().count() as u64, pace);
    }

    /// [`ReadPath::balance_memory`] for so many ordered indexes.
    fn balance_memory_for(&self, indexes: u64, pace: Pace) {
        self.prefer_tables();
        let demand = self.memory.demand(&self.options, indexes);
        self.sums.set_budget(demand.budget);
        let bounds = demand.bounds();
        self.memory.bound_memtables(&bounds, &self.options, pace == Pace::AtOnce);
        // Those that may have more learn of it with the room on the disk.
        if !planted::is_on(Bug::MemtableBoundKept) {
            self.ordered.open().for_each(|ordered| ordered.memtable.limit_further(self.memory.memtable_keys()));
        }
        self.snapshots.bound_versions(listed_of(bounds.versions));
        for (cache, budget_bytes) in [(&*self.block_cache, bounds.block_cache), (&self.cache, bounds.cache)] {
            cache.set_budget(budget_bytes);
            while cache.fit() && pace == Pace::AtOnce {}
        }
    }

    /// Has filters of sorted runs take no more than there is room for. Returns those that may come back to memory.
    fn fit_filters(&self) -> Vec<LeftOut<D>> {
        let room = self.memory.filter_room(&self.options, self.ordered.open().count() as u64);
        self.memory.accounts.set_filter_room(room);
        let runs = self.ordered.get(IndexKind::Lsm).and_then(|ordered| ordered.committed.runs());
        let mut filtered = self.spilled.filtered();
        filtered.extend(runs.map(|runs| runs.filtered()).into_iter().flatten());
        let in_memory = self.memory.accounts.bytes(Part::Filters);
        let Fitted { back, left_out_bytes } = fit_filters(filtered, room, in_memory);
        self.memory.note_filters_left_out(left_out_bytes);
        // Look-ups that begin from now on know which have left memory or come there.
        runs.into_iter().for_each(|runs| runs.take_filters());
        self.spilled.take_filters();
        back
    }

    /// Reads up to so many filters for which there is room by now. True if one was read.
    pub(crate) fn load_filters(&self, most: usize) -> bool {
        self.memory.filters_left_out() > 0 && self.load_those(&self.fit_filters(), most)
    }

    fn load_those(&self, left_out: &[LeftOut<D>], most: usize) -> bool {
        let mut any = false;
        for file in left_out.iter().take(most) {
            match file.load() {
                Ok(()) => any = true,
                Err(error) => self.note_trouble(&error),
            }
        }
        if any {
            self.fit_filters();
        }
        any
    }

    /// [`ReadPath::balance_memory`] for filters. Upkeep brings them back; where the store has no such thread, up to so many are read here.
    pub(crate) fn balance_filters(&self, most: usize) {
        let left_out = self.fit_filters();
        if self.pace() == Pace::AtOnce {
            self.load_those(&left_out, most);
        }
    }

    /// Lets a memtable have as many keys as there is memory for. Where nobody has looked yet how many the disk has room for it would have
    /// the usual bound, and a store that is opened with little memory would take it for what it replays.
    pub(crate) fn bound_memtable_by_memory(&self, ordered: &OrderedIndex<D>) {
        let room = MemtableRoom { keys: self.memory.memtable_keys(), is_short: false, reserved_bytes: 0 };
        ordered.memtable.limit(room);
    }

    /// Divides the memory for one ordered index more, before others see it: its memtable and those that there are have their parts at once.
    pub(crate) fn share_memory_with(&self, new: &OrderedIndex<D>) {
        self.balance_memory_for(self.ordered.open().count() as u64 + 1, Pace::Step);
        self.bound_memtable_by_memory(new);
    }

    /// Changes the budget of an open store, or leaves it to the store again.
    pub(crate) fn set_memory_bytes(&self, bytes: Option<u64>) -> Result<()> {
        self.memory.choose(bytes, &self.options)?;
        let _phase = InPhase::enter(&self.device, Phase::Budget);
        self.balance_memory(self.pace());
        self.balance_filters(usize::MAX);
        Ok(())
    }

    /// How caches come to bounds that somebody has changed: the writer and upkeep take the other steps, where the store has threads for that.
    pub(crate) fn pace(&self) -> Pace {
        if self.options.read_only || !self.options.background { Pace::AtOnce } else { Pace::Step }
    }

    /// The budget, and what each part takes of it.
    pub(crate) fn memory_stats(&self) -> MemoryStats {
        let of = |part| self.memory.accounts.bytes(part);
        MemoryStats {
            budget_bytes: self.memory_demand().budget,
            memtable_bytes: self.ordered.open().map(|ordered| ordered.memtable.memory_bytes()).sum(),
            run_bytes: of(Part::Runs) + of(Part::Filters),
            hash_bytes: of(Part::Hash) + of(Part::Sums),
            version_bytes: of(Part::Versions) + self.snapshots.version_memory_bytes(),
            batch_bytes: of(Part::Batches),
            buffer_bytes: of(Part::Buffers),
            block_cache_bytes: self.block_cache.memory_bytes(),
            cache_bytes: self.cache.memory_bytes(),
            filters_left_out_bytes: self.memory.filters_left_out(),
        }
    }

    /// What an operator should know of the budget.
    pub(crate) fn memory_warnings(&self, stats: &MemoryStats) -> Vec<String> {
        let budget = self.memory_demand().budget;
        let mut warnings = Vec::new();
        if let Some(Shortage { chosen, machine, has_shrunk }) = self.memory.shortage() {
            let (chosen, machine) = (chosen / MIB, machine / MIB);
            warnings.push(match has_shrunk {
                true => format!(
                    "what this process may have of memory (its control group) has shrunk to {machine} MiB, less than the {chosen} MiB that the \
                     store was given (memory_bytes): it takes no more than that until there is more again, and may be killed"
                ),
                false => format!(
                    "the store may take {chosen} MiB of memory (memory_bytes), and this process may have {machine} MiB: it takes no more than \
                     that, and may be killed"
                ),
            });
        }
        let least = self.memory.taken(&self.options, self.ordered.open().count() as u64);
        if least > budget {
            warnings.push(format!(
                "what the store cannot give back (fences of sorted runs, slots of `hash` tables before they have moved on to files) and the \
                 least that its other parts need take {} MiB of memory, of a budget of {} MiB (memory_bytes)",
                least / MIB,
                budget / MIB
            ));
        }
        let left_out = stats.filters_left_out_bytes;
        if left_out > 0 {
            warnings.push(format!(
                "memory has no room for {} MiB of filters of sorted runs: look-ups read more blocks. They come back with a larger budget \
                 (memory_bytes)",
                left_out.div_ceil(MIB)
            ));
        }
        warnings
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
