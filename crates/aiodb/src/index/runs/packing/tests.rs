use fastrand::Rng;

use super::{MAX_PLAIN_BYTES, Packed, Packer};
use crate::Compression;
use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::format::run::RunSeed;
use crate::format::run::block::{Block, BlockBuilder};
use crate::format::run::marks::NEVER;
use crate::format::run::sealed::unseal;
use crate::io::UNIT_BYTES;

const KINDS: [Compression; 2] = [Compression::Lz4, Compression::Zstd(1)];

fn seed() -> RunSeed {
    RunSeed::new(&[3; 16], 7)
}

fn entry(number: u32, value: Vec<u8>) -> Entry {
    let location = Location { segment: number % 9, offset: number * 16, length: 100 };
    let inline = Some(value.into());
    Entry { kind: Kind::Put, sequence: 1, location, separate: None, form: Form::default(), inline }
}

/// What a key holds, of which so many of a hundred bytes are random.
fn value(random: &mut Rng, length: usize, noise: u8) -> Vec<u8> {
    (0..length).map(|_| if random.u8(..100) < noise { random.u8(..) } else { b'v' }).collect()
}

type Keys = Vec<(Vec<u8>, Entry)>;

fn keys(random: &mut Rng, count: u32, noise: impl Fn(u32) -> u8) -> Keys {
    let key = |number: u32| format!("{:08}/a key", number * 7).into_bytes();
    let one = |number, random: &mut Rng| {
        let length = random.usize(..200);
        (key(number), entry(number, value(random, length, noise(number))))
    };
    (0..count).map(|number| one(number, random)).collect()
}

/// Packs keys as a file has them, with what each block says of itself.
fn pack(compression: Compression, keys: &Keys) -> (Vec<u8>, Vec<Packed>) {
    let mut packer = Packer::new(compression.compressor().expect("there is memory"), 1);
    let (mut file, mut blocks) = (Vec::new(), Vec::new());
    for (number, (key, entry)) in keys.iter().enumerate() {
        packer.add(key, std::slice::from_ref(entry), number % 3 == 0, number as u64);
        while packer.is_full() {
            blocks.push(packer.pack(seed(), file.len() as u64, &mut file));
        }
    }
    while !packer.is_empty() {
        blocks.push(packer.pack(seed(), file.len() as u64, &mut file));
    }
    assert_eq!(packer.waiting_bytes(), 0);
    (file, blocks)
}

/// Compares what was packed with the keys: all of them, in their order, each with its entry.
fn check(keys: &Keys, file: &[u8], blocks: &[Packed]) {
    let (mut known, mut at) = (keys.iter().enumerate(), 0);
    for packed in blocks {
        let units = &file[at..at + packed.units * UNIT_BYTES];
        let plain = unseal(units, seed(), at as u64).expect("the block is whole");
        assert_eq!(plain.len(), packed.plain_bytes.unwrap_or(units.len()));
        let (block, mut found, mut marks) = (Block::decode(&plain).expect("it is one"), Vec::new(), NEVER);
        let mut all = block.keys();
        while let Some((key, (entries, partial))) = all.next().expect("it can be read") {
            let (number, (known_key, entry)) = known.next().expect("there is one more");
            assert_eq!((key, entries.as_slice(), partial), (&known_key[..], &[entry.clone()][..], number % 3 == 0));
            assert_eq!(entries[0].inline, entry.inline);
            marks = marks.min(number as u64);
            found.push(key.to_vec());
        }
        assert_eq!((found.first(), found.last()), (Some(&packed.first_key), Some(&packed.last_key)));
        assert_eq!(packed.mark, marks);
        for key in found {
            assert!(block.find(&key).expect("it can be searched").is_some());
        }
        at += units.len();
    }
    assert_eq!((known.next(), at), (None, file.len()));
}

#[test]
fn every_key_is_packed_once_whatever_the_values_are() {
    for number in 0..60 {
        let mut random = Rng::with_seed(number);
        let (least, change) = (random.u8(..=100), random.u32(1..500));
        let count = random.u32(1..1500);
        // Runs of values that compress well or badly follow each other.
        let keys = keys(&mut random, count, |key| if key / change % 2 == 0 { least } else { 100 - least });
        for compression in KINDS {
            let (file, blocks) = pack(compression, &keys);
            check(&keys, &file, &blocks);
            assert!(blocks.iter().all(|block| block.units == 1), "seed {number}: a get reads a unit");
            let most = blocks.iter().filter_map(|block| block.plain_bytes).max();
            assert!(most.is_none_or(|most| most <= MAX_PLAIN_BYTES), "seed {number}: {most:?} bytes");
        }
    }
}

#[test]
fn units_are_filled_where_much_is_saved() {
    let keys = keys(&mut Rng::with_seed(1), 20_000, |_| 20);
    for compression in KINDS {
        let (file, blocks) = pack(compression, &keys);
        check(&keys, &file, &blocks);
        let used = |packed: &Packed, at: usize| {
            let units = &file[at * UNIT_BYTES..(at + 1) * UNIT_BYTES];
            assert!(packed.plain_bytes.is_some());
            units.iter().rposition(|byte| *byte != 0).expect("it has bytes") + 1
        };
        let (last, others) = blocks.split_last().expect("there are some");
        let bytes: usize = others.iter().enumerate().map(|(at, packed)| used(packed, at)).sum();
        let share = bytes as f64 / (others.len() * UNIT_BYTES) as f64;
        assert!(share > 0.85, "{compression}: {share:.3} of the units are filled");
        assert!(last.units == 1);
    }
}

#[test]
fn what_saves_nothing_is_stored_as_without_compression() {
    let keys = keys(&mut Rng::with_seed(1), 5_000, |_| 100);
    let (mut block, mut plain) = (BlockBuilder::new(1), Vec::new());
    for (number, (key, entry)) in keys.iter().enumerate() {
        if !block.add(key, std::slice::from_ref(entry), number % 3 == 0) {
            block.finish(seed(), plain.len() as u64, &mut plain);
            assert!(block.add(key, std::slice::from_ref(entry), number % 3 == 0));
        }
    }
    block.finish(seed(), plain.len() as u64, &mut plain);
    for compression in KINDS {
        let (file, blocks) = pack(compression, &keys);
        check(&keys, &file, &blocks);
        assert!(blocks.iter().all(|packed| packed.plain_bytes.is_none()), "{compression}");
        assert!(file == plain, "{compression}: the same bytes");
    }
}

/// A key that does not fit into a unit has a block of its own, which is compressed if that saves a unit, and whatever is before and
/// behind it.
#[test]
fn a_key_of_several_units_is_packed_alone() {
    let mut random = Rng::with_seed(1);
    for compression in KINDS {
        for (noise, is_compressed) in [(0, true), (40, true), (100, false)] {
            let mut keys = keys(&mut random, 300, |_| 30);
            keys[150].1 = entry(150, value(&mut random, 100_000, noise));
            let (file, blocks) = pack(compression, &keys);
            check(&keys, &file, &blocks);
            let of_it: Vec<_> = blocks.iter().filter(|packed| packed.first_key == keys[150].0).collect();
            assert_eq!((of_it.len(), &of_it[0].last_key), (1, &keys[150].0));
            assert_eq!(of_it[0].plain_bytes.is_some(), is_compressed, "{compression}, {noise} of 100 bytes at random");
        }
        // No block is decompressed to more than a bound.
        let mut keys = keys(&mut random, 3, |_| 30);
        keys[1].1 = entry(1, vec![b'v'; 2 << 20]);
        let (file, blocks) = pack(compression, &keys);
        check(&keys, &file, &blocks);
        assert!(blocks.iter().any(|packed| packed.units > 512 && packed.plain_bytes.is_none()), "{compression}");
    }
}
