//! Drops a table of millions of small keys while others are written to, and prints second by second how long the slowest
//! call of each kind took and what the disk had to do: `drop_beside_writes DIRECTORY [lmdb|hash] [KEYS] [SECONDS] [WRITERS]`.
//! The directory must not exist yet, and should lie on the disk that is meant.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aiodb::{Batch, Db, Durability, IndexKind, Options, Table};

/// Puts of a batch while the table is filled.
const PUTS_PER_BATCH: u64 = 1000;

/// How long the writers run before the table is dropped.
const BEFORE: Duration = Duration::from_secs(3);

/// How often tables are made and dropped and snapshots taken beside the writers.
const PERIOD: Duration = Duration::from_millis(100);

/// The calls that are timed.
const CALLS: [&str; 5] = ["put lmdb", "put hash", "create", "drop", "snapshot"];

/// The slowest call of each kind since they were last taken, and the number of puts.
#[derive(Default)]
struct Slowest(Mutex<([Duration; CALLS.len()], u64)>);

impl Slowest {
    fn time<T>(&self, call: usize, work: impl FnOnce() -> aiodb::Result<T>) -> aiodb::Result<T> {
        let begun = Instant::now();
        let outcome = work();
        let mut slowest = self.0.lock().expect("no code panics while it counts");
        slowest.0[call] = slowest.0[call].max(begun.elapsed());
        slowest.1 += u64::from(call < 2);
        outcome
    }

    fn take(&self) -> ([Duration; CALLS.len()], u64) {
        std::mem::take(&mut *self.0.lock().expect("no code panics while it counts"))
    }
}

fn main() -> aiodb::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(directory) = arguments.first() else {
        eprintln!("usage: drop_beside_writes DIRECTORY [lmdb|hash] [KEYS] [SECONDS] [WRITERS]");
        std::process::exit(2);
    };
    let kind = if arguments.get(1).is_some_and(|kind| kind == "hash") { IndexKind::Hash } else { IndexKind::Lmdb };
    let number = |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    run(Path::new(directory), kind, number(2, 5_000_000), Duration::from_secs(number(3, 30)), number(4, 1))
}

/// Fills a table, and drops it while `writers` threads put into each of two others.
fn run(path: &Path, kind: IndexKind, keys: u64, time: Duration, writers: u64) -> aiodb::Result<()> {
    let db = Db::open(path, Options::default())?;
    fill(&db, &db.create_table("dropped", kind)?, keys)?;
    let tables = [db.create_table("ordered", IndexKind::Lmdb)?, db.create_table("hash", IndexKind::Hash)?];
    let (slowest, stopped) = (Slowest::default(), AtomicBool::new(false));
    println!(
        "{:>6} {:>10} {} {:>8}",
        "second",
        "puts",
        CALLS.map(|call| format!("{call:>9} ms")).join(" "),
        "disk MiB"
    );
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (call, table) in tables.iter().enumerate() {
            for writer in 0..writers {
                let (slowest, stopped) = (&slowest, &stopped);
                threads.push(scope.spawn(move || put_until(stopped, slowest, (call, table), writer)));
            }
        }
        threads.push(scope.spawn(|| change_until(&stopped, &slowest, &db)));
        let begun = Instant::now();
        let mut written = written_mib();
        let mut dropped = false;
        while begun.elapsed() < time {
            if !dropped && begun.elapsed() >= BEFORE {
                println!("the table of {keys} keys is dropped");
                slowest.time(3, || db.drop_table("dropped"))?;
                dropped = true;
            }
            std::thread::sleep(Duration::from_secs(1));
            let ((times, puts), now) = (slowest.take(), written_mib());
            let times = times.map(|time| format!("{:>12.1}", time.as_secs_f64() * 1000.0)).join(" ");
            println!("{:>6} {puts:>10} {times} {:>8}", begun.elapsed().as_secs(), now - written);
            written = now;
        }
        stopped.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })?;
    db.close()
}

fn fill(db: &Db, table: &Table, keys: u64) -> aiodb::Result<()> {
    let begun = Instant::now();
    for first in (0..keys).step_by(PUTS_PER_BATCH as usize) {
        let mut batch = Batch::new();
        for number in first..keys.min(first + PUTS_PER_BATCH) {
            // Neither in order nor twice: the multiplier is odd.
            batch.put(table, &number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes(), b"a small value")?;
        }
        db.write_with(&batch, Durability::None)?;
    }
    db.checkpoint()?;
    println!("{keys} keys put in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn put_until(
    stopped: &AtomicBool,
    slowest: &Slowest,
    (call, table): (usize, &Table),
    writer: u64,
) -> aiodb::Result<()> {
    for number in 0u64.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let key = [writer, number.wrapping_mul(0x9E37_79B9_7F4A_7C15)].map(u64::to_be_bytes).concat();
        slowest.time(call, || table.put_with(&key, b"a small value", Durability::Sync))?;
    }
    Ok(())
}

/// Makes a table, takes a snapshot and drops the table, again and again.
fn change_until(stopped: &AtomicBool, slowest: &Slowest, db: &Db) -> aiodb::Result<()> {
    while !stopped.load(Ordering::Relaxed) {
        slowest.time(2, || db.create_table("passing", IndexKind::Lmdb))?;
        drop(slowest.time(4, || db.snapshot())?);
        slowest.time(3, || db.drop_table("passing"))?;
        std::thread::sleep(PERIOD);
    }
    Ok(())
}

/// What all disks together have written since the machine started, in mebibytes.
fn written_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/diskstats").unwrap_or_default();
    // The tenth column counts sectors of 512 bytes; partitions repeat what their disk has.
    let sectors = text.lines().filter_map(|line| line.split_whitespace().nth(9)?.parse::<u64>().ok());
    sectors.max().unwrap_or(0) / 2048
}
