use super::*;
use crate::format::segment::Features;

const STORE: [u8; 16] = [7; 16];

fn point(counts_as_they_lie: bool) -> Point {
    let end = Position { batch: 5, life: 3, segment: 1, offset: 8192, checksum: 9 };
    // A version may have what came with those before it.
    let features = Features {
        values: counts_as_they_lie,
        filters: counts_as_they_lie,
        compressed_blocks: counts_as_they_lie,
        counts_as_they_lie,
    };
    let manifest = Manifest {
        checkpoint: 4,
        closed: false,
        position: end,
        next_sequence: 12,
        next_life: 4,
        next_table: 17,
        taken_out: 0,
        time_ms: 1,
        features,
        tables: Vec::new(),
        segments: Vec::new(),
    };
    let segments = vec![PointSegment { number: 1, life: 3, length: 8192, checksum: 4 }];
    let files = vec![PointFile { kind: FileKind::Runs, length: 4096, checksum: 6 }];
    Point { number: 2, created_ms: 1, end, next_sequence: 12, segments, files, manifest }
}

fn seal(bytes: &mut [u8]) {
    let checksum = crc32c(&bytes[16..]);
    put(bytes, 12, &checksum.to_le_bytes());
}

/// A program from before a version of the manifest says so, and does not advise to remove a sound restore point.
#[test]
fn a_point_with_a_manifest_of_a_later_version_is_of_that_version() {
    for (counts_as_they_lie, version) in [(false, VERSION_WITH_RUNS), (true, FORMAT_VERSION)] {
        let point = point(counts_as_they_lie);
        let bytes = point.encode(&STORE);
        assert_eq!(u32_at(&bytes, 8), version);
        assert_eq!(Point::decode(&bytes, &STORE), Ok(point));
    }
}

#[test]
fn a_manifest_of_a_version_to_come_is_no_damage() {
    let point = point(true);
    let mut bytes = point.encode(&STORE);
    let manifest_start = bytes.len() - point.manifest.encode(&STORE).len();
    put(&mut bytes, manifest_start + 8, &(FORMAT_VERSION + 1).to_le_bytes());
    seal(&mut bytes);
    let newer = Damage::Newer { found: FORMAT_VERSION + 1, known: FORMAT_VERSION };
    assert_eq!(Point::decode(&bytes, &STORE), Err(newer));
    // Any other fault of it is damage.
    put(&mut bytes, manifest_start + 8, &FORMAT_VERSION.to_le_bytes());
    bytes[manifest_start + 20] ^= 1;
    seal(&mut bytes);
    assert!(matches!(Point::decode(&bytes, &STORE), Err(Damage::Foreign(_))));
}
