use super::child::Workload;
use super::plan::Plan;
use super::{Options, check_space};
use crate::engine::Reads;
use crate::host::Disk;
use crate::stream::Pairs;
use crate::tests::parse;

#[test]
fn the_defaults_are_the_published_experiment() {
    let options = parse::<Options>(&[]).unwrap();
    assert_eq!(options.value_bytes, [4096, 4000]);
    assert_eq!(options.data_to_memory, 8);
    let families: Vec<&str> = options.engines.iter().map(|spec| spec.family()).collect();
    assert_eq!(families, ["aiodb", "aiodb", "aiodb", "lmdb", "rocksdb", "blobdb", "redb", "fjall"]);
}

#[test]
fn impossible_options_are_refused() {
    for arguments in [
        &["--pairs", "10"][..],
        &["--value-bytes", "15"],
        &["--data-to-memory", "0"],
        &["--threads", "0"],
        &["--engines", "rocksdb-fast"],
        &["--rounds", "0"],
        &["--sweep", "--engines", "lmdb-nordahead"],
    ] {
        assert!(parse::<Options>(arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn reads_come_first_and_writes_apart() {
    for arguments in [&[][..], &["--quick"]] {
        let plan = Plan::of(&parse::<Options>(arguments).unwrap());
        for rounds in [plan.comparison(), plan.sweep()] {
            assert_eq!(rounds.len(), 2);
            assert!(rounds[0].points.iter().all(|point| point.workload.only_reads()));
            assert!(rounds[1].points.iter().all(|point| !point.workload.only_reads()));
        }
        let threads: Vec<u32> = plan.comparison()[0]
            .points
            .iter()
            .filter(|point| point.workload == Workload::Read && point.reads == Reads::OneByOne)
            .map(|point| point.threads)
            .collect();
        assert_eq!((threads.first(), threads.last()), (Some(&1), Some(&64)));
    }
}

#[test]
fn too_little_space_is_refused_before_anything_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    let small = Pairs { count: 1, value_bytes: 4096 };
    check_space(&disk, small, 1).unwrap();
    let error = check_space(&disk, Pairs { count: 1 << 40, ..small }, 7).unwrap_err();
    assert!(error.to_string().contains("use fewer --pairs"), "{error}");
}
