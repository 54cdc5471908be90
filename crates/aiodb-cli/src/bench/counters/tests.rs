use super::*;

const DISKSTATS: &str = "\
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
 254       0 vda 86808 24872 4444754 13063 16188 36478 4879432 22490 0 8124 36136 4922 56 1258408 536 1234 46
 254       1 vda1 11 1 222 3 44 5 666 7 0 8 9
 259       0 nvme0n1 1 2 3 4 5 6 7 8 9 10 11
";

#[test]
fn diskstats_of_a_disk_and_of_a_partition() {
    let disk = parse_diskstats(DISKSTATS, 254, 0).expect("listed");
    assert_eq!(disk, DiskCounts { reads: 86_808, writes: 16_188, bytes_written: 4_879_432 * 512 });
    let partition = parse_diskstats(DISKSTATS, 254, 1).expect("listed");
    assert_eq!(partition, DiskCounts { reads: 11, writes: 44, bytes_written: 666 * 512 });
    assert_eq!(partition.since(DiskCounts { reads: 1, writes: 4, bytes_written: 512 }).reads, 10);
}

#[test]
fn an_unlisted_device_and_a_broken_line_give_nothing() {
    assert_eq!(parse_diskstats(DISKSTATS, 8, 0), None);
    assert_eq!(parse_diskstats("254 0 vda 1 2", 254, 0), None);
}

#[test]
fn the_innermost_mount_holds_a_path() {
    let text = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 0:30 / /data rw shared:1 - tmpfs none rw
41 27 259:1 /sub /data/my\\040disk rw shared:2 master:1 - xfs /dev/nvme0n1p1 rw
";
    let mount = |path: &str| parse_mountinfo(text, Path::new(path)).expect("mounted").file_system;
    assert_eq!(mount("/home"), "ext4");
    assert_eq!(mount("/data/store"), "tmpfs");
    assert_eq!(mount("/data/my disk/store"), "xfs");
    assert_eq!(mount("/database"), "ext4");
}

#[test]
fn processor_time_grows_with_work() {
    let before = process_cpu_time();
    let mut sum = 0u64;
    while process_cpu_time() == before {
        sum = std::hint::black_box(sum.wrapping_mul(3) + 1);
    }
    assert!(process_cpu_time() > before);
}

#[test]
fn a_device_under_several_directories_counts_once() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let paths = [one.path().to_path_buf(), two.path().to_path_buf()];
    assert_eq!(BlockDevice::holding_all(&paths), BlockDevice::holding(one.path()));
    assert_eq!(BlockDevice::holding_all(&[]), None);
}

#[test]
fn transfers_of_a_process_are_those_of_disks() {
    let text =
        "rchar: 5\nwchar: 6\nsyscr: 1\nsyscw: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 77\n";
    assert_eq!(parse_process_io(text), Some(Transfers { read_bytes: 4096, written_bytes: 8192 }));
    assert_eq!(parse_process_io("rchar: 5\n"), None);
}

#[test]
fn a_directory_takes_what_its_files_have_blocks_for() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(directory_bytes(dir.path()).unwrap(), 0);
    fs::create_dir(dir.path().join("below")).unwrap();
    fs::write(dir.path().join("below").join("file"), vec![1; 100_000]).unwrap();
    let hole = fs::File::create(dir.path().join("hole")).unwrap();
    hole.set_len(1 << 30).unwrap();
    hole.sync_all().unwrap();
    fs::File::open(dir.path().join("below").join("file")).unwrap().sync_all().unwrap();
    let bytes = directory_bytes(dir.path()).unwrap();
    assert!((100_000..1 << 20).contains(&bytes), "{bytes} bytes");
    assert!(directory_bytes(&dir.path().join("absent")).is_err());
}
