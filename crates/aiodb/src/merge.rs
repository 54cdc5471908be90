//! Merge operators: the meaning of the operands of [`crate::Table::merge`].

mod frames;

use std::fmt;
use std::sync::Arc;

pub use frames::Frames;

/// An associative function that combines a key's value with operands, which are combined as they come where memory has the value, and
/// else stored and combined when the key is read. The same operands in the same order must always give the same value, in every process that opens
/// the store, and combining neighbours first must not change it.
///
/// A table names its operator when it is made ([`crate::TableOptions::merge`]); the program registers it each time it
/// opens the store ([`crate::Options::merge_operators`]).
pub trait MergeOperator: Send + Sync {
    /// The name that tables refer to, which never changes.
    fn name(&self) -> &str;

    /// The value of a key: `base` is the last value put (`None` = none, or it was deleted), `operands` came after it,
    /// oldest first. An error, in words, is given to every reader of the key, until the key is put or deleted. So is a panic.
    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> std::result::Result<Vec<u8>, String>;

    /// Whether an operand with nothing before it is the value, as it is. Then such a key is read without a merge.
    fn is_value_alone(&self) -> bool {
        false
    }

    /// The cover of an operand, if others may stand for it or it for others: an operand whose cover is covered by that of a
    /// later one may be left out of the operands that [`MergeOperator::merge`] is given. An ordered table then counts it as dead
    /// at once, like a record under a put.
    fn cover(&self, operand: &[u8]) -> Option<Cover> {
        let _ = operand;
        None
    }
}

/// The parts that an operand has, and their times: an operand covers others, and stands for them, see [`Cover::covers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The meaning of the parts: covers with different numbers have nothing to do with each other.
    pub meaning: u64,
    /// The set of the parts, as bits.
    pub parts: u64,
    /// The time of the earliest part.
    pub earliest: i64,
    /// The time of the latest one.
    pub latest: i64,
}

impl Cover {
    /// Whether this has each part of `other` from a later time: a reader that takes each part from its latest operand takes
    /// none from `other`.
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

    pub(crate) fn find(&self, name: &str) -> Option<&dyn MergeOperator> {
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
