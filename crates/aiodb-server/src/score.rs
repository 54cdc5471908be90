//! Scores of sorted sets: read and printed as Redis does, and as bytes in whose order they are.

use std::ops::Bound;

use bytes::Bytes;

/// Digits that a score is printed with: as many as make a double come back.
const DIGITS: i32 = 17;

/// A score that a client gives; `None` if it is none, or too large, or too small.
pub(crate) fn parse_score(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let number: f64 = text.parse().ok().filter(|number: &f64| !number.is_nan())?;
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    let is_word = !digits.contains(|character: char| character.is_ascii_digit());
    let is_lost =
        number.is_infinite() && !is_word || number == 0.0 && digits.contains(|digit| ('1'..='9').contains(&digit));
    (!is_lost).then_some(number)
}

/// A limit of a range of scores, read as C's `strtod` does: spaces may come first, and nothing is 0. `(` leaves the score itself
/// out. `None` if it is no number.
pub(crate) fn parse_limit(text: &[u8]) -> Option<Bound<f64>> {
    let (is_open, text) = text.strip_prefix(b"(").map_or((false, text), |rest| (true, rest));
    // As in C, what follows a zero byte does not count.
    let text = std::str::from_utf8(text.split(|byte| *byte == 0).next()?).ok()?;
    let digits = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let number: f64 = if text.is_empty() { 0.0 } else { digits.parse().ok()? };
    let number = Some(number + 0.0).filter(|number| !number.is_nan())?;
    Some(if is_open { Bound::Excluded(number) } else { Bound::Included(number) })
}

/// A score as a client gets it: C's `%.17g`.
pub(crate) fn score_text(score: f64) -> Bytes {
    if score.is_infinite() {
        return Bytes::from_static(if score > 0.0 { b"inf" } else { b"-inf" });
    }
    let scientific = format!("{score:.*e}", DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').expect("this form has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let without_zeros = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    };
    let text = if (-4..DIGITS).contains(&exponent) {
        without_zeros(format!("{score:.*}", (DIGITS - 1 - exponent) as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", without_zeros(digits.to_string()), exponent.abs())
    };
    text.into()
}

/// A number in whose order scores are.
pub(crate) fn order_of(score: f64) -> u64 {
    let bits = score.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// The opposite of [`order_of`].
pub(crate) fn score_of(order: u64) -> f64 {
    f64::from_bits(if order >> 63 == 1 { order & !(1 << 63) } else { !order })
}

#[cfg(test)]
mod tests;
