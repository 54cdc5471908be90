//! What LMPOP and its like are to do: take so many elements from an end of the first of several collections that there is.

use bytes::Bytes;

use crate::command::is_word;
use crate::number::parse_integer;
use crate::refusal::{Refusal, SYNTAX, words};

pub(super) struct PopOf<'a> {
    pub(super) names: &'a [Bytes],
    /// Whether it is the second one of the two ends.
    pub(super) is_last: bool,
    pub(super) most: u64,
}

impl<'a> PopOf<'a> {
    /// Reads the arguments from the number of keys on; `ends` are the words for the two ends.
    pub(super) fn parse(arguments: &'a [Bytes], ends: [&str; 2]) -> Result<PopOf<'a>, Refusal> {
        let positive =
            |number| parse_integer(number).and_then(|number| u64::try_from(number).ok()).filter(|it| *it > 0);
        let keys = positive(&arguments[0]).ok_or(words("ERR numkeys should be greater than 0"))?;
        let keys = usize::try_from(keys).ok().filter(|keys| *keys < arguments.len() - 1).ok_or(SYNTAX)?;
        let (names, rest) = arguments[1..].split_at(keys);
        let is_last = ends.iter().position(|end| is_word(&rest[0], end)).ok_or(SYNTAX)? == 1;
        let most = match &rest[1..] {
            [] => 1,
            [option, most, rest @ ..] if is_word(option, "count") => {
                let most = positive(most).ok_or(words("ERR count should be greater than 0"))?;
                if rest.is_empty() { most } else { return Err(SYNTAX) }
            }
            _ => return Err(SYNTAX),
        };
        Ok(PopOf { names, is_last, most })
    }
}
