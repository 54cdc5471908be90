use super::{all, named};
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
