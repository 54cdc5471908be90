//! What the documents measured, on other hardware. The AIODB paper: Intel i5-6500, 64 GB, Intel Optane SSD 900P, 1 million pairs of
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

/// Y. Kuramata's article on writes of okuyama and Riak (2014): inserts per second of okuyama on four nodes (i5-520, 4 GB, a disk of
/// 5,400 rpm) by 100 clients at first, and when keys went to the disk because memory was full (65 to 85).
pub(crate) const OKUYAMA_IN_MEMORY_PER_S: f64 = 10_000.0;
pub(crate) const OKUYAMA_BEYOND_PER_S: f64 = 80.0;
