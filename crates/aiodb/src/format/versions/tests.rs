use super::{BlockBuilder, KeyVersions, Version, decode_block};
use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::format::run::RunSeed;
use crate::io::UNIT_BYTES;

fn version(sequence: u64, until: u64, later: bool) -> Version {
    let location = Location { segment: 7, offset: 16 * sequence as u32, length: 100 };
    let entry = Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline: None };
    Version { entry, until, later }
}

#[test]
fn keys_come_back_with_their_versions() {
    let seed = RunSeed::new(&[1; 16], 3);
    let keys: Vec<(Vec<u8>, KeyVersions)> = (0..20u64)
        .map(|number| {
            let versions =
                (0..=number % 3).map(|older| version(100 * older + number, 1000 + older, older > 0)).collect();
            (format!("key {number:03}").into_bytes(), versions)
        })
        .collect();
    let (mut block, mut bytes) = (BlockBuilder::default(), Vec::new());
    assert!(keys.iter().all(|(key, versions)| block.add(key, versions)));
    assert_eq!(block.finish(seed, 8192, &mut bytes), 1);
    let found = decode_block(&bytes, seed, 8192).expect("it is sound");
    assert_eq!(found.len(), keys.len());
    assert!(found.iter().zip(&keys).all(|(found, wanted)| *found.0 == *wanted.0 && found.1 == wanted.1));
    assert!(decode_block(&bytes, seed, 4096).is_err(), "at another place");
    assert!(decode_block(&bytes, RunSeed::new(&[1; 16], 4), 8192).is_err(), "in another file");
    bytes[100] ^= 1;
    assert!(decode_block(&bytes, seed, 8192).is_err(), "damaged");
}

#[test]
fn a_key_that_is_longer_than_a_unit_has_a_block_of_its_own() {
    let seed = RunSeed::new(&[1; 16], 3);
    let (mut block, mut bytes) = (BlockBuilder::default(), Vec::new());
    let long = vec![b'k'; 3 * UNIT_BYTES];
    let versions: KeyVersions = [version(1, 2, false)].into_iter().collect();
    assert!(block.add(b"a", &versions));
    assert!(!block.add(&long, &versions), "another one is there");
    assert_eq!(block.finish(seed, 0, &mut bytes), 1);
    assert_eq!(decode_block(&bytes, seed, 0).expect("it is sound").len(), 1);
    bytes.clear();
    assert!(block.add(&long, &versions));
    assert_eq!(block.finish(seed, 4096, &mut bytes), 4);
    let found = decode_block(&bytes, seed, 4096).expect("it is sound");
    assert!(*found[0].0 == *long && found[0].1 == versions);
}
