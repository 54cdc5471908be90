use super::*;

const MIB: u64 = 1 << 20;

fn demand(budget: u64) -> Demand {
    Demand {
        budget,
        fixed: 16 * MIB,
        indexes: 1,
        memtables: Limits { least: 9 * MIB, most: 300 * MIB },
        versions: Limits { least: MIB, most: 20 * MIB },
        block_cache: 1024 * MIB,
        cache: 0,
    }
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
fn the_default_is_a_quarter_and_has_room_for_what_was_chosen() {
    assert_eq!(default_bytes(8 << 30, 1, 0), 2 << 30);
    assert_eq!(default_bytes(8 << 30, 2, 0), 1 << 30, "two stores share it");
    assert_eq!(default_bytes(100 * MIB, 1, 0), LEAST_DEFAULT_BYTES);
    assert_eq!(default_bytes(8 << 30, 1, 5 << 30), 5 << 30, "a cache of that size was asked for");
    assert_eq!(default_bytes(8 << 30, 1, 50 << 30), 6 << 30, "the machine needs some for others");
}

#[test]
fn nothing_exceeds_the_budget_but_floors_and_what_cannot_be_given_back() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20_000 {
        let mut up_to = |power: u32| random.u64(..2 << power);
        let sizes = [20, 34, 34, 34].map(|power| up_to(power));
        let demand = Demand {
            fixed: sizes[0].max(up_to(31)),
            indexes: up_to(1) % 3,
            block_cache: sizes[1],
            cache: if up_to(1) == 0 { 0 } else { sizes[2] },
            ..demand(sizes[3].min(up_to(33)))
        };
        let bounds = demand.bounds();
        let movable = bounds.versions + demand.indexes * bounds.memtables + bounds.block_cache + bounds.cache;
        let floors = demand.versions.least + demand.indexes * demand.memtables.least;
        assert!(
            demand.fixed + movable <= demand.budget.max(demand.fixed + floors),
            "{demand:?} is divided into {bounds:?}"
        );
        assert!(bounds.memtables >= demand.memtables.least && bounds.memtables <= demand.memtables.most);
        assert!(bounds.block_cache <= demand.block_cache && bounds.cache <= demand.cache);
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
fn caches_share_what_is_left_as_they_wish() {
    let asked = Demand { block_cache: 100 * MIB, cache: 300 * MIB, ..demand(1 << 30) };
    let bounds = asked.bounds();
    assert_eq!((bounds.block_cache, bounds.cache), (100 * MIB, 300 * MIB), "there is room for both");
    let bounds = Demand { budget: 256 * MIB, ..asked }.bounds();
    assert!(bounds.cache > 0 && bounds.cache.abs_diff(3 * bounds.block_cache) < 4, "{bounds:?}");
}

#[test]
fn the_least_budget_is_enough_for_all_floors() {
    let demand = demand(0);
    let least = demand.least_budget();
    let bounds = Demand { budget: least, ..demand }.bounds();
    assert!(demand.fixed + bounds.memtables + bounds.versions <= least + MIB, "{bounds:?} of {least}");
}
