//! Compression of values, by table. A compressed value says itself how: see `docs/format.md`.

use crate::Compression;
use crate::format::segment::{put, u32_at};

/// Bytes in front of the compressed ones.
const HEADER_BYTES: usize = 8;
/// Shorter values are left as they are: they share a unit with others, and nothing would be read or written less.
const MIN_BYTES: usize = 64;
/// A value is stored compressed only if that saves at least this share of it.
const MIN_SAVED_SHARE: usize = 8;

const LZ4: u8 = 1;
const ZSTD: u8 = 2;

impl Compression {
    /// The two bytes by which the format names it.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        match self {
            Compression::None => [0, 0],
            Compression::Lz4 => [LZ4, 0],
            Compression::Zstd(level) => [ZSTD, level],
        }
    }

    pub(crate) fn from_bytes(bytes: [u8; 2]) -> Option<Compression> {
        match bytes {
            [0, 0] => Some(Compression::None),
            [LZ4, 0] => Some(Compression::Lz4),
            [ZSTD, level @ 1..=19] => Some(Compression::Zstd(level)),
            _ => None,
        }
    }

    /// The compressed form of a value, if it is worth it.
    pub(crate) fn compress(self, value: &[u8]) -> Option<Vec<u8>> {
        if value.len() < MIN_BYTES {
            return None;
        }
        let mut out = vec![0; HEADER_BYTES];
        out[0] = self.to_bytes()[0];
        put(&mut out, 4, &(value.len() as u32).to_le_bytes());
        match self {
            Compression::None => return None,
            Compression::Lz4 => out.extend_from_slice(&lz4_flex::block::compress(value)),
            // Nothing but memory can fail here; then the value is stored as it is.
            Compression::Zstd(level) => out.extend(zstd::bulk::compress(value, i32::from(level)).ok()?),
        }
        (out.len() <= value.len() - value.len() / MIN_SAVED_SHARE).then_some(out)
    }
}

/// The value that [`Compression::compress`] was given; an error, in words, for any other bytes. `max_bytes` bounds the
/// memory that damaged bytes can claim.
pub(crate) fn decompress(bytes: &[u8], max_bytes: usize) -> Result<Vec<u8>, &'static str> {
    let (header, compressed) = bytes.split_at_checked(HEADER_BYTES).ok_or("a compressed value without its header")?;
    let length = u32_at(header, 4) as usize;
    if length > max_bytes {
        return Err("a compressed value that claims to be too long");
    }
    let value = match header[0] {
        LZ4 => lz4_flex::block::decompress(compressed, length).map_err(|_| "a value that is not in LZ4's format")?,
        ZSTD => zstd::bulk::decompress(compressed, length).map_err(|_| "a value that is not in Zstandard's format")?,
        _ => return Err("a value that is compressed in an unknown way"),
    };
    if value.len() == length { Ok(value) } else { Err("a compressed value of another length than it says") }
}

#[cfg(test)]
mod tests {
    use super::{Compression, decompress};

    #[test]
    fn values_come_back_and_damage_is_an_error() {
        let value: Vec<u8> = (0..4096u32).map(|i| (i / 64) as u8).collect();
        for compression in [Compression::Lz4, Compression::Zstd(3)] {
            assert_eq!(Compression::from_bytes(compression.to_bytes()), Some(compression));
            let compressed = compression.compress(&value).expect("it is regular");
            assert!(compressed.len() < value.len() / 2);
            assert_eq!(decompress(&compressed, 4096).as_deref(), Ok(&value[..]));
            assert!(decompress(&compressed, 4095).is_err());
            for length in 0..compressed.len() {
                assert!(decompress(&compressed[..length], 4096).is_err(), "cut to {length}");
            }
        }
    }

    #[test]
    fn what_does_not_become_shorter_stays() {
        let random: Vec<u8> = (0..1000).map(|_| fastrand::u8(..)).collect();
        assert_eq!(Compression::Lz4.compress(&random), None);
        assert_eq!(Compression::Zstd(1).compress(&random), None);
        assert_eq!(Compression::Lz4.compress(&[7; 63]), None, "too short to matter");
        assert_eq!(Compression::None.compress(&[7; 4096]), None);
    }
}
