use super::*;

/// The flags of the memory at an address, as the system lists them.
fn flags_at(address: usize) -> String {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has this file");
    let mut is_there = false;
    for line in maps.lines() {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16);
        if let Some((Ok(from), Ok(to))) = range.map(|(from, to)| (number(from), number(to))) {
            is_there = (from..to).contains(&address);
        }
        if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_there) {
            return format!("{flags} ");
        }
    }
    panic!("there is no memory at {address:x}");
}

/// Fills one entry into a block, and takes it out again.
fn fill_and_empty(blocks: &mut Blocks, block: u32) {
    let place = Place { segment: 1, offset: 2, life: 3 };
    blocks.append(block, place, 4, b"key", &[5; 100]).expect("the block is empty");
    assert_eq!(blocks.entries(block).len(), 1);
    assert!(blocks.empty(block));
}

/// Else the system soon makes a large page of it and its neighbours, and the memory is taken again.
#[test]
fn memory_that_was_given_back_is_of_small_pages_until_it_is_used_again() {
    if !std::fs::exists("/sys/kernel/mm/transparent_hugepage").expect("the system says") {
        return;
    }
    let mut blocks = Blocks::none(64 << 10, Pages::Large);
    blocks.add(8).expect("the system has that much memory");
    let large = |blocks: &Blocks| -> Vec<bool> {
        let address = |block: usize| blocks.blocks[block].block.at(0) as usize;
        (0..8).map(|block| flags_at(address(block)).contains(" hg ")).collect()
    };
    assert_eq!(large(&blocks), [true; 8]);
    (0..8).for_each(|block| fill_and_empty(&mut blocks, block));
    blocks.give_back(3);
    assert_eq!(large(&blocks), [true, true, true, false, true, true, true, true]);
    fill_and_empty(&mut blocks, 3);
    assert_eq!(large(&blocks), [true; 8]);
}

/// Else a system that makes large pages unasked takes memory that no entry lies in, and takes what was given back again.
#[test]
fn memory_of_small_pages_is_of_small_pages_from_the_start() {
    if !std::fs::exists("/sys/kernel/mm/transparent_hugepage").expect("the system says") {
        return;
    }
    let mut blocks = Blocks::none(64 << 10, Pages::Small);
    // Longer than a large page, in two mappings.
    [64, 40].into_iter().for_each(|count| blocks.add(count).expect("the system has that much memory"));
    let small =
        |blocks: &Blocks, block: u32| flags_at(blocks.blocks[block as usize].block.at(0) as usize).contains(" nh ");
    let all = 0..blocks.count() as u32;
    assert!(all.clone().all(|block| small(&blocks, block)), "before an entry comes");
    all.clone().for_each(|block| fill_and_empty(&mut blocks, block));
    assert!(all.clone().all(|block| small(&blocks, block)), "when it was full");
    all.clone().for_each(|block| blocks.give_back(block));
    all.clone().for_each(|block| fill_and_empty(&mut blocks, block));
    assert!(all.clone().all(|block| small(&blocks, block)), "when it is used again");
}
