use super::{Options, check_space};
use crate::host::Disk;
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
        &["--pattern", "bell"][..],
        &["--value-bytes", "15"],
        &["--value-bytes", "1048577"],
        &["--durability", "soon"],
        &["--live-bytes", "0"],
        &["--overwrites", "0"],
        &["--max-seconds", "0"],
        &["--writers", "0"],
        &["--engines", "rocksdb-fast"],
        &["--rounds", "0"],
        &["--point-ms", "0"],
        &["--memory", "1"],
    ] {
        assert!(parse::<Options>(arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn too_little_space_is_refused_before_anything_is_put() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    check_space(&disk, 1).unwrap();
    for live_bytes in [1 << 44, u64::MAX] {
        let error = check_space(&disk, live_bytes).unwrap_err();
        assert!(error.to_string().contains("use fewer --live-bytes"), "{error}");
    }
}
