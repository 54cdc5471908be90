//! Random sequences of all operations on both kinds of tables, against a model: what a get, a reader, a scan and every
//! snapshot see must be what the model has, whatever background work came in between and however often the store was
//! closed and opened again.

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::merge::Append;
use aiodb::{
    Batch, Compression, Db, Durability, IndexKind, MAX_INLINE_BYTES, MergeOperators, Options, ScanOptions, Snapshot,
    Step, Table, TableOptions, WriteOptions,
};
use fastrand::Rng;
use support::scratch;

/// Sequences for each kind of table, unless `AIODB_OPERATIONS_SEED` names one.
const SEEDS: u64 = 100;
const OPERATIONS: usize = 400;
const KEYS: u64 = 40;

/// What was done to a key since it was last put or deleted.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    put: Option<(Vec<u8>, Option<u64>)>,
    operands: Vec<u8>,
}

impl Known {
    fn value(&self, now_ms: u64) -> Option<Vec<u8>> {
        let base = self.put.as_ref().filter(|(_, until)| until.is_none_or(|until| until > now_ms));
        match base {
            Some((value, _)) => Some([value, &self.operands[..]].concat()),
            None => (!self.operands.is_empty()).then(|| self.operands.clone()),
        }
    }
}

type Model = BTreeMap<Vec<u8>, Known>;

/// Whether a key is in a range.
type IsIn = Box<dyn Fn(&[u8]) -> bool>;

struct Run {
    what: String,
    rng: Rng,
    kind: IndexKind,
    device: SimDevice,
    directory: tempfile::TempDir,
    options: Options,
    model: Model,
    /// The most that the clock has shown, and what it shows.
    floor_ms: u64,
    offset_ms: i64,
    snapshots: Vec<(Snapshot<SimDevice>, Model, u64)>,
    cache_hits: u64,
}

impl Run {
    fn new(kind: IndexKind, seed: u64) -> Run {
        let mut rng = Rng::with_seed(seed);
        // Half of the runs with a cache, from one that holds few short values to one that holds everything.
        let cache_bytes = if seed.is_multiple_of(2) { 0 } else { 4096 << Rng::with_seed(!seed).u32(..9) };
        let options = Options {
            cache_bytes,
            cache_writes: seed.is_multiple_of(3),
            background: false,
            segment_bytes: 64 << 10,
            merge_operators: MergeOperators::default().with(Append),
            hash_mask: if rng.bool() { u64::MAX } else { 7 << 40 },
            // In half of the runs most records that snapshots need come to files.
            versions_in_memory: if seed % 4 < 2 { 2 } else { Options::default().versions_in_memory },
            // In two of three runs most keys of a `hash` table come to files.
            hash_bytes: [None, Some(0), Some(6000)][seed as usize % 3],
            ..Options::default()
        };
        let device = SimDevice::new(seed);
        let directory = scratch();
        device.create_dir(directory.path()).expect("a directory can be made");
        let what = format!("{} seed {seed}", kind.name());
        let (model, snapshots) = (Model::new(), Vec::new());
        Run { what, rng, kind, device, directory, options, model, floor_ms: 0, offset_ms: 0, snapshots, cache_hits: 0 }
    }

    fn open(&mut self) -> (Db<SimDevice>, Table<SimDevice>) {
        let db = Db::open_on(self.device.clone(), self.directory.path(), self.options.clone());
        let db = db.unwrap_or_else(|error| panic!("{}: opening: {error}", self.what));
        let table = db.table("t").unwrap_or_else(|_| {
            let compression = if self.rng.bool() { Compression::Lz4 } else { Compression::None };
            let inline_bytes = match self.kind {
                IndexKind::Lsm => [0, 1, 40, 300, MAX_INLINE_BYTES][self.rng.usize(..5)],
                _ => 0,
            };
            let block_compression = match self.kind {
                IndexKind::Lsm => [Compression::None, Compression::Lz4, Compression::Zstd(1)][self.rng.usize(..3)],
                _ => Compression::None,
            };
            let merge = Some("append".into());
            let options = TableOptions { compression, merge, inline_bytes, block_compression, ..self.kind.into() };
            db.create_table_with("t", options).expect("the table can be made")
        });
        self.now_ms();
        (db, table)
    }

    /// Whatever the clock shows, time does not go back for the store.
    fn now_ms(&mut self) -> u64 {
        let shown = self.device.wall_ms();
        self.floor_ms = self.floor_ms.max(shown);
        self.floor_ms
    }

    /// A moment at which nothing is about to expire: time passes while the store works.
    fn quiet_ms(&mut self, db: &Db<SimDevice>) -> u64 {
        loop {
            let now_ms = self.now_ms();
            let soon = |known: &Known| {
                known
                    .put
                    .as_ref()
                    .is_some_and(|(_, until)| until.is_some_and(|until| until > now_ms && until < now_ms + 2000))
            };
            if !self.model.values().any(soon) {
                // What the store has never seen of the clock does not count.
                drop(db.snapshot().expect("a snapshot"));
                return now_ms;
            }
            // A clock that was set back does not count until it has caught up.
            self.device.advance_clock(2000 + now_ms - self.device.wall_ms().min(now_ms));
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.u64(..KEYS);
        let mut key = format!("key-{number:02}").into_bytes();
        // Some are too long for an index to keep whole, and some share all that it keeps.
        match number % 8 {
            6 => key.resize(470, b'x'),
            7 => {
                key = vec![b'l'; 448];
                key.extend_from_slice(format!("{:02}", KEYS - number).as_bytes());
                key.resize(448 + [10, 31, 40, 200][self.rng.usize(..4).min(number as usize / 8 % 4)], b'y');
            }
            _ => {}
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.rng.u8(..20) {
            0 => 0,
            1 => self.rng.usize(16_000..60_000),
            2..5 => self.rng.usize(1000..6000),
            _ => self.rng.usize(1..200),
        };
        let repeated = self.rng.bool();
        let byte = self.rng.u8(..);
        (0..length).map(|_| if repeated { byte } else { self.rng.u8(..) }).collect()
    }

    fn write_options(&mut self) -> WriteOptions {
        let durability = if self.rng.bool() { Durability::None } else { Durability::Sync };
        let now_ms = self.now_ms();
        let until = (self.rng.u8(..6) == 0).then(|| now_ms + self.rng.u64(1..100_000));
        WriteOptions { durability: Some(durability), expires_ms: until.and_then(NonZeroU64::new) }
    }

    fn write(&mut self, table: &Table<SimDevice>) {
        let (key, options) = (self.key(), self.write_options());
        match self.rng.u8(..20) {
            0..9 => {
                let value = self.value();
                table.put_with(&key, &value, options).expect("a put");
                let until = options.expires_ms.map(NonZeroU64::get);
                self.model.insert(key, Known { put: Some((value, until)), operands: Vec::new() });
            }
            9..12 => {
                table.delete_with(&key, Durability::None).expect("a delete");
                self.model.remove(&key);
            }
            12..18 => {
                let operand = self.rng.u8(1..).to_le_bytes().repeat(self.rng.usize(1..20));
                table.merge_with(&key, &operand, options).expect("a merge");
                self.model.entry(key).or_default().operands.extend_from_slice(&operand);
            }
            _ if self.kind.is_ordered() => {
                let (start, end) = self.bounds();
                table.delete_range_with(&start, &end, options).expect("a range delete");
                delete_range(&mut self.model, &start, &end);
            }
            _ => {}
        }
    }

    /// Bounds of a range, short enough for a delete.
    fn bounds(&mut self) -> (Vec<u8>, Vec<u8>) {
        let (mut start, mut end) = (self.key(), self.key());
        start.truncate(440);
        end.truncate(440);
        if start > end {
            std::mem::swap(&mut start, &mut end);
        }
        if self.rng.u8(..8) == 0 {
            end.clear();
        }
        (start, end)
    }

    fn write_batch(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>) {
        let mut batch = Batch::new();
        for _ in 0..self.rng.usize(1..6) {
            let (key, options) = (self.key(), self.write_options());
            match self.rng.u8(..4) {
                0 => {
                    batch.delete(table, &key).expect("a delete");
                    self.model.remove(&key);
                }
                1 => {
                    batch.merge(table, &key, b"+").expect("a merge");
                    self.model.entry(key).or_default().operands.push(b'+');
                }
                2 if self.kind.is_ordered() => {
                    let (start, end) = self.bounds();
                    batch.delete_range(table, &start, &end).expect("a range delete");
                    delete_range(&mut self.model, &start, &end);
                }
                _ => {
                    let value = self.rng.u8(..).to_le_bytes().repeat(self.rng.usize(..300));
                    match options.expires_ms {
                        Some(until) => batch.put_until(table, &key, &value, until),
                        None => batch.put(table, &key, &value),
                    }
                    .expect("a put");
                    let until = options.expires_ms.map(NonZeroU64::get);
                    self.model.insert(key, Known { put: Some((value, until)), operands: Vec::new() });
                }
            }
        }
        let durability = if self.rng.bool() { Durability::None } else { Durability::Sync };
        db.write_with(&batch, durability).expect("a batch");
    }

    fn check(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>) {
        let (key, now_ms) = (self.key(), self.quiet_ms(db));
        let wanted = self.model.get(&key).and_then(|known| known.value(now_ms));
        assert!(table.get(&key).expect("a get") == wanted, "{}: a get of {}", self.what, support::name(&key));
        match self.rng.u8(..3) {
            0 => {
                let mut reader = table.reader(4).expect("a reader");
                reader.submit(&key, 7).expect("a get");
                let found = reader.poll().expect("a get").expect("one is in flight").value.expect("a get");
                assert!(found == wanted.as_deref(), "{}: a reader's {}", self.what, support::name(&key));
            }
            1 => {
                let (model, now_ms) = (contents(&self.model, now_ms), now_ms);
                self.check_scan(table, None, &model);
                assert_eq!(self.now_ms(), now_ms.max(self.floor_ms));
            }
            _ => {
                if !self.snapshots.is_empty() {
                    let at = self.rng.usize(..self.snapshots.len());
                    let (snapshot, model, then_ms) = self.snapshots[at].clone();
                    let wanted = model.get(&key).and_then(|known| known.value(then_ms));
                    let found = snapshot.get(table, &key).expect("a get from a snapshot");
                    assert!(found == wanted, "{}: a snapshot's {}", self.what, support::name(&key));
                    let mut reader = snapshot.reader(table, 2).expect("a reader");
                    reader.submit(&key, 7).expect("a get");
                    let found = reader.poll().expect("a get").expect("one is in flight").value.expect("a get");
                    assert!(found == wanted.as_deref(), "{}: a snapshot's reader, {}", self.what, support::name(&key));
                    self.check_scan(table, Some(&snapshot), &contents(&model, then_ms));
                }
            }
        }
    }

    fn check_scan(
        &mut self,
        table: &Table<SimDevice>,
        snapshot: Option<&Snapshot<SimDevice>>,
        model: &BTreeMap<Vec<u8>, Vec<u8>>,
    ) {
        if self.kind == IndexKind::Hash {
            let scan = match snapshot {
                Some(snapshot) => snapshot.iterate(table),
                None => table.iterate(),
            };
            let mut found: Vec<_> = scan
                .expect("a scan")
                .map(|record| record.unwrap_or_else(|error| panic!("{}: {error}", self.what)))
                .collect();
            found.sort();
            let what = format!("{} ({})", self.what, if snapshot.is_some() { "snapshot" } else { "now" });
            compare(&what, &found, model.clone().into_iter().collect());
            return;
        }
        let (mut options, is_in) = self.range();
        let (backward, keys_only) = (self.rng.bool(), self.rng.u8(..4) == 0);
        let limit = if self.rng.u8(..5) == 0 { self.rng.u64(..60) } else { u64::MAX };
        options = options.limit(limit);
        if backward {
            options = options.backward();
        }
        if keys_only {
            options = options.keys_only();
        }
        let in_range = model.iter().filter(|(key, _)| is_in(key));
        let mut wanted: Vec<_> =
            in_range.map(|(key, value)| (key.clone(), if keys_only { Vec::new() } else { value.clone() })).collect();
        if backward {
            wanted.reverse();
        }
        wanted.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let scan = match snapshot {
            Some(snapshot) => snapshot.scan(table, options),
            None => table.scan(options),
        };
        let found: Vec<_> = scan
            .expect("a scan")
            .map(|record| record.unwrap_or_else(|error| panic!("{}: {error}", self.what)))
            .collect();
        let what = format!("{} ({})", self.what, if snapshot.is_some() { "snapshot" } else { "now" });
        compare(&what, &found, wanted);
    }

    /// A range, and which keys are in it.
    fn range(&mut self) -> (ScanOptions, IsIn) {
        let (bound, all) = (self.key(), ScanOptions::all());
        match self.rng.u8(..6) {
            0 => (all.from(&bound), Box::new(move |key| key >= &bound[..])),
            1 => (all.after(&bound), Box::new(move |key| key > &bound[..])),
            2 => (all.before(&bound), Box::new(move |key| key < &bound[..])),
            3 => (all.to(&bound), Box::new(move |key| key <= &bound[..])),
            4 => {
                let prefix = bound[..self.rng.usize(1..=bound.len())].to_vec();
                (ScanOptions::prefix(&prefix), Box::new(move |key| key.starts_with(&prefix)))
            }
            _ => (all, Box::new(|_| true)),
        }
    }

    fn step(&mut self, db: &Db<SimDevice>) {
        const STEPS: [Step; 8] = [
            Step::Write,
            Step::Flush,
            Step::Checkpoint,
            Step::Settle,
            Step::Reclaim,
            Step::Prepare,
            Step::DeleteRanges,
            Step::Spill,
        ];
        let step = STEPS[self.rng.usize(..STEPS.len())];
        // A spill is two steps, and a merge of what it has made is more.
        let times = if step == Step::Spill { 1 + self.rng.usize(..6) } else { 1 };
        (0..times).for_each(|_| db.step(step).expect("background work"));
    }

    fn run(&mut self) {
        let (mut db, mut table) = self.open();
        for _ in 0..OPERATIONS {
            match self.rng.u8(..40) {
                0..16 => self.write(&table),
                16..19 => self.write_batch(&db, &table),
                19..29 => self.check(&db, &table),
                29..36 => self.step(&db),
                36 => {
                    self.offset_ms += self.rng.i64(-200_000..400_000);
                    self.device.set_wall_clock(self.offset_ms);
                    drop(db.snapshot().expect("a snapshot"));
                    self.now_ms();
                }
                37 => {
                    let now_ms = self.quiet_ms(&db);
                    let snapshot = db.snapshot().expect("a snapshot");
                    let then_ms = self.now_ms();
                    assert!(then_ms - now_ms < 1000, "little time has passed");
                    self.snapshots.push((snapshot, self.model.clone(), then_ms));
                }
                38 => {
                    if !self.snapshots.is_empty() {
                        self.snapshots.remove(self.rng.usize(..self.snapshots.len()));
                    }
                }
                _ => {
                    self.snapshots.clear();
                    self.cache_hits += db.metrics().cache_hits;
                    db.close().expect("the store can be closed");
                    drop((db, table));
                    self.options.rebuild_index = self.rng.u8(..4) == 0;
                    (db, table) = self.open();
                    let now_ms = self.quiet_ms(&db);
                    self.check_scan(&table, None, &contents(&self.model.clone(), now_ms));
                }
            }
        }
        self.cache_hits += db.metrics().cache_hits;
        let report = db.verify(&mut |_, _| {}).expect("a check");
        assert!(report.damage.is_empty(), "{}: {:?}", self.what, report.damage);
    }
}

fn delete_range(model: &mut Model, start: &[u8], end: &[u8]) {
    model.retain(|key, _| &key[..] < start || (!end.is_empty() && &key[..] >= end));
}

fn contents(model: &Model, now_ms: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    model.iter().filter_map(|(key, known)| Some((key.clone(), known.value(now_ms)?))).collect()
}

fn compare(what: &str, found: &[(Vec<u8>, Vec<u8>)], wanted: Vec<(Vec<u8>, Vec<u8>)>) {
    if found == wanted {
        return;
    }
    let list = |records: &[(Vec<u8>, Vec<u8>)], others: &[(Vec<u8>, Vec<u8>)]| {
        let one = |(key, value): &(Vec<u8>, Vec<u8>)| {
            format!("{} ({} bytes) = {} bytes", support::name(key), key.len(), value.len())
        };
        records.iter().filter(|record| !others.contains(record)).map(one).collect::<Vec<_>>().join(", ")
    };
    panic!("{what}: a scan found [{}] instead of [{}]", list(found, &wanted), list(&wanted, found));
}

fn run(kind: IndexKind) {
    let seed = std::env::var("AIODB_OPERATIONS_SEED").ok().map(|text| text.parse::<u64>().expect("a number"));
    let mut cache_hits = 0;
    for seed in seed.map_or(0..SEEDS, |seed| seed..seed + 1) {
        let mut run = Run::new(kind, seed);
        run.run();
        cache_hits += run.cache_hits;
    }
    assert!(seed.is_some() || cache_hits > SEEDS, "the cache is part of the test: it has answered {cache_hits} times");
}

#[test]
fn ordered_tables_do_what_the_model_does() {
    run(IndexKind::Lmdb);
}

#[test]
fn ordered_tables_of_runs_do_what_the_model_does() {
    run(IndexKind::Lsm);
}

#[test]
fn unordered_tables_do_what_the_model_does() {
    run(IndexKind::Hash);
}
