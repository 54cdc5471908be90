use fastrand::Rng;

use super::world::World;
use crate::format::record::Kind;
use crate::index::runs::RunShare;
use crate::index::runs::turns::MANY_RUNS;
use crate::io::UNIT_BYTES;

const TABLE: u32 = 16;

/// One without keys.
const OTHER: u32 = 20;

#[test]
fn a_table_has_the_runs_with_its_keys_and_what_merges_owe_of_them() {
    // Two runs of a size are merged, the oldest with none of them.
    let (mut world, mut random) = (World::new(0), Rng::with_seed(0));
    for number in 0..2 {
        world.flush_one(number, Kind::Put, &mut random);
        assert_eq!((world.runs().share_of(TABLE).debt_bytes, world.runs().debt_bytes()), (0, 0));
    }
    world.flush_one(2, Kind::Put, &mut random);
    let unit = UNIT_BYTES as u64;
    let share = world.runs().share_of(TABLE);
    assert_eq!(share, RunShare { runs: 3, blocks: 3, bytes: 3 * unit, debt_bytes: 2 * unit });
    assert!(world.runs().debt_bytes() > share.debt_bytes, "files have footers, too");
    assert_eq!(world.runs().share_of(OTHER), RunShare::default());
    while world.merge(&mut random).expect("nothing fails") {}
    let share = world.runs().share_of(TABLE);
    assert_eq!(share, RunShare { runs: 2, blocks: 2, bytes: 2 * unit, debt_bytes: 0 });
    assert_eq!(world.runs().debt_bytes(), 0);
}

#[test]
fn runs_with_which_writers_wait_are_counted() {
    let (mut world, mut random) = (World::new(0), Rng::with_seed(0));
    for number in 1..=MANY_RUNS + 2 {
        world.flush_one(number as u32, Kind::Put, &mut random);
        assert_eq!(world.runs().above_bound() > 0, world.runs().is_behind(), "{number} runs");
    }
    assert_eq!(world.runs().above_bound(), 3);
    while world.merge(&mut random).expect("nothing fails") {}
    assert_eq!(world.runs().above_bound(), 0);
}
