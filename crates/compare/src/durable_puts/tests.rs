use super::{EngineName, Options, best_tasks, count, tasks};
use crate::engine::EngineSpec;
use crate::report::tests::point;
use crate::tests::parse;

#[test]
fn the_defaults_are_the_published_experiment() {
    let options = parse::<Options>(&[]).unwrap();
    assert_eq!(options.keys, 10_000_000);
    assert_eq!(options.writers, [1, 10, 30, 100, 300]);
    assert_eq!((options.key_bytes, options.value_bytes), (25, 25));
    let ours = [EngineName::AiodbHash, EngineName::AiodbLsm, EngineName::AiodbLmdb, EngineName::AiodbHashFutures];
    assert_eq!(options.engines, [&[EngineName::RocksDb][..], &ours].concat());
}

#[test]
fn impossible_options_are_refused() {
    for arguments in [
        ["--writers", "0"],
        ["--key-bytes", "7"],
        ["--seconds", "0"],
        ["--rocksdb-settings", "fast"],
        ["--keys", "many"],
    ] {
        assert!(parse::<Options>(&arguments).is_err(), "{arguments:?}");
    }
}

#[test]
fn counts_may_be_grouped() {
    assert_eq!(count("1_000_000"), Ok(1_000_000));
    assert!(count("one").is_err());
}

#[test]
fn a_round_measures_every_engine_in_the_order_given() {
    let options =
        parse::<Options>(&["--engines", "aiodb-lmdb,rocksdb", "--rocksdb-settings", "recycled,default"]).unwrap();
    let names: Vec<String> = tasks(&options, &[]).iter().map(|task| task.spec.to_string()).collect();
    assert_eq!(names, ["aiodb-lmdb", "rocksdb-recycled", "rocksdb-default"]);
}

#[test]
fn after_a_sweep_each_number_of_writers_meets_the_best_setting() {
    let round = |at_30| {
        vec![
            point("rocksdb-default", 1, 7_000.0),
            point("rocksdb-default", 10, 20_000.0),
            point("rocksdb-default", 30, 36_000.0),
            point("rocksdb-pipelined", 1, 6_000.0),
            point("rocksdb-pipelined", 10, 21_000.0),
            point("rocksdb-pipelined", 30, at_30),
        ]
    };
    // One lucky round does not make a setting the best.
    let swept = [round(20_000.0), round(90_000.0), round(21_000.0)];
    let tasks = best_tasks(&swept, &[1, 10, 30]);
    let chosen: Vec<_> = tasks.iter().map(|task| (task.spec.to_string(), task.writers.clone())).collect();
    assert_eq!(chosen, [("rocksdb-default".to_owned(), vec![1, 30]), ("rocksdb-pipelined".to_owned(), vec![10])]);
    assert!(tasks.iter().all(|task| matches!(task.spec, EngineSpec::RocksDb(_))));
}
