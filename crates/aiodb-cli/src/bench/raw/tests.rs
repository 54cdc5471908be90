use super::*;

const SEGMENT_BYTES: u64 = 1 << 20;

/// A file of a segment's length with data in its first `data_bytes`.
fn segment(dir: &Path, name: &str, data_bytes: usize) -> PathBuf {
    let path = dir.join(name);
    let mut bytes = vec![7; data_bytes];
    bytes.resize(SEGMENT_BYTES as usize, 0);
    std::fs::write(&path, bytes).expect("written");
    path
}

#[test]
fn the_device_is_measured_on_full_segments() {
    let dir = tempfile::tempdir().expect("a directory");
    let below = dir.path().join("segments");
    std::fs::create_dir(&below).expect("made");
    let full = segment(&below, "1", SEGMENT_BYTES as usize - 5000);
    segment(&below, "2", 8192);
    segment(&below, "3", 0);
    std::fs::write(dir.path().join("lock"), "another file").expect("written");
    let area = ReadArea::warmed(&[dir.path().to_path_buf()], SEGMENT_BYTES).expect("there is data");
    assert_eq!(area.files(), [DataFile { path: full, data_bytes: SEGMENT_BYTES - 4096 }]);
}

#[test]
fn a_store_smaller_than_a_segment_is_measured_on_its_data() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = segment(dir.path(), "1", 10_000);
    segment(dir.path(), "2", 5_000);
    let area = ReadArea::warmed(&[dir.path().to_path_buf()], SEGMENT_BYTES).expect("there is data");
    assert_eq!(area.files(), [DataFile { path, data_bytes: 12_288 }]);
}

#[test]
fn a_store_without_data_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    segment(dir.path(), "1", 0);
    assert!(ReadArea::warmed(&[dir.path().to_path_buf()], SEGMENT_BYTES).is_err());
}

#[test]
fn many_files_are_thinned_out_evenly() {
    let files: Vec<DataFile> = (0..10).map(|n| DataFile { path: PathBuf::new(), data_bytes: n }).collect();
    let chosen: Vec<u64> = evenly_chosen(files.clone(), 4).iter().map(|file| file.data_bytes).collect();
    assert_eq!(chosen, [0, 2, 5, 7]);
    assert_eq!(evenly_chosen(files.clone(), 20), files);
}
