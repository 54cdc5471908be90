//! The operands of a run, some of which stand for earlier ones.
//!
//! An operand is its payload and a trailer, by which operands are found from the end of a value backward: before the first
//! there is whatever was put. Those of part 0 all stay; of those of another part only the one from the latest time counts.

use aiodb::MergeOperator;
use aiodb::merge::Cover;

use crate::script::Value;

const MARK: [u8; 4] = *b"\xffop\xfe";
/// The part, the time, the payload's length, the mark.
const TRAILER_BYTES: usize = 1 + 8 + 4 + MARK.len();
/// Parts besides 0.
const PARTS: u32 = 3;

/// The operator of all tables.
pub struct Operands;

impl MergeOperator for Operands {
    fn name(&self) -> &str {
        "operands"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        Ok(combined(&[base.unwrap_or_default(), &operands.concat()].concat()))
    }

    fn is_value_alone(&self) -> bool {
        true
    }

    fn cover(&self, operand: &[u8]) -> Option<Cover> {
        let (_, part, time) = last(operand).filter(|(rest, part, _)| rest.is_empty() && *part > 0)?;
        Some(Cover { meaning: 0, parts: 1 << part, earliest: time, latest: time })
    }
}

/// The bytes of an operand. Most are from a later time than earlier ones.
pub fn operand(value: Value) -> Vec<u8> {
    let payload = value.bytes();
    let part = if value.seed.is_multiple_of(2) { 0 } else { 1 + (value.seed / 2 % PARTS) as u8 };
    let time = i64::from(value.seed) - if value.seed.is_multiple_of(5) { 20 } else { 0 };
    let length = (payload.len() as u32).to_be_bytes();
    [&payload[..], &[part], &time.to_be_bytes(), &length, &MARK].concat()
}

/// A value without the operands for which others stand.
pub fn combined(value: &[u8]) -> Vec<u8> {
    let (mut found, mut rest) = (Vec::new(), value);
    while let Some((before, part, time)) = last(rest) {
        found.push((&rest[before.len()..], part, time));
        rest = before;
    }
    let stays = |(_, part, time): &(&[u8], u8, i64)| {
        *part == 0 || !found.iter().any(|(_, other, later)| other == part && later > time)
    };
    let staying = found.iter().rev().filter(|operand| stays(operand)).map(|(bytes, ..)| *bytes);
    std::iter::once(rest).chain(staying).collect::<Vec<_>>().concat()
}

/// What is before the last operand, its part and its time.
fn last(value: &[u8]) -> Option<(&[u8], u8, i64)> {
    let (value, trailer) = value.split_at_checked(value.len().checked_sub(TRAILER_BYTES)?)?;
    let (&part, trailer) = trailer.split_first()?;
    let (time, trailer) = trailer.split_first_chunk()?;
    let (length, mark) = trailer.split_first_chunk()?;
    let before = value.len().checked_sub(u32::from_be_bytes(*length) as usize)?;
    (mark == MARK).then(|| (&value[..before], part, i64::from_be_bytes(*time)))
}
