//! Batches as Java encodes them (`Batch.java`): operations one after the other, each with a kind (1 byte), the position
//! of its table among the batch's tables, the lengths of its key and its value (4 bytes each, little-endian), the key
//! and the value.

use std::sync::Arc;

use aiodb::{Batch, Db, Durability, Sequence, Table};

use crate::failure::{Failure, Result};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const APPEND: u8 = 3;
const DELETE_RANGE: u8 = 4;

/// The lowest key: keys have at least one byte.
const FIRST_KEY: &[u8] = &[0];

/// One decoded operation.
struct Operation<'a> {
    kind: u8,
    table: &'a Table,
    key: &'a [u8],
    value: &'a [u8],
}

/// Applies a batch, all or nothing.
pub(crate) fn write(db: &Db, tables: &[Arc<Table>], bytes: &[u8], durability: Durability) -> Result<Sequence> {
    let mut rest = bytes;
    let first = match rest {
        [] => None,
        _ => Some(take_operation(&mut rest, tables)?),
    };
    match first {
        // The engine need not copy a lone operation.
        Some(Operation { kind, table, key, value }) if rest.is_empty() => Ok(match kind {
            PUT => table.put_with(key, value, durability)?,
            DELETE => table.delete_with(key, durability)?,
            APPEND => table.merge_with(key, value, durability)?,
            DELETE_RANGE => table.delete_range_with(range_start(key), value, durability)?,
            _ => return Err(UNKNOWN),
        }),
        _ => Ok(db.write_with(&decode(bytes, tables)?, durability)?),
    }
}

const UNKNOWN: Failure = Failure::Argument("a batch has an operation of an unknown kind");

fn decode(bytes: &[u8], tables: &[Arc<Table>]) -> Result<Batch> {
    let mut batch = Batch::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Operation { kind, table, key, value } = take_operation(&mut rest, tables)?;
        match kind {
            PUT => batch.put(table, key, value)?,
            DELETE => batch.delete(table, key)?,
            APPEND => batch.merge(table, key, value)?,
            DELETE_RANGE => batch.delete_range(table, range_start(key), value)?,
            _ => return Err(UNKNOWN),
        };
    }
    Ok(batch)
}

/// An empty start means the table's beginning.
fn range_start(key: &[u8]) -> &[u8] {
    if key.is_empty() { FIRST_KEY } else { key }
}

fn take_operation<'a>(rest: &mut &'a [u8], tables: &'a [Arc<Table>]) -> Result<Operation<'a>> {
    const CUT: Failure = Failure::Argument("a batch ends within an operation");
    let (&kind, after) = rest.split_first().ok_or(CUT)?;
    *rest = after;
    let mut number = || -> Result<usize> {
        let (bytes, after) = rest.split_first_chunk::<4>().ok_or(CUT)?;
        *rest = after;
        Ok(u32::from_le_bytes(*bytes) as usize)
    };
    let (table, key_length, value_length) = (number()?, number()?, number()?);
    let table = tables.get(table).ok_or(Failure::Argument("a batch names a table that it does not list"))?;
    let (key, after) = rest.split_at_checked(key_length).ok_or(CUT)?;
    let (value, after) = after.split_at_checked(value_length).ok_or(CUT)?;
    *rest = after;
    Ok(Operation { kind, table, key, value })
}

#[cfg(test)]
mod tests;
