//! Compression of values and of blocks of runs, by table. What is compressed says itself how: see `docs/format.md`.

use std::cell::RefCell;
use std::io;

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
        let compressed = self.compressor()?.compress(value)?;
        (compressed.len() <= value.len() - value.len() / MIN_SAVED_SHARE).then_some(compressed)
    }

    /// What compresses one value after the other; `None` for no compression, and where there is no memory for it.
    pub(crate) fn compressor(self) -> Option<Compressor> {
        match self {
            Compression::None => None,
            Compression::Lz4 => Some(Compressor::Lz4),
            Compression::Zstd(level) => zstd::bulk::Compressor::new(i32::from(level)).ok().map(Compressor::Zstd),
        }
    }
}

/// Compresses one value after the other.
pub(crate) enum Compressor {
    Lz4,
    /// With the memory that the values before have needed.
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Compressor {
    /// The compressed form of a value, which may be longer than the value. Nothing but memory can be missing for it.
    pub(crate) fn compress(&mut self, value: &[u8]) -> Option<Vec<u8>> {
        let (method, compressed) = match self {
            Compressor::Lz4 => (LZ4, lz4_flex::block::compress(value)),
            Compressor::Zstd(compressor) => (ZSTD, compressor.compress(value).ok()?),
        };
        let mut out = vec![0; HEADER_BYTES];
        out[0] = method;
        put(&mut out, 4, &(value.len() as u32).to_le_bytes());
        out.extend_from_slice(&compressed);
        Some(out)
    }
}

thread_local! {
    /// Memory for decompression, kept from one call to the next.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The value that [`Compressor::compress`] was given; an error, in words, for any other bytes. `max_bytes` bounds the
/// memory that damaged bytes can claim.
pub(crate) fn decompress(bytes: &[u8], max_bytes: usize) -> Result<Vec<u8>, &'static str> {
    let (header, compressed) = bytes.split_at_checked(HEADER_BYTES).ok_or("compressed bytes without their header")?;
    let length = u32_at(header, 4) as usize;
    if length > max_bytes {
        return Err("compressed bytes that claim to be of too many");
    }
    let value = match header[0] {
        LZ4 => lz4_flex::block::decompress(compressed, length).map_err(|_| "bytes that are not in LZ4's format")?,
        ZSTD => decompress_zstd(compressed, length).map_err(|_| "bytes that are not in Zstandard's format")?,
        _ => return Err("bytes that are compressed in an unknown way"),
    };
    if value.len() == length { Ok(value) } else { Err("compressed bytes of another length than they say") }
}

fn decompress_zstd(compressed: &[u8], length: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        decompressor.decompress(compressed, length)
    })
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
