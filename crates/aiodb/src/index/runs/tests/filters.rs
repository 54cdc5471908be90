//! Filters that leave memory, and come back.

use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::super::Runs;
use super::super::file::path_of;
use super::super::filters::{FilteredRun, fit_filters};
use super::world::{DIRECTORY, STORE, World};
use super::{act_up_to, in_worlds};
use crate::budget::{Accounts, Part};
use crate::format::record::Kind;
use crate::io::sim::SimDevice;
use crate::sync::as_another_thread;

fn all_bytes(world: &World) -> u64 {
    let set = world.runs().set().expect("it is open");
    set.pieces().map(|piece| piece.file.filter_bytes()).sum()
}

fn in_memory(world: &World) -> u64 {
    world.runs().accounts.bytes(Part::Filters)
}

/// Has filters take so many bytes, and loads those that fit by now.
fn fit(world: &World, room: u64) {
    fit_filters(world.runs().filtered(), room, in_memory(world))
        .back
        .iter()
        .for_each(|file| file.load().expect("nothing fails"));
    world.runs().take_filters();
}

#[test]
fn runs_without_their_filters_say_what_a_model_says() {
    let (mut some, mut none, mut back) = (0, 0, 0);
    in_worlds(30, |world, random| {
        for _ in 0..20 {
            act_up_to(40, world, random);
            let (all, before) = (all_bytes(world), in_memory(world));
            let room = random.u64(..2 * all + 1);
            fit(world, room);
            let after = in_memory(world);
            assert!(after <= room, "{after} bytes of filters, where {room} fit");
            some += u32::from(after > 0 && after < all);
            none += u32::from(after == 0 && all > 0);
            back += u32::from(after > before);
            world.check();
        }
        fit(world, u64::MAX);
        assert_eq!(in_memory(world), all_bytes(world), "all have come back");
        world.check();
    });
    assert!(some > 20 && none > 5 && back > 20, "some were in memory {some} times, none {none}, more {back}");
}

/// The sizes of the filters of runs, the first of which is asked by puts if so said, and which of them memory has room for.
fn kept(world: &World, room: u64, asked_by_puts: Option<usize>) -> Vec<(u64, bool)> {
    let set = world.runs().set().expect("it is open");
    let runs = || set.runs.iter().enumerate().map(|(number, run)| FilteredRun::new(run, asked_by_puts == Some(number)));
    fit_filters(runs().collect(), room, 0);
    let of = |run: FilteredRun<SimDevice>| {
        let bytes = run.files.iter().map(|file| file.filter_bytes()).sum();
        (bytes, run.files.iter().all(|file| file.filter().is_some()))
    };
    runs().map(of).collect()
}

/// A world with a large run below a small one.
fn two_runs() -> World {
    let (mut world, mut random) = (World::new(0), Rng::with_seed(1));
    for keys in [0..2000, 0..10] {
        keys.for_each(|number| world.write_one(number, Kind::Put, &mut random));
        world.flush(&mut random).expect("nothing fails");
    }
    world
}

#[test]
fn filters_of_large_runs_go_first_and_those_that_puts_ask_last() {
    let world = two_runs();
    let all = kept(&world, u64::MAX, None);
    assert!(matches!(all[..], [(small, true), (large, true)] if small < large / 10), "{all:?}");
    let (small, large) = (all[0].0, all[1].0);
    assert_eq!(kept(&world, large, None), [(small, true), (large, false)]);
    fit(&world, u64::MAX);
    assert_eq!(kept(&world, large, Some(1)), [(small, false), (large, true)]);
}

/// A store that is opened with little room reads no filter that it would give back.
#[test]
fn opened_files_have_filters_as_far_as_there_is_room() {
    let world = two_runs();
    let open = |room| {
        let accounts = Arc::<Accounts>::default();
        accounts.set_filter_room(room);
        drop(Runs::open((&world.device, &accounts), Path::new(DIRECTORY), STORE, true).expect("it can be opened"));
        let runs = Runs::open((&world.device, &accounts), Path::new(DIRECTORY), STORE, true).expect("it can be opened");
        let bytes = runs.accounts.bytes(Part::Filters);
        (bytes, runs)
    };
    let (all, _) = open(u64::MAX);
    assert_eq!(all, all_bytes(&world));
    assert_eq!(open(0).0, 0);
    let (some, _) = open(all - 1);
    assert!(some > 0 && some < all, "{some} of {all}");
}

/// Filters that no run has yet, or that none has any more, take room too: others do not come back meanwhile.
#[test]
fn filters_elsewhere_take_room() {
    let world = two_runs();
    fit(&world, 0);
    let (all, room) = (all_bytes(&world), 2 * all_bytes(&world));
    let back = |elsewhere| fit_filters(world.runs().filtered(), room, elsewhere).back.len();
    assert_eq!((back(0), back(all / 2), back(room)), (2, 2, 0));
    assert_eq!(back(room - all / 2), 1, "the small one");
}

/// A filter that was sound when its file was opened, and is damaged when it is to come back, is done without.
#[test]
fn a_damaged_filter_is_done_without() {
    let world = two_runs();
    fit(&world, 0);
    let set = world.runs().set().expect("it is open");
    let large = set.pieces().max_by_key(|piece| piece.file.bytes()).expect("there are two").file;
    world.device.corrupt(path_of(Path::new(DIRECTORY), large.name.number), large.footer.parts().filter + 9, 4);
    let back = fit_filters(world.runs().filtered(), u64::MAX, in_memory(&world)).back;
    assert_eq!(back.iter().filter(|file| file.load().is_err()).count(), 1, "one is damaged");
    let fitted = fit_filters(world.runs().filtered(), u64::MAX, in_memory(&world));
    assert!(fitted.back.is_empty() && fitted.left_out_bytes == 0, "nobody tries again");
    world.runs().take_filters();
    assert_eq!(in_memory(&world), all_bytes(&world) - large.filter_bytes());
    as_another_thread(|| world.check());
}
