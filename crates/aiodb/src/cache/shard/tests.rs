use super::*;

/// What is given back to the system is whole pages: else it would take entries of other blocks along.
#[test]
fn blocks_are_whole_pages_of_the_system() {
    for page_bytes in [4096, 16 << 10, 64 << 10] {
        for budget_bytes in (0..40).flat_map(|power| [1, 3, 5].map(|part| (part << power) / 4)) {
            let (count, block_bytes) = blocks_of(budget_bytes, page_bytes);
            assert!(block_bytes.is_multiple_of(page_bytes) && count * block_bytes <= budget_bytes);
            assert!(count >= MIN_BLOCKS || block_bytes == 0, "{count} blocks of {block_bytes} bytes");
            assert!(block_bytes > 0 || budget_bytes < MIN_BLOCKS * page_bytes, "there is room in {budget_bytes} bytes");
        }
    }
    assert_eq!(blocks_of(1 << 20, 4096), (64, 16 << 10));
    assert_eq!(blocks_of(1 << 20, 64 << 10), (16, 64 << 10));
}

/// One entry that a thread holds keeps no more than its block, though all of them lie in one mapping.
#[test]
fn a_shard_that_is_replaced_gives_back_what_nobody_holds() {
    let mut shard = Shard::new(8 << 20, Pages::Small).expect("there is memory");
    let place = |number: u64| Place { segment: 1, offset: 16 * number as u32, life: 1 };
    for number in 0..4000 {
        shard.insert(place(number).hash(), place(number), 1, b"key", &[7; 2000]);
    }
    let held = shard.get(place(3999).hash(), place(3999)).expect("just inserted");
    assert!(shard.blocks.touched_bytes() > 6 << 20, "it is full");
    let Fitted::Replaced(mut before) = shard.fit(64 << 10) else { panic!("its blocks are too large") };
    before.give_back_all();
    let left = before.blocks.touched_bytes();
    assert!(left > 0 && left <= before.blocks.block_bytes(), "{left} bytes are left");
    drop(before);
    assert_eq!(held.value(), [7; 2000]);
}
