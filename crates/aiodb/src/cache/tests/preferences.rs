//! Entries of tables that are preferred or refused.

use super::super::{NO_PANIC, Preferences};
use super::*;

/// Inserts an entry of a table at a place of its own, unless it is there.
fn insert(cache: &Cache, table: u32, number: u64, length: usize) {
    let at = place(u64::from(table) << 32 | number);
    if !cache.has(at) {
        cache.insert(at, table, &number.to_le_bytes(), &content(number, length));
    }
}

/// How many of the first entries of a table are there.
fn count(cache: &Cache, table: u32, numbers: u64) -> u64 {
    (0..numbers).filter(|number| cache.has(place(u64::from(table) << 32 | number))).count() as u64
}

fn preferring(cache: &Cache, preferred: &[u32]) {
    cache.prefer(Preferences { preferred: preferred.to_vec(), refused: Vec::new() });
}

/// Reads entries of another table that do not all fit, often enough that they are asked for.
fn read_others(cache: &Cache, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..60_000 {
        get(cache, zipf(&mut random, 20_000), 1000);
    }
}

#[test]
fn preferred_entries_stay_whatever_else_is_asked_for() {
    let cache = cache(4 << 20);
    preferring(&cache, &[7]);
    for number in 0..2000 {
        insert(&cache, 7, number, 1000);
    }
    read_others(&cache, 1);
    assert_eq!(count(&cache, 7, 2000), 2000, "nobody has asked for them since they came");
    assert!(cache.share_of(3).bytes > 1 << 20, "others have what is left");
    // An operand counts to its table, and is preferred with it.
    cache.insert(place(1 << 40), !7, b"key", b"operand");
    read_others(&cache, 2);
    assert!(cache.has(place(1 << 40)));
}

#[test]
fn of_too_many_preferred_entries_the_coldest_leave_and_others_keep_a_share() {
    let cache = cache(4 << 20);
    preferring(&cache, &[7]);
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..30 {
        read_others(&cache, round);
        for _ in 0..3000 {
            // The first hundred are read again and again.
            let number = if random.bool() { random.u64(..100) } else { random.u64(..20_000) };
            insert(&cache, 7, number, 1000);
            let _ = cache.get(place(7 << 32 | number));
        }
    }
    assert!(count(&cache, 7, 100) >= 95, "{} of the hot ones are there", count(&cache, 7, 100));
    let (preferred, others) = (cache.share_of(7).bytes, cache.share_of(3).bytes);
    assert!(preferred > 2 << 20 && others > 200 << 10, "{preferred} and {others} bytes");
}

#[test]
fn what_is_preferred_no_more_makes_room_and_what_becomes_so_stays() {
    let cache = cache(4 << 20);
    preferring(&cache, &[7]);
    (0..2000).for_each(|number| insert(&cache, 7, number, 1000));
    (0..400).for_each(|number| insert(&cache, 8, number, 1000));
    preferring(&cache, &[8]);
    for seed in 0..4 {
        read_others(&cache, seed);
    }
    assert_eq!(count(&cache, 8, 400), 400);
    assert!(cache.share_of(7).entries < 200, "{:?} are left", cache.share_of(7));
    assert!(cache.share_of(3).bytes > 11 << 18, "{:?}", cache.share_of(3));
}

#[test]
fn a_refused_table_gets_nothing_more_and_shares_count_what_is_there() {
    let cache = cache(1 << 20);
    let mut random = fastrand::Rng::with_seed(17);
    for step in 0..200u32 {
        let refused = if step % 3 == 0 { vec![5] } else { Vec::new() };
        let before = cache.share_of(5).entries;
        cache.prefer(Preferences { preferred: vec![random.u32(4..8)], refused: refused.clone() });
        for _ in 0..200 {
            let (table, number) = (random.u32(4..8), random.u64(..2000));
            let at = place(u64::from(table) << 32 | number);
            match random.u8(..10) {
                0 => cache.forget(at),
                1..4 => drop(cache.get(at)),
                _ => insert(&cache, table, number, random_length(number)),
            }
        }
        if step % 10 == 0 {
            brought_to(&cache, 1 << random.u32(17..21));
        }
        assert!(refused.is_empty() || cache.share_of(5).entries <= before);
        for table in 4..8 {
            assert_eq!(cache.share_of(table).entries, count(&cache, table, 2000), "of table {table} after step {step}");
        }
        let bytes: u64 = (4..8).map(|table| cache.share_of(table).bytes).sum();
        assert!(bytes <= cache.used_bytes());
    }
}

/// Two threads that find different preferences may each have the last word in some shards.
#[test]
fn shards_that_disagree_about_preferences_are_brought_together() {
    let cache = cache(16 << 20);
    preferring(&cache, &[7]);
    let others = std::sync::Arc::new(Preferences { preferred: vec![8], refused: vec![7] });
    cache.shards[1..].iter().for_each(|shard| shard.0.write().expect(NO_PANIC).prefer(&others));
    preferring(&cache, &[7]);
    (0..1000).for_each(|number| insert(&cache, 7, number, 1000));
    assert_eq!(count(&cache, 7, 1000), 1000);
    assert!(cache.shards.len() > 1 && cache.shards.iter().all(|shard| shard.0.read().expect(NO_PANIC).is_preferred(7)));
}

/// What others have of a cache that is full leaves for preferred entries, so these have room until they would push out each other.
#[test]
fn a_cache_full_of_others_is_not_full_of_preferred_entries() {
    for budget in [400_000, 4 << 20, 32 << 20] {
        let cache = cache(budget);
        read_others(&cache, 1);
        (0..2 * budget / 1000).for_each(|number| insert(&cache, 3, 1 << 20 | number, 1000));
        assert!(cache.memory_bytes() > budget * 7 / 8 && !cache.is_full_of_preferred());
        preferring(&cache, &[7]);
        let mut inserted = 0;
        while !cache.is_full_of_preferred() {
            insert(&cache, 7, inserted, 1000);
            inserted += 1;
            assert!(inserted * 1000 < 2 * budget, "it becomes full");
        }
        let bytes = cache.share_of(7).bytes;
        assert!(bytes > budget * 6 / 10, "{bytes} of {budget} bytes are of the preferred table");
        assert!(count(&cache, 7, inserted) > inserted * 95 / 100, "hardly any has left: {inserted}");
        // Room that forgotten entries have counts as free.
        (0..inserted).for_each(|number| cache.forget(place(7 << 32 | number)));
        assert!(!cache.is_full_of_preferred());
    }
}
