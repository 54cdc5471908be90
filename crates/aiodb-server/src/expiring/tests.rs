use super::*;

#[test]
fn the_first_time_is_what_a_search_has_found() {
    let expiring = Expiring::default();
    assert_eq!(expiring.first_ms(), 0, "nothing is known yet");
    assert_eq!(expiring.search_begins(), 0);
    expiring.search_ends(Some(50));
    assert_eq!((expiring.first_ms(), expiring.search_begins()), (50, 50));
    expiring.search_ends(None);
    assert_eq!(expiring.first_ms(), u64::MAX);
}

#[test]
fn a_write_brings_an_earlier_time_and_no_later_one() {
    let expiring = Expiring::default();
    expiring.search_begins();
    expiring.search_ends(Some(50));
    for (at_ms, first_ms) in [(70, 50), (30, 30), (40, 30)] {
        expiring.write_begins(at_ms);
        assert_eq!(expiring.first_ms(), first_ms);
        expiring.write_ends(at_ms);
    }
    expiring.search_begins();
    expiring.search_ends(Some(70));
    assert_eq!(expiring.first_ms(), 70);
}

#[test]
fn what_a_search_may_have_missed_counts() {
    let expiring = Expiring::default();
    expiring.write_begins(20);
    expiring.write_begins(30);
    expiring.search_begins();
    // Two that the search need not have seen: one was under way when it began, one has begun since.
    expiring.write_ends(20);
    expiring.write_begins(40);
    expiring.write_ends(40);
    expiring.search_ends(Some(90));
    assert_eq!(expiring.first_ms(), 20);
    // By now both are seen, but not the one that is under way still.
    expiring.search_begins();
    expiring.search_ends(Some(40));
    assert_eq!(expiring.first_ms(), 30);
    expiring.write_ends(30);
    expiring.search_begins();
    expiring.search_ends(Some(40));
    assert_eq!(expiring.first_ms(), 40);
}
