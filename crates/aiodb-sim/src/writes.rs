//! What changes the contents, and how each outcome is taken into the model.

use std::num::NonZeroU64;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Condition, Durability, Error, WriteOptions};

use crate::model::{Contents, Effect, Held, Moments};
use crate::operands;
use crate::process::{Waiting, Written};
use crate::script::{Require, Value, Write, key_bytes};
use crate::state::{Run, Violation};

/// Bounds of a range delete are at most this long.
const MAX_BOUND_BYTES: usize = 440;

impl Run<'_> {
    /// Writes a group, if what it requires is there.
    pub(crate) fn write_batch(
        &mut self,
        requirements: &[(usize, usize, Require)],
        writes: &[(usize, usize, Write)],
        durability: Durability,
    ) -> Result<(), Violation> {
        self.write_batch_by(requirements, writes, durability, |run, batch| {
            run.db().write_with(batch, durability).map(|_| Written::Acknowledged)
        })
    }

    /// Like [`Run::write_batch`], by this call.
    pub(crate) fn write_batch_by(
        &mut self,
        requirements: &[(usize, usize, Require)],
        writes: &[(usize, usize, Write)],
        durability: Durability,
        write: impl FnOnce(&Self, &Batch<SimDevice>) -> aiodb::Result<Written>,
    ) -> Result<(), Violation> {
        let (from, from_ms) = (self.look_at_clock(), self.device.wall_ms());
        let effects = writes.iter().flat_map(|write| self.effects(*write, from_ms)).collect();
        let tables = writes.iter().map(|(table, ..)| *table).chain(requirements.iter().map(|(table, ..)| *table));
        let tables: Vec<usize> = tables.collect();
        let wanted: Vec<Option<Vec<u8>>> = requirements
            .iter()
            .map(|(table, key, require)| match require {
                Require::Current => self.model.held(*table, *key).and_then(|held| held.bytes_at(from_ms)),
                Require::Other(value) => Some(value.bytes()),
                Require::Absent | Require::Present => None,
            })
            .collect();
        let conditions: Vec<(usize, usize, Condition<'_>)> = requirements
            .iter()
            .zip(&wanted)
            .map(|((table, key, require), wanted)| match (require, wanted) {
                (Require::Present, _) => (*table, *key, Condition::Present),
                (_, Some(value)) => (*table, *key, Condition::Equals(value)),
                (_, None) => (*table, *key, Condition::Absent),
            })
            .collect();
        let (seen, logged) = (self.model.current().clone(), self.contents_in_log());
        let outcome = self.batch(&conditions, writes, from_ms).and_then(|batch| match write(self, &batch) {
            Err(Error::ConditionFailed { .. }) => Ok(Written::Refused),
            written => written,
        });
        let moments = self.moments(from);
        let [logged, seen] = [&logged, &seen].map(|contents| judge(contents, &conditions, moments));
        let judged = Judged { logged, seen };
        self.conditional(&tables, effects, durability, judged, outcome)
    }

    /// Takes the outcome of a conditional write into the model. It may be refused by either judgement: a write that waits is under
    /// way as well, and no client has been told which was first.
    fn conditional(
        &mut self,
        tables: &[usize],
        effects: Vec<Effect>,
        durability: Durability,
        Judged { logged, seen }: Judged,
        outcome: aiodb::Result<Written>,
    ) -> Result<(), Violation> {
        let exist = tables.iter().all(|table| self.model.exists(*table));
        match outcome {
            Ok(Written::Refused) if self.device.has_crashed() => Ok(()),
            Ok(Written::Refused) if exist && !(logged.must && seen.must) => Ok(()),
            Ok(Written::Refused) => Err("a write was refused whose conditions hold".into()),
            Ok(_) if !logged.may && !self.device.has_crashed() => {
                Err("a write was made whose conditions do not hold".into())
            }
            other => {
                let effects = if logged.may { effects } else { Vec::new() };
                self.written(tables, effects, durability, other)
            }
        }
    }

    /// Stores a value, or deletes, if a key holds what is required.
    pub(crate) fn set_if(
        &mut self,
        table: usize,
        key: usize,
        require: Require,
        new: Option<Value>,
        durability: Durability,
    ) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let expected = match require {
            Require::Current => self.model.held(table, key).and_then(|held| held.bytes_at(from.0)),
            Require::Other(value) => Some(value.bytes()),
            Require::Absent | Require::Present => None,
        };
        let (seen, logged) = (self.model.current().clone(), self.contents_in_log());
        let new = new.map(Value::bytes);
        let effect = new.as_deref().map_or_else(Held::default, |value| self.held(table, key, value, None));
        let outcome = self.table(table).and_then(|handle| {
            handle.compare_and_set_with(&key_bytes(key), expected.as_deref(), new.as_deref(), durability)
        });
        let moments = self.moments(from);
        let [logged, seen] = [&logged, &seen].map(|contents| {
            let held = contents[table].as_ref().map(|held| held[key].clone()).unwrap_or_default();
            let [at_first, at_last] = held.bytes(moments).map(|bytes| bytes == expected);
            Judgement { may: at_first || at_last, must: at_first && at_last }
        });
        let outcome = outcome.map(|made| if made { Written::Acknowledged } else { Written::Refused });
        let judged = Judged { logged, seen };
        self.conditional(&[table], vec![Effect::Set(table, key, effect)], durability, judged, outcome)
    }

    /// What a write of a group does to the contents.
    fn effects(&mut self, (table, key, write): (usize, usize, Write), from_ms: u64) -> Vec<Effect> {
        let set = |held| vec![Effect::Set(table, key, held)];
        match write {
            Write::Put(value) => set(self.held(table, key, &value.bytes(), None)),
            Write::PutFor(value, ms) => {
                self.estimated[table] = true;
                set(self.held(table, key, &value.bytes(), Some(from_ms + ms)))
            }
            Write::Delete => set(Held::default()),
            Write::DeleteRange(other) => {
                self.estimated[table] = true;
                self.effects_of_range(table, &bounds(key, other))
            }
            Write::Merge(operand) => {
                self.estimated[table] = true;
                vec![Effect::Merge(table, key, operands::operand(operand).into())]
            }
        }
    }

    fn batch(
        &self,
        conditions: &[(usize, usize, Condition<'_>)],
        writes: &[(usize, usize, Write)],
        from_ms: u64,
    ) -> aiodb::Result<Batch<SimDevice>> {
        let mut batch = Batch::new();
        for (table, key, condition) in conditions {
            batch.require(&self.table(*table)?, &key_bytes(*key), *condition)?;
        }
        for (table, number, write) in writes {
            let (table, key) = (self.table(*table)?, key_bytes(*number));
            match write {
                Write::Put(value) => batch.put(&table, &key, &value.bytes())?,
                Write::PutFor(value, ms) => {
                    let until_ms = NonZeroU64::new(from_ms + ms).expect("it is later than 1970");
                    batch.put_until(&table, &key, &value.bytes(), until_ms)?
                }
                Write::Delete => batch.delete(&table, &key)?,
                Write::DeleteRange(other) => {
                    let [start, end] = bounds(*number, *other);
                    batch.delete_range(&table, &start, &end)?
                }
                Write::Merge(operand) => batch.merge(&table, &key, &operands::operand(*operand))?,
            };
        }
        Ok(batch)
    }

    /// Puts a value.
    pub(crate) fn put(
        &mut self,
        table: usize,
        key: usize,
        value: Value,
        durability: Durability,
    ) -> Result<(), Violation> {
        let bytes = value.bytes();
        let effects = vec![Effect::Set(table, key, self.held(table, key, &bytes, None))];
        let key = key_bytes(key);
        self.write(effects, durability, |run| run.table(table)?.put_with(&key, &bytes, durability).map(drop))
    }

    /// Appends an operand to what a key holds.
    pub(crate) fn merge(
        &mut self,
        table: usize,
        key: usize,
        operand: Value,
        durability: Durability,
    ) -> Result<(), Violation> {
        self.estimated[table] = true;
        let bytes = operands::operand(operand);
        let effects = vec![Effect::Merge(table, key, bytes.as_slice().into())];
        let key = key_bytes(key);
        let merge = |run: &mut Self| run.table(table)?.merge_with(&key, &bytes, durability).map(drop);
        self.write(effects, durability, merge)
    }

    /// Deletes what a key holds.
    pub(crate) fn delete(&mut self, table: usize, key: usize, durability: Durability) -> Result<(), Violation> {
        let effects = vec![Effect::Set(table, key, Held::default())];
        let key = key_bytes(key);
        self.write(effects, durability, |run| run.table(table)?.delete_with(&key, durability).map(drop))
    }

    /// Puts a value that expires.
    pub(crate) fn put_for(
        &mut self,
        table: usize,
        key: usize,
        value: Value,
        durability: Durability,
        ms: u64,
    ) -> Result<(), Violation> {
        self.estimated[table] = true;
        let (bytes, until_ms) = (value.bytes(), self.device.wall_ms() + ms);
        let effects = vec![Effect::Set(table, key, self.held(table, key, &bytes, Some(until_ms)))];
        let options = WriteOptions { durability: Some(durability), expires_ms: NonZeroU64::new(until_ms) };
        let key = key_bytes(key);
        self.write(effects, durability, |run| run.table(table)?.put_with(&key, &bytes, options).map(drop))
    }

    /// Deletes what lies from one key to before the other.
    pub(crate) fn delete_range(
        &mut self,
        table: usize,
        durability: Durability,
        first: usize,
        second: usize,
    ) -> Result<(), Violation> {
        let range = bounds(first, second);
        let effects = self.effects_of_range(table, &range);
        self.write_range(table, durability, range, effects)
    }

    /// Deletes a range that ends where it begins, or before that.
    pub(crate) fn delete_nothing(
        &mut self,
        table: usize,
        durability: Durability,
        first: usize,
        second: usize,
    ) -> Result<(), Violation> {
        let [end, start] = bounds(first, second);
        self.write_range(table, durability, [start, end], Vec::new())
    }

    fn write_range(
        &mut self,
        table: usize,
        durability: Durability,
        [start, end]: [Vec<u8>; 2],
        effects: Vec<Effect>,
    ) -> Result<(), Violation> {
        self.estimated[table] = true;
        let delete = |run: &mut Self| run.table(table)?.delete_range_with(&start, &end, durability).map(drop);
        self.write_to(&[table], effects, durability, delete)
    }

    fn effects_of_range(&self, table: usize, [start, end]: &[Vec<u8>; 2]) -> Vec<Effect> {
        let keys = (0..self.script.setup.keys).filter(|key| (start..end).contains(&&key_bytes(*key)));
        keys.map(|key| Effect::Set(table, key, Held::default())).collect()
    }

    /// A change of the contents: acknowledged, refused, or of unknown outcome.
    pub(crate) fn write(
        &mut self,
        effects: Vec<Effect>,
        durability: Durability,
        write: impl FnOnce(&mut Self) -> aiodb::Result<()>,
    ) -> Result<(), Violation> {
        let tables = |effect: &Effect| match effect {
            Effect::Set(table, ..) | Effect::Merge(table, ..) | Effect::Drop(table) | Effect::Truncate(table) => {
                vec![*table]
            }
            Effect::Swap(one, other) => vec![*one, *other],
            Effect::Create(_) => Vec::new(),
        };
        let tables: Vec<usize> = effects.iter().flat_map(tables).collect();
        self.write_to(&tables, effects, durability, write)
    }

    /// Like [`Run::write`], to tables that must exist.
    pub(crate) fn write_to(
        &mut self,
        tables: &[usize],
        effects: Vec<Effect>,
        durability: Durability,
        write: impl FnOnce(&mut Self) -> aiodb::Result<()>,
    ) -> Result<(), Violation> {
        let outcome = write(self).map(|()| Written::Acknowledged);
        self.written(tables, effects, durability, outcome)
    }

    /// What comes of a write to tables that must exist.
    fn written(
        &mut self,
        tables: &[usize],
        effects: Vec<Effect>,
        durability: Durability,
        outcome: aiodb::Result<Written>,
    ) -> Result<(), Violation> {
        let tables_exist = tables.iter().all(|table| self.model.exists(*table));
        // Writes that waited come before this one in the log.
        self.notice_published();
        if self.device.has_crashed() {
            // The process may have died in the middle of the call, whatever it would have returned.
            if tables_exist {
                self.model.attempt(effects);
            }
            return Ok(());
        }
        match outcome {
            Ok(_) if !tables_exist => Err("a write to a table that does not exist was acknowledged".into()),
            Ok(Written::Appended(write)) => {
                let change = self.model.attempt(effects);
                self.life().waiting.push(Waiting { write, change });
                Ok(())
            }
            Ok(_) => {
                self.model.acknowledge(effects.clone(), durability, self.device.clock_ms());
                self.clients_see(&effects);
                Ok(())
            }
            Err(Error::NoSuchTable { .. }) if !tables_exist => Ok(()),
            Err(Error::BatchTooLarge { .. }) => Ok(()),
            // A write that makes room must find some, as soon as no client holds the segments to be emptied.
            Err(error @ Error::DiskFull { .. }) if self.script.setup.index_needs.is_some() && is_freeing(&effects) => {
                if !self.life().end_holding() {
                    return Err(format!("what makes room was refused: {error}"));
                }
                match (0..self.script.setup.tables.len()).find(|table| self.model.exists(*table)) {
                    Some(table) => self.delete(table, 0, durability),
                    None => Ok(()),
                }
            }
            Err(Error::Io { .. }) if self.allowed.errors => {
                self.find_out(effects);
                Ok(())
            }
            Err(error) => self.unexpected("a write", Err(error)),
        }
    }

    /// After a failed call: whether the store goes on, or refuses writes because it cannot know what has happened.
    pub(crate) fn find_out(&mut self, effects: Vec<Effect>) {
        let goes_on = self.db().sync().is_ok();
        if self.device.has_crashed() {
            self.model.attempt(effects);
        } else if goes_on {
            // A refused write has not happened.
            self.model.everything_is_durable();
        } else {
            self.model.attempt(effects);
            self.failed = Some(0);
        }
    }
}

/// Whether nothing is written but deletes.
fn is_freeing(effects: &[Effect]) -> bool {
    let frees = |effect: &Effect| match effect {
        Effect::Set(_, _, held) => *held == Held::default(),
        Effect::Drop(_) | Effect::Truncate(_) => true,
        Effect::Merge(..) | Effect::Create(_) | Effect::Swap(..) => false,
    };
    !effects.is_empty() && effects.iter().all(frees)
}

/// The judgements of a write's conditions.
struct Judged {
    /// By the contents that the log has before the write.
    logged: Judgement,
    /// By the contents that could be seen when it began.
    seen: Judgement,
}

/// Whether conditions hold.
struct Judgement {
    /// They may have held.
    may: bool,
    /// They did.
    must: bool,
}

/// Whether conditions may hold of these contents, and whether they do. All are judged at one moment, which may be any between
/// the two: one record may have expired by then, and another not yet.
fn judge(contents: &Contents, conditions: &[(usize, usize, Condition<'_>)], (from_ms, to_ms): Moments) -> Judgement {
    let held = |table: usize, key: usize| contents[table].as_ref().map(|held| &held[key]);
    // Whether conditions may hold at a moment, and whether they do.
    let holds = |now_ms: u64| {
        let each = conditions.iter().map(|(table, key, condition)| {
            let held = held(*table, *key).map_or([None, None], |held| held.bytes((now_ms, now_ms)));
            held.map(|bytes| match condition {
                Condition::Absent => bytes.is_none(),
                Condition::Present => bytes.is_some(),
                Condition::Equals(value) => bytes.as_deref() == Some(*value),
            })
        });
        each.fold(Judgement { may: true, must: true }, |all, [one, other]| Judgement {
            may: all.may && (one || other),
            must: all.must && one && other,
        })
    };
    let ends = conditions.iter().filter_map(|(table, key, _)| held(*table, *key)?.until_ms());
    let moments = ends.filter(|end_ms| (from_ms..=to_ms).contains(end_ms)).chain([from_ms, to_ms]);
    moments.map(holds).fold(Judgement { may: false, must: true }, |all, at| Judgement {
        may: all.may || at.may,
        must: all.must && at.must,
    })
}

/// The bounds of a range delete from one key to another, whichever is first.
fn bounds(first: usize, second: usize) -> [Vec<u8>; 2] {
    let mut bounds = [key_bytes(first), key_bytes(second)];
    // The index does not keep longer ones whole.
    bounds.iter_mut().for_each(|bound| bound.truncate(MAX_BOUND_BYTES));
    bounds.sort();
    bounds
}
