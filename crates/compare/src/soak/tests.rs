use super::{Options, check_space};
use crate::class::Class;
use crate::host::Disk;
use crate::soak::plan::Case;
use crate::tests::parse;

#[test]
fn every_rival_is_measured_by_default() {
    let options = parse::<Options>(&[]).unwrap();
    let mut families: Vec<&str> = options.engines.iter().map(|spec| spec.family()).collect();
    families.dedup();
    assert_eq!(families, ["aiodb", "rocksdb", "fjall"]);
}

#[test]
fn impossible_options_are_refused() {
    for arguments in [
        &["--keys", "0"][..],
        &["--value-bytes", "-1"],
        &["--durability", "soon"],
        &["--writers", "0"],
        &["--engines", "rocksdb-fast"],
        &["--rounds", "0"],
        &["--rate", "0"],
        &["--memory", "1"],
        &["--sweep", "--engines", "aiodb-lsm"],
    ] {
        assert!(parse::<Options>(arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn too_little_space_is_refused_before_anything_is_put() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    let case = Case { value_bytes: 25, class: Class::Interval };
    check_space(&disk, 1, case).unwrap();
    for keys in [1 << 40, u64::MAX] {
        let error = check_space(&disk, keys, case).unwrap_err();
        assert!(error.to_string().contains("use fewer --keys"), "{error}");
    }
}
