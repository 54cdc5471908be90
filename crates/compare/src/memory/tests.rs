use super::{
    MemoryUse, counter, disk_bytes, files, kib, most_resident_bytes, parse_bytes, parse_limit, resident_bytes,
    swapped_bytes, warm,
};
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

#[test]
fn sizes_have_suffixes() {
    assert_eq!(parse_bytes("512M"), Ok(512 << 20));
    assert_eq!(parse_bytes("2G"), Ok(2 << 30));
    assert_eq!(parse_bytes("65536K"), Ok(64 << 20));
    assert_eq!(parse_bytes("100"), Ok(100));
    for wrong in ["", "M", "512m", "-1M", "99999999999999G"] {
        assert!(parse_bytes(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse_limit("1048576"), Ok(1 << 20));
    assert!(parse_limit("100").unwrap_err().contains("no engine works in less"));
}

#[test]
fn a_process_in_swap_is_void() {
    let used = MemoryUse { most_resident_bytes: 1 << 20, peak_memory_bytes: None, swapped_bytes: 0 };
    assert_eq!(used.void(), None);
    assert!(MemoryUse { swapped_bytes: 4096, ..used }.void().unwrap().contains("swap"));
    assert!(MemoryUse::now(None).unwrap().most_resident_bytes >= 1 << 20);
}
