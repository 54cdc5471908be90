//! The bytes come back, and none that is missing or too many passes.

use super::*;

fn manifest() -> SpilledManifest {
    let file = |number| RunFileName { number, units: 7, data_units: 4 };
    let run = |number, files: &[u64]| ManifestRun {
        number,
        files: files.iter().map(|number| file(*number)).collect(),
        ..ManifestRun::default()
    };
    let live = |segment, records| SpilledLive { segment, bytes: 64 * records, records };
    SpilledManifest { next_file: 99, runs: vec![run(9, &[40, 41]), run(3, &[7])], live: vec![live(0, 3), live(5, -1)] }
}

fn encoded(manifest: &SpilledManifest) -> Vec<u8> {
    let mut bytes = Vec::new();
    manifest.encode(&mut bytes);
    bytes
}

#[test]
fn a_manifest_comes_back_from_its_bytes() {
    for manifest in [manifest(), SpilledManifest::default()] {
        assert_eq!(SpilledManifest::decode(&encoded(&manifest)), Some(manifest));
    }
}

#[test]
fn other_bytes_are_refused() {
    let good = encoded(&manifest());
    for length in 0..good.len() {
        assert_eq!(SpilledManifest::decode(&good[..length]), None, "{length} bytes");
    }
    assert_eq!(SpilledManifest::decode(&[&good[..], &[0]].concat()), None);
    let mut rising = manifest();
    rising.runs.reverse();
    assert_eq!(SpilledManifest::decode(&encoded(&rising)), None);
    let mut empty = manifest();
    empty.runs[0].files.clear();
    assert_eq!(SpilledManifest::decode(&encoded(&empty)), None);
}
