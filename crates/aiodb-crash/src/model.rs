//! What a store must hold, known from its acknowledgements.

use crate::workload::{Change, Key, Operation, TABLES, WRITERS, keys};
use aiodb::{Db, Table};
use std::collections::BTreeMap;

/// What the keys of one writer hold.
pub type Contents = BTreeMap<Key, String>;

/// Applies an operation's changes.
pub fn advance(contents: &mut Contents, changes: &[Change]) {
    for (key, value) in changes {
        match value {
            Some(value) => contents.insert(key.clone(), value.clone()),
            None => contents.remove(key),
        };
    }
}

/// What a store may hold after its process was killed: of each writer's operations all that were acknowledged, and
/// perhaps the one that was on its way.
#[derive(Default)]
pub struct Model {
    writers: Vec<Writer>,
}

#[derive(Clone, Default)]
struct Writer {
    /// More than one while operations are in doubt.
    possible: Vec<Contents>,
    on_its_way: Option<Operation>,
}

impl Model {
    /// An empty store.
    pub fn new() -> Model {
        let writer = Writer { possible: vec![Contents::new()], on_its_way: None };
        Model { writers: vec![writer; WRITERS] }
    }

    /// An operation was sent.
    pub fn sent(&mut self, operation: &Operation) {
        self.writers[operation.writer].on_its_way = Some(operation.clone());
    }

    /// The operation of this writer that was on its way is acknowledged.
    pub fn acknowledged(&mut self, operation: &Operation) {
        let writer = &mut self.writers[operation.writer];
        writer.on_its_way = None;
        writer.possible.iter_mut().for_each(|contents| advance(contents, &operation.changes));
    }

    /// The process has died: what was on its way may have happened or not.
    pub fn died(&mut self) {
        for writer in &mut self.writers {
            let Some(operation) = writer.on_its_way.take() else { continue };
            let mut happened = writer.possible.clone();
            happened.iter_mut().for_each(|contents| advance(contents, &operation.changes));
            writer.possible.append(&mut happened);
        }
    }

    /// Compares the store with what it may hold; says what differs if it holds none of that. Nothing is in doubt any
    /// more afterwards.
    pub fn check(&mut self, db: &Db) -> Result<(), String> {
        for (number, writer) in self.writers.iter_mut().enumerate() {
            let found = contents(db, number)?;
            if !writer.possible.contains(&found) {
                let nearest = writer.possible.iter().map(|possible| differences(&found, possible));
                let nearest = nearest.min_by_key(String::len).unwrap_or_default();
                return Err(format!("writer {number}: {nearest}"));
            }
            writer.possible = vec![found];
        }
        Ok(())
    }
}

/// What a store holds of a writer's keys.
pub fn contents(db: &Db, writer: usize) -> Result<Contents, String> {
    let tables: Vec<Table> = TABLES
        .iter()
        .map(|(name, _)| db.table(name).map_err(|error| format!("table {name}: {error}")))
        .collect::<Result<_, _>>()?;
    let mut contents = Contents::new();
    for (table, key) in keys(writer) {
        let value = tables[table].get(key.as_bytes()).map_err(|error| format!("key {}: {error}", short(&key)))?;
        if let Some(value) = value {
            let value = String::from_utf8(value).map_err(|_| format!("key {}: a value of no writer", short(&key)))?;
            contents.insert((table, key), value);
        }
    }
    Ok(contents)
}

/// What differs, for people.
pub fn differences(found: &Contents, wanted: &Contents) -> String {
    let all: std::collections::BTreeSet<&Key> = found.keys().chain(wanted.keys()).collect();
    let value = |contents: &Contents, key: &Key| {
        contents.get(key).map_or("absent".into(), |value| format!("{} bytes of `{}`", value.len(), short(value)))
    };
    let differing = all.into_iter().filter(|key| found.get(key) != wanted.get(key));
    let described: Vec<String> = differing
        .map(|key| {
            let name = format!("{} {}", TABLES[key.0].0, short(&key.1));
            format!("{name}: found {}, wanted {}", value(found, key), value(wanted, key))
        })
        .collect();
    described.join("; ")
}

fn short(text: &str) -> &str {
    &text[..text.len().min(20)]
}

/// Whether a check of the whole store finds damage.
pub fn verify(db: &Db) -> Result<(), String> {
    let report = db.verify(&mut |_, _| {}).map_err(|error| format!("the check itself failed: {error}"))?;
    report.damage.first().map_or(Ok(()), |damage| Err(format!("a check finds damage: {damage}")))
}
