//! Full disks, failing calls and damaged media.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use super::{FILE, SEEDS, contents, failure, machine, path, sectors, store, zeroed};
use crate::io::sim::Call;
use crate::io::{Access, Device, File, SECTOR_BYTES, UNIT_BYTES, WriteSync};

#[test]
fn a_full_disk_refuses_growth_and_nothing_else() {
    let device = machine(7);
    let file = zeroed(&device, 2 * UNIT_BYTES);
    device.set_capacity(Some(3 * UNIT_BYTES as u64));
    assert_eq!(failure(file.reserve(4 * UNIT_BYTES as u64)).kind(), ErrorKind::StorageFull);
    assert_eq!(file.length().unwrap(), 2 * UNIT_BYTES as u64);
    file.reserve(3 * UNIT_BYTES as u64).unwrap();
    file.write_at(&[1; UNIT_BYTES], 2 * UNIT_BYTES as u64, WriteSync::Now).unwrap();
    let other = device.open(Path::new("/store/other"), Access::CREATE).unwrap();
    assert_eq!(failure(other.write_at(&[1], 0, WriteSync::Later)).kind(), ErrorKind::StorageFull);
    assert_eq!(failure(device.map(Path::new("/store/map"), 1)).kind(), ErrorKind::StorageFull);
    device.remove(path()).unwrap();
    other.write_at(&[1], 0, WriteSync::Later).unwrap();
    device.set_capacity(None);
    other.reserve(1 << 40).unwrap();
}

#[test]
fn injected_faults_hit_the_calls_asked_for() {
    let device = machine(8);
    let file = zeroed(&device, 512);
    let other = device.open(Path::new("/store/other"), Access::CREATE).unwrap();
    device.fail(Call::Write, 1, 2, |path| path == Path::new(FILE));
    let outcomes: Vec<bool> = (0..4).map(|_| file.write_at(&[1; 512], 0, WriteSync::Now).is_ok()).collect();
    assert_eq!(outcomes, [true, false, false, true]);
    device.fail(Call::Read, 0, u64::MAX, |path| path == Path::new(FILE));
    assert_eq!(failure(file.read_at(&mut [0], 0)).raw_os_error(), Some(libc::EIO));
    other.write_at(&[1], 0, WriteSync::Now).unwrap();
    other.read_at(&mut [0], 0).unwrap();
    device.clear_faults();
    file.read_at(&mut [0], 0).unwrap();
    device.fail(Call::Sync, 0, 1, |path| path == store());
    other.sync().unwrap();
    assert_eq!(failure(device.sync_dir(store())).raw_os_error(), Some(libc::EIO));
    device.sync_dir(store()).unwrap();
}

#[test]
fn bytes_that_cannot_be_read_fail_reads_that_include_them() {
    let device = machine(8);
    let file = zeroed(&device, 4 * SECTOR_BYTES);
    device.make_unreadable(FILE, SECTOR_BYTES as u64..2 * SECTOR_BYTES as u64);
    let mut sector = [0; SECTOR_BYTES];
    let read = |sector: &mut [u8], number: usize| file.read_at(sector, (number * SECTOR_BYTES) as u64).is_ok();
    assert_eq!([0, 1, 2].map(|number| read(&mut sector, number)), [true, false, true]);
    assert_eq!(failure(file.read_at(&mut [0; 4 * SECTOR_BYTES], 0)).raw_os_error(), Some(libc::EIO));
    file.write_at(&[1; SECTOR_BYTES], SECTOR_BYTES as u64, WriteSync::Now).unwrap();
    assert!(!read(&mut sector, 1));
    assert_eq!(device.counters().failed[0], 3);
    device.clear_faults();
    assert!(read(&mut sector, 1) && sector == [1; SECTOR_BYTES]);
}

#[test]
fn a_failed_write_leaves_any_part() {
    let seen: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let device = machine(seed);
            let file = zeroed(&device, 2 * SECTOR_BYTES);
            device.fail(Call::Write, 0, 1, |_| true);
            failure(file.write_at(&[1; 2 * SECTOR_BYTES], 0, WriteSync::Now));
            sectors(&contents(&device))
        })
        .collect();
    assert_eq!(Vec::from_iter(seen), [[0, 0], [0, 1], [1, 0], [1, 1]]);
}

#[test]
fn a_sync_after_a_failed_one_does_not_write_the_rest() {
    for seed in 0..SEEDS {
        let device = machine(seed);
        let file = zeroed(&device, 64 * SECTOR_BYTES);
        file.write_at(&[1; 64 * SECTOR_BYTES], 0, WriteSync::Later).unwrap();
        device.fail(Call::Sync, 0, 1, |_| true);
        failure(file.sync());
        file.sync().unwrap();
        assert_eq!(sectors(&contents(&device)), [1; 64], "seed {seed}: the kernel still shows the write");
        let left: BTreeSet<u8> = sectors(&contents(&device.power_cut())).into_iter().collect();
        assert_eq!(Vec::from_iter(left), [0, 1], "seed {seed}: the failed sync wrote some sectors, the next one none");
    }
}

#[test]
fn writing_again_after_a_failed_sync_repairs_it() {
    for seed in 0..SEEDS {
        let device = machine(seed);
        let file = zeroed(&device, SECTOR_BYTES);
        file.write_at(&[1; SECTOR_BYTES], 0, WriteSync::Later).unwrap();
        device.fail(Call::Sync, 0, 1, |_| true);
        failure(file.sync());
        file.write_at(&[1; SECTOR_BYTES], 0, WriteSync::Later).unwrap();
        file.sync().unwrap();
        assert_eq!(sectors(&contents(&device.power_cut())), [1], "seed {seed}");
    }
}

#[test]
fn corruption_stays_on_the_medium() {
    let device = machine(9);
    let file = zeroed(&device, 2 * SECTOR_BYTES);
    file.write_at(&[6; SECTOR_BYTES], 0, WriteSync::Later).unwrap();
    device.corrupt(path(), 3, 0b101);
    device.corrupt(path(), 600, 1);
    let bytes = contents(&device);
    assert_eq!((bytes[2], bytes[3], bytes[599], bytes[600]), (6, 3, 0, 1));
    let bytes = contents(&device.power_cut());
    assert!([[0, 5], [6, 3]].contains(&[bytes[2], bytes[3]]) && bytes[600] == 1);
}
