//! `backup` and `restore`.

use crate::{INDEXES, Place, Ran, aiodb};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

fn run(arguments: &[&OsStr]) -> Ran {
    Ran::of(&mut aiodb(arguments))
}

fn option(name: &str, repository: &Path) -> Ran {
    run(&["backup".as_ref(), "--json".as_ref(), name.as_ref(), repository.as_ref()])
}

#[test]
fn a_chain_of_backups_is_made_listed_checked_and_restored() {
    for index in INDEXES {
        let place = Place::new();
        let repository = place.dir.path().join("backups");
        for (round, value) in ["one", "two", "three"].into_iter().enumerate() {
            place.run("put", &["key", value, "--index", index]).exits(0);
            let made = place.run("backup", &[repository.to_str().unwrap(), "--json"]).exits(0).json();
            assert_eq!(made["point"], round + 1);
        }
        let text = place.run("backup", &[repository.to_str().unwrap(), "--pace", "64"]).exits(0).text();
        assert!(text.starts_with("restore point 4: "), "{text}");
        fs::remove_dir_all(place.store()).unwrap();
        assert_eq!(option("--remove=2", &repository).exits(0).json()["removed_point"], 2);
        let listed = option("--list", &repository).exits(0).json();
        let numbers: Vec<u64> =
            listed.as_array().unwrap().iter().map(|point| point["point"].as_u64().unwrap()).collect();
        assert_eq!(numbers, [1, 3, 4]);
        assert_eq!(option("--verify", &repository).exits(0).json()["sound"], true);
        for (point, value) in [(Some("1"), "one"), (None, "three")] {
            let mut arguments: Vec<&OsStr> = vec!["restore".as_ref(), repository.as_ref()];
            let target = place.store();
            arguments.push(target.as_ref());
            if let Some(point) = point {
                arguments.extend([OsStr::new("--point"), point.as_ref()]);
            }
            run(&arguments).exits(0);
            assert_eq!(place.get("key", &[]), value.as_bytes());
            place.run("verify", &[]).exits(0);
            fs::remove_dir_all(place.store()).unwrap();
        }
    }
}

#[test]
fn a_damaged_backup_is_a_finding_and_is_not_restored() {
    let place = Place::new();
    let repository = place.dir.path().join("backups");
    place.run("put", &["key", "value"]).exits(0);
    place.run("backup", &[repository.to_str().unwrap()]).exits(0);
    let segment = fs::read_dir(repository.join("segments")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[5000] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let report = option("--verify", &repository).exits(1).json();
    assert_eq!((&report["sound"], &report["damaged_points"]), (&false.into(), &serde_json::json!([1])));
    let target = place.dir.path().join("restored");
    let refused = run(&["restore".as_ref(), "--json".as_ref(), repository.as_ref(), target.as_ref()]);
    assert_eq!(refused.exits(3).error_kind(), "corruption");
}

#[test]
fn a_damaged_run_is_a_finding_and_costs_the_index_alone() {
    let place = Place::new();
    let repository = place.dir.path().join("backups");
    place.run("put", &["key", "value", "--index", "lsm"]).exits(0);
    place.run("backup", &[repository.to_str().unwrap()]).exits(0);
    let run = fs::read_dir(repository.join("runs")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&run).unwrap();
    bytes[30] ^= 1;
    fs::write(&run, bytes).unwrap();
    let report = option("--verify", &repository).exits(1).json();
    assert_eq!((&report["sound"], &report["damaged_points"]), (&false.into(), &serde_json::json!([])));
    assert_eq!(report["points_without_index"], serde_json::json!([1]));
    fs::remove_dir_all(place.store()).unwrap();
    let text = self::run(&["restore".as_ref(), repository.as_ref(), place.store().as_ref()]).exits(0).text();
    assert!(text.contains(run.to_str().unwrap()) && text.contains("makes it again from the log"), "{text}");
    assert_eq!(place.get("key", &[]), b"value");
}

#[test]
fn wrong_directories_are_refused() {
    let place = Place::new();
    place.run("put", &["key", "value"]).exits(0);
    let store = place.store();
    let occupied = place.file("file", "mine").parent().unwrap().to_path_buf();
    let kind = |arguments: &[&OsStr], code| run(&[&["--json".as_ref()], arguments].concat()).exits(code).error_kind();
    assert_eq!(kind(&["backup".as_ref(), store.as_ref(), occupied.as_ref()], 3), "not_a_repository");
    assert_eq!(kind(&["backup".as_ref(), "--list".as_ref(), store.as_ref()], 3), "not_a_repository");
    assert_eq!(kind(&["backup".as_ref(), store.as_ref()], 2), "usage");
    assert_eq!(kind(&["backup".as_ref(), "--list".as_ref(), store.as_ref(), store.as_ref()], 2), "usage");
    let repository = place.dir.path().join("backups");
    place.run("backup", &[repository.to_str().unwrap()]).exits(0);
    assert_eq!(kind(&["restore".as_ref(), repository.as_ref(), store.as_ref()], 3), "occupied");
    let point = ["restore".as_ref(), repository.as_ref(), "elsewhere".as_ref(), "--point=7".as_ref()];
    assert_eq!(kind(&point, 3), "no_restore_point");
    assert_eq!(place.get("key", &[]), b"value");
}
