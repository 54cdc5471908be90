//! CRC32C, the only checksum of the format.

use crc_fast::{CrcAlgorithm, Digest};

/// The checksum of some bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// The checksum of some bytes and the bytes before them, whose checksum is `before`.
pub(crate) fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
    // The register between two parts is the checksum before its final complement.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!before));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::{crc32c, crc32c_append};

    #[test]
    fn it_is_the_castagnoli_checksum() {
        // The check value of CRC-32/ISCSI, and RFC 3720's test vector of 32 zeros.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    }

    #[test]
    fn parts_give_the_checksum_of_the_whole() {
        let bytes: Vec<u8> = (0..5000u32).map(|number| (number * 7) as u8).collect();
        for at in [0, 1, 15, 16, 17, 255, 256, 4096, 4999, 5000] {
            assert_eq!(crc32c_append(crc32c(&bytes[..at]), &bytes[at..]), crc32c(&bytes), "parted at {at}");
        }
    }
}
