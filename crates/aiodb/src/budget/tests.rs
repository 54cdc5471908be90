use super::*;

const MIB: u64 = 1 << 20;

fn demand(budget: u64) -> Demand {
    Demand {
        budget,
        fixed: 16 * MIB,
        indexes: 1,
        memtables: decided(9 * MIB, 300 * MIB),
        versions: decided(MIB, 20 * MIB),
        block_cache: decided(0, 1024 * MIB),
        cache: 0,
        cache_takes_rest: false,
    }
}

/// Limits of which the store decides, and those that somebody has chosen.
fn decided(least: u64, most: u64) -> Limits {
    Limits { least, most, is_chosen: false }
}

fn chosen(least: u64, most: u64) -> Limits {
    Limits { least, most, is_chosen: true }
}

#[test]
fn pieces_hold_their_bytes_until_they_are_dropped() {
    let accounts = Arc::<Accounts>::default();
    let bytes = || (accounts.bytes(Part::Runs), accounts.bytes(Part::Hash));
    let first = Held::new(&accounts, Part::Runs, 100);
    let second = Held::new(&accounts, Part::Runs, 10);
    let slots = Held::new(&accounts, Part::Hash, 7);
    assert_eq!(bytes(), (110, 7));
    first.set(30);
    slots.change(3, 8);
    slots.change(8, 1);
    assert_eq!(bytes(), (40, 5));
    assert_eq!((first.bytes(), slots.bytes()), (30, 5));
    drop(first);
    drop(slots);
    assert_eq!(bytes(), (10, 0));
    drop(second);
    assert_eq!(bytes(), (0, 0));
}

/// Shards of a table grow and shrink at the same time.
#[test]
fn parts_of_a_piece_change_in_several_threads() {
    let accounts = Arc::<Accounts>::default();
    let held = Held::new(&accounts, Part::Hash, 0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let held = &held;
            scope.spawn(move || {
                let mut before = 0;
                for step in 1..10_000 {
                    let after = (step * 7 + thread) % 1000;
                    held.change(before, after);
                    before = after;
                }
                held.change(before, 5);
            });
        }
    });
    assert_eq!(accounts.bytes(Part::Hash), 20);
    drop(held);
    assert_eq!(accounts.bytes(Part::Hash), 0);
}

#[test]
fn the_default_is_a_quarter_and_has_room_for_what_is_needed() {
    assert_eq!(default_bytes(8 << 30, 1, 0), 2 << 30);
    assert_eq!(default_bytes(8 << 30, 1, 1 << 30), 2 << 30, "an eighth is left");
    assert_eq!(default_bytes(8 << 30, 2, 0), 1 << 30, "two stores share it");
    assert_eq!(default_bytes(8 << 30, 2, 1 << 30), 3 << 29);
    assert_eq!(default_bytes(100 * MIB, 1, 0), LEAST_DEFAULT_BYTES);
    assert_eq!(
        default_bytes(8 << 30, 1, 3 << 30),
        4 << 30,
        "a cache of that size was asked for, or there are many keys"
    );
    assert_eq!(default_bytes(8 << 30, 1, 50 << 30), 6 << 30, "the machine needs some for others");
}

/// What there is of memory is not left to nobody when a store has many keys: caches and memtables have an eighth of it then.
#[test]
fn many_keys_leave_the_default_caches_and_memtables() {
    for machine in [1, 2, 16, 256].map(|gibibytes| gibibytes << 30_u64) {
        let mut last = None;
        for fixed in (0..=10).map(|share| machine / 16 * share) {
            let demand = Demand { fixed, block_cache: decided(8 * MIB, 1024 * MIB), ..demand(0) };
            let demand = Demand { budget: default_bytes(machine, 1, demand.needed()), ..demand };
            let bounds = demand.bounds();
            assert!(bounds.memtables >= (machine / 24).min(300 * MIB), "{bounds:?} of {demand:?}");
            assert!(bounds.block_cache >= (machine / 16).min(1024 * MIB), "{bounds:?} of {demand:?}");
            assert!(last.is_none_or(|last| demand.budget >= last), "more keys make it no smaller");
            last = Some(demand.budget);
        }
    }
}

/// A machine of 2 GiB has room for a cache of half of that.
#[test]
fn the_default_gives_chosen_sizes_in_full_up_to_three_quarters() {
    let with = |demand: Demand| Demand { budget: default_bytes(2 << 30, 1, demand.needed()), ..demand }.bounds();
    let block_cache = decided(8 * MIB, 1024 * MIB);
    let bounds = with(Demand { block_cache, cache: 1 << 30, ..demand(0) });
    assert_eq!(bounds.cache, 1 << 30);
    assert!(bounds.memtables > 64 * MIB && bounds.block_cache > 100 * MIB, "{bounds:?}");
    let all = Demand { block_cache: chosen(0, 400 * MIB), memtables: chosen(9 * MIB, 300 * MIB), ..demand(0) };
    let bounds = with(Demand { cache: 700 * MIB, ..all });
    assert_eq!((bounds.memtables, bounds.block_cache, bounds.cache), (300 * MIB, 400 * MIB, 700 * MIB));
    let bounds = with(Demand { fixed: 400 * MIB, block_cache, cache: 1 << 30, ..demand(0) });
    assert_eq!(bounds.cache, 1 << 30, "also beside many keys");
    let bounds = with(Demand { fixed: 3 << 30, block_cache, cache: 1 << 30, ..demand(0) });
    assert_eq!((bounds.memtables, bounds.block_cache, bounds.cache), (9 * MIB, 8 * MIB, 0), "floors stay");
}

/// Whatever the store decides of gets by with its floor until those sizes are there that somebody has chosen.
#[test]
fn chosen_sizes_come_before_those_of_which_the_store_decides() {
    let asked = Demand { cache: 100 * MIB, ..demand(160 * MIB) };
    let bounds = asked.bounds();
    assert_eq!(bounds.cache, 100 * MIB);
    assert!(bounds.memtables >= 9 * MIB && bounds.block_cache > MIB, "{bounds:?}");
    let bounds = Demand { memtables: chosen(9 * MIB, 60 * MIB), cache: 0, ..asked }.bounds();
    assert_eq!(bounds.memtables, 60 * MIB);
    let bounds = Demand { block_cache: chosen(0, 120 * MIB), cache: 0, ..asked }.bounds();
    assert_eq!(bounds.block_cache, 120 * MIB);
    let bounds = Demand { cache: 1024 * MIB, ..asked }.bounds();
    assert_eq!((bounds.memtables, bounds.block_cache), (9 * MIB, 0), "a budget is a bound all the same");
    assert!((120 * MIB..160 * MIB).contains(&bounds.cache), "{bounds:?}");
}

#[test]
fn nothing_exceeds_the_budget_but_floors_and_what_cannot_be_given_back() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..50_000 {
        let mut up_to = |power: u32| random.u64(..2 << power);
        let sizes = [20, 34, 34, 34, 30].map(&mut up_to);
        let flags = up_to(4);
        let limits = |is_chosen, least: u64, most: u64| Limits { least, most: most.max(least), is_chosen };
        let demand = Demand {
            fixed: sizes[0].max(up_to(31)),
            indexes: up_to(1) % 3,
            memtables: limits(flags & 1 > 0, up_to(24), sizes[4]),
            block_cache: limits(flags & 2 > 0, up_to(1) % 2 * up_to(23), sizes[1]),
            cache: if flags & 4 > 0 { 0 } else { sizes[2] },
            cache_takes_rest: flags & 8 > 0,
            ..demand(sizes[3].min(up_to(33)))
        };
        let bounds = demand.bounds();
        let movable = bounds.versions + demand.indexes * bounds.memtables + bounds.block_cache + bounds.cache;
        let floors = demand.versions.least + demand.indexes * demand.memtables.least + demand.block_cache.least;
        assert!(
            demand.fixed + movable <= demand.budget.max(demand.fixed + floors),
            "{demand:?} is divided into {bounds:?}"
        );
        for (bytes, limits) in [(bounds.memtables, demand.memtables), (bounds.block_cache, demand.block_cache)] {
            assert!((limits.least..=limits.most).contains(&bytes), "{demand:?} is divided into {bounds:?}");
        }
        assert!(bounds.cache <= demand.cache || demand.cache_takes_rest);
    }
}

#[test]
fn caches_give_way_to_what_cannot_be_given_back_and_memtables_keep_a_floor() {
    let mut last = demand(1 << 30).bounds();
    assert_eq!(last.memtables, 300 * MIB, "where there is room, they have all they want");
    for fixed in (16..2048).step_by(16) {
        let next = Demand { fixed: fixed * MIB, cache: 512 * MIB, ..demand(1 << 30) }.bounds();
        assert!(next.memtables <= last.memtables && next.memtables >= 9 * MIB);
        assert!(next.block_cache <= last.block_cache || fixed == 16);
        last = next;
    }
    assert_eq!((last.memtables, last.block_cache, last.cache), (9 * MIB, 0, 0));
}

#[test]
fn chosen_caches_share_what_is_left_as_they_wish() {
    let asked = Demand { block_cache: chosen(0, 100 * MIB), cache: 300 * MIB, ..demand(1 << 30) };
    let bounds = asked.bounds();
    assert_eq!((bounds.block_cache, bounds.cache), (100 * MIB, 300 * MIB), "there is room for both");
    let bounds = Demand { budget: 256 * MIB, ..asked }.bounds();
    assert!(bounds.cache > 0 && bounds.cache.abs_diff(3 * bounds.block_cache) < 4, "{bounds:?}");
}

/// Who wants no bound may say so with the largest number.
#[test]
fn sizes_without_bound_are_divided_within_the_budget() {
    let most = u64::MAX;
    let wishes = [most, most - 1, most / 2, 100 * MIB, 0];
    for (block_cache, cache) in wishes.into_iter().flat_map(|one| wishes.map(|other| (one, other))) {
        for (memtables, indexes) in [decided(9 * MIB, 300 * MIB), chosen(9 * MIB, most)].into_iter().zip([1, 2]) {
            let asked = Demand { memtables, indexes, block_cache: chosen(0, block_cache), cache, ..demand(256 * MIB) };
            let bounds = asked.bounds();
            let all = bounds.versions + indexes * bounds.memtables + bounds.block_cache + bounds.cache;
            assert!(asked.fixed + all <= asked.budget, "{asked:?} is divided into {bounds:?}");
            assert!(bounds.block_cache <= block_cache && bounds.cache <= cache, "{bounds:?} of {asked:?}");
            if block_cache > 200 * MIB || cache > 200 * MIB {
                assert_eq!(default_bytes(8 << 30, 1, asked.needed()), 6 << 30, "{asked:?}");
            }
        }
    }
    let both = Demand { block_cache: chosen(0, most), cache: most, ..demand(256 * MIB) };
    let bounds = both.bounds();
    assert!(bounds.cache > 90 * MIB && bounds.cache == bounds.block_cache, "equal wishes have equal parts: {bounds:?}");
}

#[test]
fn the_least_budget_is_enough_for_all_floors() {
    for indexes in 0..3 {
        let demand = Demand { indexes, ..demand(0) };
        let least = demand.least_budget();
        let bounds = Demand { budget: least, ..demand }.bounds();
        let taken = demand.fixed + indexes * bounds.memtables + bounds.versions;
        assert!(taken <= least, "{bounds:?} of {least} with {indexes} indexes");
    }
}

/// Twice as many slots, at which writers wait, leave the others nearly what they need.
#[test]
fn slots_have_half_of_what_others_can_do_without() {
    let asked = Demand { cache: 100 * MIB, ..demand(426 * MIB) };
    // 16 MiB cannot be given back, floors take ten.
    assert_eq!(asked.hash_bound(0), 150 * MIB);
    let with_slots = Demand { fixed: asked.fixed + 120 * MIB, ..asked };
    assert_eq!(with_slots.hash_bound(120 * MIB), 150 * MIB, "what they take themselves does not count");
    let twice = Demand { fixed: asked.fixed + 300 * MIB, ..asked };
    let bounds = twice.bounds();
    assert!(bounds.cache > 80 * MIB && bounds.memtables == 9 * MIB, "{bounds:?}");
    assert_eq!(Demand { fixed: asked.fixed + 120 * MIB, ..asked }.hash_bound(0), 90 * MIB, "filters come first");
    assert_eq!(Demand { fixed: 1 << 40, ..asked }.hash_bound(0), 4 * MIB, "the floor");
}

/// Tables want their values in memory: these have what memtables, and blocks as far as there are any, leave.
#[test]
fn values_have_what_is_left_and_go_before_blocks() {
    let with_rest = |budget, all_blocks| {
        let block_cache = decided(0, all_blocks);
        Demand { block_cache, cache_takes_rest: true, ..demand(budget) }.bounds()
    };
    for budget in [64, 100, 256, 1024, 8192].map(|mib| mib * MIB) {
        let (few, many) = (with_rest(budget, 8 * MIB), with_rest(budget, budget));
        let without = Demand { block_cache: decided(0, 8 * MIB), ..demand(budget) }.bounds();
        assert_eq!(few, Bounds { cache: few.cache, ..without }, "only the rest goes to values");
        assert_eq!(many.cache, 0, "blocks come first");
        for bounds in [few, many] {
            let all = 16 * MIB + bounds.versions + bounds.memtables + bounds.block_cache + bounds.cache;
            assert!(all <= budget && all + MIB > budget, "{all} of {budget}");
        }
    }
}
