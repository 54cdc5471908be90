use super::*;

fn row(series: &str, copy_bytes: usize, gets_per_s: f64) -> CopySizeRow {
    let depth = (series == AIODB).then_some(64);
    let point = Point { copy_bytes, depth, gets_per_s: vec![gets_per_s], cpu_us_per_get: vec![1.0] };
    point.into_row(1000)
}

#[test]
fn the_paper_s_own_figures_give_the_paper_s_conclusion() {
    let rows = [row(LMDB, 0, 1e6), row(LMDB, 1024, 370e3), row(LMDB, 4096, 256e3), row(AIODB, 0, 375e3)];
    let text = conclusion(&rows).expect("both series are there");
    assert!(text.contains("from 1024 bytes copied on"), "{text}");
}

#[test]
fn a_slow_device_is_told_what_it_lacks() {
    let rows = [row(LMDB, 0, 1e6), row(LMDB, 4096, 500e3), row(AIODB, 0, 100e3), row(AIODB, 4096, 90e3)];
    let text = conclusion(&rows).expect("both series are there");
    assert!(text.contains("500,000 reads/s, 5.0 times"), "{text}");
}

#[test]
fn one_series_alone_gives_no_conclusion() {
    assert_eq!(conclusion(&[row(LMDB, 0, 1e6)]), None);
    assert_eq!(conclusion(&[row(AIODB, 0, 1e6)]), None);
}
