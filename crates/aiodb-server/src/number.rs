//! Numbers as Redis reads and writes them.

/// A decimal integer in the one form in which Redis prints it: no sign `+`, no leading zeros, no spaces.
pub(crate) fn parse_integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// An integer as text.
pub(crate) fn integer_text(number: i64) -> bytes::Bytes {
    number.to_string().into()
}

#[cfg(test)]
mod tests;
