use super::Options;
use crate::tests::parse;

#[test]
fn every_rival_is_measured_by_default() {
    let options = parse::<Options>(&[]).unwrap();
    let mut families: Vec<&str> = options.engines.iter().map(|spec| spec.family()).collect();
    families.dedup();
    assert_eq!(families, ["aiodb", "rocksdb", "blobdb", "fjall", "lmdb", "redb"]);
}

#[test]
fn impossible_options_are_refused() {
    for arguments in [
        &["--keys", "0"][..],
        &["--keys", "10000001"],
        &["--writers", "0"],
        &["--durability", "soon"],
        &["--seconds", "0"],
        &["--engines", "rocksdb-fast"],
        &["--rounds", "0"],
        &["--memory", "1"],
    ] {
        assert!(parse::<Options>(arguments).is_err(), "{arguments:?}");
    }
}
