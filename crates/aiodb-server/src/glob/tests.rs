use super::*;

#[test]
fn patterns_match_as_in_redis() {
    for (pattern, text, expected) in [
        ("*", "", true),
        ("", "", true),
        ("", "a", false),
        ("h?llo", "hello", true),
        ("h*llo", "heeello", true),
        ("h[ae]llo", "hallo", true),
        ("h[^e]llo", "hello", false),
        ("h[a-b]llo", "hbllo", true),
        ("h[b-a]llo", "hallo", true),
        (r"h\*llo", "h*llo", true),
        (r"h\*llo", "hello", false),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXbYbZ", false),
        ("[", "", false),
        ("[ab", "a", true),
        (r"[\]]", "]", true),
        ("a\\", "a\\", true),
        ("**a", "ba", true),
    ] {
        assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
    }
}

#[test]
fn many_stars_take_no_time() {
    let pattern = "a*".repeat(200) + "b";
    assert!(!matches(pattern.as_bytes(), "a".repeat(2000).as_bytes()));
}
