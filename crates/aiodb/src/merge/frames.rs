//! Values that are rows of frames, see [`Frames`]. A frame that stands for another may itself be left out, for frames that are
//! later still; so it does not matter in which order frames are merged, and how many at a time.

use super::{Cover, MergeOperator};

/// Appends frames, and leaves out each of which later ones have all parts: an operator named `frames`.
///
/// A frame is its length, and so many bytes; numbers are unsigned and variable: as many one bits as bytes follow, a zero
/// bit unless there are eight, and the number, big-endian. The first byte is 0 for a frame that stands alone, 1
/// for one with a _cover_: a number for the meaning of its parts, the set of its parts as bits, the earliest time of a
/// part (8 bytes, big-endian), and how much later the latest is. A frame is left out where others of the same meaning have
/// each of its parts, and their earliest times are after the latest of its own: a reader that takes each part from the frame
/// where it is latest misses nothing. Values that are no frames are appended as they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frames;

const WITH_COVER: u8 = 1;

/// A set of parts is a number of so many bits.
const PARTS: usize = u64::BITS as usize;

/// The cover at the start of a frame's bytes behind its length, if it has one.
fn read_cover(mut bytes: &[u8]) -> Option<Cover> {
    let meaning = number(&mut bytes)?;
    let parts = number(&mut bytes).filter(|parts| *parts > 0)?;
    let (time, mut rest) = bytes.split_first_chunk()?;
    let earliest = i64::from_be_bytes(*time);
    let latest = earliest.checked_add(i64::try_from(number(&mut rest)?).ok()?)?;
    Some(Cover { meaning, parts, earliest, latest })
}

fn parts(cover: &Cover) -> impl Iterator<Item = usize> {
    let parts = cover.parts;
    (0..PARTS).filter(move |part| parts >> part & 1 == 1)
}

/// The latest time of each part of one meaning.
struct Latest {
    meaning: u64,
    parts: [i64; PARTS],
}

impl Latest {
    fn covers(&self, cover: &Cover) -> bool {
        self.meaning == cover.meaning && parts(cover).all(|part| self.parts[part] > cover.latest)
    }
}

impl MergeOperator for Frames {
    fn name(&self) -> &str {
        "frames"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let values = base.iter().chain(operands);
        let all = || values.clone().copied().collect::<Vec<_>>().concat();
        let mut frames = Vec::with_capacity(1 + operands.len());
        for value in values.clone() {
            // A value that is no frames is not for this operator to judge: its reader will.
            let Some(()) = split(value, &mut frames) else { return Ok(all()) };
        }
        let latest = latest(&frames);
        let is_covered = |cover: &Cover| latest.iter().any(|latest| latest.covers(cover));
        let left = frames.iter().filter(|(_, cover)| !cover.as_ref().is_some_and(is_covered));
        Ok(left.map(|(bytes, _)| *bytes).collect::<Vec<_>>().concat())
    }

    /// Frames that could have been left out do no harm.
    fn is_value_alone(&self) -> bool {
        true
    }

    fn cover(&self, operand: &[u8]) -> Option<Cover> {
        let mut frames = Vec::with_capacity(1);
        split(operand, &mut frames)?;
        match frames[..] {
            [(_, cover)] => cover,
            _ => None,
        }
    }
}

type Frame<'a> = (&'a [u8], Option<Cover>);

/// Adds the frames of a value, with their lengths. `None` if it is something else.
fn split<'a>(mut value: &'a [u8], frames: &mut Vec<Frame<'a>>) -> Option<()> {
    while !value.is_empty() {
        let mut rest = value;
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let (kind, body) = rest.get(..length)?.split_first()?;
        let cover = if *kind == WITH_COVER { Some(read_cover(body)?) } else { None };
        let (frame, after) = value.split_at(value.len() - rest.len() + length);
        frames.push((frame, cover));
        value = after;
    }
    Some(())
}

fn latest(frames: &[Frame<'_>]) -> Vec<Latest> {
    let mut all: Vec<Latest> = Vec::new();
    for cover in frames.iter().filter_map(|(_, cover)| cover.as_ref()) {
        let meaning = cover.meaning;
        let at = all.iter().position(|latest| latest.meaning == meaning).unwrap_or_else(|| {
            all.push(Latest { meaning, parts: [i64::MIN; PARTS] });
            all.len() - 1
        });
        for part in parts(cover) {
            all[at].parts[part] = all[at].parts[part].max(cover.earliest);
        }
    }
    all
}

/// Takes an unsigned variable number.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    let (more, rest) = rest.split_at_checked(first.leading_ones() as usize)?;
    *bytes = rest;
    let high = u64::from(first) & (0x7f_u64 >> more.len().min(7));
    Some(more.iter().fold(high, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests;
