//! `--also` and `--read-only`.

use crate::{INDEXES, Place, aiodb};
use std::path::PathBuf;
use tempfile::TempDir;

#[test]
fn every_command_finds_all_directories() {
    for index in INDEXES {
        let (place, second, third) = (Place::new(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let second = second.path().to_str().unwrap();
        let third = third.path().to_str().unwrap();
        let also = ["--also", second, "--also", third];
        let with = |arguments: &[&'static str]| [arguments, &also[..]].concat();
        place.run("put", &with(&["k", "v", "--index", index])).exits(0);
        assert_eq!(place.get("k", &with(&[])), b"v");
        assert_eq!(place.get("k", &["--also", third, "--also", second]), b"v");
        place.run("del", &with(&["k"])).exits(0);
        place.run("create-table", &with(&["more"])).exits(0);
        let change = br#"{"id":1,"changes":[{"table":"more","key":"applied","value":"v"}]}"#;
        place.run_with_input("apply", &with(&[]), change).exits(0);
        assert_eq!(place.get("applied", &with(&["--table", "more"])), b"v");
        place.run_with_input("load", &with(&["--format", "tsv", "--table", "more"]), b"loaded\tv\n").exits(0);
        place.run("copy-table", &with(&["more", "copied"])).exits(0);
        place.run("rename-table", &with(&["copied", "renamed"])).exits(0);
        let exported = place.run("export", &with(&["-", "--format", "tsv", "--table", "renamed"])).exits(0).text();
        assert_eq!(exported.lines().count(), 2, "{exported}");
        for command in ["stat", "tables", "verify"] {
            place.run(command, &with(&[])).exits(0);
            place.run(command, &with(&["--read-only"])).exits(0);
        }
        place.run("truncate", &with(&["more", "--yes"])).exits(0);
        place.run("drop", &with(&["more", "--yes"])).exits(0);

        let missing = place.run("get", &["k", "--json"]).exits(3);
        assert_eq!(missing.error_kind(), "directory");
        let told = place.run("get", &["k"]).exits(3).stderr;
        assert!(told.contains("3 directories") && told.contains("--also"), "{told}");
    }
}

#[test]
fn reading_only_changes_nothing() {
    for index in INDEXES {
        let place = Place::new();
        place.run("put", &["k", "v", "--index", index]).exits(0);
        let before = changed(&place.store());
        assert_eq!(place.get("k", &["--read-only"]), b"v");
        for command in ["stat", "tables", "verify"] {
            place.run(command, &["--read-only"]).exits(0);
        }
        assert_eq!(changed(&place.store()), before, "no file is newer");
        // To write and to rebuild are other commands' matter.
        place.run("put", &["k", "w", "--read-only"]).exits(2);
        place.run("verify", &["--read-only", "--rebuild"]).exits(2);
        let missing = place.dir.path().join("nowhere");
        let refused = crate::Ran::of(
            aiodb(["get".as_ref(), missing.as_os_str(), "k".as_ref(), "--read-only".as_ref()]).arg("--json"),
        );
        assert_eq!(refused.exits(3).error_kind(), "no_store");
        assert!(!missing.exists());
    }
}

/// When the files below a directory were changed.
fn changed(directory: &std::path::Path) -> Vec<(PathBuf, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(changed(&path));
        } else {
            found.push((path.clone(), path.metadata().unwrap().modified().unwrap()));
        }
    }
    found.sort();
    found
}
