mod preferences;

use super::{Cache, Place};

/// Bytes of an entry beside its value: header and key.
const OVERHEAD_BYTES: u64 = 48;

fn cache(budget_bytes: u64) -> Cache {
    Cache::of_values(budget_bytes, budget_bytes).expect("the system has that much memory")
}

fn place(number: u64) -> Place {
    Place { segment: (number >> 12) as u32, offset: (number as u32 & 0xfff) << 12, life: number >> 12 }
}

/// A get through the cache: true on a hit.
fn get(cache: &Cache, number: u64, length: usize) -> bool {
    let key = number.to_le_bytes();
    if let Some(cached) = cache.get(place(number)) {
        assert!(cached.is_of(3, &key) && !cached.is_of(4, &key) && !cached.is_of(3, &key[1..]));
        assert_eq!(cached.value(), content(number, length), "the value at place {number}");
        return true;
    }
    cache.insert(place(number), 3, &key, &content(number, length));
    false
}

fn content(number: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (number.wrapping_mul(31) + at) as u8).collect()
}

/// A number below `count`, small ones much more often than large ones: the popularity of the n-th is about 1/n.
fn zipf(random: &mut fastrand::Rng, count: u64) -> u64 {
    ((count as f64).powf(random.f64()) as u64 - 1).min(count - 1)
}

#[test]
fn lives_segments_and_offsets_are_told_apart() {
    let cache = cache(1 << 20);
    let first = Place { segment: 1, offset: 4096, life: 7 };
    cache.insert(first, 1, b"key", b"first");
    assert_eq!(cache.get(first).expect("just inserted").value(), b"first");
    for other in [Place { segment: 2, ..first }, Place { offset: 8192, ..first }, Place { life: 8, ..first }] {
        assert!(cache.get(other).is_none());
    }
    assert_eq!(cache.hits_and_misses(), (1, 3));
}

#[test]
fn a_budget_of_nothing_keeps_nothing_and_counts_nothing() {
    let cache = cache(0);
    assert!(!get(&cache, 1, 10) && !get(&cache, 1, 10));
    assert_eq!((cache.used_bytes(), cache.hits_and_misses()), (0, (0, 0)));
}

#[test]
fn the_budget_holds_for_entries_of_any_length() {
    for budget in [100_000, 1 << 20, 5_000_000] {
        for length in [0, 1, 100, 4096, 100_000] {
            let cache = cache(budget);
            for number in 0..2 * budget / (length as u64 + OVERHEAD_BYTES) {
                get(&cache, number, length);
                assert!(cache.used_bytes() <= budget, "{} of {budget} bytes", cache.used_bytes());
            }
        }
    }
}

#[test]
fn a_long_value_pushes_nothing_out() {
    let cache = cache(1 << 20);
    get(&cache, 1, 100);
    let before = cache.used_bytes();
    get(&cache, 2, (1 << 20) / 64);
    assert_eq!(cache.used_bytes(), before, "it takes more than a block");
    assert!(get(&cache, 1, 100));
}

/// The bytes of an entry that a thread still has stay, whatever the cache does meanwhile; its block is used again later.
#[test]
fn what_was_found_stays_while_it_is_held() {
    let cache = cache(200_000);
    cache.insert(place(0), 3, b"key", b"held");
    let held = cache.get(place(0)).expect("just inserted");
    for number in 1..5_000 {
        get(&cache, number, 1000);
        get(&cache, number, 1000);
    }
    assert!(cache.get(place(0)).is_none(), "much else was read twice since");
    assert!(held.is_of(3, b"key") && held.value() == b"held");
    drop(held);
    for number in 5_000..10_000 {
        get(&cache, number, 1000);
        assert!(get(&cache, number, 1000), "what was just read is here");
    }
}

/// Threads that read, hold and check entries which others push out.
#[test]
fn threads_read_what_others_push_out() {
    let cache = cache(1 << 20);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                let mut held = std::collections::VecDeque::new();
                for _ in 0..20_000 {
                    let number = zipf(&mut random, 5_000);
                    get(cache, number, 700);
                    held.extend(cache.get(place(number)).map(|cached| (number, cached)));
                    if held.len() > 5
                        && let Some((number, cached)) = held.pop_front()
                    {
                        assert_eq!(cached.value(), content(number, 700), "the value at place {number}");
                    }
                }
            });
        }
    });
    let (hits, misses) = cache.hits_and_misses();
    assert!(hits > misses, "{hits} hits, {misses} misses");
}

/// Popular entries must stay although everything else is read once in between, ten times the cache's size. The same
/// gets through a list in order of use show what reading everything does to a cache that suffers from it.
#[test]
fn reading_everything_once_leaves_what_is_popular() {
    const LENGTH: usize = 1000;
    const FIT: usize = 2000;
    let cache = cache(FIT as u64 * (8 + LENGTH as u64 + OVERHEAD_BYTES));
    let mut recent = Recent::default();
    let mut random = fastrand::Rng::with_seed(1);
    let mut rounds = |gets: u64, recent: &mut Recent| {
        let (mut hits, mut recent_hits) = (0, 0);
        for _ in 0..gets {
            let number = zipf(&mut random, 20_000);
            hits += u64::from(get(&cache, number, LENGTH));
            recent_hits += u64::from(recent.get(number, FIT));
        }
        (hits as f64 / gets as f64, recent_hits as f64 / gets as f64)
    };
    rounds(100_000, &mut recent);
    let (warm, recent_warm) = rounds(20_000, &mut recent);
    for number in 1_000_000..1_000_000 + 10 * FIT as u64 {
        get(&cache, number, LENGTH);
        recent.get(number, FIT);
    }
    let (after, recent_after) = rounds(2_000, &mut recent);
    println!("hit rate {warm:.3}, after the scan {after:.3}; in order of use {recent_warm:.3} and {recent_after:.3}");
    assert!(warm > recent_warm, "popularity counts for more than recency");
    assert!(after > 0.9 * warm, "{after:.3} of gets are answered after everything was read, {warm:.3} before");
    assert!(recent_after < 0.9 * recent_warm, "the scan is one that a cache can suffer from");
}

/// The least recently used entry leaves first: a list of numbers and when they were used last.
#[derive(Default)]
struct Recent {
    used: std::collections::HashMap<u64, u64>,
    order: std::collections::BTreeMap<u64, u64>,
    clock: u64,
}

impl Recent {
    fn get(&mut self, number: u64, fit: usize) -> bool {
        self.clock += 1;
        let before = self.used.insert(number, self.clock);
        if let Some(before) = before {
            self.order.remove(&before);
        }
        self.order.insert(self.clock, number);
        if self.order.len() > fit {
            let (_, oldest) = self.order.pop_first().expect("it is not empty");
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

/// Entries are forgotten when others take their place. Three of four bytes that came in the last while are of forgotten ones,
/// and yet whatever was not forgotten is here.
#[test]
fn nothing_leaves_while_forgetting_makes_room() {
    const KEYS: usize = 1000;
    const LENGTH: usize = 1000;
    let cache = cache(4 * KEYS as u64 * (8 + LENGTH as u64 + OVERHEAD_BYTES));
    let mut random = fastrand::Rng::with_seed(3);
    let mut newest: Vec<u64> = (0..KEYS as u64).collect();
    for &number in &newest {
        get(&cache, number, LENGTH);
    }
    for number in KEYS as u64..50 * KEYS as u64 {
        let replaced = std::mem::replace(&mut newest[random.usize(..KEYS)], number);
        get(&cache, number, LENGTH);
        cache.forget(place(replaced));
        assert!(cache.get(place(replaced)).is_none());
    }
    let here = newest.iter().filter(|&&number| get(&cache, number, LENGTH)).count();
    assert_eq!(here, KEYS);
}

/// A place that was never here can be forgotten, and a forgotten place can come back.
#[test]
fn a_place_can_be_forgotten_twice_and_kept_again() {
    let cache = cache(1 << 20);
    cache.forget(place(1));
    get(&cache, 1, 100);
    let held = cache.get(place(1)).expect("just inserted");
    cache.forget(place(1));
    cache.forget(place(1));
    assert_eq!(held.value(), content(1, 100), "its bytes stay");
    assert!(!get(&cache, 1, 100) && get(&cache, 1, 100));
}

/// Brings a cache to a budget, and says in how many steps.
fn brought_to(cache: &Cache, budget_bytes: u64) -> usize {
    cache.set_budget(budget_bytes);
    let mut steps = 1;
    while cache.fit() {
        steps += 1;
        assert!(steps < 10_000, "it comes to an end");
    }
    steps
}

/// Blocks may take the whole budget for a moment, and the tables of entries come on top of that.
fn with_bookkeeping(budget_bytes: u64) -> u64 {
    budget_bytes + budget_bytes / 16 + 4096
}

#[test]
fn a_smaller_budget_gives_memory_back_step_by_step_and_popular_entries_stay() {
    let cache = cache(8 << 20);
    let popular = 500;
    for number in 0..20_000 {
        get(&cache, number, 1000);
        get(&cache, number % popular, 1000);
    }
    assert!(cache.memory_bytes() > 7 << 20, "it is full: {}", cache.memory_bytes());
    let steps = brought_to(&cache, 2 << 20);
    assert!(steps > 4, "{steps} looks for three quarters of 512 blocks");
    assert!(cache.memory_bytes() <= with_bookkeeping(2 << 20), "{} bytes are left", cache.memory_bytes());
    let here = (0..popular).filter(|number| cache.get(place(*number)).is_some()).count();
    assert!(here as u64 > popular * 8 / 10, "{here} of {popular} popular entries are here");
    for number in 30_000..40_000 {
        get(&cache, number, 1000);
        assert!(cache.memory_bytes() <= with_bookkeeping(2 << 20), "{} bytes later", cache.memory_bytes());
    }
}

/// The table of many small entries is memory that blocks of the large ones before them had.
#[test]
fn the_table_of_entries_grows_at_the_expense_of_blocks() {
    let (cache, budget) = (cache(1 << 20), 1 << 20);
    for number in 0..2000 {
        get(&cache, number, 1000);
    }
    for number in 2000..60_000 {
        get(&cache, number, 0);
    }
    // But for spare blocks.
    assert!(cache.memory_bytes() <= budget + budget / 16, "{} of {budget} bytes", cache.memory_bytes());
}

/// The thread that looks may be the one that batches wait for.
#[test]
fn a_look_gives_back_a_few_blocks_and_the_next_one_goes_on() {
    let cache = cache(64 << 20);
    for number in 0..4000 {
        get(&cache, number, 14_000);
    }
    let mut before = cache.memory_bytes();
    assert!(before > 48 << 20, "it is full: {before}");
    cache.set_budget(16 << 20);
    let mut looks = 0;
    while cache.fit() {
        let after = cache.memory_bytes();
        // With the table of entries, which becomes smaller at times.
        assert!(before.saturating_sub(after) <= 5 << 20, "{} bytes at one look", before - after);
        (before, looks) = (after, looks + 1);
    }
    assert!(looks >= 8, "{looks} looks");
    assert!(cache.memory_bytes() <= with_bookkeeping(16 << 20), "{} bytes are left", cache.memory_bytes());
}

/// Blocks of which a thread has an entry cannot be given back at once.
#[test]
fn memory_that_is_held_goes_back_when_it_is_held_no_more() {
    let cache = cache(1 << 20);
    for number in 0..800 {
        get(&cache, number, 1000);
    }
    let held: Vec<_> = (0..800).filter_map(|number| cache.get(place(number))).collect();
    brought_to(&cache, 256 << 10);
    assert!(cache.memory_bytes() > 800 << 10, "{} bytes", cache.memory_bytes());
    drop(held);
    assert!(!cache.fit(), "the budget is the same");
    assert!(cache.memory_bytes() <= with_bookkeeping(256 << 10), "{} bytes", cache.memory_bytes());
}

#[test]
fn a_larger_budget_is_used_and_nothing_leaves_for_it() {
    let cache = Cache::of_values(64 << 20, 4 << 20).expect("the system has that much memory");
    for number in 0..3000 {
        get(&cache, number, 1000);
    }
    let before: Vec<u64> = (0..3000).filter(|number| cache.get(place(*number)).is_some()).collect();
    brought_to(&cache, 32 << 20);
    assert!(before.iter().all(|number| get(&cache, *number, 1000)), "all that was there is there");
    for number in 10_000..80_000 {
        get(&cache, number, 1000);
    }
    let bytes = cache.memory_bytes();
    assert!((24 << 20..=with_bookkeeping(32 << 20)).contains(&bytes), "{bytes} bytes of 32 MiB are used");
}

/// Also where there are too few blocks left for two queues, or so many that they are far too small.
#[test]
fn every_budget_holds_whatever_it_was_before() {
    let mut random = fastrand::Rng::with_seed(11);
    let cache = Cache::of_values(64 << 20, 64 << 20).expect("the system has that much memory");
    let mut next = 0;
    for _ in 0..60 {
        let budget = if random.u8(..6) == 0 { 0 } else { random.u64(..64 << 20) >> random.u32(..12) };
        brought_to(&cache, budget);
        assert!(cache.memory_bytes() <= with_bookkeeping(budget), "{} of {budget} bytes", cache.memory_bytes());
        let mut held = Vec::new();
        for _ in 0..5_000 {
            let number = if random.bool() { next } else { random.u64(..next + 1) };
            next += u64::from(number == next);
            get(&cache, number, random_length(number));
            if random.u8(..100) == 0 {
                held.extend(cache.get(place(number)).map(|cached| (number, cached)));
            }
        }
        assert!(cache.memory_bytes() <= with_bookkeeping(budget), "{} of {budget} bytes", cache.memory_bytes());
        for (number, cached) in held {
            assert_eq!(cached.value(), content(number, random_length(number)), "the value at place {number}");
        }
    }
}

fn random_length(number: u64) -> usize {
    (number * 7919 % 3000) as usize
}

#[test]
fn a_cache_of_nothing_can_become_one() {
    let cache = Cache::of_values(1 << 20, 0).expect("the system has that much memory");
    assert!(!cache.is_on() && !get(&cache, 1, 10) && !get(&cache, 1, 10));
    brought_to(&cache, 1 << 20);
    assert!(!get(&cache, 1, 10) && get(&cache, 1, 10));
    brought_to(&cache, 0);
    assert!(!get(&cache, 1, 10) && cache.memory_bytes() < 1024, "{} bytes", cache.memory_bytes());
}

/// Threads that read and check entries while the budget goes up and down.
#[test]
fn a_budget_changes_while_threads_read() {
    let cache = cache(2 << 20);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let cache = &cache;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..20_000 {
                    get(cache, zipf(&mut random, 5_000), 700);
                }
            });
        }
        for round in 0..200 {
            cache.set_budget(if round % 2 == 0 { 300_000 } else { 4 << 20 });
            while cache.fit() {}
            std::thread::yield_now();
        }
    });
}
