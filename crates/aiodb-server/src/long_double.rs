//! Numbers as INCRBYFLOAT reckons with them: the x87's format of 64 bits of mantissa, read and printed as glibc does.

use num_bigint::BigUint;

/// Bits of a mantissa.
const MANTISSA_BITS: u64 = 64;

/// Numbers from two to this power on are infinite.
const MAX_EXPONENT: i64 = 16_384;

/// Numbers with more characters are refused, as Redis does.
const MAX_CHARACTERS: usize = 5 * 1024 - 1;

/// Powers of ten beyond which nothing is left, or too much, whatever the digits are.
const MAX_POWER_OF_TEN: i64 = 11_000;

/// Decimals that are printed, before zeros at the end are cut off.
const DECIMALS: u32 = 17;

/// A number: `mantissa` times two to the power of `exponent`, or infinite.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LongDouble {
    /// A number.
    Finite {
        /// Below zero, or the zero below zero.
        negative: bool,
        /// At most [`MANTISSA_BITS`] long.
        mantissa: BigUint,
        /// The power of two that goes with it.
        exponent: i64,
    },
    /// What `inf` is read as, and what sums that are too large become.
    Infinite,
}

impl LongDouble {
    /// Reads a whole text; `None` if it is no number, or one that is too large or too small.
    pub(crate) fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() > MAX_CHARACTERS {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble::Infinite);
        }
        let (digits, power) = split_exponent(text)?;
        let point = digits.iter().position(|byte| *byte == b'.');
        let (whole, fraction) = point.map_or((digits, &[][..]), |point| (&digits[..point], &digits[point + 1..]));
        let all = [whole, fraction].concat();
        if all.is_empty() || !all.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let digits = BigUint::parse_bytes(&all, 10)?;
        if digits == BigUint::ZERO {
            return Some(LongDouble::Finite { negative, mantissa: digits, exponent: 0 });
        }
        match of_decimal(negative, digits, power - fraction.len() as i64)? {
            LongDouble::Infinite => None,
            number => Some(number),
        }
    }

    /// The sum, rounded.
    pub(crate) fn plus(&self, other: &LongDouble) -> LongDouble {
        let (
            LongDouble::Finite { negative, mantissa, exponent },
            LongDouble::Finite { negative: n, mantissa: m, exponent: e },
        ) = (self, other)
        else {
            return LongDouble::Infinite;
        };
        let least = *exponent.min(e);
        let (left, right) = (mantissa << (exponent - least) as u64, m << (e - least) as u64);
        let (negative, sum) = match (negative == n, left >= right) {
            (true, _) => (*negative, left + right),
            (false, true) => (*negative, left - right),
            (false, false) => (*n, right - left),
        };
        rounded(negative, sum, least, false)
    }

    /// The number with up to 17 decimals and no zeros after them; `None` if it is infinite.
    pub(crate) fn text(&self) -> Option<String> {
        let LongDouble::Finite { negative, mantissa, exponent } = self else { return None };
        let scaled = mantissa * BigUint::from(10u8).pow(DECIMALS);
        let scaled =
            if *exponent >= 0 { scaled << *exponent as u64 } else { shifted_right(scaled, -exponent as u64, false) };
        let digits = format!("{:0>width$}", scaled.to_string(), width = DECIMALS as usize + 1);
        let (whole, fraction) = digits.split_at(digits.len() - DECIMALS as usize);
        let fraction = fraction.trim_end_matches('0');
        let text = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
        Some(if *negative && text != "0" { format!("-{text}") } else { text })
    }
}

/// Digits and a point, and the power of ten that stands behind `e`.
fn split_exponent(text: &[u8]) -> Option<(&[u8], i64)> {
    let Some(at) = text.iter().position(|byte| byte.eq_ignore_ascii_case(&b'e')) else { return Some((text, 0)) };
    let (digits, power) = (&text[..at], &text[at + 1..]);
    let (negative, power) = match power {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, power),
    };
    if power.is_empty() || !power.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // More digits than a number of 64 bits has are as far away as the greatest one.
    let power = std::str::from_utf8(power).ok()?.parse().unwrap_or(i64::MAX / 2).min(i64::MAX / 2);
    Some((digits, if negative { -power } else { power }))
}

fn of_decimal(negative: bool, digits: BigUint, power: i64) -> Option<LongDouble> {
    if power.abs() > MAX_POWER_OF_TEN {
        return None;
    }
    let ten = BigUint::from(10u8).pow(power.unsigned_abs() as u32);
    if power >= 0 {
        return Some(rounded(negative, digits * ten, 0, false));
    }
    let shift = (MANTISSA_BITS + 2 + ten.bits()).saturating_sub(digits.bits());
    let shifted = digits << shift;
    let quotient = &shifted / &ten;
    let is_exact = &quotient * &ten == shifted;
    let number = rounded(negative, quotient, -(shift as i64), !is_exact);
    let LongDouble::Finite { mantissa, exponent, .. } = &number else { return Some(number) };
    // Smaller ones are zero to the x87.
    (mantissa.bits() as i64 + exponent > -MAX_EXPONENT - 62).then_some(number)
}

/// The nearest number with a mantissa that fits; `more` says that something follows the last bit.
fn rounded(negative: bool, mantissa: BigUint, exponent: i64, more: bool) -> LongDouble {
    let shift = mantissa.bits().saturating_sub(MANTISSA_BITS);
    let (mantissa, exponent) = (shifted_right(mantissa, shift, more), exponent + shift as i64);
    if mantissa.bits() as i64 + exponent > MAX_EXPONENT {
        return LongDouble::Infinite;
    }
    LongDouble::Finite { negative, mantissa, exponent }
}

/// The number without its last bits, rounded to the nearest, and to an even one in the middle.
fn shifted_right(number: BigUint, shift: u64, more: bool) -> BigUint {
    if shift == 0 {
        return number;
    }
    let quotient = &number >> shift;
    let rest = number - (&quotient << shift);
    let half = BigUint::from(1u8) << (shift - 1);
    let up = rest > half || rest == half && (more || quotient.bit(0));
    if up { quotient + 1u8 } else { quotient }
}

#[cfg(test)]
mod tests;
