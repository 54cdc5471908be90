//! The decoders of sorted runs.

use super::{STORE, manifest_bytes, mode};
use crate::format::run::RunSeed;
use crate::format::run::block::{Block, BlockWalk};
use crate::format::run::chain::{encode_chain, take_chain};
use crate::format::run::fences::Fences;
use crate::format::run::filter::Filter;
use crate::format::run::footer::Footer;
use crate::format::run::manifest::RunManifest;
use crate::format::run::marks::Marks;
use crate::format::run::sealed::{MAX_COMPRESSED_BYTES, unseal};
use crate::format::segment::put;
use crate::io::UNIT_BYTES;

/// The file of an input.
pub(super) const NUMBER: u64 = 7;

/// Where an input's block or footer lies.
pub(super) const OFFSET: u64 = 8192;

/// A block, a key's entries, a footer, fences, a filter or marks, by the first byte after the mode.
pub(super) fn run(input: &[u8]) {
    let Some((repaired, input)) = mode(input) else { return };
    let Some((part, bytes)) = input.split_first() else { return };
    match part % 6 {
        0 => block(bytes, repaired),
        1 => chain(bytes),
        2 => footer(bytes, repaired),
        3 => fences(bytes),
        4 => filter(bytes),
        _ => marks(bytes),
    }
}

/// The bytes filled up to whole units.
fn units(bytes: &[u8]) -> Vec<u8> {
    let mut units = bytes.to_vec();
    units.resize(bytes.len().next_multiple_of(UNIT_BYTES).max(UNIT_BYTES), 0);
    units
}

fn block(bytes: &[u8], repaired: bool) {
    let (mut bytes, seed) = (units(bytes), RunSeed::new(&STORE, NUMBER));
    if repaired {
        let count = (bytes.len() / UNIT_BYTES) as u16;
        put(&mut bytes, 4, &count.to_le_bytes());
        let checksum = seed.checksum_at(OFFSET, &bytes[4..]);
        put(&mut bytes, 0, &checksum.to_le_bytes());
    }
    let Ok(plain) = unseal(&bytes, seed, OFFSET) else { return };
    assert!(plain.len() <= bytes.len().max(MAX_COMPRESSED_BYTES));
    let Ok(block) = Block::decode(&plain) else { return };
    let (mut keys, mut last) = (block.keys(), Vec::new());
    let _ = block.find(b"key");
    while let Ok(Some((key, _))) = keys.next() {
        last = key.to_vec();
    }
    let _ = block.find(&last);
    let mut walk = BlockWalk::default();
    let mut is_whole = block.seek(&last[..last.len() / 2], &mut walk).is_ok();
    while is_whole && walk.key().is_some() {
        is_whole = (walk.key().is_some_and(|key| key.len() % 2 == 0) || walk.take().is_ok()) && walk.advance().is_ok();
    }
}

fn chain(bytes: &[u8]) {
    const BASE: u64 = 1000;
    let mut rest = bytes;
    let Some((entries, partial)) = take_chain(&mut rest, BASE) else { return };
    let mut encoded = Vec::new();
    encode_chain(&mut encoded, &entries, partial, BASE);
    assert_eq!(take_chain(&mut &encoded[..], BASE), Some((entries, partial)));
    assert!(encoded.len() <= bytes.len() - rest.len(), "numbers are encoded in as few bytes as they need");
}

fn footer(bytes: &[u8], repaired: bool) {
    let (mut bytes, seed) = (units(bytes), RunSeed::new(&STORE, NUMBER));
    bytes.truncate(UNIT_BYTES);
    if repaired {
        put(&mut bytes, 16, &STORE);
        put(&mut bytes, 32, &NUMBER.to_le_bytes());
        let checksum = seed.checksum_at(OFFSET, &bytes[16..]);
        put(&mut bytes, 12, &checksum.to_le_bytes());
    }
    if let Ok(footer) = Footer::decode(&bytes, &STORE, NUMBER, OFFSET) {
        assert_eq!(Footer::decode(&footer.encode(&STORE), &STORE, NUMBER, OFFSET), Ok(footer));
    }
}

fn fences(bytes: &[u8]) {
    let Some(fences) = Fences::decode(bytes) else { return };
    assert_eq!(Fences::decode(&fences.encode()).as_ref(), Some(&fences));
    if fences.len() > 0 {
        assert_eq!(fences.block_of(b""), 0);
        let last = fences.len() - 1;
        assert_eq!(fences.units_of(last).1, fences.units());
        assert!(fences.block_of(&[0xff; 1025]) <= last);
    }
}

fn filter(bytes: &[u8]) {
    if let Some(filter) = Filter::decode(bytes) {
        assert_eq!(filter.encode(), bytes);
        let _ = (filter.may_contain(0), filter.may_contain(u64::MAX));
    }
}

fn marks(bytes: &[u8]) {
    let Some((blocks, bytes)) = bytes.split_first() else { return };
    if let Some(marks) = Marks::decode(bytes, usize::from(*blocks)) {
        assert_eq!(Marks::decode(&marks.encode(), usize::from(*blocks)), Some(marks));
    }
}

/// The manifest of the runs.
pub(super) fn run_manifest(input: &[u8]) {
    let Some(bytes) = manifest_bytes(input) else { return };
    if let Ok(manifest) = RunManifest::decode(&bytes, &STORE) {
        assert_eq!(RunManifest::decode(&manifest.encode(&STORE), &STORE), Ok(manifest));
    }
}
