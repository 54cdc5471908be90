use super::*;

fn sum(left: &str, right: &str) -> Option<String> {
    LongDouble::parse(left.as_bytes())?.plus(&LongDouble::parse(right.as_bytes())?).text()
}

#[test]
fn sums_are_those_of_redis() {
    // What redis-server 7.0.15 answers on x86-64.
    for (left, right, expected) in [
        ("10.5", "0.1", "10.6"),
        ("3.0e3", "200", "3200"),
        ("5.0e3", "-5", "4995"),
        ("0", "1e-17", "0.00000000000000001"),
        ("-0.0", "0", "0"),
        ("1", "-1", "0"),
        (".5", "5.", "5.5"),
    ] {
        assert_eq!(sum(left, right).as_deref(), Some(expected), "{left} + {right}");
    }
}

#[test]
fn what_is_no_number_is_refused() {
    for text in
        ["", " 1", "1 ", "-", ".", "e5", "1e", "1e+", "nan", "1..2", "1e5000", "1e-6000", "1e99999999999999999999"]
    {
        assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(LongDouble::parse(b"-inf"), Some(LongDouble::Infinite));
}
