//! Merge operators: what the operands of [`crate::Table::merge`] mean.

mod frames;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use crate::catalog::Generation;
use crate::engine::Engine;
use crate::io::Device;
use crate::{Error, Result};
pub use frames::Frames;

/// An associative function that combines a key's value with operands, which are stored as they come and combined when
/// the key is read. The same operands in the same order must always give the same value, in every process that opens
/// the store, and combining neighbours first must not change it.
///
/// A table names its operator when it is made ([`crate::TableOptions::merge`]); the program registers it each time it
/// opens the store ([`crate::Options::merge_operators`]).
pub trait MergeOperator: Send + Sync {
    /// The name that tables refer to, which never changes.
    fn name(&self) -> &str;

    /// The value of a key: `base` is what was put last (`None` = nothing, or it was deleted), `operands` came after it,
    /// oldest first. An error, in words, is given to whoever reads the key; it stays until the key is put or deleted. So is a
    /// panic.
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> std::result::Result<Vec<u8>, String>;

    /// Whether an operand with nothing before it is the value, as it is. Then such a key is read without a merge.
    fn is_value_alone(&self) -> bool {
        false
    }

    /// What an operand says, if others may stand for it or it for others: an operand whose cover is covered by that of a
    /// later one may be left out of what [`MergeOperator::merge`] is given. An ordered table then counts it as dead at
    /// once, as what is under a put.
    fn cover(&self, operand: &[u8]) -> Option<Cover> {
        let _ = operand;
        None
    }
}

/// Which parts an operand has, and from when they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// What the parts mean: covers with another number have nothing to do with each other.
    pub meaning: u64,
    /// The set of the parts, as bits.
    pub parts: u64,
    /// The time of the earliest part.
    pub earliest: i64,
    /// The time of the latest one.
    pub latest: i64,
}

impl Cover {
    /// Whether this has each part of another one from a later time: whoever takes each part from where it is latest takes
    /// none from there.
    pub fn covers(&self, other: &Cover) -> bool {
        self.meaning == other.meaning && other.parts & !self.parts == 0 && self.earliest > other.latest
    }
}

/// The operators that a program registers.
#[derive(Clone, Default)]
pub struct MergeOperators(Vec<Named>);

/// An operator with its name, which is asked for once.
#[derive(Clone)]
struct Named {
    name: String,
    operator: Arc<dyn MergeOperator>,
}

impl MergeOperators {
    /// Adds an operator; a later one of the same name takes its place.
    pub fn with(mut self, operator: impl MergeOperator + 'static) -> MergeOperators {
        let name = operator.name().to_string();
        self.0.retain(|other| other.name != name);
        self.0.push(Named { name, operator: Arc::new(operator) });
        self
    }

    fn find(&self, name: &str) -> Option<&dyn MergeOperator> {
        self.0.iter().find(|named| named.name == name).map(|named| &*named.operator)
    }
}

impl fmt::Debug for MergeOperators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|named| &named.name)).finish()
    }
}

/// Appends operands to the value: an operator named `append`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Append;

impl MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> std::result::Result<Vec<u8>, String> {
        Ok([base.unwrap_or_default(), &operands.concat()].concat())
    }

    fn is_value_alone(&self) -> bool {
        true
    }
}

/// Adds little-endian 64-bit integers, wrapping around; no value counts as 0: an operator named `add`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Add;

impl MergeOperator for Add {
    fn name(&self) -> &str {
        "add"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> std::result::Result<Vec<u8>, String> {
        let mut sum = 0i64;
        for part in base.iter().chain(operands) {
            let bytes = part.as_array().ok_or_else(|| format!("{} bytes are not an integer of 8", part.len()))?;
            sum = sum.wrapping_add(i64::from_le_bytes(*bytes));
        }
        Ok(sum.to_le_bytes().to_vec())
    }
}

/// Calls a method of a user's operator. A panic there is that call's error: what the caller holds is given back on the way,
/// and nobody else notices.
fn guarded<T>(operator: &str, call: impl FnOnce() -> std::result::Result<T, String>) -> Result<T> {
    // The engine leaves nothing half done that the operator could see: it is given bytes and gives bytes.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(call));
    let outcome =
        outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", crate::background::message_of(&*panic))));
    outcome.map_err(|reason| Error::Merge { operator: operator.to_string(), reason })
}

impl<D: Device> Engine<D> {
    /// The operator of a table, with its name.
    fn merge_operator<'a>(&'a self, generation: &'a Generation) -> Result<(&'a str, &'a dyn MergeOperator)> {
        let Some(name) = &generation.settings.merge else {
            return Err(Error::NoMergeOperator { name: None });
        };
        let operator = self.options.merge_operators.find(name);
        let operator = operator.ok_or_else(|| Error::NoMergeOperator { name: Some(name.clone()) })?;
        Ok((name, operator))
    }

    /// An error if the table has no operator.
    pub(crate) fn check_merge_operator(&self, generation: &Generation) -> Result<()> {
        self.merge_operator(generation).map(drop)
    }

    /// Whether an operand with nothing before it is the value in this table.
    pub(crate) fn is_value_alone(&self, generation: &Generation) -> bool {
        let asked = self.merge_operator(generation);
        asked.and_then(|(name, operator)| guarded(name, || Ok(operator.is_value_alone()))).unwrap_or(false)
    }

    /// What an operand says. Of an operator that panics here nothing is known: its operands stand for themselves.
    pub(crate) fn cover_of(&self, generation: &Generation, operand: &[u8]) -> Option<Cover> {
        let (name, operator) = self.merge_operator(generation).ok()?;
        let cover = guarded(name, || Ok(operator.cover(operand)));
        cover.inspect_err(|error| self.note_trouble(error)).unwrap_or(None)
    }

    /// The value that operands, newest first, make of a base. It may be taken out of them.
    pub(crate) fn merged(
        &self,
        generation: &Generation,
        key: &[u8],
        base: Option<&[u8]>,
        operands: &mut Vec<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let (name, operator) = self.merge_operator(generation)?;
        if base.is_none() && operands.len() == 1 && self.is_value_alone(generation) {
            return Ok(operands.remove(0));
        }
        let oldest_first: Vec<&[u8]> = operands.iter().rev().map(Vec::as_slice).collect();
        let value = guarded(name, || operator.merge(key, base, &oldest_first))?;
        self.check_value(&value)?;
        Ok(value)
    }
}
