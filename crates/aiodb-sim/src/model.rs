//! What a store must hold: a reference model of the public operations, small enough to be seen to be right.
//!
//! The model keeps the contents after the last recovery and every change since, in the order of the log. A crash may
//! take changes from the end only; how many, the durability classes say.

use std::sync::Arc;

use aiodb::Durability;

use crate::operands::combined;

/// A value, by a fingerprint of its bytes.
pub type Fingerprint = u64;

/// What a key was found to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// No value.
    Absent,
    /// A value.
    Value(Fingerprint),
    /// The store reported damage. The model itself never holds this.
    Damaged,
}

impl Cell {
    /// What a value, or its absence, is to the model.
    pub fn of(value: Option<&[u8]>) -> Cell {
        value.map_or(Cell::Absent, |bytes| Cell::Value(fingerprint(bytes)))
    }

    /// Taken into the hash of a run.
    pub fn hash(self) -> u64 {
        match self {
            Cell::Absent => 1,
            Cell::Damaged => 2,
            Cell::Value(fingerprint) => fingerprint,
        }
    }
}

/// What was found in all tables; `None` for a table that does not exist.
pub type Found = Vec<Option<Vec<Cell>>>;

/// What a key holds: what was put last, until it expires, and the operands that came after it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Held {
    put: Option<Arc<[u8]>>,
    /// When what was put expires, in milliseconds since 1970.
    until_ms: Option<u64>,
    /// Whether it may have been given up because it had expired, by a clock that was wrong.
    may_be_gone: bool,
    /// Whether a compaction filter may give up what was put, at any time.
    may_go: bool,
    operands: Arc<[u8]>,
    /// What a get finds before it has expired, and what afterwards.
    before: Option<Fingerprint>,
    after: Option<Fingerprint>,
}

impl Held {
    /// A value that was put, and when it expires.
    pub fn put(value: Arc<[u8]>, until_ms: Option<u64>) -> Held {
        let before = Some(fingerprint(&value));
        Held { put: Some(value), until_ms, before, ..Held::default() }
    }

    /// The same, which a compaction filter may give up.
    pub fn that_may_go(self) -> Held {
        Held { may_go: true, ..self }
    }

    /// Whether a compaction filter may have given it up.
    pub fn may_go(&self) -> bool {
        self.may_go
    }

    /// What is known of it once it was looked for. What expires may have done so just then.
    pub fn once_found(&self, found: Cell) -> Held {
        match found {
            Cell::Absent if self.until_ms.is_some() => self.clone(),
            Cell::Absent if self.may_go => Held::default(),
            _ => Held { may_go: false, ..self.clone() },
        }
    }

    /// The same with one more operand.
    pub fn merged(&self, operand: &[u8]) -> Held {
        let operands: Arc<[u8]> = combined(&[&self.operands, operand].concat()).into();
        let after = Some(fingerprint(&operands));
        let put = self.put.as_deref().unwrap_or_default();
        let before = Some(fingerprint(&combined(&[put, &operands].concat())));
        Held { put: self.put.clone(), operands, before, after, ..self.clone() }
    }

    /// When what was put expires, if it does, in milliseconds since 1970.
    pub fn until_ms(&self) -> Option<u64> {
        self.until_ms
    }

    /// What a get finds at a time.
    pub fn at(&self, now_ms: u64) -> Cell {
        if self.is_over(now_ms) { self.after } else { self.before }.map_or(Cell::Absent, Cell::Value)
    }

    /// The bytes that a get finds at a time.
    pub fn bytes_at(&self, now_ms: u64) -> Option<Vec<u8>> {
        let expired = self.is_over(now_ms);
        let found = if expired { self.after } else { self.before };
        let put = self.put.as_deref().filter(|_| !expired).unwrap_or_default();
        let all = [put, &self.operands].concat();
        found.map(|_| if self.operands.is_empty() { all } else { combined(&all) })
    }

    /// Whether what was put counts no more. What a filter may give up is gone when everything is.
    fn is_over(&self, now_ms: u64) -> bool {
        self.until_ms.is_some_and(|until_ms| until_ms <= now_ms) || self.may_go && now_ms == u64::MAX
    }

    /// What a get may find between two moments.
    pub fn cells(&self, moments: Moments) -> [Cell; 2] {
        self.ends(moments).map(|now_ms| self.at(now_ms))
    }

    /// The bytes that a get may find between two moments.
    pub fn bytes(&self, moments: Moments) -> [Option<Vec<u8>>; 2] {
        self.ends(moments).map(|now_ms| self.bytes_at(now_ms))
    }

    /// Whether this may be found between two moments.
    pub fn shows(&self, found: Cell, moments: Moments) -> bool {
        self.cells(moments).contains(&found)
    }

    /// The moments that decide: before and after everything for what may be gone.
    fn ends(&self, (from_ms, to_ms): Moments) -> [u64; 2] {
        if self.may_be_gone || self.may_go { [0, u64::MAX] } else { [from_ms, to_ms] }
    }

    fn goes_with(&mut self, latest_ms: u64) {
        self.may_be_gone |= self.until_ms.is_some_and(|until_ms| until_ms <= latest_ms);
    }
}

/// The first and the last moment, in milliseconds since 1970, at which something may have been looked at.
pub type Moments = (u64, u64);

/// The contents of all tables; `None` for a table that does not exist.
pub type Contents = Vec<Option<Vec<Held>>>;

/// What a change does to the contents.
#[derive(Clone, Debug)]
pub enum Effect {
    /// A key is put or deleted.
    Set(usize, usize, Held),
    /// A key's value gets one more operand.
    Merge(usize, usize, Arc<[u8]>),
    /// A table is made.
    Create(usize),
    /// A table is dropped.
    Drop(usize),
    /// A table is emptied.
    Truncate(usize),
    /// Each of two tables gets the name of the other.
    Swap(usize, usize),
}

/// Effects that happen together or not at all.
#[derive(Clone, Debug)]
pub struct Change {
    effects: Vec<Effect>,
    /// Whether it was acknowledged, and when, in milliseconds of the simulated clock.
    acknowledged: Option<u64>,
    durability: Durability,
}

/// What must be there after a crash, as a number of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// After the death of the process.
    pub death: usize,
    /// After a power cut.
    pub power_cut: usize,
}

/// The model of one store.
pub struct Model {
    keys: usize,
    base: Contents,
    changes: Vec<Change>,
    current: Contents,
    /// How often each table was made: a handle does not outlive a drop.
    creations: Vec<u64>,
    /// How often each table was made, dropped or emptied: a value begun before is not stored after.
    emptied: Vec<u64>,
    durable: usize,
    /// Changes covered by the last checkpoint.
    checkpointed: usize,
}

impl Model {
    /// A store without tables; there will be up to `tables`, with up to `keys` keys each.
    pub fn new(tables: usize, keys: usize) -> Model {
        Model {
            keys,
            base: vec![None; tables],
            changes: Vec::new(),
            current: vec![None; tables],
            creations: vec![0; tables],
            emptied: vec![0; tables],
            durable: 0,
            checkpointed: 0,
        }
    }

    /// The contents that a get must show now.
    pub fn current(&self) -> &Contents {
        &self.current
    }

    /// What a key holds; `None` if its table does not exist.
    pub fn held(&self, table: usize, key: usize) -> Option<&Held> {
        self.current[table].as_ref().map(|held| &held[key])
    }

    /// The store's time may come back from a moment: what had expired by then may be found again, or may be gone.
    pub fn time_comes_back(&mut self, latest_ms: u64) {
        let contents = self.base.iter_mut().chain(&mut self.current).flatten().flatten();
        contents.for_each(|held| held.goes_with(latest_ms));
        for effect in self.changes.iter_mut().flat_map(|change| &mut change.effects) {
            if let Effect::Set(_, _, held) = effect {
                held.goes_with(latest_ms);
            }
        }
    }

    /// Whether a table exists.
    pub fn exists(&self, table: usize) -> bool {
        self.current[table].is_some()
    }

    /// How often the table was made.
    pub fn creations(&self, table: usize) -> u64 {
        self.creations[table]
    }

    /// How often the table was made, dropped, emptied or swapped.
    pub fn emptied(&self, table: usize) -> u64 {
        self.emptied[table]
    }

    /// Changes since the last recovery.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing has changed since the last recovery.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// A change was acknowledged.
    pub fn acknowledge(&mut self, effects: Vec<Effect>, durability: Durability, now_ms: u64) {
        for effect in &effects {
            match effect {
                Effect::Create(table) => {
                    self.creations[*table] += 1;
                    self.emptied[*table] += 1;
                }
                Effect::Drop(table) | Effect::Truncate(table) => self.emptied[*table] += 1,
                Effect::Swap(one, other) => [one, other].into_iter().for_each(|table| self.emptied[*table] += 1),
                Effect::Set(..) | Effect::Merge(..) => {}
            }
            apply(&mut self.current, effect, self.keys);
        }
        self.changes.push(Change { effects, acknowledged: Some(now_ms), durability });
        if durability == Durability::Sync {
            self.durable = self.changes.len();
        }
    }

    /// A change was attempted, and its outcome is unknown: it may come to light at the next recovery. Returns its number.
    pub fn attempt(&mut self, effects: Vec<Effect>) -> usize {
        self.changes.push(Change { effects, acknowledged: None, durability: Durability::None });
        self.changes.len() - 1
    }

    /// A change that was attempted is durable and to be seen by now, at its place before the changes that came meanwhile.
    pub fn publish(&mut self, number: usize, now_ms: u64) -> Vec<Effect> {
        self.changes[number].acknowledged = Some(now_ms);
        self.durable = self.durable.max(number + 1);
        self.current = self.contents_of(|_, change| change.acknowledged.is_some());
        self.changes[number].effects.clone()
    }

    /// The contents as the log has them: with these changes that are not to be seen yet.
    pub fn in_log(&self, waiting: &[usize]) -> Contents {
        if waiting.is_empty() {
            return self.current.clone();
        }
        self.contents_of(|number, change| change.acknowledged.is_some() || waiting.contains(&number))
    }

    fn contents_of(&self, counts: impl Fn(usize, &Change) -> bool) -> Contents {
        let mut contents = self.base.clone();
        let changes = self.changes.iter().enumerate().filter(|(number, change)| counts(*number, change));
        changes.flat_map(|(_, change)| &change.effects).for_each(|effect| apply(&mut contents, effect, self.keys));
        contents
    }

    /// Everything acknowledged so far survives a power cut.
    pub fn everything_is_durable(&mut self) {
        self.durable = self.acknowledged();
    }

    /// A checkpoint covers everything so far.
    pub fn checkpoint(&mut self) {
        self.everything_is_durable();
        self.checkpointed = self.changes.len();
    }

    /// Changes that the last checkpoint covers: damage elsewhere cannot hide them.
    pub fn checkpointed(&self) -> usize {
        self.checkpointed
    }

    /// The first changes, so many, survive a power cut.
    pub fn durable_up_to(&mut self, changes: usize) {
        self.durable = self.durable.max(changes);
    }

    /// Changes up to the last one that was acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.changes.iter().rposition(|change| change.acknowledged.is_some()).map_or(0, |last| last + 1)
    }

    /// What must be there after a crash now. `on_time` says that the intervals were kept.
    pub fn required(&self, now_ms: u64, on_time: bool) -> Required {
        let promised = |change: &Change| match (change.durability, change.acknowledged) {
            (Durability::Interval(interval), Some(at)) => at + (interval.as_millis() as u64) < now_ms,
            _ => false,
        };
        let promised = if on_time { self.changes.iter().rposition(promised).map_or(0, |last| last + 1) } else { 0 };
        Required { death: self.acknowledged(), power_cut: self.durable.max(promised) }
    }

    /// The largest number of changes, at least `required`, after which the contents are those found. Where damage was
    /// found, any content will do.
    pub fn matching(&self, found: &Found, required: usize, moments: Moments) -> Option<usize> {
        let mut contents = self.base.clone();
        let mut matching = None;
        for count in 0..=self.changes.len() {
            if count > 0 {
                self.changes[count - 1].effects.iter().for_each(|effect| apply(&mut contents, effect, self.keys));
            }
            if count >= required && agree(found, &contents, moments) {
                matching = Some(count);
            }
        }
        matching
    }

    /// Whether what was found can be what different numbers of changes have left: what expired before its time hides which.
    pub fn is_ambiguous(&self, found: &Found, required: usize, moments: Moments) -> bool {
        let mut contents = self.base.clone();
        let mut first: Option<Contents> = None;
        (0..=self.changes.len()).any(|count| {
            if count > 0 {
                self.changes[count - 1].effects.iter().for_each(|effect| apply(&mut contents, effect, self.keys));
            }
            if count < required || !agree(found, &contents, moments) {
                return false;
            }
            first.get_or_insert_with(|| contents.clone()) != &contents
        })
    }

    /// After a recovery that kept so many changes: they stay for good, the others are gone.
    pub fn recovered(&mut self, survived: usize) {
        for change in self.changes.drain(..).take(survived) {
            change.effects.iter().for_each(|effect| apply(&mut self.base, effect, self.keys));
        }
        self.current = self.base.clone();
        (self.durable, self.checkpointed) = (0, 0);
    }

    /// Like [`Model::recovered`] on a damaged medium, which may still take the changes since the last checkpoint, those that
    /// this recovery has found included.
    pub fn recovered_from_damage(&mut self, survived: usize, now_ms: u64) {
        self.changes.truncate(survived);
        self.current = self.base.clone();
        for change in &mut self.changes {
            change.effects.iter().for_each(|effect| apply(&mut self.current, effect, self.keys));
            change.acknowledged.get_or_insert(now_ms);
        }
        (self.durable, self.checkpointed) = (survived, self.checkpointed.min(survived));
    }

    /// In words, how the found contents differ from those after all changes.
    pub fn differences(&self, found: &Found, moments: Moments) -> String {
        let mut contents = self.base.clone();
        self.changes.iter().flat_map(|change| &change.effects).for_each(|e| apply(&mut contents, e, self.keys));
        let mut out = Vec::new();
        for (table, (found, wanted)) in found.iter().zip(&contents).enumerate() {
            match (found, wanted) {
                (Some(found), Some(wanted)) => {
                    for (key, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                        if !wanted.shows(*found, moments) {
                            let wanted = wanted.at(moments.1);
                            out.push(format!("table {table} key {key}: {found:x?} instead of {wanted:x?}"));
                        }
                    }
                }
                (None, None) => {}
                (found, _) => {
                    out.push(format!("table {table} is {}", if found.is_some() { "there" } else { "missing" }))
                }
            }
        }
        out.truncate(12);
        out.join("; ")
    }
}

fn apply(contents: &mut Contents, effect: &Effect, keys: usize) {
    match effect {
        Effect::Set(table, key, held) => {
            if let Some(cells) = &mut contents[*table] {
                cells[*key] = held.clone();
            }
        }
        Effect::Merge(table, key, operand) => {
            if let Some(cells) = &mut contents[*table] {
                cells[*key] = cells[*key].merged(operand);
            }
        }
        Effect::Create(table) | Effect::Truncate(table) => contents[*table] = Some(vec![Held::default(); keys]),
        Effect::Drop(table) => contents[*table] = None,
        Effect::Swap(one, other) => contents.swap(*one, *other),
    }
}

fn agree(found: &Found, wanted: &Contents, moments: Moments) -> bool {
    found.iter().zip(wanted).all(|pair| match pair {
        (Some(found), Some(wanted)) => {
            found.iter().zip(wanted).all(|(found, wanted)| *found == Cell::Damaged || wanted.shows(*found, moments))
        }
        (found, wanted) => found.is_none() == wanted.is_none(),
    })
}

/// Tells values apart.
pub fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let mut hash = bytes.len() as u64;
    let mut take = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().for_each(|word| take(u64::from_le_bytes(*word)));
    rest.iter().for_each(|byte| take(u64::from(*byte)));
    hash ^ hash >> 32
}
