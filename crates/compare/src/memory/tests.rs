use super::{counter, disk_bytes, files, kib, most_resident_bytes, resident_bytes, swapped_bytes, warm};
use std::fs;

#[test]
fn counters_are_found_by_their_whole_name() {
    let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
    assert_eq!(counter(text, "oom_kill"), Some(3));
    assert_eq!(counter(text, "oom"), None);
}

#[test]
fn sizes_in_the_status_are_in_kib() {
    assert_eq!(kib("\t     12 kB"), 12);
    assert_eq!(swapped_bytes().unwrap() % 1024, 0);
    let resident = resident_bytes().unwrap();
    assert!((1 << 20..=most_resident_bytes().unwrap()).contains(&resident), "{resident}");
}

#[test]
fn files_at_any_depth_are_warmed_and_stay_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let nested = directory.path().join("a/b");
    fs::create_dir_all(&nested).unwrap();
    let content = vec![7; (1 << 20) + 5];
    fs::write(nested.join("large"), &content).unwrap();
    fs::write(directory.path().join("empty"), "").unwrap();
    warm(directory.path()).unwrap();
    assert_eq!(fs::read(nested.join("large")).unwrap(), content);
    assert_eq!(files(directory.path()).unwrap().len(), 2);
    assert!(disk_bytes(directory.path()).unwrap() >= 1 << 20);
}

#[test]
fn a_missing_directory_is_named() {
    let error = warm("/no such directory".as_ref()).unwrap_err();
    assert!(error.to_string().contains("/no such directory"), "{error}");
}
