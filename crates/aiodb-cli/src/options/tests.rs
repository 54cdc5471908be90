use super::{durability_name, parse_durability};

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
