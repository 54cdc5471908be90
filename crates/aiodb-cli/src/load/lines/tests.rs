use super::{Found, Lines};
use std::io::Read;

/// Gives one byte at a time, so that every line straddles reads.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(&mut buffer[..1])
    }
}

fn all(text: &[u8], max_bytes: u64) -> Vec<(Found, Vec<u8>)> {
    let mut lines = Lines::new(Trickle(text));
    let mut found = Vec::new();
    loop {
        let mut line = b"left over".to_vec();
        match lines.next(&mut line, max_bytes).unwrap() {
            Found::End => break,
            kind => found.push((kind, line)),
        }
    }
    assert_eq!(lines.number(), found.len() as u64);
    assert_eq!(lines.bytes_done(), text.len() as u64);
    found
}

fn texts(text: &[u8]) -> Vec<Vec<u8>> {
    all(text, 100).into_iter().map(|(_, line)| line).collect()
}

#[test]
fn the_last_line_needs_no_line_end() {
    assert_eq!(texts(b"one\ntwo"), [b"one", b"two"]);
    assert_eq!(texts(b"one\ntwo\n"), [b"one", b"two"]);
    assert_eq!(texts(b"\n\n"), [b"", b""]);
    assert!(texts(b"").is_empty());
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_beginning_only() {
    assert_eq!(texts(b"\xef\xbb\xbfone\n\xef\xbb\xbftwo"), [&b"one"[..], b"\xef\xbb\xbftwo"]);
    assert_eq!(texts(b"\xef\xbb\xbf"), [b""]);
}

#[test]
fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_whole() {
    let found = all(b"12345\n123456\n1234567\n12345", 5);
    let kinds: Vec<Found> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [Found::Line, Found::TooLong, Found::TooLong, Found::Line]);
    assert_eq!(found[3].1, b"12345");
}

#[test]
fn a_last_line_that_is_too_long_ends_the_input() {
    assert_eq!(all(b"123456", 5)[0].0, Found::TooLong);
    assert_eq!(all(b"12345", 5)[0].0, Found::Line);
}

#[test]
fn without_a_limit_nothing_is_too_long() {
    assert_eq!(all(b"123456", u64::MAX)[0].0, Found::Line);
}
