//! The corpus that fuzzers have left in `fuzz/corpus`, valid bytes of each kind, and thousands of changed copies of both,
//! through the functions that fuzzers call.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use fastrand::Rng;

use super::operations::{Reached, run_counted};
use super::run::{NUMBER, OFFSET};
use super::{LIFE, SEGMENT, STORE, TARGETS, fuzz};
use crate::format::entry::{Entry, RangeTombstone};
use crate::format::location::Location;
use crate::format::manifest::{Manifest, ManifestSegment, ManifestTable};
use crate::format::position::Position;
use crate::format::record::{Chunk, Form, Kind, Origin, Record, encode_chunks};
use crate::format::run::RunSeed;
use crate::format::run::block::BlockBuilder;
use crate::format::run::chain::encode_chain;
use crate::format::run::fences::Fences;
use crate::format::run::filter::Filter;
use crate::format::run::footer::Footer;
use crate::format::run::manifest::{ChunkCount, KeyCount, LiveCount, ManifestRun, RunFileName, RunManifest};
use crate::format::run::marks::{Marks, NEVER};
use crate::format::run::sealed::{COMPRESSED_HEADER_BYTES, seal_compressed};
use crate::format::segment::{BatchHeader, Features, HEADER_BYTES, PendingHeader, Seed, SegmentHeader};
use crate::format::settings::Settings;
use crate::{Compression, IndexKind, StorageMode, TableModes};

/// Changed copies of all inputs of a target; `operations` opens a store for each.
const CHANGED: usize = 1_500;
const CHANGED_OPERATIONS: usize = 100;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Inputs that decoders accept: from them a fuzzer starts.
fn valid(target: &str) -> Vec<Vec<u8>> {
    let seed = Seed::new(&STORE, SEGMENT, LIFE);
    let plain = |bytes: &[u8]| [&[0], bytes].concat();
    match target {
        "record" => {
            let mut record = Record::new(Kind::Put, 16, 1000, b"key", b"a value");
            record.moved = Some(Origin { segment: 1, offset: 4096 });
            record.form.expires_ms = NonZeroU64::new(1_800_000_000_000);
            let mut bytes = vec![0; record.length()];
            record.encode(seed, 4224, &mut bytes);
            let location = crate::format::location::Location { segment: 1, offset: 4096, length: 500 };
            vec![plain(&bytes), plain(&encode_chunks(500, &[Chunk { location, checksum: 7 }]))]
        }
        "batch" => vec![[vec![1, 0], packed_batch()].concat()],
        "batch_round_trip" => vec![(0..120).map(|number: u8| number.wrapping_mul(37)).collect()],
        "segment_header" => {
            let mut batch = [0; HEADER_BYTES];
            batch_header().encode(seed, &mut batch);
            vec![plain(&segment_header().encode()), plain(&batch)]
        }
        "pending_header" => vec![plain(&[&pending_header().encode()[..], &packed_batch()].concat())],
        "manifest" => vec![plain(&manifest().encode(&STORE))],
        "hash_checkpoint" => {
            let slot = 1u64 << 37 | 1 << 32 | 16;
            let shard = [&1u64.to_le_bytes()[..], &slot.to_le_bytes(), &[0]].concat();
            vec![[&[1, 5, 0, shard.len() as u8], &shard[..], &[0; 8]].concat()]
        }
        "run" => run_parts().into_iter().map(|(part, bytes)| [&[1, part], &bytes[..]].concat()).collect(),
        "run_manifest" => vec![plain(&run_manifest().encode(&STORE))],
        "operations" => {
            let mut rng = Rng::with_seed(5);
            (0..20).map(|length| (0..40 + length * 10).map(|_| rng.u8(..)).collect()).collect()
        }
        other => panic!("no valid input of {other} is known"),
    }
}

/// Two records, without right checksums.
fn packed_batch() -> Vec<u8> {
    let mut bytes = vec![0; 512];
    let seed = Seed::new(&STORE, SEGMENT, LIFE);
    let mut at = 128;
    for value in [&b"first"[..], b"second"] {
        let record = Record::new(Kind::Put, 16, 1000, b"key", value);
        record.encode(seed, 8192 + at as u32, &mut bytes[at..]);
        at += record.length().next_multiple_of(16);
    }
    bytes
}

fn segment_header() -> SegmentHeader {
    SegmentHeader {
        store: STORE,
        segment: SEGMENT,
        segment_bytes: 1 << 20,
        directories: 1,
        life: LIFE,
        first_batch: 70,
        previous_checksum: 1,
        previous_segment: 2,
        previous_end: 8192,
        durable_batch: 69,
    }
}

fn batch_header() -> BatchHeader {
    BatchHeader {
        number: 77,
        first_sequence: 1000,
        records: 2,
        length: 4096,
        offset: 8192,
        body_checksum: 1,
        previous_checksum: 2,
        flags: 0,
        durable_batch: 76,
        time_ms: 1_700_000_000_000,
    }
}

fn pending_header() -> PendingHeader {
    PendingHeader {
        store: STORE,
        segment: SEGMENT,
        offset: 8192,
        life: LIFE,
        number: 77,
        first_sequence: 1000,
        previous_checksum: 2,
        flags: 0,
    }
}

fn manifest() -> Manifest {
    let name = "a table".to_string();
    let live_chunks = vec![(16, 4096)];
    let expiring = vec![(1_800_000_000_000, 512)];
    let merge = Some("append".into());
    let settings = Settings {
        kind: IndexKind::Hash,
        compression: Compression::Lz4,
        merge,
        inline_bytes: 0,
        compaction_filter: None,
        block_compression: Compression::None,
    };
    Manifest {
        checkpoint: 5,
        closed: true,
        position: Position { batch: 76, checksum: 2, segment: SEGMENT, life: LIFE, offset: 8192 },
        next_sequence: 1000,
        next_life: 10,
        next_table: 17,
        taken_out: 7,
        time_ms: 1_700_000_000_000,
        features: Features::default(),
        tables: vec![ManifestTable {
            id: 16,
            name,
            settings,
            checkpoint: 5,
            modes: TableModes { keys: StorageMode::Memory, values: StorageMode::Disk },
        }],
        segments: vec![ManifestSegment {
            number: 3,
            records: 9,
            deletes: 1,
            life: LIFE,
            end: 8192,
            live_chunks,
            expiring,
            growth_bytes: 144,
        }],
    }
}

/// The parts of a file of a run, by the numbers that the target has for them.
fn run_parts() -> Vec<(u8, Vec<u8>)> {
    let location = Location { segment: 3, offset: 4096, length: 100 };
    let entry =
        |kind, sequence| Entry { kind, sequence, location, separate: Some(9), form: Form::default(), inline: None };
    let entries = [entry(Kind::Merge, 1002), entry(Kind::Put, 1001)];
    let (mut block, mut bytes, mut chain) = (BlockBuilder::new(1000), Vec::new(), Vec::new());
    for key in 0..40u8 {
        assert!(block.add(&[b"key", &[key][..]].concat(), &entries, key == 3), "they fit into a block");
    }
    let mut plain = Vec::new();
    block.encode(&mut plain);
    let compressed = [Compression::Lz4, Compression::Zstd(3)].map(|compression| {
        let compressed = compression.compressor().and_then(|mut compressor| compressor.compress(&plain));
        let (compressed, mut bytes) = (compressed.expect("there is memory"), Vec::new());
        seal_compressed(&compressed, RunSeed::new(&STORE, NUMBER), OFFSET, &mut bytes);
        bytes.truncate(COMPRESSED_HEADER_BYTES + compressed.len());
        (0, bytes)
    });
    block.finish(RunSeed::new(&STORE, NUMBER), OFFSET, &mut bytes);
    bytes.truncate(2000);
    encode_chain(&mut chain, &entries, true, 1000);
    let mut fences = Fences::default();
    fences.add(b"", b"a", 1);
    fences.add(b"abc", b"abd", 2);
    let footer = Footer {
        number: NUMBER,
        data_units: 1,
        filter_bytes: 64,
        filter_checksum: 0,
        fence_bytes: 0,
        fence_checksum: 0,
        mark_bytes: 0,
        mark_checksum: 0,
        plain_units: 0,
        blocks_checksum: 0,
        keys: 1,
        entries: 2,
        smallest_sequence: 3,
        largest_sequence: 4,
        next_life: 5,
        carried_out: 6,
        has_values: false,
        smallest_key: b"a"[..].into(),
        largest_key: b"b"[..].into(),
    };
    let mut footer = footer.encode(&STORE);
    footer.truncate(160);
    let marks = [&[2], &Marks { due_ms: 1_700_000_000_000, blocks: vec![0, NEVER] }.encode()[..]].concat();
    let filter = Filter::new(&[1, 2, 3], 10).encode();
    let parts = [(0, bytes), (1, chain), (2, footer), (3, fences.encode()), (4, filter), (5, marks)];
    parts.into_iter().chain(compressed).collect()
}

fn run_manifest() -> RunManifest {
    let file = RunFileName { number: 5, units: 9, data_units: 7 };
    let run = ManifestRun {
        number: 2,
        until: 6,
        tier: 1,
        merge: 2,
        from: b"key"[..].into(),
        merged: vec![file],
        files: vec![file],
    };
    RunManifest {
        edit: 1,
        position: Some(Position { batch: 2, checksum: 3, segment: 4, life: 5, offset: 4096 }),
        runs: vec![run],
        ranges: vec![RangeTombstone { start: b"aaaab"[..].into(), end: b"aaac"[..].into(), sequence: 11 }],
        live: vec![LiveCount { segment: 1, life: 2, bytes: 3, records: 4 }],
        chunks: vec![ChunkCount { file: 7, table: 16, segment: 1, life: 2, bytes: 5 }],
        keys: vec![KeyCount { table: 16, keys: 5, alive: 1 }],
        ..RunManifest::default()
    }
}

/// The inputs from which fuzzers and the list of valid inputs start.
fn inputs(target: &str) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(corpus(target)).expect("each target has a corpus");
    let mut paths: Vec<PathBuf> = files.map(|file| file.expect("the corpus can be listed").path()).collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read(path).expect("the corpus can be read");
    valid(target).into_iter().chain(paths.iter().map(read)).collect()
}

/// A few of the changes that a fuzzer tries.
fn change(rng: &mut Rng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.usize(1..5) {
        let at = rng.usize(..bytes.len().max(1)).min(bytes.len());
        match rng.u8(..6) {
            0 => bytes.truncate(at),
            1 => bytes.splice(at..at, std::iter::repeat_n(rng.u8(..), rng.usize(..40))).for_each(drop),
            2 if at + 4 <= bytes.len() => {
                let number = *rng.choice(&[0, 1, 0x7FFF_FFFF, u32::MAX, u32::MAX - 15, 4096]).expect("there are some");
                bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            }
            3 if bytes.len() > at => bytes[at] ^= 1 << rng.u8(..8),
            4 if bytes.len() > at => bytes[at] = rng.u8(..),
            // The mode.
            5 if !bytes.is_empty() => bytes[0] ^= 1,
            _ => {}
        }
    }
}

#[test]
fn the_corpus_and_changed_copies_find_nothing() {
    for (target, _) in TARGETS {
        let inputs = inputs(target);
        inputs.iter().for_each(|input| fuzz(target, input));
        let mut rng = Rng::with_seed(1);
        let changed = if target == "operations" { CHANGED_OPERATIONS } else { CHANGED };
        for number in 0..changed {
            let mut input = rng.choice(&inputs).expect("there are some").clone();
            change(&mut rng, &mut input);
            let outcome = std::panic::catch_unwind(|| fuzz(target, &input));
            assert!(outcome.is_ok(), "{target}, changed copy {number}: {input:02x?}");
        }
    }
}

/// Scripts of random bytes, unless `AIODB_FUZZ_SCRIPTS` says how many; `AIODB_FUZZ_SEED` is the seed of the first one.
const SCRIPTS: u64 = 60;

#[test]
fn scripts_of_random_bytes_find_nothing_and_reach_what_they_are_for() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse::<u64>().expect("a number"));
    let (first, scripts) = (number("AIODB_FUZZ_SEED").unwrap_or(0), number("AIODB_FUZZ_SCRIPTS").unwrap_or(SCRIPTS));
    let mut reached = Reached::default();
    for seed in first..first + scripts {
        let mut rng = Rng::with_seed(seed);
        let script: Vec<u8> = (0..rng.usize(100..2000)).map(|_| rng.u8(..)).collect();
        let outcome = std::panic::catch_unwind(|| run_counted(&script));
        reached.add(outcome.unwrap_or_else(|_| panic!("the script of seed {seed}")));
    }
    println!("{scripts} scripts: {reached:?}");
    let Reached { lives, commits, merges, runs, versions_in_files, ingested, reclaimed_segments } = reached;
    let all = [lives, commits, merges, versions_in_files, ingested, reclaimed_segments];
    assert!(scripts < SCRIPTS || all.iter().all(|count| *count > 0) && runs > 2, "{reached:?}");
}

#[test]
#[ignore = "writes the valid inputs into the corpus, for fuzzers to start from"]
fn write_valid_inputs() {
    for (target, _) in TARGETS {
        std::fs::create_dir_all(corpus(target)).expect("the corpus can be made");
        for (number, input) in valid(target).iter().enumerate() {
            std::fs::write(corpus(target).join(format!("valid-{number}")), input).expect("the corpus can be written");
        }
    }
}
