//! What process deaths and power cuts leave of files, directories and mappings.

use std::collections::BTreeSet;
use std::path::Path;

use fastrand::Rng;

use super::{SEEDS, contents, failure, machine, path, sectors, store, zeroed};
use crate::io::{Access, Device, File, SECTOR_BYTES, UNIT_BYTES, WriteSync};

#[test]
fn reads_return_what_was_written_at_any_alignment() {
    let device = machine(1);
    let file = device.open(path(), Access::CREATE).unwrap();
    let mut model = vec![0u8; 5000];
    let mut random = Rng::with_seed(1);
    for round in 1..=100u8 {
        let start = random.usize(0..4000);
        let length = random.usize(0..1000);
        model[start..start + length].fill(round);
        file.write_at(&model[start..start + length], start as u64, WriteSync::Later).unwrap();
    }
    file.write_at(&[7], 4999, WriteSync::Later).unwrap();
    model[4999] = 7;
    let mut bytes = vec![0; 6000];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 5000);
    assert_eq!(bytes[..5000], model);
    assert_eq!(file.read_at(&mut bytes, 4321).unwrap(), 679);
    assert_eq!(bytes[..679], model[4321..]);
    assert_eq!(file.read_at(&mut bytes, 5000).unwrap(), 0);
    assert_eq!(file.length().unwrap(), 5000);
}

#[test]
fn synced_bytes_survive_every_power_cut() {
    for seed in 0..SEEDS {
        let device = machine(seed);
        let file = zeroed(&device, 8 * SECTOR_BYTES);
        file.write_at(&[1; 2048], 0, WriteSync::Later).unwrap();
        file.sync().unwrap();
        file.write_at(&[2; 1024], 2048, WriteSync::Now).unwrap();
        file.write_at(&[3; 1024], 3072, WriteSync::Later).unwrap();
        let found = sectors(&contents(&device.power_cut()));
        assert_eq!(found[..6], [1, 1, 1, 1, 2, 2], "seed {seed}");
        assert!(found[6..].iter().all(|byte| [0, 3].contains(byte)), "seed {seed}: {found:?}");
    }
}

#[test]
fn unsynced_sectors_are_lost_in_every_combination_and_order() {
    let mut seen = BTreeSet::new();
    for seed in 0..1000 {
        let device = machine(seed);
        let file = zeroed(&device, 3 * SECTOR_BYTES);
        file.write_at(&[1; 3 * SECTOR_BYTES], 0, WriteSync::Later).unwrap();
        file.write_at(&[2; 2 * SECTOR_BYTES], SECTOR_BYTES as u64, WriteSync::Later).unwrap();
        let device = device.power_cut();
        let found = sectors(&contents(&device));
        assert_eq!(
            device.counters().lost_sectors,
            found.iter().zip([1, 2, 2]).filter(|(a, b)| **a != *b).count() as u64
        );
        seen.insert(found);
    }
    assert_eq!(seen.len(), 2 * 3 * 3, "{seen:?}");
}

#[test]
fn a_durable_write_does_not_flush_earlier_ones() {
    let lost = (0..SEEDS).filter(|seed| {
        let device = machine(*seed);
        let file = zeroed(&device, 2 * SECTOR_BYTES);
        file.write_at(&[1; SECTOR_BYTES], 0, WriteSync::Later).unwrap();
        file.write_at(&[2; SECTOR_BYTES], SECTOR_BYTES as u64, WriteSync::Now).unwrap();
        let found = sectors(&contents(&device.power_cut()));
        assert_eq!(found[1], 2, "seed {seed}");
        found[0] == 0
    });
    assert!((1..SEEDS as usize).contains(&lost.count()));
}

#[test]
fn a_durable_write_brings_the_length_it_needs() {
    let mut lengths = BTreeSet::new();
    for seed in 0..SEEDS {
        let device = machine(seed);
        let file = zeroed(&device, 512);
        file.reserve(8192).unwrap();
        file.write_at(&[5; 512], 1024, WriteSync::Now).unwrap();
        let bytes = contents(&device.power_cut());
        assert_eq!(sectors(&bytes[..1536]), [0, 0, 5], "seed {seed}");
        lengths.insert(bytes.len());
    }
    assert_eq!(Vec::from_iter(lengths), [1536, 8192]);
}

#[test]
fn a_lost_length_reads_as_zeros_when_the_file_grows_again() {
    for seed in 0..SEEDS {
        let device = machine(seed);
        let file = zeroed(&device, 100);
        file.write_at(&[9; 1000], 100, WriteSync::Later).unwrap();
        let device = device.power_cut();
        let length = contents(&device).len();
        let file = device.open(path(), Access::CREATE).unwrap();
        file.reserve(2000).unwrap();
        assert!(contents(&device)[length..].iter().all(|byte| *byte == 0), "seed {seed}");
    }
}

#[test]
fn process_death_keeps_what_was_written() {
    let device = machine(3);
    let file = device.open(path(), Access::CREATE).unwrap();
    file.write_at(&[4; 3000], 0, WriteSync::Later).unwrap();
    let device = device.process_death();
    assert_eq!(contents(&device), [4; 3000]);
    assert_eq!(device.counters().crashes, 1);
}

#[test]
fn a_power_cut_after_a_process_death_still_takes_unsynced_writes() {
    let lost = (0..SEEDS).filter(|seed| {
        let device = machine(*seed);
        zeroed(&device, 512).write_at(&[1; 512], 0, WriteSync::Later).unwrap();
        let device = device.process_death().power_cut();
        sectors(&contents(&device)) == [0]
    });
    assert!((1..SEEDS as usize).contains(&lost.count()));
}

#[test]
fn directory_changes_survive_a_power_cut_in_order() {
    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let device = machine(seed);
        zeroed(&device, 1);
        let [a, b] = ["/store/a", "/store/b"].map(Path::new);
        device.open(a, Access::CREATE).unwrap();
        device.rename(a, b).unwrap();
        device.remove(path()).unwrap();
        seen.insert(device.power_cut().list(store()).unwrap().join(" "));
    }
    assert_eq!(Vec::from_iter(seen), ["a file", "b", "b file", "file"]);
}

#[test]
fn a_rename_replaces_its_target_whole() {
    let seen: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let device = machine(seed);
            zeroed(&device, SECTOR_BYTES);
            let new = Path::new("/store/new");
            device.open(new, Access::CREATE).unwrap().write_at(&[1; SECTOR_BYTES], 0, WriteSync::Now).unwrap();
            device.rename(new, path()).unwrap();
            sectors(&contents(&device.power_cut()))
        })
        .collect();
    assert_eq!(Vec::from_iter(seen), [[0], [1]]);
}

#[test]
fn synced_directory_changes_survive_every_power_cut() {
    for seed in 0..SEEDS {
        let device = machine(seed);
        let file = zeroed(&device, 512);
        device.rename(path(), Path::new("/store/new")).unwrap();
        device.sync_dir(store()).unwrap();
        file.write_at(&[1; 512], 0, WriteSync::Now).unwrap();
        let device = device.power_cut();
        assert_eq!(device.file_names(), [Path::new("/store/new")], "seed {seed}");
        assert_eq!(device.file_bytes("/store/new").unwrap(), [1; 512]);
    }
}

#[test]
fn an_unsynced_directory_may_be_lost_with_its_files() {
    let inner = Path::new("/store/x/y");
    let outcomes: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let device = machine(seed);
            device.create_dir(inner).unwrap();
            let device = device.power_cut();
            (device.list(store()).unwrap().len(), device.list(inner).is_ok())
        })
        .collect();
    assert_eq!(Vec::from_iter(outcomes), [(0, false), (1, false), (1, true)]);
    for seed in 0..SEEDS {
        let device = machine(seed);
        device.create_dir(inner).unwrap();
        device.sync_dir(inner).unwrap();
        assert_eq!(device.power_cut().list(Path::new("/store/x")).unwrap(), ["y"], "seed {seed}");
    }
}

#[test]
fn a_mapping_outlives_the_process() {
    let device = machine(6);
    let mut mapping = device.map(path(), 3 * UNIT_BYTES).unwrap();
    assert!(mapping.iter().all(|byte| *byte == 0));
    mapping[5000..5003].copy_from_slice(b"abc");
    let mut bytes = [0; 3];
    device.open(path(), Access::READ).unwrap().read_at(&mut bytes, 5000).unwrap();
    assert_eq!(&bytes, b"abc", "reads of the file see the mapping");
    mapping[5003] = b'd';
    let device = device.process_death();
    mapping[5004] = b'e';
    let again = device.map(path(), 3 * UNIT_BYTES).unwrap();
    assert_eq!(&again[5000..5005], b"abcd\0", "the dead process's last store comes too late");
}

#[test]
fn what_a_dying_process_stores_in_a_mapping_is_lost() {
    let device = machine(6);
    let mut mapping = device.map(path(), UNIT_BYTES).unwrap();
    mapping[0] = 1;
    device.crash_after(1);
    failure(device.list(store()));
    mapping[0] = 2;
    assert_eq!(device.file_bytes(path()).unwrap()[0], 1);
    let device = device.process_death();
    assert_eq!(device.map(path(), UNIT_BYTES).unwrap()[0], 1);
}

#[test]
fn a_power_cut_keeps_any_mixture_of_mapped_pages() {
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let device = machine(seed);
        let mut mapping = device.map(path(), 3 * UNIT_BYTES).unwrap();
        mapping.fill(1);
        device.open(path(), Access::READ).unwrap().sync().unwrap();
        device.sync_dir(store()).unwrap();
        mapping.fill(2);
        let bytes = contents(&device.power_cut());
        let pages = sectors(&bytes).chunks(UNIT_BYTES / SECTOR_BYTES).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert!(pages.iter().all(|page| page.iter().all(|byte| *byte == page[0])), "seed {seed}: pages are whole");
        seen.insert(pages.iter().map(|page| page[0]).collect::<Vec<_>>());
    }
    assert_eq!(seen.len(), 8, "{seen:?}");
}

#[test]
fn a_mapped_file_can_be_resized_between_mappings() {
    let device = machine(1);
    device.map(path(), 2 * UNIT_BYTES).unwrap().fill(1);
    assert_eq!(device.map(path(), UNIT_BYTES).unwrap()[UNIT_BYTES - 1], 1);
    let mapping = device.map(path(), 2 * UNIT_BYTES).unwrap();
    assert_eq!((mapping.len(), mapping[UNIT_BYTES - 1], mapping[UNIT_BYTES]), (2 * UNIT_BYTES, 1, 0));
}

#[test]
#[should_panic(expected = "live mapping")]
fn a_file_is_mapped_once_at_a_time() {
    let device = machine(1);
    let _first = device.map(path(), UNIT_BYTES).unwrap();
    let _second = device.map(path(), UNIT_BYTES);
}
