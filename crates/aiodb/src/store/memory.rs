//! The budget of an open store: what was chosen, what there is, and the bounds that follow from both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::budget::{Accounts, BUFFER_BYTES, Bounds, Demand, Held, Limits, Part, default_bytes, most_default_bytes};
use crate::index::memtable::{KEY_BYTES, MAX_ACTIVE_KEYS};
use crate::index::snapshots::VERSION_MEMORY_BYTES;
use crate::store::growth::Growth;
use crate::{Error, Options, Result};

/// An ordered index has an active memtable and one that is being committed.
const MEMTABLES: u64 = 2;

/// When the list of superseded records becomes a layer, a new one begins: memory has two of them, and writers help beyond that.
const LISTS: u64 = 2;

/// The list is not made shorter than this.
const LEAST_LISTED: usize = 2048;

/// The cache of blocks of sorted runs wants one part in so many of the budget, where the options do not say.
const BLOCK_CACHE_SHARE: u64 = 2;

/// It wants no less than this...
const LEAST_BLOCK_CACHE_BYTES: u64 = 8 << 20;

/// ...nor more: it has the blocks of forty million short keys.
const MOST_BLOCK_CACHE_BYTES: u64 = 1 << 30;

/// The memory that there is, is asked for again so often: the limit of a control group can change.
const MACHINE_PERIOD_MS: u64 = 10_000;

/// The parts are looked at so often.
const LOOK_PERIOD_MS: u64 = 200;

/// A bound of memtables that falls does so by one part in so many at each look: writers are held up by a full memtable, and need not be by one that
/// was not a moment ago.
const STEP_SHARE: usize = 16;

/// What tables want in memory by their modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    /// Whether one wants blocks of its runs there.
    pub(crate) blocks: bool,
    /// Whether one wants its values there.
    pub(crate) values: bool,
    /// What the blocks of all runs would take in the cache.
    pub(crate) all_block_bytes: u64,
}

/// There is less memory for the process than was chosen for the store. In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shortage {
    pub(crate) chosen: u64,
    pub(crate) machine: u64,
    /// Whether there was enough since it was chosen.
    pub(crate) has_shrunk: bool,
}

/// What may be looked at often. All numbers are Relaxed: they publish nothing, and a bound may be met late.
pub(crate) struct Memory {
    pub(crate) accounts: Arc<Accounts>,
    /// The budget that was chosen; 0 where none was.
    chosen: AtomicU64,
    /// The most memory that there was for this process since.
    most_since_chosen: AtomicU64,
    /// The memory that there was for this process when it was asked for last, and when that was.
    machine: AtomicU64,
    machine_read_ms: AtomicU64,
    looked_ms: AtomicU64,
    /// See [`Memory::memtable_keys`].
    memtable_keys: AtomicUsize,
    /// See [`Wishes`].
    prefers_blocks: AtomicBool,
    prefers_values: AtomicBool,
    all_block_bytes: AtomicU64,
    pub(crate) growth: Growth,
    /// Bytes of filters that memory has no room for, as of the last look.
    filters_left_out: AtomicU64,
    /// The memory of batches, which is there as long as the store is open.
    _batches: Held,
}

impl Memory {
    /// The memory of a store that has nothing yet, on a machine with so much; its batches take `batch_bytes`.
    pub(crate) fn new(options: &Options, machine: u64, batch_bytes: u64, now_ms: u64) -> Result<Memory> {
        let accounts = Arc::default();
        let batches = Held::new(&accounts, Part::Batches, batch_bytes);
        let memory = Memory {
            accounts,
            chosen: AtomicU64::new(0),
            most_since_chosen: AtomicU64::new(machine),
            machine: AtomicU64::new(machine),
            machine_read_ms: AtomicU64::new(now_ms),
            looked_ms: AtomicU64::new(now_ms),
            memtable_keys: AtomicUsize::new(0),
            prefers_blocks: AtomicBool::new(false),
            prefers_values: AtomicBool::new(false),
            all_block_bytes: AtomicU64::new(0),
            growth: Growth::default(),
            filters_left_out: AtomicU64::new(0),
            _batches: batches,
        };
        memory.choose(options.memory_bytes, options)?;
        // Files are opened before anybody looks.
        memory.accounts.set_filter_room(memory.filter_room(options, 1));
        let bounds = memory.demand(options, 1).bounds();
        memory.memtable_keys.store(keys_of(bounds.memtables, options), Ordering::Relaxed);
        Ok(memory)
    }

    /// Sets the budget, or leaves it to the store again.
    pub(crate) fn choose(&self, bytes: Option<u64>, options: &Options) -> Result<()> {
        let least = self.least_budget(options);
        if let Some(bytes) = bytes.filter(|bytes| *bytes < least) {
            return Err(Error::TooLittleMemory { bytes, least });
        }
        self.most_since_chosen.store(self.machine(), Ordering::Relaxed);
        self.chosen.store(bytes.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// The budget that was chosen, if one was.
    fn chosen(&self) -> Option<u64> {
        Some(self.chosen.load(Ordering::Relaxed)).filter(|chosen| *chosen > 0)
    }

    /// The same, and no more than there is: a control group may shrink while the store is open, and grow again.
    fn chosen_budget(&self) -> Option<u64> {
        self.chosen().map(|chosen| self.shortage().map_or(chosen, |shortage| shortage.machine))
    }

    /// Says where there is less memory than was chosen.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        let (chosen, machine) = (self.chosen()?, self.machine());
        // The system may not say how much there is.
        let is_short = 0 < machine && machine < chosen;
        let had_room = self.most_since_chosen.load(Ordering::Relaxed) >= chosen;
        is_short.then_some(Shortage { chosen, machine, has_shrunk: had_room })
    }

    /// The least budget with which the store works that has nothing yet.
    fn least_budget(&self, options: &Options) -> u64 {
        let fixed = self.accounts.bytes(Part::Batches) + BUFFER_BYTES;
        Demand { fixed, ..self.demand(options, 1) }.least_budget()
    }

    /// What the store takes that cannot be given back, and the least of its other parts. Buffers come and go: a moment's do not count.
    pub(crate) fn taken(&self, options: &Options, indexes: u64) -> u64 {
        Demand { fixed: self.kept() + BUFFER_BYTES, ..self.demand(options, indexes) }.least_budget()
    }

    /// What slots of `hash` tables may take together, in a store with so many ordered indexes, where those that can move on to files take `slots`
    /// now. A budget that nobody has chosen grows with them first.
    pub(crate) fn hash_bound(&self, options: &Options, indexes: u64, slots: u64) -> u64 {
        let demand = self.largest_demand(options, indexes);
        demand.hash_bound(slots).min(options.hash_bytes.unwrap_or(u64::MAX))
    }

    /// What filters of sorted runs may take together, in a store with so many ordered indexes. A budget that nobody has chosen grows with them first.
    pub(crate) fn filter_room(&self, options: &Options, indexes: u64) -> u64 {
        let beside = self.bytes_of([Part::Runs, Part::Sums, Part::Versions, Part::Batches]);
        self.largest_demand(options, indexes)
            .filter_room(beside + BUFFER_BYTES)
            .min(options.filter_bytes.unwrap_or(u64::MAX))
    }

    /// [`Memory::demand`] with the largest budget that there can be.
    fn largest_demand(&self, options: &Options, indexes: u64) -> Demand {
        let most_default = || most_default_bytes(self.machine(), u64::from(options.memory_shared_by));
        let budget = self.chosen_budget().unwrap_or_else(most_default);
        // A moment's buffers do not count, or slots and filters would go for them.
        Demand { budget, fixed: self.kept() + BUFFER_BYTES, ..self.demand(options, indexes) }
    }

    /// What cannot be given back, or not at once, buffers aside.
    fn kept(&self) -> u64 {
        self.bytes_of([Part::Runs, Part::Filters, Part::Hash, Part::Sums, Part::Versions, Part::Batches])
    }

    fn bytes_of<const PARTS: usize>(&self, parts: [Part; PARTS]) -> u64 {
        parts.map(|part| self.accounts.bytes(part)).iter().sum()
    }

    /// The memory that there is for this process, as it is known.
    pub(crate) fn machine(&self) -> u64 {
        self.machine.load(Ordering::Relaxed)
    }

    /// Asks for the memory that there is, where that was done long ago.
    pub(crate) fn refresh_machine(&self, now_ms: u64, ask: impl FnOnce() -> u64) {
        let read_ms = self.machine_read_ms.load(Ordering::Relaxed);
        if now_ms >= read_ms + MACHINE_PERIOD_MS {
            let machine = ask();
            self.machine_read_ms.store(now_ms, Ordering::Relaxed);
            self.machine.store(machine, Ordering::Relaxed);
            self.most_since_chosen.fetch_max(machine, Ordering::Relaxed);
        }
    }

    /// Whether the calling thread should look at the parts now.
    pub(crate) fn is_due(&self, now_ms: u64) -> bool {
        let looked_ms = self.looked_ms.load(Ordering::Relaxed);
        now_ms >= looked_ms + LOOK_PERIOD_MS
            && self.looked_ms.compare_exchange(looked_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Bytes of filters that memory has no room for, as of the last look.
    pub(crate) fn filters_left_out(&self) -> u64 {
        self.filters_left_out.load(Ordering::Relaxed)
    }

    /// Notes how many bytes of filters memory has no room for.
    pub(crate) fn note_filters_left_out(&self, bytes: u64) {
        self.filters_left_out.store(bytes, Ordering::Relaxed);
    }

    /// Notes what tables want in memory.
    pub(crate) fn note_wishes(&self, wishes: Wishes) {
        self.prefers_blocks.store(wishes.blocks, Ordering::Relaxed);
        self.prefers_values.store(wishes.values, Ordering::Relaxed);
        self.all_block_bytes.store(wishes.all_block_bytes, Ordering::Relaxed);
    }

    fn wishes(&self) -> Wishes {
        Wishes {
            blocks: self.prefers_blocks.load(Ordering::Relaxed),
            values: self.prefers_values.load(Ordering::Relaxed),
            all_block_bytes: self.all_block_bytes.load(Ordering::Relaxed),
        }
    }

    /// Keys that the memtable of an ordered index takes, at most.
    pub(crate) fn memtable_keys(&self) -> usize {
        self.memtable_keys.load(Ordering::Relaxed)
    }

    /// Comes closer to a bound of memtables, or all the way `at_once`.
    pub(crate) fn bound_memtables(&self, bounds: &Bounds, options: &Options, at_once: bool) {
        let (wanted, now) = (keys_of(bounds.memtables, options), self.memtable_keys());
        let step = if at_once { now } else { (now / STEP_SHARE).max(1) };
        self.memtable_keys.store(wanted.max(now - step.min(now)), Ordering::Relaxed);
    }

    /// What there is, and what the parts of a store with so many ordered indexes would take.
    pub(crate) fn demand(&self, options: &Options, indexes: u64) -> Demand {
        let (chosen, kept, wishes) = (self.chosen_budget(), self.kept(), self.wishes());
        let mut demand = Demand {
            budget: chosen.unwrap_or(0),
            fixed: kept + BUFFER_BYTES,
            indexes,
            memtables: memtables(options),
            versions: versions(options),
            block_cache: block_cache(options, chosen.is_none()),
            cache: options.cache_bytes,
            cache_takes_rest: wishes.values && options.cache_bytes == 0,
        };
        if chosen.is_none() {
            demand.budget = default_bytes(self.machine(), u64::from(options.memory_shared_by), demand.needed());
        }
        if options.block_cache_bytes.is_none() {
            let usual = (demand.budget / BLOCK_CACHE_SHARE).clamp(LEAST_BLOCK_CACHE_BYTES, MOST_BLOCK_CACHE_BYTES);
            let all = wishes.all_block_bytes.max(LEAST_BLOCK_CACHE_BYTES);
            demand.block_cache.most = match wishes {
                // What blocks cannot use is for values.
                Wishes { values: true, .. } if options.cache_bytes == 0 => all,
                Wishes { blocks: true, .. } => usual.max(all),
                _ => usual,
            };
        }
        // A moment's buffers make the default no larger.
        Demand { fixed: kept + self.accounts.bytes(Part::Buffers).max(BUFFER_BYTES), ..demand }
    }
}

/// What the memtables of one ordered index may take.
fn memtables(options: &Options) -> Limits {
    let of_keys = |keys: usize| MEMTABLES * (keys * KEY_BYTES) as u64;
    let least = of_keys(options.least_memtable_keys.max(1));
    let most = options.memtable_bytes.unwrap_or(u64::MAX).min(of_keys(MAX_ACTIVE_KEYS)).max(least);
    Limits { least, most, is_chosen: options.memtable_bytes.is_some() }
}

/// What the cache of blocks may take. It has a floor where nothing is chosen, neither its size nor the budget.
fn block_cache(options: &Options, is_default: bool) -> Limits {
    match options.block_cache_bytes {
        Some(most) => Limits { least: 0, most, is_chosen: true },
        None => Limits {
            least: if is_default { LEAST_BLOCK_CACHE_BYTES } else { 0 },
            most: LEAST_BLOCK_CACHE_BYTES,
            is_chosen: false,
        },
    }
}

/// What superseded records may take in memory.
fn versions(options: &Options) -> Limits {
    let of = |listed: usize| (listed as u64).saturating_mul(LISTS * VERSION_MEMORY_BYTES);
    let least = of(options.versions_in_memory.min(LEAST_LISTED));
    Limits { least, most: of(options.versions_in_memory), is_chosen: false }
}

/// How many keys a memtable may have, so that those of an index take so much memory.
fn keys_of(memtables_bytes: u64, options: &Options) -> usize {
    let keys = memtables_bytes / MEMTABLES / KEY_BYTES as u64;
    usize::try_from(keys).unwrap_or(usize::MAX).min(options.memtable_keys)
}

/// How many superseded records the list may have, so that they take so much memory.
pub(crate) fn listed_of(versions_bytes: u64) -> usize {
    usize::try_from(versions_bytes / LISTS / VERSION_MEMORY_BYTES).unwrap_or(usize::MAX)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
