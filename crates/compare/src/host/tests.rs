use super::{Disk, Host, finished_reads, written_bytes};
use std::fs;

const DISKSTATS: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 49320 7550 3846602 10237 11825 17522 1925952 5164 0 5564 15649 4001 56 309112 222 1216 25
 254       1 vda1 1 2 3 4 5 6 8 8 9 10 11 12 13 14 15 16 17
";

#[test]
fn written_bytes_are_those_of_the_device() {
    assert_eq!(written_bytes(DISKSTATS, (254, 0)), Some(1_925_952 * 512));
    assert_eq!(written_bytes(DISKSTATS, (254, 1)), Some(8 * 512));
    assert_eq!(written_bytes(DISKSTATS, (25, 0)), None);
}

#[test]
fn reads_are_those_of_the_device() {
    assert_eq!(finished_reads(DISKSTATS, (254, 0)), Some(49_320));
    assert_eq!(finished_reads(DISKSTATS, (254, 1)), Some(1));
    assert_eq!(finished_reads(DISKSTATS, (25, 0)), None);
}

#[test]
fn usage_grows_with_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    let before = disk.usage().unwrap();
    fs::write(directory.path().join("file"), vec![1; 1 << 20]).unwrap();
    disk.flush().unwrap();
    let after = disk.usage().unwrap();
    assert!(after.cpu >= before.cpu);
    if let (Some(before), Some(after)) = (before.device_bytes, after.device_bytes) {
        assert!(after - before >= 1 << 20, "{} bytes", after - before);
    }
}

#[test]
fn the_host_has_memory() {
    let directory = tempfile::tempdir().unwrap();
    let host = Host::describe(&Disk::under(directory.path()).unwrap()).unwrap();
    assert!(host.memory_bytes() > 1 << 20);
}
