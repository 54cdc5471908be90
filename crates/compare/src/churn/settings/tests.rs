use super::{all, named, suits};
use crate::engine::tests::check_names;
use std::collections::HashSet;

#[test]
fn every_name_is_used_once_and_found_again() {
    check_names(all(), named);
}

#[test]
fn every_rival_is_there() {
    let families: HashSet<&str> = all().iter().map(|spec| spec.family()).collect();
    assert_eq!(families, HashSet::from(["aiodb", "rocksdb", "blobdb", "fjall", "lmdb", "redb"]));
}

#[test]
fn short_values_have_no_files_of_their_own_and_long_ones_are_not_in_the_index() {
    let at = |value_bytes| {
        let suited = all().into_iter().filter(|spec| suits(spec, value_bytes));
        suited.map(|spec| spec.to_string()).collect::<HashSet<_>>()
    };
    let (short, long, longest) = (at(25), at(1_024), at(4_096));
    for separated in ["blobdb-level-direct", "blobdb-level-eager", "fjall-blobs"] {
        assert!(!short.contains(separated) && long.contains(separated), "{separated}");
    }
    assert!(short.contains("aiodb-lsm-inline") && !longest.contains("aiodb-lsm-inline"));
    assert!(short.contains("rocksdb-universal") && longest.contains("rocksdb-universal"));
}
