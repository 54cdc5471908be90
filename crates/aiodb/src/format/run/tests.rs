use std::num::NonZeroU64;
use std::sync::Arc;

use fastrand::Rng;

use super::RunSeed;
use super::block::{Block, BlockBuilder, BlockWalk};
use super::chain::Entries;
use super::fences::Fences;
use super::filter::{BITS_PER_KEY, Filter, MORE_BITS_PER_KEY};
use super::footer::Footer;
use super::manifest::{ChunkCount, KeyCount, LiveCount, ManifestRun, RunFileName, RunManifest};
use super::sealed::{MAX_COMPRESSED_BYTES, seal_compressed, unseal};
use crate::Compression;
use crate::format::entry::{Entry, RangeTombstone};
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::format::segment::{Damage, u32_at};
use crate::io::UNIT_BYTES;

const STORE: [u8; 16] = [3; 16];

fn seed() -> RunSeed {
    RunSeed::new(&STORE, 7)
}

fn random_entries(random: &mut Rng, base: u64) -> Entries {
    let shift = random.u32(24..60);
    let mut sequence = base + (random.u64(..) >> shift);
    let operands = if random.u8(..4) == 0 { random.usize(1..8) } else { 0 };
    let has_base = operands == 0 || random.bool();
    let mut entries = Entries::new();
    for number in 0..operands + usize::from(has_base) {
        let kind = match number < operands {
            true => Kind::Merge,
            false if random.u8(..5) == 0 => Kind::Delete,
            false => Kind::Put,
        };
        let location = Location {
            segment: random.u32(..) >> shift.min(31),
            offset: random.u32(..1 << 28) * 16,
            length: random.u32(..) >> (shift / 2),
        };
        let expires_ms = if random.bool() { NonZeroU64::new(random.u64(..)) } else { None };
        let form = Form { chunked: random.bool(), compressed: random.bool(), expires_ms };
        let separate = random.bool().then(|| random.u32(..));
        let has_value = kind != Kind::Delete && separate.is_none() && !form.chunked && random.bool();
        let inline = has_value.then(|| (0..random.usize(..200)).map(|_| random.u8(..)).collect());
        entries.push(Entry { kind, sequence, location, separate, form, inline });
        if sequence == base {
            break;
        }
        sequence -= random.u64(1..=sequence - base);
    }
    entries
}

fn values((entries, _): &(Entries, bool)) -> Vec<Option<Arc<[u8]>>> {
    entries.iter().map(|entry| entry.inline.clone()).collect()
}

fn random_key(random: &mut Rng) -> Vec<u8> {
    let length = if random.u8(..20) == 0 { random.usize(1..1000) } else { random.usize(1..30) };
    (0..length).map(|_| random.u8(..3)).collect()
}

#[test]
fn blocks_hold_what_was_added() {
    for number in 0..200 {
        let mut random = Rng::with_seed(number);
        let base = random.u64(..1 << 40);
        let mut keys: Vec<Vec<u8>> = (0..random.usize(1..300)).map(|_| random_key(&mut random)).collect();
        keys.sort();
        keys.dedup();
        let mut block = BlockBuilder::new(base);
        let mut added = Vec::new();
        for key in keys {
            let (entries, partial) = (random_entries(&mut random, base), random.bool());
            if !block.add(&key, &entries, partial) {
                break;
            }
            added.push((key, (entries, partial)));
        }
        let mut bytes = Vec::new();
        let units = block.finish(seed(), 8192, &mut bytes);
        assert_eq!(bytes.len(), units * UNIT_BYTES);
        let block = Block::decode(&bytes).expect("the block is whole");
        assert_eq!(unseal(&bytes, seed(), 8192).as_deref(), Ok(&bytes[..]), "it is not compressed");
        let mut all = block.keys();
        for (key, chain) in &added {
            let next = all.next().expect("keys follow").expect("there is one more");
            assert_eq!(next, (&key[..], chain.clone()), "seed {number}");
            assert_eq!(values(&next.1), values(chain), "seed {number}");
            let found = block.find(key).expect("it can be searched").expect("it is there");
            assert_eq!((&found, values(&found)), (chain, values(chain)), "seed {number}");
        }
        assert_eq!(all.next(), Ok(None));
        let mut walk = BlockWalk::default();
        for _ in 0..50 {
            let key = random_key(&mut random);
            let known = added.iter().find(|(known, _)| *known == key).map(|(_, chain)| chain.clone());
            assert_eq!(block.find(&key).expect("it can be searched"), known, "seed {number}");
            block.seek(&key, &mut walk).expect("it can be searched");
            let first = added.partition_point(|(known, _)| *known < key);
            for (key, chain) in &added[first..] {
                assert_eq!(walk.key(), Some(&key[..]), "seed {number}");
                if random.bool() {
                    assert_eq!(walk.take().expect("it can be read"), *chain, "seed {number}");
                }
                walk.advance().expect("keys follow");
            }
            assert_eq!(walk.key(), None, "seed {number}");
        }
        assert!(unseal(&bytes, seed(), 4096).is_err(), "a block belongs to its offset");
        assert!(unseal(&bytes, RunSeed::new(&STORE, 8), 8192).is_err(), "and to its file");
        let at = random.usize(..bytes.len());
        bytes[at] ^= 1 << random.u8(..8);
        assert_eq!(unseal(&bytes, seed(), 8192).err(), Some(Damage::Checksum), "seed {number}, byte {at}");
    }
}

/// A block with keys that are much alike, as it is before it is sealed.
fn regular_block(keys: u32) -> Vec<u8> {
    let (mut block, mut bytes) = (BlockBuilder::new(0), Vec::new());
    block.begin(1 << 20);
    for number in 0..keys {
        let location = Location { segment: 1, offset: number * 16, length: 40 };
        let inline = Some(format!("the value of key {number}").as_bytes().into());
        let entry = Entry { kind: Kind::Put, sequence: 7, location, separate: None, form: Form::default(), inline };
        assert!(block.add(format!("key {number:06}").as_bytes(), &[entry], false));
    }
    block.encode(&mut bytes);
    bytes
}

#[test]
fn compressed_blocks_come_back_and_damage_is_found_before_they_are_decompressed() {
    let (plain, mut random) = (regular_block(300), Rng::with_seed(1));
    for compression in [Compression::Lz4, Compression::Zstd(1), Compression::Zstd(19)] {
        let compressed = compression.compressor().and_then(|mut compressor| compressor.compress(&plain));
        let compressed = compressed.expect("there is memory");
        let mut bytes = vec![7; 3];
        let units = seal_compressed(&compressed, seed(), 4096, &mut bytes);
        bytes.drain(..3);
        assert!(bytes.len() == units * UNIT_BYTES && units * UNIT_BYTES < plain.len(), "{compression}: {units} units");
        assert_eq!(unseal(&bytes, seed(), 4096).as_deref(), Ok(&plain[..]), "{compression}");
        let block = Block::decode(&plain).expect("the block is whole");
        assert!(block.find(b"key 000123").expect("it can be searched").is_some());
        assert!(unseal(&bytes, seed(), 8192).is_err(), "it belongs to its offset");
        for _ in 0..200 {
            let (at, mask) = (random.usize(..bytes.len()), 1 << random.u8(..8));
            bytes[at] ^= mask;
            assert_eq!(unseal(&bytes, seed(), 4096).err(), Some(Damage::Checksum), "{compression}, byte {at}");
            bytes[at] ^= mask;
        }
        // Bytes whose checksum is right, and which are wrong all the same.
        for (at, wrong) in
            [(8, u32::MAX), (8, 3), (12, 7), (16, u32::MAX), (16, MAX_COMPRESSED_BYTES as u32 + 1), (16, 5)]
        {
            let mut made_up = bytes.clone();
            made_up[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
            let checksum = seed().checksum_at(4096, &made_up[4..]);
            made_up[..4].copy_from_slice(&checksum.to_le_bytes());
            let found = unseal(&made_up, seed(), 4096);
            assert!(matches!(found, Err(Damage::Foreign(_))), "{compression}, {wrong} at {at}: {found:?}");
        }
    }
}

#[test]
fn a_key_with_many_operands_has_a_block_of_its_own() {
    let entry = |sequence| {
        let location = Location { segment: 1, offset: 16, length: 40 };
        Entry { kind: Kind::Merge, sequence, location, separate: None, form: Form::default(), inline: None }
    };
    let entries: Entries = (1..=10_000).rev().map(entry).collect();
    let mut block = BlockBuilder::new(0);
    assert!(block.add(b"a", &entries[9_990..], false));
    assert!(!block.add(b"b", &entries, false), "it does not fit beside another");
    let mut bytes = Vec::new();
    assert_eq!(block.finish(seed(), 0, &mut bytes), 1);
    assert!(block.add(b"b", &entries, true));
    assert!(!block.add(b"c", &entries[9_999..], false));
    bytes.clear();
    let units = block.finish(seed(), 0, &mut bytes);
    assert!(units > 10);
    let decoded = Block::decode(&bytes).expect("the block is whole");
    assert_eq!(decoded.find(b"b"), Ok(Some((entries, true))));
}

#[test]
fn fences_lead_to_the_only_block() {
    for number in 0..50 {
        let mut random = Rng::with_seed(number);
        let mut keys: Vec<Vec<u8>> = (0..random.usize(2..500)).map(|_| random_key(&mut random)).collect();
        keys.sort();
        keys.dedup();
        let mut fences = Fences::default();
        let mut blocks: Vec<&[Vec<u8>]> = Vec::new();
        let mut rest = &keys[..];
        while !rest.is_empty() {
            let (block, others) = rest.split_at(random.usize(1..=rest.len().min(9)));
            let last = blocks.last().map_or(&[][..], |block| block.last().expect("no block is empty"));
            fences.add(last, &block[0], random.usize(1..4));
            blocks.push(block);
            rest = others;
        }
        for (at, block) in blocks.iter().enumerate() {
            block.iter().for_each(|key| assert_eq!(fences.block_of(key), at, "seed {number}"));
        }
        assert_eq!(fences.block_of(b""), 0);
        assert_eq!(Fences::decode(&fences.encode()).as_ref(), Some(&fences), "seed {number}");
    }
}

#[test]
fn a_filter_knows_its_keys_and_few_others() {
    let hash = |number: u64| xxhash_rust::xxh3::xxh3_64(&number.to_le_bytes());
    let hashes: Vec<u64> = (0..100_000).map(hash).collect();
    for (bits_per_key, most_wrong) in [(BITS_PER_KEY, 1500), (MORE_BITS_PER_KEY, 300)] {
        let filter = Filter::new(&hashes, bits_per_key);
        assert!(hashes.iter().all(|hash| filter.may_contain(*hash)));
        assert!(filter.bytes() <= hashes.len() * bits_per_key as usize / 8 + 64);
        let wrong = (100_000..200_000).filter(|number| filter.may_contain(hash(*number))).count();
        assert!(wrong < most_wrong, "{bits_per_key} bits: {wrong} of 100,000 other keys may be there");
        assert_eq!(Filter::decode(&filter.encode()).as_ref(), Some(&filter));
        assert!(!Filter::new(&[], bits_per_key).may_contain(1));
    }
}

#[test]
fn footers_come_back() {
    let footer = Footer {
        number: 7,
        data_units: 3,
        filter_bytes: 5000,
        filter_checksum: 1,
        fence_bytes: 4096,
        fence_checksum: 2,
        mark_bytes: 0,
        mark_checksum: 0,
        plain_units: 0,
        blocks_checksum: 3,
        keys: 4,
        entries: 5,
        smallest_sequence: 6,
        largest_sequence: 7,
        next_life: 8,
        carried_out: 9,
        has_values: false,
        smallest_key: b"aaaaa"[..].into(),
        largest_key: vec![b'b'; 1000].into(),
    };
    let with_values = Footer { has_values: true, ..footer.clone() };
    let with_marks = Footer { has_values: true, mark_bytes: 5000, mark_checksum: 4, ..footer.clone() };
    let compressed = Footer { plain_units: 12, ..with_values.clone() };
    let compressed_with_marks = Footer { plain_units: 12, ..with_marks.clone() };
    let (bytes, at) = (footer.encode(&STORE), footer.parts().footer);
    for (footer, version) in
        [(&footer, 1), (&with_values, 2), (&with_marks, 3), (&compressed, 4), (&compressed_with_marks, 4)]
    {
        let encoded = footer.encode(&STORE);
        assert_eq!(u32_at(&encoded, 8), version);
        assert_eq!(Footer::decode(&encoded, &STORE, 7, footer.parts().footer).as_ref(), Ok(footer));
    }
    let mut newer = bytes.clone();
    newer[8] = 5;
    let found = Footer::decode(&newer, &STORE, 7, at);
    assert_eq!(found, Err(Damage::Newer { found: 5, known: 4 }));
    assert_eq!(with_marks.parts().footer, at + 2 * 4096);
    assert_eq!(Footer::decode(&with_marks.encode(&STORE), &STORE, 7, at + 2 * 4096), Ok(with_marks));
    assert_eq!(at, (3 + 2 + 1) * 4096);
    assert_eq!(Footer::decode(&with_values.encode(&STORE), &STORE, 7, at), Ok(with_values));
    assert_eq!(Footer::decode(&bytes, &STORE, 7, at), Ok(footer));
    assert!(Footer::decode(&bytes, &STORE, 8, at).is_err());
    assert!(Footer::decode(&bytes, &STORE, 7, at + 4096).is_err());
    assert!(Footer::decode(&bytes, &[4; 16], 7, at).is_err());
}

#[test]
fn manifests_come_back() {
    let file = |number| RunFileName { number, units: 9, data_units: 7 };
    let manifest = RunManifest {
        edit: 1,
        position: Some(Position { batch: 2, checksum: 3, segment: 4, life: 5, offset: 4096 }),
        next_sequence: 6,
        durable_batch: 7,
        next_file: 8,
        next_run: 9,
        runs: vec![
            ManifestRun { number: 3, tier: 0, files: vec![file(6)], ..ManifestRun::default() },
            ManifestRun {
                number: 2,
                until: 6,
                tier: 1,
                merge: 2,
                from: b"key"[..].into(),
                merged: vec![file(5)],
                files: vec![file(4)],
            },
        ],
        ranges: vec![RangeTombstone { start: b"aaaab"[..].into(), end: b"aaac"[..].into(), sequence: 11 }],
        live: vec![LiveCount { segment: 1, life: 2, bytes: -3, records: 4 }],
        chunks: vec![ChunkCount { file: 7, table: 16, segment: 1, life: 2, bytes: 5 }],
        keys: vec![KeyCount { table: 16, keys: 5, alive: -1 }],
    };
    for manifest in [RunManifest::default(), manifest] {
        let bytes = manifest.encode(&STORE);
        assert_eq!(RunManifest::decode(&bytes, &STORE).as_ref(), Ok(&manifest));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(RunManifest::decode(&damaged, &STORE).is_err(), "byte {at}");
            assert!(RunManifest::decode(&bytes[..at], &STORE).is_err(), "{at} bytes");
        }
    }
}
