//! Tests of the simulated machine as a whole; those of its parts are in the modules.

mod durability;
mod faults;
mod queue;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

use fastrand::Rng;

use self::queue::read_through_queue;
use super::{SimDevice, SimFile};
use crate::io::{Access, AlignedBuffer, Device, File, Phase, Queue, SECTOR_BYTES, UNIT_BYTES, WriteSync};

const SEEDS: u64 = 64;
const FILE: &str = "/store/file";

fn path() -> &'static Path {
    Path::new(FILE)
}

fn store() -> &'static Path {
    Path::new("/store")
}

/// A machine with a durable, empty directory.
fn machine(seed: u64) -> SimDevice {
    let device = SimDevice::new(seed);
    device.create_dir(store()).unwrap();
    device.sync_dir(store()).unwrap();
    device
}

/// A file of `length` bytes whose name and zeros are durable.
fn zeroed(device: &SimDevice, length: usize) -> SimFile {
    let file = device.open(path(), Access::CREATE).unwrap();
    file.write_at(&vec![0; length], 0, WriteSync::Now).unwrap();
    device.sync_dir(store()).unwrap();
    file
}

fn contents(device: &SimDevice) -> Vec<u8> {
    device.file_bytes(path()).expect("the file's name is durable")
}

/// The first byte of each sector.
fn sectors(bytes: &[u8]) -> Vec<u8> {
    for sector in bytes.chunks(SECTOR_BYTES) {
        assert!(sector.iter().all(|byte| *byte == sector[0]), "a sector is whole");
    }
    bytes.chunks(SECTOR_BYTES).map(|sector| sector[0]).collect()
}

fn aligned(length: usize, byte: u8) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::new(length);
    buffer.fill(byte);
    buffer
}

fn failure<T>(result: std::io::Result<T>) -> std::io::Error {
    result.err().expect("the call fails")
}

#[test]
fn handles_of_a_dead_process_are_stale() {
    let dead = machine(4);
    let file = zeroed(&dead, UNIT_BYTES);
    let lock = dead.lock(Path::new("/store/lock")).unwrap().ok().unwrap();
    let mut queue = dead.queue(1).unwrap();
    let device = dead.process_death();
    let taken = device.lock(Path::new("/store/lock")).unwrap();
    drop(lock);
    assert!(device.lock(Path::new("/store/lock")).unwrap().is_err(), "the dead process's lock is not the new one's");
    drop(taken);
    for error in [
        failure(file.write_at(&[1], 0, WriteSync::Now)),
        failure(file.read_at(&mut [0], 0)),
        failure(file.sync()),
        failure(file.reserve(1 << 20)),
        failure(dead.remove(path())),
        failure(dead.open(path(), Access::READ)),
        failure(queue.enter(0)),
    ] {
        assert_eq!(error.to_string(), "stale handle");
    }
    assert_eq!(contents(&device), [0; UNIT_BYTES]);
}

#[test]
fn a_crash_stops_the_process_at_the_call_asked_for() {
    let device = machine(5);
    let file = zeroed(&device, 512);
    device.crash_after(3);
    file.write_at(&[1; 512], 0, WriteSync::Now).unwrap();
    file.length().unwrap();
    assert!(!device.has_crashed());
    let steps = device.counters().steps;
    for _ in 0..2 {
        let error = failure(file.read_at(&mut [0], 0));
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Other, "simulated crash"));
        assert!(device.has_crashed());
    }
    assert_eq!(device.counters().steps, steps + 1, "a dead process makes no calls");
    let device = device.power_cut();
    assert!(!device.has_crashed());
    assert_eq!(sectors(&contents(&device)), [1]);
}

#[test]
fn a_crash_can_be_aimed_at_a_phase() {
    for steps in 1..6 {
        let device = machine(6);
        let file = zeroed(&device, 512);
        device.crash_inside(Phase::Cut, 1, steps);
        let pass_through = || {
            device.mark(Phase::Cut, true);
            let _ = file.length();
            let _ = file.length();
            device.mark(Phase::Cut, false);
            let _ = file.length();
        };
        device.mark(Phase::Append, true);
        device.mark(Phase::Append, false);
        pass_through();
        assert!(!device.has_crashed(), "the first one passes");
        let before = device.counters().steps;
        pass_through();
        assert!(device.has_crashed());
        assert_eq!(device.phases(), [Phase::Cut], "the process dies at the phase's end at the latest");
        assert_eq!(device.counters().steps - before, steps.min(4));
    }
}

#[test]
fn a_crash_tears_a_write_in_many_ways() {
    let mut seen = BTreeSet::new();
    let mut torn = 0;
    for seed in 0..1000 {
        let device = machine(seed);
        let file = zeroed(&device, 4 * SECTOR_BYTES);
        device.crash_after(1);
        failure(file.write_at(&[1; 4 * SECTOR_BYTES], 0, WriteSync::Now));
        torn += device.counters().torn_writes;
        seen.insert(sectors(&contents(&device.process_death())));
    }
    assert_eq!(seen.len(), 16, "every subset of four sectors is torn out sooner or later: {seen:?}");
    assert!((1..1000).contains(&torn));
}

#[test]
fn a_torn_durable_write_is_not_durable() {
    let seen: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let device = machine(seed);
            let file = zeroed(&device, SECTOR_BYTES);
            device.crash_after(1);
            failure(file.write_at(&[1; SECTOR_BYTES], 0, WriteSync::Now));
            let kept = sectors(&device.file_bytes(path()).unwrap());
            (kept, sectors(&contents(&device.power_cut())))
        })
        .collect();
    let outcomes = [(vec![0], vec![0]), (vec![1], vec![0]), (vec![1], vec![1])];
    assert_eq!(Vec::from_iter(seen), outcomes);
}

#[test]
fn a_call_that_crashes_takes_effect_or_not() {
    let effects: BTreeSet<_> = (0..SEEDS)
        .map(|seed| {
            let device = machine(seed);
            zeroed(&device, 1);
            device.crash_after(1);
            failure(device.rename(path(), Path::new("/store/other")));
            device.process_death().list(store()).unwrap()
        })
        .collect();
    assert_eq!(Vec::from_iter(effects), [["file"], ["other"]]);
}

#[test]
fn wrong_names_are_refused() {
    let device = machine(1);
    zeroed(&device, 1);
    assert_eq!(failure(device.open(Path::new("/store/no"), Access::READ)).kind(), ErrorKind::NotFound);
    assert_eq!(failure(device.open(Path::new("/no/file"), Access::CREATE)).kind(), ErrorKind::NotFound);
    assert_eq!(failure(device.open(store(), Access::CREATE)).kind(), ErrorKind::IsADirectory);
    assert_eq!(failure(device.create_dir(&path().join("x"))).kind(), ErrorKind::NotADirectory);
    assert_eq!(failure(device.rename(Path::new("/store/no"), path())).kind(), ErrorKind::NotFound);
    assert_eq!(failure(device.remove(Path::new("/store/no"))).kind(), ErrorKind::NotFound);
    assert_eq!(failure(device.list(Path::new("/no"))).kind(), ErrorKind::NotFound);
    let read_only = device.open(path(), Access::READ).unwrap();
    assert!(read_only.write_at(&[1], 0, WriteSync::Now).is_err());
    assert!(read_only.reserve(10).is_err());
}

#[test]
fn direct_files_demand_aligned_transfers() {
    for block_bytes in [512, 4096] {
        let device = SimDevice::with_block_bytes(1, block_bytes);
        assert_eq!(device.report().block_bytes, block_bytes);
        let file = device.open(Path::new("/f"), Access::NEW_SEGMENT).unwrap();
        let mut buffer = aligned(2 * UNIT_BYTES, 1);
        let half = block_bytes / 2;
        file.write_at(&buffer[..block_bytes], 0, WriteSync::Later).unwrap();
        let refused = [
            file.write_at(&buffer[..half], 0, WriteSync::Later),
            file.write_at(&buffer[..block_bytes], half as u64, WriteSync::Later),
            file.write_at(&buffer[half..half + block_bytes], 0, WriteSync::Later),
            file.read_at(&mut buffer[..half], 0).map(drop),
            file.read_at(&mut buffer[..block_bytes], half as u64).map(drop),
            file.read_at(&mut buffer[half..half + block_bytes], 0).map(drop),
        ];
        for outcome in refused {
            assert_eq!(failure(outcome).raw_os_error(), Some(libc::EINVAL));
        }
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), block_bytes);
    }
}

#[test]
fn the_lock_is_exclusive_until_dropped_or_death() {
    let device = machine(1);
    let name = Path::new("/store/lock");
    let lock = device.lock(name).unwrap();
    assert!(device.lock(name).unwrap().err().unwrap().contains("simulated process 0"));
    drop(lock);
    let lock = device.lock(name).unwrap();
    assert!(lock.is_ok());
    let device = device.process_death();
    assert!(device.lock(name).unwrap().is_ok());
}

#[test]
fn the_clock_goes_on_through_crashes() {
    let device = machine(1);
    let before = device.clock_ms();
    device.advance_clock(1000);
    let device = device.power_cut();
    assert!(device.clock_ms() >= before + 1000);
}

/// A random life of a machine, with crashes; returns everything that can be seen of it.
fn life(seed: u64) -> Vec<String> {
    let mut script = Rng::with_seed(99);
    let mut device = machine(seed);
    let mut seen = Vec::new();
    for _ in 0..20 {
        device.crash_after(script.u64(1..60));
        while !device.has_crashed() {
            let name = format!("/store/{}", script.u8(0..5));
            let other = format!("/store/{}", script.u8(0..5));
            let offset = script.u64(0..20_000);
            let bytes = vec![script.u8(..); script.usize(0..5000)];
            let sync = if script.bool() { WriteSync::Now } else { WriteSync::Later };
            let file = device.open(name.as_ref(), Access::CREATE);
            let outcome = match script.u8(0..6) {
                0 => file.and_then(|file| file.sync()),
                1 => device.rename(name.as_ref(), other.as_ref()),
                2 => device.remove(name.as_ref()),
                3 => device.sync_dir(store()),
                _ => file.and_then(|file| file.write_at(&bytes, offset, sync)),
            };
            seen.push(format!("{:?} {}", outcome.map_err(|error| error.to_string()), device.clock_ms()));
        }
        device = if script.bool() { device.power_cut() } else { device.process_death() };
        for name in device.file_names() {
            seen.push(format!("{name:?} {:x}", crate::checksum::crc32c(&device.file_bytes(&name).unwrap())));
        }
    }
    seen.push(format!("{:?} {}", device.counters(), device.random()));
    seen
}

#[test]
fn the_same_seed_gives_the_same_life() {
    for seed in 0..8 {
        assert_eq!(life(seed), life(seed), "seed {seed}");
        assert_eq!(read_through_queue(seed), read_through_queue(seed), "seed {seed}");
    }
    assert_ne!(life(1), life(2));
}
