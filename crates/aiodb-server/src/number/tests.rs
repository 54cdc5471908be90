use super::*;

#[test]
fn integers_have_one_form() {
    for (text, number) in [("0", 0), ("-1", -1), ("9223372036854775807", i64::MAX), ("-9223372036854775808", i64::MIN)]
    {
        assert_eq!(parse_integer(text.as_bytes()), Some(number), "{text}");
    }
    for text in ["", "-", "+1", "01", "-0", "-01", " 1", "1 ", "1.0", "1e3", "9223372036854775808", "0x1", "١"] {
        assert_eq!(parse_integer(text.as_bytes()), None, "{text}");
    }
}
