//! Looks at what the parts of the store take of its budget of memory, and moves the bounds of those that can give memory back.

use crate::Result;
use crate::budget::{MemoryStats, Part};
use crate::io::Device;
use crate::store::memory::listed_of;
use crate::store::read_path::ReadPath;

/// Steps by which caches come to their budgets at one look. Each empties a few blocks of each shard: the rest waits for the next look.
const CACHE_STEPS: usize = 8;

const MIB: u64 = 1 << 20;

impl<D: Device> ReadPath<D> {
    /// [`ReadPath::balance_memory`], if the last look is long enough ago.
    pub(crate) fn balance_memory_if_due(&self) {
        let now_ms = self.device.clock_ms();
        if self.memory.is_due(now_ms) {
            self.memory.refresh_machine(now_ms, || self.device.memory_bytes());
            self.balance_memory(false);
        }
    }

    /// Sets what memtables, superseded records and caches may take by what the other parts take now. Memtables and caches come there step by
    /// step, memtables all the way where nobody writes yet (`at_once`).
    pub(crate) fn balance_memory(&self, at_once: bool) {
        let indexes = self.ordered.open().count() as u64;
        let bounds = self.memory.demand(&self.options, indexes).bounds();
        self.memory.bound_memtables(&bounds, &self.options, at_once);
        self.snapshots.bound_versions(listed_of(bounds.versions));
        for (cache, budget_bytes) in [(&*self.block_cache, bounds.block_cache), (&self.cache, bounds.cache)] {
            cache.set_budget(budget_bytes);
            for _ in 0..CACHE_STEPS {
                if !cache.fit() {
                    break;
                }
            }
        }
    }

    /// Changes the budget of an open store, or leaves it to the store again.
    pub(crate) fn set_memory_bytes(&self, bytes: Option<u64>) -> Result<()> {
        self.memory.choose(bytes, &self.options)?;
        self.balance_memory(false);
        Ok(())
    }

    /// The budget, and what each part takes of it.
    pub(crate) fn memory_stats(&self) -> MemoryStats {
        let of = |part| self.memory.accounts.bytes(part);
        MemoryStats {
            budget_bytes: self.memory.budget(&self.options),
            memtable_bytes: self.ordered.open().map(|ordered| ordered.memtable.memory_bytes()).sum(),
            run_bytes: of(Part::Runs),
            hash_bytes: of(Part::Hash),
            version_bytes: of(Part::Versions) + self.snapshots.version_memory_bytes(),
            batch_bytes: of(Part::Batches),
            buffer_bytes: of(Part::Buffers),
            block_cache_bytes: self.block_cache.memory_bytes(),
            cache_bytes: self.cache.memory_bytes(),
        }
    }

    /// What an operator should know of the budget.
    pub(crate) fn memory_warnings(&self) -> Vec<String> {
        let (budget, machine) = (self.memory.budget(&self.options), self.memory.machine());
        let mut warnings = Vec::new();
        if self.memory.is_chosen() && budget > machine {
            warnings.push(format!(
                "the store may take {} MiB of memory (memory_bytes), and this process may have {} MiB: it may be killed",
                budget / MIB,
                machine / MIB
            ));
        }
        let least = self.memory.demand(&self.options, self.ordered.open().count() as u64).least_budget();
        if least > budget {
            warnings.push(format!(
                "filters and the slots of `hash` tables cannot be given back, and with the least that other parts need they take {} MiB \
                 of memory, of a budget of {} MiB (memory_bytes)",
                least / MIB,
                budget / MIB
            ));
        }
        warnings
    }
}
