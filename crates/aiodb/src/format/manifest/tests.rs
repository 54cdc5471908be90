use super::{Manifest, ManifestTable};
use crate::checksum::crc32c;
use crate::format::position::Position;
use crate::format::segment::{Features, put};
use crate::format::settings::Settings;
use crate::{IndexKind, StorageMode, TableModes};

const STORE: [u8; 16] = [3; 16];

/// A manifest of two tables, the second of which has these modes.
fn manifest(modes: TableModes) -> Manifest {
    let table = |id: u32, modes| ManifestTable {
        id,
        name: format!("table {id}"),
        settings: Settings::new(&IndexKind::Lsm.into()),
        checkpoint: 0,
        modes,
    };
    Manifest {
        checkpoint: 5,
        closed: false,
        position: Position { batch: 76, checksum: 2, segment: 3, life: 9, offset: 8192 },
        next_sequence: 1000,
        next_life: 10,
        next_table: 18,
        taken_out: 7,
        time_ms: 1_700_000_000_000,
        features: Features::default(),
        tables: vec![table(16, TableModes::default()), table(17, modes)],
        segments: Vec::new(),
    }
}

/// The bytes of a manifest whose length and checksum are those of what it has now.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as u64;
    put(&mut bytes, 32, &length.to_le_bytes());
    let checksum = crc32c(&bytes[16..]);
    put(&mut bytes, 12, &checksum.to_le_bytes());
    bytes
}

#[test]
fn what_later_programs_write_at_the_end_is_left_alone() {
    for keys in [StorageMode::Auto, StorageMode::Memory] {
        let manifest = manifest(TableModes { keys, values: StorageMode::Auto });
        let mut bytes = manifest.encode(&STORE);
        assert_eq!(Manifest::decode(&bytes, &STORE), Ok(manifest.clone()));
        bytes.extend_from_slice(&[7; 30]);
        assert_eq!(Manifest::decode(&sealed(bytes), &STORE), Ok(manifest));
    }
}

#[test]
fn manifests_of_earlier_programs_have_no_modes() {
    let manifest = manifest(TableModes::default());
    let mut bytes = manifest.encode(&STORE);
    bytes.truncate(bytes.len() - 4);
    assert_eq!(Manifest::decode(&sealed(bytes), &STORE), Ok(manifest));
}

#[test]
fn modes_that_are_missing_are_damage() {
    let mut bytes = manifest(TableModes { keys: StorageMode::Memory, values: StorageMode::Auto }).encode(&STORE);
    bytes.truncate(bytes.len() - 4);
    assert!(Manifest::decode(&sealed(bytes), &STORE).is_err());
}
