use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::world::{DIRECTORY, STORE, World};
use super::{act, named_files};
use crate::Error;
use crate::format::manifest::MANIFEST_NAMES;
use crate::format::record::Kind;
use crate::index::runs::Runs;
use crate::io::{Access, Device, File, UNIT_BYTES};

fn filled(seed: u64) -> World {
    let mut random = Rng::with_seed(seed);
    let mut world = World::new(seed);
    (0..400).for_each(|_| act(&mut world, &mut random));
    world.end_snapshots();
    world.flush(&mut random).expect("nothing fails");
    world
}

/// Wherever a bit is wrong, nothing is said that is not so.
#[test]
fn damage_is_an_error_and_never_absence() {
    let mut found = 0;
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut world = filled(seed);
        for path in named_files(world.runs()).into_keys() {
            for _ in 0..50 {
                let length = world.device.file_bytes(&path).expect("it is there").len() as u64;
                let (offset, mask) = (random.u64(..length), 1 << random.u8(..8));
                world.device.corrupt(&path, offset, mask);
                // Padding has no checksum: then all is as it was.
                let outcome = world.recover().and_then(|()| world.try_check());
                match outcome {
                    Err(Error::Corruption { path: named, offset: at, .. }) => {
                        assert_eq!((named, at / 4096 <= offset / 4096), (path.clone(), true));
                        found += 1;
                    }
                    other => other.expect("it is damage or nothing"),
                }
                world.device.corrupt(&path, offset, mask);
            }
        }
        world.recover().expect("all is as it was");
        world.check();
    }
    assert!(found > 500, "damage was found {found} times");
}

#[test]
fn one_manifest_is_as_good_as_two() {
    for name in MANIFEST_NAMES {
        let mut world = filled(7);
        let [path, other] =
            [name, MANIFEST_NAMES[usize::from(name == MANIFEST_NAMES[0])]].map(|name| Path::new(DIRECTORY).join(name));
        world.device.corrupt(&path, 100, 1);
        world.recover().expect("the other one is read");
        world.check();
        world.device.corrupt(&other, 100, 1);
        world.recover().expect("the opening has written the first one again");
        world.device.corrupt(&other, 100, 1);
        world.device.corrupt(&path, 100, 1);
        let opened = Runs::open((&world.device, &Arc::default()), Path::new(DIRECTORY), STORE, false).map(drop);
        assert!(matches!(opened, Err(Error::Corruption { .. })), "{opened:?}");
    }
}

#[test]
fn runs_without_a_manifest_are_damage() {
    let world = filled(8);
    for name in MANIFEST_NAMES {
        world.device.remove(&Path::new(DIRECTORY).join(name)).expect("it is there");
    }
    let opened = Runs::open((&world.device, &Arc::default()), Path::new(DIRECTORY), STORE, false).map(drop);
    assert!(matches!(opened, Err(Error::Corruption { .. })), "{opened:?}");
    Runs::remove_all(&world.device, Path::new(DIRECTORY), &STORE).expect("nothing fails");
    let runs =
        Runs::open((&world.device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("it begins anew");
    assert_eq!(runs.position().expect("it is open"), None);
}

/// What a later program has written is no damage, and nothing is made of it.
#[test]
fn files_of_a_newer_version_are_refused_as_such() {
    const VERSION_AT: u64 = 8;
    let world = filled(10);
    let manifests = MANIFEST_NAMES.map(|name| (Path::new(DIRECTORY).join(name), VERSION_AT));
    let (file, bytes) = named_files(world.runs()).into_iter().next().expect("there is one");
    for newer in [&manifests[..], &[(file, bytes - UNIT_BYTES as u64 + VERSION_AT)]] {
        let flip = || newer.iter().for_each(|(path, offset)| world.device.corrupt(path, *offset, 0x40));
        flip();
        let opened = Runs::open((&world.device, &Arc::default()), Path::new(DIRECTORY), STORE, false).map(drop);
        assert!(
            matches!(&opened, Err(Error::NewerVersion { path, found, known }) if *path == newer[0].0 && found > known),
            "{opened:?}"
        );
        flip();
    }
    world.check();
}

#[test]
fn reading_changes_nothing() {
    let world = filled(9);
    let (names, used) = (world.device.file_names(), world.device.used_bytes());
    let runs = Runs::open((&world.device, &Arc::default()), Path::new(DIRECTORY), STORE, true).expect("it is there");
    assert!(runs.position().expect("it is open").is_some());
    drop(runs);
    assert_eq!((world.device.file_names(), world.device.used_bytes()), (names, used));
    assert!(Runs::open((&world.device, &Arc::default()), Path::new("/elsewhere"), STORE, true).is_err());
    assert!(
        Runs::open((&world.device, &Arc::default()), Path::new(DIRECTORY), [8; 16], true).is_err(),
        "another store's"
    );
    world.runs().close();
    assert!(matches!(world.runs().position(), Err(Error::Closed)));
}

#[test]
fn an_index_that_is_made_again_gives_no_number_of_a_file_away_twice() {
    let mut random = Rng::with_seed(1);
    let mut world = World::new(11);
    let mut given = BTreeSet::new();
    for (round, damaged) in
        [&[][..], &["MANIFEST"], &["MANIFEST.copy"], &["MANIFEST", "MANIFEST.copy"]].iter().enumerate()
    {
        world.flush_one(round as u32 + 1, Kind::Put, &mut random);
        let named = named_files(world.runs());
        assert!(!named.is_empty());
        named.into_keys().for_each(|path| assert!(given.insert(path), "{damaged:?} before: a number comes again"));
        world.runs().close();
        for name in *damaged {
            world.device.corrupt(Path::new(DIRECTORY).join(name), 100, 1);
        }
        for _ in 0..2 {
            Runs::remove_all(&world.device, Path::new(DIRECTORY), &STORE).expect("nothing fails");
        }
        world.open().expect("nothing fails");
        assert_eq!(world.runs().len(), 0);
    }
}

/// A pipelined reader may hold files of runs beyond the end of its store.
#[test]
fn a_look_up_that_outlives_its_runs_removes_no_file_of_the_next_opening() {
    let mut random = Rng::with_seed(1);
    let mut world = World::new(6);
    world.flush_one(1, Kind::Put, &mut random);
    let first = named_files(world.runs());
    let look_up = world.runs().begin_lookup(b"key", u64::MAX).expect("it is open");
    for number in 2..8 {
        world.flush_one(number, Kind::Put, &mut random);
        while world.merge(&mut random).expect("nothing fails") {}
    }
    let later = named_files(world.runs());
    assert!(first.keys().all(|path| !later.contains_key(path)), "the look-up holds what no run has any more");
    world.runs().close();
    // As somebody does it by hand: without a manifest it is not known which numbers are taken.
    let names = world.device.file_names();
    let files = names.iter().filter(|name| name.starts_with(DIRECTORY));
    files.for_each(|name| world.device.remove(name).expect("it is there"));
    world.open().expect("nothing fails");
    world.flush_one(8, Kind::Put, &mut random);
    assert_eq!(named_files(world.runs()).keys().next(), first.keys().next(), "numbers begin anew");
    drop(look_up);
    for (path, bytes) in named_files(world.runs()) {
        let file = world.device.open(&path, Access::READ).expect("it is there");
        assert_eq!(file.length().expect("nothing fails"), bytes);
    }
}
