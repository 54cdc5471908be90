use std::os::fd::AsRawFd;
use std::thread;

use super::*;

fn opened() -> OwnedFd {
    std::fs::File::open("/dev/null").unwrap().into()
}

/// A table, and descriptors in all of its places.
fn full_table() -> (Arc<Descriptors>, Vec<Arc<Descriptor>>) {
    let table = Descriptors::new(LEAST_OPEN_FILES);
    let fill = |_| {
        let descriptor = Arc::new(Descriptor::new(opened()));
        table.place(false).unwrap().unwrap().fill(&descriptor);
        descriptor
    };
    let descriptors = (0..LEAST_OPEN_FILES).map(fill).collect();
    (table, descriptors)
}

fn is_closed(descriptor: &Descriptor) -> bool {
    descriptor.raw_fd() == NO_NUMBER
}

#[test]
fn a_bound_leaves_some_to_others() {
    assert_eq!(bound_for(48), 16);
    assert_eq!(bound_for(64), 32);
    assert_eq!(bound_for(256), 192);
    assert_eq!(bound_for(4096), 3072);
    assert_eq!(bound_for(1 << 20), (1 << 20) - 1024);
    assert_eq!(bound_for(10), LEAST_OPEN_FILES);
    assert_eq!(bound_for(u64::MAX), usize::MAX - 1024);
}

#[test]
fn the_one_that_was_used_least_lately_is_closed() {
    let (table, descriptors) = full_table();
    for (number, descriptor) in descriptors.iter().enumerate() {
        if number != 5 {
            assert!(descriptor.begin_use());
            descriptor.end_use();
        }
    }
    let place = table.place(false).unwrap().unwrap();
    assert!(is_closed(&descriptors[5]));
    assert_eq!(table.open(), LEAST_OPEN_FILES);
    place.fill_again(&descriptors[5], opened());
    assert!(descriptors[5].end_use() && !is_closed(&descriptors[5]));
    assert_eq!(descriptors.iter().filter(|descriptor| is_closed(descriptor)).count(), 0);
}

#[test]
fn descriptors_that_nobody_uses_are_closed_in_turn() {
    let (table, mut descriptors) = full_table();
    for next in 0..3 * LEAST_OPEN_FILES {
        let place = table.place(false).unwrap().unwrap();
        let closed: Vec<_> = (0..descriptors.len()).filter(|number| is_closed(&descriptors[*number])).collect();
        assert_eq!(closed, (0..=next).collect::<Vec<_>>(), "the oldest goes first");
        let descriptor = Arc::new(Descriptor::new(opened()));
        place.fill(&descriptor);
        descriptors.push(descriptor);
    }
}

#[test]
fn what_is_used_kept_or_unflushed_stays_open() {
    let (table, descriptors) = full_table();
    descriptors[0].keep();
    descriptors[1].set_unflushed(true);
    descriptors[2..].iter().for_each(|descriptor| assert!(descriptor.begin_use()));
    assert!(table.place(false).unwrap().is_none(), "a place comes when a use ends");
    descriptors[2..].iter().for_each(|descriptor| {
        descriptor.keep();
        descriptor.end_use();
    });
    let refusal = table.place(true).map(drop).unwrap_err();
    assert!(is_shortage(&refusal), "waiting would be for ever: {refusal}");
    assert_eq!(descriptors.iter().filter(|descriptor| is_closed(descriptor)).count(), 0);
    assert!(descriptors[0].let_go() && !descriptors[0].let_go());
    drop(table.place(true).unwrap().unwrap());
    assert!(is_closed(&descriptors[0]));
    assert_eq!(table.open(), LEAST_OPEN_FILES - 1, "a place that was not filled is given back");
}

#[test]
fn a_descriptor_goes_with_its_file() {
    let (table, mut descriptors) = full_table();
    let gone = descriptors.swap_remove(3);
    table.remove(&gone);
    drop(gone);
    assert_eq!(table.open(), LEAST_OPEN_FILES - 1);
    while let Some(descriptor) = descriptors.pop() {
        table.remove(&descriptor);
    }
    assert_eq!(table.open(), 0);
}

/// A waiter is told, whatever comes between its looking and its sleeping. A descriptor always means the file that it was opened for.
#[test]
fn waiting_ends_when_a_use_does() {
    const THREADS: usize = 2 * LEAST_OPEN_FILES;
    let table = Descriptors::new(LEAST_OPEN_FILES);
    let files: Vec<_> = (0..THREADS).map(|_| tempfile::tempfile().unwrap()).collect();
    let use_one = |file: &std::fs::File| {
        let place = table.place(true).unwrap().unwrap();
        let descriptor = Arc::new(Descriptor::new(file.try_clone().unwrap().into()));
        assert_ne!(descriptor.raw_fd(), file.as_raw_fd());
        assert!(descriptor.begin_use());
        place.fill(&descriptor);
        thread::yield_now();
        assert!(table.open() <= LEAST_OPEN_FILES);
        if descriptor.end_use() {
            table.tell_waiters();
        }
        table.remove(&descriptor);
    };
    thread::scope(|scope| {
        for file in &files {
            scope.spawn(move || (0..500).for_each(|_| use_one(file)));
        }
    });
    assert_eq!(table.open(), 0);
}
