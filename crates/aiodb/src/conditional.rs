//! Writes that happen only if certain keys hold what they should: compare-and-set, and batches with conditions.
//!
//! The log is the one order of all writes, so a condition must hold at the place in the log where the write goes. It is
//! checked optimistically. For every key that is conditional, its stripe (a part of all keys, by hash) knows the last
//! sequence that was appended to it and how many of its records are not yet published. A conditional write notes where
//! the log ends, waits until its stripes have nothing unpublished (so that a get sees all that the log held at the note),
//! evaluates its conditions with ordinary gets, and then appends under the commit lock if no record went to its stripes
//! since the note. If one did, it starts over.
//!
//! A round fails only because another write got in, so all writers together always proceed; and a write that was
//! overtaken in [`MOST_ROUNDS`] rounds has the log to itself for the next one (`Turn`), so each of them proceeds too.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::catalog::{Generation, TableSlot};
use crate::commit::Turn;
use crate::engine::Engine;
use crate::io::Device;
use crate::log::batch::Placed;
use crate::log::record::Kind;
use crate::operation::Operation;
use crate::planted::{self, Bug};
use crate::snapshot::View;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::yield_now;
use crate::write::{Appended, last_sequence};
use crate::{Batch, Durability, Error, Result, Sequence, Table};

/// How often a conditional write is tried beside others before it makes them wait.
const MOST_ROUNDS: usize = 16;

/// How often a conditional write looks whether someone has published before it sleeps on the log.
const MOST_GLANCES: usize = 32;

/// Conditions of one batch.
pub(crate) const MAX_CONDITIONS: usize = 4096;

/// Stripes, as a power of two: enough that two keys rarely share one while a conditional write is under way.
const STRIPES_LOG2: u32 = 15;

/// What a key must hold for a batch to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'a> {
    /// The key is absent.
    Absent,
    /// The key has a value, whichever.
    Present,
    /// The key has this value.
    Equals(&'a [u8]),
}

/// A condition in a batch, with what it is about.
pub(crate) struct Requirement {
    pub(crate) slot: Arc<TableSlot>,
    key: Vec<u8>,
    wanted: Wanted,
}

enum Wanted {
    Absent,
    Present,
    Equals(Vec<u8>),
}

/// What the log knows of a part of all keys.
#[derive(Default)]
struct Stripe {
    /// The last sequence appended; changed under the commit lock.
    last: AtomicU64,
    /// That of the last one that is no operand.
    last_base: AtomicU64,
    /// Records that are appended and not yet published; grows under the commit lock.
    unpublished: AtomicU32,
}

/// What conditional writes must know about all others.
pub(crate) struct Stripes {
    /// The last one is that of range deletes, which concern any key.
    stripes: Box<[Stripe]>,
}

/// The stripe of range deletes.
const RANGES: usize = 1 << STRIPES_LOG2;

impl Default for Stripes {
    fn default() -> Self {
        Stripes { stripes: (0..=RANGES).map(|_| Stripe::default()).collect() }
    }
}

impl Stripes {
    fn number(table: u32, hash: u64) -> usize {
        const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = (hash ^ u64::from(table).wrapping_mul(MIX)).wrapping_mul(MIX);
        (mixed >> (u64::BITS - STRIPES_LOG2)) as usize
    }

    fn of(table: u32, hash: u64, kind: Kind) -> usize {
        if kind == Kind::RangeDelete { RANGES } else { Stripes::number(table, hash) }
    }

    /// To be noted under the commit lock, when records are appended that change what a get returns.
    pub(crate) fn appended(&self, operations: &[Operation<'_>], placed: &[Placed]) {
        for (operation, placed) in operations.iter().zip(placed) {
            let kind = operation.append.kind;
            let Some(generation) = operation.generation.as_ref().filter(|_| kind.is_indexed()) else { continue };
            let stripe = &self.stripes[Stripes::of(generation.id, operation.hash, kind)];
            stripe.last.store(placed.sequence, Ordering::Relaxed);
            if kind != Kind::Merge {
                stripe.last_base.store(placed.sequence, Ordering::Relaxed);
            }
            stripe.unpublished.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// To be noted when one of these records has been published.
    pub(crate) fn published(&self, table: u32, hash: u64, kind: Kind) {
        let before = self.stripes[Stripes::of(table, hash, kind)].unpublished.fetch_sub(1, Ordering::Release);
        assert!(before > 0, "what is published was appended");
    }

    /// No put or delete of a key came to the log after this sequence since the store was opened. Asked while nobody appends.
    pub(crate) fn last_base(&self, table: u32, hash: u64) -> u64 {
        self.stripes[Stripes::number(table, hash)].last_base.load(Ordering::Relaxed)
    }

    fn are_published(&self, stripes: &[usize]) -> bool {
        stripes.iter().all(|&stripe| self.stripes[stripe].unpublished.load(Ordering::Acquire) == 0)
    }

    /// Whether nothing was appended to these stripes from a sequence on. Asked under the commit lock.
    fn are_unchanged(&self, stripes: &[usize], since: u64) -> bool {
        stripes.iter().all(|&stripe| self.stripes[stripe].last.load(Ordering::Relaxed) < since)
    }
}

/// How a conditional write ended that was not refused.
enum Attempt<'a> {
    Appended(Option<Appended<'a>>, Sequence),
    /// Another write came between the conditions and the append.
    Overtaken,
    /// A table of the operations was emptied or dropped.
    TableChanged,
}

/// A conditional write that is in the log.
pub(crate) type Conditional<'a> = (Option<Appended<'a>>, Sequence);

impl<D: Device> Engine<D> {
    /// Appends the operations if all requirements hold at that place in the log, else fails with
    /// [`Error::ConditionFailed`]. `None`: a table of the operations has another generation now; make them anew.
    pub(crate) fn append_conditional<'a>(
        &'a self,
        requirements: &[Requirement],
        operations: &[Operation<'_>],
        durability: Durability,
    ) -> Result<Option<Conditional<'a>>> {
        for _ in 0..MOST_ROUNDS {
            match self.try_conditional(requirements, operations, durability, None)? {
                Attempt::Appended(appended, sequence) => return Ok(Some((appended, sequence))),
                Attempt::TableChanged => return Ok(None),
                Attempt::Overtaken => {}
            }
        }
        loop {
            let turn = self.take_turn()?;
            match self.try_conditional(requirements, operations, durability, Some(&turn))? {
                Attempt::Appended(mut appended, sequence) => {
                    if let Some((state, _)) = appended.as_mut().and_then(|appended| appended.unpublished.as_mut()) {
                        turn.end(state);
                    }
                    return Ok(Some((appended, sequence)));
                }
                Attempt::TableChanged => return Ok(None),
                // A table of the requirements was emptied.
                Attempt::Overtaken => {}
            }
        }
    }

    /// Fails if a requirement does not hold at some moment during the call. (That all hold says nothing yet.)
    pub(crate) fn check_requirements(&self, requirements: &[Requirement]) -> Result<()> {
        for (number, requirement) in requirements.iter().enumerate() {
            self.check_requirement(number, requirement, &requirement.slot.generation()?)?;
        }
        Ok(())
    }

    fn check_requirement(&self, number: usize, requirement: &Requirement, generation: &Arc<Generation>) -> Result<()> {
        let found = self.get(generation, &requirement.key, &View::LATEST)?;
        let holds = match &requirement.wanted {
            Wanted::Absent => found.is_none(),
            Wanted::Present => found.is_some(),
            Wanted::Equals(value) => found.as_ref() == Some(value),
        };
        let failed = || Error::ConditionFailed { condition: number, table: requirement.slot.name.clone() };
        holds.then_some(()).ok_or_else(failed)
    }

    fn try_conditional<'a>(
        &'a self,
        requirements: &[Requirement],
        operations: &[Operation<'_>],
        durability: Durability,
        turn: Option<&Turn<'_>>,
    ) -> Result<Attempt<'a>> {
        let began = self.commit.next_sequence();
        let mut generations = SmallVec::<[_; 4]>::new();
        let mut stripes: SmallVec<[usize; 4]> = smallvec::smallvec![RANGES];
        for requirement in requirements {
            let generation = requirement.slot.generation()?;
            stripes.push(Stripes::number(generation.id, self.hash(&requirement.key)));
            generations.push(generation);
        }
        if !planted::is_on(Bug::WaitingWriteOverlooked) {
            self.wait_published(&stripes)?;
        }
        for (number, (requirement, generation)) in requirements.iter().zip(&generations).enumerate() {
            self.check_requirement(number, requirement, generation)?;
        }
        let known = |table: u32| self.catalog.generation(table).is_some();
        let unchanged = || {
            self.commit.stripes.are_unchanged(&stripes, began)
                && generations.iter().all(|generation| known(generation.id))
                && operations.iter().all(|operation| known(operation.append.table))
        };
        if operations.is_empty() {
            let state = self.commit.lock();
            let sequence = Sequence(state.appended_sequence());
            return Ok(if unchanged() { Attempt::Appended(None, sequence) } else { Attempt::Overtaken });
        }
        match self.append(operations, durability, turn, unchanged)? {
            Some(appended) => {
                let sequence = last_sequence(&appended.placed);
                Ok(Attempt::Appended(Some(appended), sequence))
            }
            None if operations.iter().all(|operation| known(operation.append.table)) => Ok(Attempt::Overtaken),
            None => Ok(Attempt::TableChanged),
        }
    }

    /// Waits until the stripes have no record that is appended and not published: one of another thread that is about
    /// to publish it, or one in a batch that is still to be written.
    fn wait_published(&self, stripes: &[usize]) -> Result<()> {
        for glance in 0.. {
            if self.commit.stripes.are_published(stripes) {
                break;
            }
            self.commit.check()?;
            if glance < MOST_GLANCES {
                yield_now();
                continue;
            }
            let state = self.commit.lock();
            if state.busy {
                drop(self.wait_idle(state));
            } else if state.open.as_ref().is_some_and(|open| open.sync_wanted) {
                self.lead(state)?;
            } else {
                drop(state);
                yield_now();
            }
        }
        Ok(())
    }
}

impl<D: Device> Table<D> {
    /// Stores `new` if the key's value is `expected`, in the store's durability class; `None` is an absent key on
    /// either side, so that `new: None` deletes. False if the value is another, and nothing was changed.
    ///
    /// No other write comes between the comparison and the store, in whatever class it is made.
    ///
    /// ```
    /// # use aiodb::{Db, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), Options::default())?;
    /// let seats = db.table_or_create("seats", IndexKind::Hash)?;
    /// assert!(seats.compare_and_set(b"12A", None, Some(b"Ada"))?);
    /// assert!(!seats.compare_and_set(b"12A", None, Some(b"Bob"))?, "the seat is taken");
    /// assert!(seats.compare_and_set(b"12A", Some(b"Ada"), None)?);
    /// # Ok(()) }
    /// ```
    pub fn compare_and_set(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.compare_and_set_with(key, expected, new, self.engine.options.durability)
    }

    /// [`Table::compare_and_set`] in a class of its own.
    pub fn compare_and_set_with(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        durability: Durability,
    ) -> Result<bool> {
        self.engine.check_open()?;
        let mut batch = Batch::new();
        batch.require(self, key, expected.map_or(Condition::Absent, Condition::Equals))?;
        match new {
            Some(value) => batch.put(self, key, value)?,
            None => batch.delete(self, key)?,
        };
        match self.engine.write_batch(&batch, durability) {
            Ok(_) => Ok(true),
            Err(Error::ConditionFailed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl<D: Device> Batch<D> {
    /// Makes the batch conditional: it is written only if, at its place in the order of all writes, the key holds what
    /// the condition says, whatever else the batch does to it. Otherwise [`crate::Db::write`] fails with
    /// [`Error::ConditionFailed`], which counts the conditions from 0, and has changed nothing. A batch without
    /// operations only checks that its conditions (at most 4096) hold all at one moment.
    ///
    /// ```
    /// # use aiodb::{Batch, Condition, Db, Error, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path(), Options::default())?;
    /// # let accounts = db.table_or_create("accounts", IndexKind::Lmdb)?;
    /// # accounts.put(b"ada", b"30")?;
    /// # accounts.put(b"bob", b"0")?;
    /// let mut transfer = Batch::new();
    /// transfer.require(&accounts, b"ada", Condition::Equals(b"30"))?;
    /// transfer.require(&accounts, b"bob", Condition::Equals(b"0"))?;
    /// transfer.put(&accounts, b"ada", b"10")?.put(&accounts, b"bob", b"20")?;
    /// db.write(&transfer)?;
    /// assert!(matches!(db.write(&transfer), Err(Error::ConditionFailed { condition: 0, .. })));
    /// # Ok(()) }
    /// ```
    pub fn require(&mut self, table: &Table<D>, key: &[u8], condition: Condition<'_>) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        if self.requirements.len() >= MAX_CONDITIONS {
            let value = (MAX_CONDITIONS + 1).to_string();
            return Err(Error::Option { option: "conditions of a batch", value, allowed: "at most 4096" });
        }
        let wanted = match condition {
            Condition::Absent => Wanted::Absent,
            Condition::Present => Wanted::Present,
            Condition::Equals(value) => Wanted::Equals(value.to_vec()),
        };
        self.requirements.push(Requirement { slot: Arc::clone(&table.slot), key: key.to_vec(), wanted });
        Ok(self)
    }
}
