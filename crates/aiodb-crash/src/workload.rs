//! What the writers do: it follows from a seed, so that the harness need not remember the values.

use aiodb::IndexKind;
use fastrand::Rng;
use serde_json::{Value, json};

/// Writers, each with keys of its own.
pub const WRITERS: usize = 6;

/// Keys of each writer.
const KEYS: u64 = 50;

/// How many of 100 operations are `sync`, by run: few, or none, let much be written between two flushes.
const SYNC_PERCENT: [u8; 4] = [1, 0, 8, 30];

/// The tables, with their kinds of index.
pub const TABLES: [(&str, IndexKind); 3] =
    [("hashed", IndexKind::Hash), ("ordered", IndexKind::Lmdb), ("sorted", IndexKind::Lsm)];

/// A key, by the number of its table.
pub type Key = (usize, String);

/// A key and its new value, or none where it is deleted.
pub type Change = (Key, Option<String>);

/// What a writer asks for at once: all of its changes or none are there after a crash.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Unique in a run, and ascending for each writer.
    pub id: u64,
    /// The writer that makes it.
    pub writer: usize,
    /// The class, as `aiodb apply` takes it.
    pub durability: &'static str,
    /// In their order.
    pub changes: Vec<Change>,
}

impl Operation {
    /// The operation of this number that a writer makes in the run with this seed.
    pub fn new(seed: u64, writer: usize, number: u64) -> Operation {
        let id = number * WRITERS as u64 + writer as u64;
        let mut rng = Rng::with_seed(seed ^ id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let changes = if rng.u8(..5) == 0 { rng.u64(2..6) } else { 1 };
        let changes = (0..changes)
            .map(|_| {
                let key = key(writer, rng.usize(..TABLES.len()), rng.u64(..KEYS));
                let value = (rng.u8(..4) > 0).then(|| value(id, &mut rng));
                (key, value)
            })
            .collect();
        let durability = match rng.u8(..100) {
            class if class < SYNC_PERCENT[seed as usize % SYNC_PERCENT.len()] => "sync",
            // Only in some runs: it keeps the disk flushed.
            class if class % 3 == 0 && seed.is_multiple_of(2) => "interval:10",
            _ => "none",
        };
        Operation { id, writer, durability, changes }
    }

    /// The line for `aiodb apply`.
    pub fn request(&self) -> String {
        let change = |((table, key), value): &Change| {
            let mut change = json!({"table": TABLES[*table].0, "key": key});
            if let Some(value) = value {
                change["value"] = Value::from(value.as_str());
            }
            change
        };
        let changes: Vec<Value> = self.changes.iter().map(change).collect();
        let request = json!({"id": self.id, "writer": self.writer, "durability": self.durability, "changes": changes});
        format!("{request}\n")
    }
}

/// All keys that a writer may have written.
pub fn keys(writer: usize) -> impl Iterator<Item = Key> {
    (0..TABLES.len()).flat_map(move |table| (0..KEYS).map(move |number| key(writer, table, number)))
}

fn key(writer: usize, table: usize, number: u64) -> Key {
    // Some are too long for the ordered indexes and are known to them by their SHA-256.
    let tail = if number % 10 == 7 { "x".repeat(600) } else { String::new() };
    (table, format!("{writer}/{number}{tail}"))
}

/// A value that no other operation writes: packed, on blocks of its own, or in chunks.
fn value(id: u64, rng: &mut Rng) -> String {
    let length = match rng.u8(..100) {
        0 => rng.usize(260_000..400_000),
        1..4 => rng.usize(20_000..80_000),
        4..20 => rng.usize(1_280..9_000),
        _ => rng.usize(1..300),
    };
    let word = format!("{id}:{};", rng.u32(..));
    let mut value = word.repeat(length / word.len() + 1);
    value.truncate(length.max(word.len()));
    value
}
