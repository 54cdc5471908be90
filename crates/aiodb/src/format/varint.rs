//! Numbers in as few bytes as they need: seven bits a byte, lowest first; the highest bit says that another byte follows.

/// The longest encoding.
pub(crate) const MAX_VARINT_BYTES: usize = 10;

/// Appends a number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front; `None` where there is none, or one beyond 64 bits.
#[inline]
pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(u64::from(first));
    }
    take_long(u64::from(first & 0x7f), bytes)
}

fn take_long(mut number: u64, bytes: &mut &[u8]) -> Option<u64> {
    for place in 1..MAX_VARINT_BYTES {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        // The last byte has room for one bit only.
        if place == MAX_VARINT_BYTES - 1 && byte > 1 {
            return None;
        }
        number |= bits << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{MAX_VARINT_BYTES, put_varint, take_varint};

    #[test]
    fn numbers_come_back() {
        for shift in 0..64 {
            for number in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                put_varint(&mut bytes, number);
                assert!(bytes.len() <= MAX_VARINT_BYTES);
                bytes.push(7);
                let mut rest = &bytes[..];
                assert_eq!(take_varint(&mut rest), Some(number));
                assert_eq!(rest, [7]);
                let mut short = &bytes[..bytes.len() - 2];
                assert_eq!(take_varint(&mut short), None, "the last byte of {number} is missing");
            }
        }
    }

    #[test]
    fn a_number_beyond_64_bits_is_none() {
        let mut bytes = &[0xff; 11][..];
        assert_eq!(take_varint(&mut bytes), None);
        let mut bytes = &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2][..];
        assert_eq!(take_varint(&mut bytes), None);
    }
}
