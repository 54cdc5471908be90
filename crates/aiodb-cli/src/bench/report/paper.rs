//! What the AIODB paper measured, on other hardware: Intel i5-6500, 64 GB, Intel Optane SSD 900P, 1 million pairs of
//! 8-byte keys and 4096-byte values.

/// The hardware, for legends and captions.
pub(crate) const HARDWARE: &str = "paper: i5-6500, Optane 900P";

/// Figure 1: bytes copied from each value, gets per second of LMDB in memory. Of 1 KiB the paper says only that it is
/// almost equal to AIODB at saturation.
pub(crate) const LMDB_GETS_PER_S: [(f64, f64); 3] = [(0.0, 1_000_000.0), (1024.0, 370_000.0), (4096.0, 256_000.0)];

/// Figure 2: queue depth, gets per second of AIODB.
pub(crate) const AIODB_GETS_PER_S: [(f64, f64); 2] = [(64.0, 370_000.0), (1024.0, 375_000.0)];

/// What `fio` reached there.
pub(crate) const FIO_READS_PER_S: f64 = 377_000.0;
