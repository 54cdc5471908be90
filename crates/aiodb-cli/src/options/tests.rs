use super::{durability_name, parse_compression, parse_durability};

#[test]
fn a_durability_is_read_back_as_it_is_named() {
    for name in ["sync", "none", "interval:1", "interval:500", "interval:3600000"] {
        assert_eq!(durability_name(parse_durability(name).unwrap()), name);
    }
}

#[test]
fn a_durability_outside_its_range_is_refused() {
    for text in ["", "SYNC", "interval", "interval:", "interval:0", "interval:3600001", "interval:-1", "interval:1s"] {
        assert!(parse_durability(text).unwrap_err().contains("interval:MS"), "{text:?}");
    }
}

#[test]
fn a_compression_is_read_back_as_it_is_shown() {
    for name in ["none", "lz4", "zstd:1", "zstd:19"] {
        assert_eq!(parse_compression(name).unwrap().to_string(), name);
    }
    assert_eq!(parse_compression("zstd").unwrap().to_string(), "zstd:3");
    for text in ["", "gzip", "LZ4", "lz4:1", "zstd:", "zstd:0", "zstd:20", "zstd:-1", "zstd:256"] {
        assert!(parse_compression(text).unwrap_err().contains("zstd:LEVEL"), "{text:?}");
    }
}
