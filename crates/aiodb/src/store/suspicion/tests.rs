use super::{Look, Suspicion};

/// What counts as alive after each round, and whether runs are merged then.
#[test]
fn garbage_is_suspected_where_half_as_much_again_counts_as_alive() {
    let suspicion = Suspicion::default();
    let looks = |live, runs| {
        suspicion.look(Look { live, runs, is_committed: true, until: 5 }, 10);
        suspicion.is_any()
    };
    assert!(!looks(1000, 3), "the first look has nothing to compare with");
    assert!(!looks(1500, 3) && looks(1501, 3));
    assert_eq!((suspicion.until(), suspicion.bytes()), (5, 501));
    suspicion.end(1400);
    let looks = |live, runs| {
        suspicion.look(Look { live, runs, is_committed: true, until: 6 }, 10);
        suspicion.is_any()
    };
    assert!(!looks(2100, 3) && !looks(1000, 3), "less counts from now on");
    assert!(!looks(9000, 1), "one run hides nothing");
    assert!(!looks(13_500, 2) && looks(13_501, 2));
    suspicion.end(4);
    suspicion.look(Look { live: 14, runs: 2, is_committed: true, until: 7 }, 10);
    assert!(!suspicion.is_any(), "so little is tolerated");
}

#[test]
fn on_a_full_disk_garbage_is_suspected_where_it_is_worth_a_merge() {
    let suspicion = Suspicion::default();
    let looks = |live, runs| {
        suspicion.look_for_room(Look { live, runs, is_committed: true, until: 5 }, 4000, 50, 70);
        suspicion.is_any()
    };
    suspicion.note(Look { live: 1000, runs: 2, is_committed: true, until: 4 });
    assert!(!looks(1049, 2) && looks(1050, 2));
    assert_eq!((suspicion.until(), suspicion.bytes()), (5, 70), "the oldest run takes part");
    suspicion.end(1050);
    assert!(!looks(1050, 2), "what was looked for in vain is not suspected again");
    assert!(!looks(2000, 1), "one run hides nothing");
    suspicion.look_for_room(Look { live: 2000, runs: 0, is_committed: true, until: 0 }, 4000, 0, 0);
    assert!(!suspicion.is_any(), "there is no run");
}

#[test]
fn a_suspicion_is_not_put_off_for_ever() {
    let suspicion = Suspicion::default();
    assert!((0..100).all(|_| !suspicion.is_urgent()), "there is none");
    suspicion.note(Look { live: 1000, runs: 2, is_committed: true, until: 4 });
    suspicion.look(Look { live: 2000, runs: 2, is_committed: true, until: 4 }, 0);
    let urgent = (0..16).filter(|_| suspicion.is_urgent()).count();
    assert_eq!(urgent, 2);
}

#[test]
fn what_a_memtable_hides_beside_one_run_is_suspected_once_it_is_a_run() {
    let suspicion = Suspicion::default();
    let look = |live, runs, is_committed| {
        suspicion.look(Look { live, runs, is_committed, until: 5 }, 10);
        suspicion.is_any()
    };
    assert!(!look(1000, 1, true) && !look(1600, 1, false));
    assert!(look(1600, 2, true));
}
