use super::{idle, in_words};
use crate::merge::child::tests::measured;
use crate::merge::child::{Measured, Operation};

#[test]
fn a_part_without_operations_is_named() {
    let measured = measured(Operation::GetOfMerged, 2.0);
    assert_eq!(idle(&measured), None);
    assert_eq!(idle(&Measured { count: 0, ..measured }).unwrap(), "there were no gets of merged keys");
}

#[test]
fn rates_and_costs_are_told_in_words() {
    let words = in_words(&measured(Operation::Merge, 2.0));
    assert_eq!(words, "0.5 K merges/s, caught up after 2.0 s, 2.00 us of processor time each");
}
