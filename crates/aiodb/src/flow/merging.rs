//! The merge of a key's operands, by the operator of its table.

use std::panic::AssertUnwindSafe;

use crate::io::Device;
use crate::merge::Cover;
use crate::store::catalog::Generation;
use crate::store::read_path::ReadPath;
use crate::{Error, MergeOperator, Result};

/// Calls a method of a user's operator. A panic there is that call's error: locks and guards of the caller are given back on the
/// way, and no other thread notices.
fn guarded<T>(operator: &str, call: impl FnOnce() -> std::result::Result<T, String>) -> Result<T> {
    // The operator sees no state of the engine that could be half changed: it is given bytes and gives bytes.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(call));
    let outcome = outcome.unwrap_or_else(|panic| Err(format!("it panicked: {}", crate::error::message_of(&*panic))));
    outcome.map_err(|reason| Error::Merge { operator: operator.to_string(), reason })
}

impl<D: Device> ReadPath<D> {
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

    /// The cover of an operand. None if the operator panics: its operands stand for themselves.
    pub(crate) fn cover_of(&self, generation: &Generation, operand: &[u8]) -> Option<Cover> {
        let (name, operator) = self.merge_operator(generation).ok()?;
        let cover = guarded(name, || Ok(operator.cover(operand)));
        cover.inspect_err(|error| self.note_trouble(error)).unwrap_or(None)
    }

    /// The value of a base and operands, newest first. It may be taken out of them.
    pub(crate) fn merged(
        &self,
        generation: &Generation,
        key: &[u8],
        base: Option<&[u8]>,
        operands: &mut Vec<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        if base.is_none() && operands.len() == 1 && self.is_value_alone(generation) {
            self.check_merge_operator(generation)?;
            return Ok(operands.remove(0));
        }
        let oldest_first: Vec<&[u8]> = operands.iter().rev().map(Vec::as_slice).collect();
        self.applied(generation, key, base, &oldest_first)
    }

    /// What the operator makes of a base and operands, oldest first.
    pub(crate) fn applied(
        &self,
        generation: &Generation,
        key: &[u8],
        base: Option<&[u8]>,
        oldest_first: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let (name, operator) = self.merge_operator(generation)?;
        let value = guarded(name, || operator.merge(key, base, oldest_first))?;
        self.check_value(&value)?;
        Ok(value)
    }
}
