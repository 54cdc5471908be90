use super::Suspicion;

/// What counts as alive after each round, and whether runs are merged then.
#[test]
fn garbage_is_suspected_where_half_as_much_again_counts_as_alive() {
    let suspicion = Suspicion::default();
    let looks = |live, runs| {
        suspicion.look(live, 10, runs, 5);
        suspicion.is_any()
    };
    assert!(!looks(1000, 3), "the first look has nothing to compare with");
    assert!(!looks(1500, 3) && looks(1501, 3));
    assert_eq!(suspicion.until(), 5);
    suspicion.end(1400);
    let looks = |live, runs| {
        suspicion.look(live, 10, runs, 6);
        suspicion.is_any()
    };
    assert!(!looks(2100, 3) && !looks(1000, 3), "less counts from now on");
    assert!(!looks(9000, 1), "one run hides nothing");
    assert!(!looks(13_500, 2) && looks(13_501, 2));
    suspicion.end(4);
    suspicion.look(14, 10, 2, 7);
    assert!(!suspicion.is_any(), "so little is tolerated");
}
