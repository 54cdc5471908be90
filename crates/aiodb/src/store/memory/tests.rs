use super::*;

const MIB: u64 = 1 << 20;

fn memory(options: &Options, machine: u64) -> Result<Memory> {
    Memory::new(options, machine, 8 * MIB, 0)
}

fn keys(options: &Options, machine: u64) -> usize {
    memory(options, machine).expect("it is enough").memtable_keys()
}

#[test]
fn memtables_have_a_part_of_the_budget_between_a_floor_and_a_bound() {
    let with = |memory_bytes, memtable_bytes| Options { memory_bytes, memtable_bytes, ..Options::default() };
    assert_eq!(keys(&with(Some(32 * MIB), None), 64 << 30), 16 << 10, "the floor");
    assert_eq!(keys(&with(None, None), 64 << 30), MAX_ACTIVE_KEYS, "the usual bound counts");
    assert_eq!(keys(&with(None, Some(60_000_000)), 64 << 30), 100_000);
    assert_eq!(keys(&with(None, Some(0)), 64 << 30), 16 << 10);
    let half = keys(&with(Some(256 * MIB), None), 64 << 30);
    assert!((128 << 10..256 << 10).contains(&half), "{half} keys");
    let few = Options { memtable_keys: 12, ..Options::default() };
    assert_eq!(keys(&few, 64 << 30), 12);
}

#[test]
fn too_little_is_refused_with_what_is_enough() {
    let with = |bytes| Options { memory_bytes: Some(bytes), ..Options::default() };
    let Err(Error::TooLittleMemory { bytes: MIB, least }) = memory(&with(MIB), 8 << 30).map(drop) else {
        panic!("a mebibyte is too little")
    };
    assert!((16 * MIB..48 * MIB).contains(&least), "{least} bytes");
    assert!(memory(&with(least), 8 << 30).is_ok());
    assert!(memory(&with(least - 1), 8 << 30).is_err());
    let opened = memory(&with(64 * MIB), 8 << 30).expect("it is enough");
    assert!(opened.choose(Some(least - 1), &with(64 * MIB)).is_err());
    assert_eq!(opened.demand(&with(64 * MIB), 1).budget, 64 * MIB, "what is refused changes nothing");
}

#[test]
fn the_default_follows_the_machine_and_a_chosen_budget_that_fits_does_not() {
    for chosen in [None, Some(100 * MIB)] {
        let options = Options { memory_bytes: chosen, ..Options::default() };
        let memory = memory(&options, 8 << 30).expect("it is enough");
        let budget = chosen.unwrap_or(2 << 30);
        memory.refresh_machine(9_999, || 1 << 30);
        assert_eq!(memory.demand(&options, 1).budget, budget, "it is not asked for all the time");
        memory.refresh_machine(10_000, || 1 << 30);
        assert_eq!(memory.demand(&options, 1).budget, chosen.unwrap_or(256 * MIB));
    }
}

/// As a control group that shrinks and grows again.
#[test]
fn a_chosen_budget_is_never_above_what_there_is() {
    let options = Options { memory_bytes: Some(2 << 30), ..Options::default() };
    let memory = memory(&options, 8 << 30).expect("it is enough");
    let bounds = || {
        let demand = memory.demand(&options, 1);
        let (hash, filters) = (memory.hash_bound(&options, 1, 0), memory.filter_room(&options, 1));
        (demand.budget, demand.bounds().block_cache, hash, filters)
    };
    let (chosen, group) = (bounds(), |now_ms, bytes| memory.refresh_machine(now_ms, || bytes));
    assert_eq!((chosen.0, memory.shortage()), (2 << 30, None));
    let short = |chosen, machine, has_shrunk| Some(Shortage { chosen, machine, has_shrunk });
    group(10_000, 512 * MIB);
    let shrunk = bounds();
    assert_eq!((shrunk.0, memory.shortage()), (512 * MIB, short(2 << 30, 512 * MIB, true)));
    assert!(shrunk.1 < chosen.1 && shrunk.2 < chosen.2 && shrunk.3 < chosen.3, "{shrunk:?} after {chosen:?}");
    group(20_000, 1 << 30);
    assert_eq!(bounds().0, 1 << 30, "it follows in both directions");
    group(30_000, 8 << 30);
    assert_eq!((bounds(), memory.shortage()), (chosen, None), "there is room for what was chosen");
    memory.choose(Some(16 << 30), &options).expect("it is enough");
    assert_eq!((bounds().0, memory.shortage()), (8 << 30, short(16 << 30, 8 << 30, false)), "there was never so much");
    group(40_000, 0);
    assert_eq!((bounds().0, memory.shortage()), (16 << 30, None), "the system does not say");
}

/// Writers go on with the least memtables.
#[test]
fn a_group_smaller_than_the_least_budget_leaves_the_floors() {
    let options = Options { memory_bytes: Some(1 << 30), ..Options::default() };
    let memory = memory(&options, 8 << 30).expect("it is enough");
    memory.refresh_machine(10_000, || MIB);
    let demand = memory.demand(&options, 1);
    assert_eq!(demand.budget, MIB);
    assert_eq!((keys_of(demand.bounds().memtables, &options), demand.bounds().block_cache), (16 << 10, 0));
    assert!(memory.taken(&options, 1) > demand.budget, "which is a warning");
}

#[test]
fn memtables_shrink_step_by_step_and_grow_at_once() {
    let options = Options { memory_bytes: Some(1 << 30), ..Options::default() };
    let memory = memory(&options, 8 << 30).expect("it is enough");
    memory.choose(Some(40 * MIB), &options).expect("it is enough");
    let bounds = || memory.demand(&options, 1).bounds();
    let (mut last, mut looks) = (memory.memtable_keys(), 0);
    assert_eq!(last, MAX_ACTIVE_KEYS);
    while last > keys_of(bounds().memtables, &options) {
        memory.bound_memtables(&bounds(), &options, false);
        assert!(memory.memtable_keys() >= last - last / 16 - 1);
        (last, looks) = (memory.memtable_keys(), looks + 1);
    }
    assert!((20..100).contains(&looks), "{looks} looks");
    memory.choose(Some(1 << 30), &options).expect("it is enough");
    memory.bound_memtables(&bounds(), &options, false);
    assert_eq!(memory.memtable_keys(), MAX_ACTIVE_KEYS);
    memory.choose(Some(40 * MIB), &options).expect("it is enough");
    memory.bound_memtables(&bounds(), &options, true);
    assert_eq!(memory.memtable_keys(), keys_of(bounds().memtables, &options));
}

/// A store that had many keys does not refuse what an empty one takes.
#[test]
fn what_is_held_does_not_raise_the_least_budget() {
    let options = Options { memory_bytes: Some(64 * MIB), ..Options::default() };
    let memory = memory(&options, 8 << 30).expect("it is enough");
    let before = memory.least_budget(&options);
    let _filters = Held::new(&memory.accounts, Part::Runs, 1 << 30);
    assert_eq!(memory.least_budget(&options), before);
    let bounds = memory.demand(&options, 1).bounds();
    assert_eq!((bounds.block_cache, bounds.cache), (0, 0), "caches give way");
    assert_eq!(keys_of(bounds.memtables, &options), 16 << 10);
}

/// The default is a quarter of the memory, but not where caches would have nothing then and most of the machine would be free.
#[test]
fn the_default_grows_with_what_cannot_be_given_back_and_a_chosen_budget_does_not() {
    for chosen in [None, Some(2 << 30)] {
        let options = Options { memory_bytes: chosen, cache_bytes: 256 * MIB, ..Options::default() };
        let memory = memory(&options, 8 << 30).expect("it is enough");
        let demand = || memory.demand(&options, 1);
        assert_eq!(demand().budget, 2 << 30);
        let slots = Held::new(&memory.accounts, Part::Hash, 3 << 30);
        let bounds = demand().bounds();
        match chosen {
            None => {
                assert!((4 << 30..5 << 30).contains(&demand().budget), "{:?}", demand());
                assert_eq!(bounds.cache, 256 * MIB);
                assert!(bounds.block_cache > 512 * MIB && bounds.memtables > 256 * MIB, "{bounds:?}");
            }
            Some(budget) => {
                assert_eq!((demand().budget, bounds.block_cache, bounds.cache), (budget, 0, 0));
                assert_eq!(keys_of(bounds.memtables, &options), 16 << 10);
            }
        }
        slots.set(20 << 30);
        let bounds = demand().bounds();
        assert_eq!(demand().budget, chosen.unwrap_or(6 << 30), "others need memory, too");
        assert_eq!((bounds.block_cache, bounds.cache), (if chosen.is_none() { 8 * MIB } else { 0 }, 0));
    }
}

#[test]
fn what_is_taken_counts_all_indexes_but_no_moment_of_buffers() {
    let options = Options { memory_bytes: Some(64 * MIB), ..Options::default() };
    let memory = memory(&options, 8 << 30).expect("it is enough");
    let one = memory.taken(&options, 1);
    assert!((MEMTABLES * (16 << 10) * 300..20 * MIB).contains(&(memory.taken(&options, 2) - one)));
    let _merge = Held::new(&memory.accounts, Part::Buffers, 1 << 30);
    assert_eq!(memory.taken(&options, 1), one);
    let _filters = Held::new(&memory.accounts, Part::Runs, 1 << 20);
    assert_eq!(memory.taken(&options, 1), one + MIB);
}

/// A budget that nobody has chosen grows with slots, before they move on to files.
#[test]
fn slots_of_hash_tables_follow_the_budget() {
    for chosen in [None, Some(6 << 30)] {
        let options = Options { memory_bytes: chosen, ..Options::default() };
        let memory = memory(&options, 8 << 30).expect("it is enough");
        let of = |options: &Options, slots| memory.hash_bound(options, 1, slots);
        let empty = of(&options, 0);
        assert!((3000 * MIB..3072 * MIB).contains(&empty), "{empty} bytes");
        let _slots = Held::new(&memory.accounts, Part::Hash, 2 << 30);
        let _merge = Held::new(&memory.accounts, Part::Buffers, 1 << 30);
        let bound = || of(&options, 2 << 30);
        assert_eq!(bound(), empty, "what they take themselves does not count, nor a moment's buffers");
        assert_eq!(of(&options, 1 << 30), empty - (512 << 20), "what tables take that are gone");
        let filters = Held::new(&memory.accounts, Part::Runs, 1 << 30);
        assert_eq!(bound(), empty - (512 << 20));
        drop(filters);
        let cached = Options { cache_bytes: 1 << 30, ..options.clone() };
        assert_eq!(of(&cached, 2 << 30), empty - (512 << 20));
        assert_eq!(of(&Options { hash_bytes: Some(7), ..options.clone() }, 2 << 30), 7);
        assert_eq!(of(&Options { hash_bytes: Some(1 << 40), ..options.clone() }, 2 << 30), empty);
    }
    let shared = Options { memory_shared_by: 3, ..Options::default() };
    let bound = memory(&shared, 24 << 30).expect("it is enough").hash_bound(&shared, 1, 0);
    assert!((3000 * MIB..3072 * MIB).contains(&bound), "{bound} bytes");
}

#[test]
fn tables_that_want_values_or_blocks_in_memory_change_what_caches_may_take() {
    let options = Options { memory_bytes: Some(1 << 30), ..Options::default() };
    let memory = memory(&options, 8 << 30).expect("it is enough");
    let with = |wishes, options: &Options| {
        memory.note_wishes(wishes);
        let demand = memory.demand(options, 1);
        (demand.block_cache.most, demand.cache_takes_rest)
    };
    let blocks = Wishes { blocks: true, values: false, all_block_bytes: 700 * MIB };
    assert_eq!(with(Wishes::default(), &options), (512 * MIB, false));
    assert_eq!(with(blocks, &options), (700 * MIB, false), "all that there are");
    assert_eq!(
        with(Wishes { all_block_bytes: 90 * MIB, ..blocks }, &options),
        (512 * MIB, false),
        "others have blocks too"
    );
    let values = Wishes { values: true, all_block_bytes: 90 * MIB, ..blocks };
    assert_eq!(with(values, &options), (90 * MIB, true), "no more than there are");
    assert_eq!(with(Wishes { all_block_bytes: 0, ..values }, &options), (LEAST_BLOCK_CACHE_BYTES, true));
    let chosen = Options { cache_bytes: 5 * MIB, ..options.clone() };
    assert_eq!(with(values, &chosen), (512 * MIB, false), "the size of the cache of values is chosen");
    let chosen = Options { block_cache_bytes: Some(7 * MIB), ..options.clone() };
    assert_eq!(with(values, &chosen), (7 * MIB, true));
}
