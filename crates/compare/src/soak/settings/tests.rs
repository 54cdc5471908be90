use super::{all, named};
use std::collections::HashSet;

#[test]
fn every_name_is_used_once_and_found_again() {
    let names: HashSet<String> = all().iter().map(|spec| spec.to_string()).collect();
    assert_eq!(names.len(), all().len());
    for spec in all() {
        assert_eq!(named(&spec.to_string()), Some(spec));
    }
    assert_eq!(named("rocksdb-fast"), None);
}

#[test]
fn every_rival_is_there() {
    let families: HashSet<&str> = all().iter().map(|spec| spec.family()).collect();
    assert_eq!(families, HashSet::from(["aiodb", "rocksdb", "blobdb", "fjall"]));
}
