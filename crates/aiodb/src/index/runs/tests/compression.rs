//! Runs whose blocks are compressed.

use std::borrow::Cow;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::named_files;
use super::sizes::entry;
use super::world::{DIRECTORY, STORE};
use crate::cache::Cache;
use crate::format::position::Position;
use crate::format::run::block::Block;
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::codec::table_of;
use crate::index::memtable::{Memtable, RangeQuery};
use crate::index::range_tombstones::Ranges;
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::runs::scan::RunWalk;
use crate::index::runs::{Compaction, FILE_BYTES, RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::io::{AlignedBuffer, File, UNIT_BYTES};
use crate::retention::Retention;
use crate::{Compression, Error};

/// The tables, each with its compression.
const TABLES: [(u32, Compression); 5] = [
    (16, Compression::None),
    (17, Compression::Lz4),
    (18, Compression::Lz4),
    (19, Compression::Zstd(3)),
    (20, Compression::None),
];

/// Keys of each table.
const KEYS: u32 = 500;

fn chosen(table: u32) -> Compression {
    TABLES.into_iter().find(|(known, _)| *known == table).map_or(Compression::None, |(_, compression)| compression)
}

fn key(table: u32, number: u32) -> Vec<u8> {
    [&table.to_be_bytes()[..], format!("some key {number:08}").as_bytes()].concat()
}

/// Runs with an own cache, on a device of their own.
struct Compressed {
    device: SimDevice,
    runs: Runs<SimDevice>,
    entries: Vec<(Vec<u8>, Entry)>,
}

impl Compressed {
    /// One run of all tables, which is written with these compressions.
    fn flushed(cache_bytes: u64, compression_of: &dyn Fn(u32) -> Compression) -> Compressed {
        let device = SimDevice::new(1);
        let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
        let runs = runs.with_cache(Arc::new(Cache::of_blocks(cache_bytes, cache_bytes).expect("there is memory")));
        let (memtable, mut random, mut entries) = (Memtable::default(), Rng::with_seed(1), Vec::new());
        for (table, _) in TABLES {
            for number in 0..KEYS {
                let sequence = entries.len() as u64 + 1;
                let inline = Some(format!("the same value but for its end {number}").as_bytes().into());
                let entry = Entry { inline, ..entry(sequence, &mut random) };
                memtable.insert(&key(table, number), entry.clone().into(), &mut Superseded::new(), |_| ());
                entries.push((key(table, number), entry));
            }
        }
        let position = Position { batch: 1, checksum: 0, segment: 1, life: 1, offset: 4096 };
        let immutable = memtable.freeze(position, entries.len() as u64 + 1);
        with_context(compression_of, |context| runs.flush(&immutable, &[], context, &|_| ()).expect("nothing fails"));
        Compressed { device, runs, entries }
    }

    /// Looks a key up, and says of how many bytes each read was.
    fn look_up(&self, key: &[u8]) -> (VersionChain, Vec<usize>) {
        let (mut chain, mut reads) = (VersionChain::default(), Vec::new());
        let mut look_up = self.runs.begin_lookup(key, u64::MAX).expect("it is open");
        while look_up.proceed(key, &mut chain).expect("nothing fails") {
            let AwaitedBytes { file, offset, length } = look_up.awaited();
            let mut bytes = AlignedBuffer::new(length);
            file.read_at(&mut bytes, offset).expect("nothing fails");
            reads.push(length);
            look_up.take_in(key, &bytes, &mut chain).expect("the block is whole");
        }
        (chain, reads)
    }

    fn check(&self) {
        for (key, entry) in &self.entries {
            let (chain, _) = self.look_up(key);
            assert_eq!(chain.entries(), std::slice::from_ref(entry));
            assert_eq!(chain.entries()[0].inline, entry.inline);
        }
        for backward in [false, true] {
            let range = (Bound::Unbounded, Bound::Unbounded);
            let query = RangeQuery { range, whole: range, backward, limit: usize::MAX, newest: u64::MAX, cached: true };
            let (found, _) = self.runs.range(query, &mut RunWalk::default()).expect("nothing fails");
            let found: Vec<_> =
                found.into_iter().map(|(key, chain)| (key.to_vec(), chain.entries()[0].clone())).collect();
            assert!(found == self.entries, "backward: {backward}");
        }
        self.runs.for_each_damage(&mut |damage| panic!("{damage}")).expect("nothing fails");
    }

    /// Of each block the tables of its keys, how many units it has, and whether it is compressed.
    fn blocks(&self) -> Vec<(Vec<u32>, u32, bool)> {
        let (set, mut blocks) = (self.runs.set().expect("it is open"), Vec::new());
        for piece in set.pieces() {
            for number in 0..piece.file.fences.len() {
                let (start, end) = piece.file.fences.units_of(number);
                let units = piece.file.read(start, end).expect("nothing fails");
                let plain = piece.file.plain(number, &units).expect("it is whole");
                let (block, mut tables) = (Block::decode(&plain).expect("it is whole"), Vec::new());
                let mut keys = block.keys();
                while let Some((key, _)) = keys.next().expect("it is whole") {
                    tables.push(table_of(key));
                }
                blocks.push((tables, end - start, matches!(plain, Cow::Owned(_))));
            }
        }
        blocks
    }
}

fn with_context<T>(compression_of: &dyn Fn(u32) -> Compression, work: impl FnOnce(&RunContext<'_>) -> T) -> T {
    let (snapshots, ranges) = (Snapshots::new(Arc::new(Retention::default())), Ranges::default());
    work(&RunContext { compression_of, ..RunContext::quiet(&snapshots, &ranges) })
}

#[test]
fn each_table_is_compressed_as_it_says() {
    let compressed = Compressed::flushed(0, &chosen);
    compressed.check();
    let blocks = compressed.blocks();
    for (tables, ..) in &blocks {
        assert!(tables.iter().all(|table| chosen(*table) == chosen(tables[0])), "{tables:?}");
    }
    for (table, compression) in TABLES {
        let of_table: Vec<_> = blocks.iter().filter(|(tables, ..)| tables[0] == table).collect();
        let kinds = of_table.iter().filter(|(.., is_compressed)| *is_compressed).count();
        // The last block of a kind may be short.
        let expected = if compression == Compression::None { 0 } else { of_table.len().saturating_sub(1) };
        assert!(kinds >= expected && (kinds > 0) == (expected > 0), "table {table}: {of_table:?}");
        assert!(of_table.iter().all(|(_, units, _)| *units == 1), "a get reads a unit");
    }
    let (disk, plain) = (compressed.runs.disk_bytes(), compressed.runs.plain_bytes());
    let uncompressed = Compressed::flushed(0, &|_| Compression::None);
    assert_eq!(uncompressed.runs.disk_bytes(), uncompressed.runs.plain_bytes());
    let without = uncompressed.runs.disk_bytes();
    assert!(disk < without, "{disk} and {without} bytes");
    assert!(plain.abs_diff(without) <= 8 * UNIT_BYTES as u64, "{plain} bytes are said to be {without}");
}

/// A merge compresses blocks as their tables say at that time, whatever the merged files have.
#[test]
fn merges_compress_as_tables_say_by_then() {
    let plain = |_| Compression::None;
    for (first, then) in [(&chosen as &dyn Fn(u32) -> Compression, &plain as _), (&plain as _, &chosen as _)] {
        let compressed = Compressed::flushed(0, first);
        let wanted = Compaction::of_all(1 << 20);
        let before = compressed.blocks();
        with_context(then, |context| {
            // A run is merged with a newer one.
            let position = Position { batch: 2, checksum: 0, segment: 1, life: 1, offset: 4096 };
            let memtable = Memtable::default();
            let mut random = Rng::with_seed(2);
            let sequence = compressed.entries.len() as u64 + 1;
            memtable.insert(&key(99, 1), entry(sequence, &mut random).into(), &mut Superseded::new(), |_| ());
            compressed
                .runs
                .flush(&memtable.freeze(position, sequence + 1), &[], context, &|_| ())
                .expect("nothing fails");
            while compressed.runs.compact_step(FILE_BYTES, wanted, context).expect("nothing fails") {}
        });
        let runs = &compressed.runs;
        assert_eq!(runs.len(), 1);
        let after = compressed.blocks();
        let count =
            |blocks: &[(Vec<u32>, u32, bool)]| blocks.iter().filter(|(.., is_compressed)| *is_compressed).count();
        assert_ne!(count(&before) == 0, count(&after) == 0, "{before:?}, {after:?}");
        assert_eq!(runs.plain_bytes() > runs.disk_bytes(), count(&after) > 0);
        for (key, entry) in &compressed.entries {
            assert_eq!(compressed.look_up(key).0.entries(), std::slice::from_ref(entry));
        }
    }
}

#[test]
fn a_compressed_block_is_read_once_and_lies_in_the_cache_as_it_was() {
    let compressed = Compressed::flushed(8 << 20, &chosen);
    for (table, _) in TABLES {
        let (_, reads) = compressed.look_up(&key(table, 250));
        assert!(reads.len() <= 1 && reads.iter().all(|bytes| *bytes == UNIT_BYTES), "{reads:?}");
        let (again, reads) = compressed.look_up(&key(table, 250));
        assert_eq!((again.entries().len(), reads.len()), (1, 0), "table {table}");
    }
    compressed.check();
    compressed.check();
}

#[test]
fn damage_of_a_compressed_block_is_found() {
    let compressed = Compressed::flushed(0, &chosen);
    let (blocks, mut random) = (compressed.blocks(), Rng::with_seed(1));
    let path = named_files(&compressed.runs).into_keys().next().expect("there is one");
    let mut unit = 0;
    for (number, (_, units, _)) in blocks.iter().enumerate() {
        let offset = u64::from(unit) * UNIT_BYTES as u64 + random.u64(..UNIT_BYTES as u64);
        let mask = 1 << random.u8(..8);
        compressed.device.corrupt(&path, offset, mask);
        let mut found = Vec::new();
        compressed.runs.for_each_damage(&mut |damage| found.push(damage)).expect("nothing else is wrong");
        let at = u64::from(unit) * UNIT_BYTES as u64;
        assert!(
            matches!(&found[..], [Error::Corruption { offset, what, .. }] if *offset == at && what.contains("checksum")),
            "block {number}: {found:?}"
        );
        compressed.device.corrupt(&path, offset, mask);
        unit += units;
    }
    compressed.check();
}
