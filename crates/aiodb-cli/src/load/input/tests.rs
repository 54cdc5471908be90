//! Every format against the inputs that people really have.

use super::{Entry, Format, Input, InputOptions, Item};
use crate::encoding::Encoding;
use aiodb::MAX_KEY_BYTES;
use std::path::Path;

fn options(format: Format, key: &str, value: Option<&str>) -> InputOptions {
    InputOptions {
        format,
        header: false,
        key: key.into(),
        value: value.map(str::to_string),
        key_encoding: Encoding::Text,
        value_encoding: Encoding::Text,
        skip_lines: 0,
        max_line_bytes: 1 << 20,
    }
}

fn tsv() -> InputOptions {
    options(Format::Tsv, "1", None)
}

fn csv() -> InputOptions {
    options(Format::Csv, "1", None)
}

fn jsonl(value: Option<&str>) -> InputOptions {
    options(Format::Jsonl, "id", value)
}

/// `key=value` for every record and `line: reason` for every bad line.
fn read(text: impl AsRef<[u8]>, options: InputOptions) -> Vec<String> {
    let mut input = Input::open(text.as_ref(), options).unwrap();
    let mut entry = Entry::default();
    let mut read = Vec::new();
    loop {
        read.push(match input.next(&mut entry).unwrap() {
            Item::End => return read,
            Item::Entry => format!("{}={}", entry.key.escape_ascii(), entry.value.escape_ascii()),
            Item::Bad(reason) => format!("{}: {reason}", input.first_line()),
        });
    }
}

fn open_error(text: &str, options: InputOptions) -> String {
    Input::open(text.as_bytes(), options).err().expect("the header is bad")
}

#[test]
fn formats_are_told_from_extensions() {
    for (file, format) in [
        ("a.tsv", Some(Format::Tsv)),
        ("a.b/c.TAB", Some(Format::Tsv)),
        ("a.csv", Some(Format::Csv)),
        ("a.jsonl", Some(Format::Jsonl)),
        ("a.ndjson", Some(Format::Jsonl)),
        ("a.json", None),
        ("tsv", None),
        ("-", None),
    ] {
        assert_eq!(Format::of_file(Path::new(file)), format, "{file}");
    }
}

#[test]
fn a_tsv_value_is_all_after_the_key() {
    assert_eq!(read("a\t1\nb\t2\tand 3\nc\t\n", tsv()), ["a=1", r"b=2\tand 3", "c="]);
    assert_eq!(read("x\ta\t1\t2", options(Format::Tsv, "2", None)), [r"a=1\t2"]);
}

#[test]
fn tsv_columns_are_taken_as_they_are() {
    assert_eq!(read("\"a\"\t\\t \"1\n", tsv()), [r#"\"a\"=\\t \"1"#]);
    assert_eq!(read(b"\xff\t\xfe\n", tsv()), [r"\xff=\xfe"], "columns are bytes, not text");
    assert_eq!(read("1\ta\n", options(Format::Tsv, "2", Some("1"))), ["a=1"]);
}

#[test]
fn line_ends_blank_lines_and_byte_order_marks_are_no_part_of_a_record() {
    assert_eq!(read("\u{feff}a\t1\r\n\r\n\nb\t2\r\n", tsv()), ["a=1", "b=2"]);
    assert_eq!(read("\u{feff}a,1\r\n\r\n\nb,2\r\n", csv()), ["a=1", "b=2"]);
    assert_eq!(read("\u{feff}\"a\",\"1\"\r\nb,2", csv()), ["a=1", "b=2"]);
    assert_eq!(read("\u{feff}{\"id\":1}\r\n\r\n{\"id\":2}", jsonl(None)), [r#"1={\"id\":1}"#, r#"2={\"id\":2}"#]);
}

#[test]
fn empty_inputs_have_no_records() {
    for options in [tsv(), csv(), jsonl(None)] {
        assert!(read("", options).is_empty());
    }
    for options in [tsv(), csv(), jsonl(None)] {
        assert!(read("\n\r\n\n", options).is_empty());
    }
}

#[test]
fn missing_columns_are_named() {
    assert_eq!(read("a\nb\t2\n", tsv()), ["1: 1 column, but the value is in column 2", "b=2"]);
    assert_eq!(read("a\tb\n", options(Format::Tsv, "3", None)), ["1: 2 columns, but the key is in column 3"]);
    assert_eq!(read("a\nb,2\n", csv()), ["1: 1 column, but the value is in column 2", "b=2"]);
    assert_eq!(read("a,b\n", options(Format::Csv, "1", Some("3"))), ["1: 2 columns, but the value is in column 3"]);
    assert_eq!(read("a,b,c\n", csv()), ["1: 3 columns: say with --value which one is the value"]);
}

#[test]
fn keys_have_a_length() {
    let fits = "k".repeat(MAX_KEY_BYTES);
    assert_eq!(read(format!("{fits}\t1\n"), tsv()), [format!("{fits}=1")]);
    for (text, options) in [
        ("\t1\n".to_string(), tsv()),
        (format!("{fits}k\t1\n"), tsv()),
        (",1\n".to_string(), csv()),
        ("{\"id\":\"\"}\n".to_string(), jsonl(None)),
    ] {
        let bad = read(text, options).remove(0);
        assert!(bad.contains("keys have 1 to 65536 bytes"), "{bad}");
    }
}

#[test]
fn csv_quotes_hold_commas_quotes_and_line_ends() {
    let text = "\"a,b\",\"say \"\"yes\"\"\"\n\"c\",\"two\r\nlines\"\nd,4\n";
    assert_eq!(read(text, csv()), [r#"a,b=say \"yes\""#, r"c=two\r\nlines", "d=4"]);
    assert_eq!(read("2,b\n", options(Format::Csv, "2", None)), ["b=2"], "the other of two columns");
}

#[test]
fn csv_records_may_have_many_columns() {
    let text: Vec<String> = (1..=1000).map(|column| format!("c{column}")).collect();
    assert_eq!(read(text.join(","), options(Format::Csv, "999", Some("1000"))), ["c999=c1000"]);
}

#[test]
fn csv_line_numbers_count_lines_inside_quotes() {
    let text = "\"a\nb\nc\",1\r\nbad\r\n\"d\n\",2\nbad\n";
    let reason = "1 column, but the value is in column 2";
    assert_eq!(
        read(text, csv()),
        [r"a\nb\nc=1".to_string(), format!("4: {reason}"), r"d\n=2".to_string(), format!("7: {reason}")]
    );
}

#[test]
fn a_csv_quote_that_stays_open_is_bad() {
    let bad = "2: a quoted column is still open where the input ends";
    assert_eq!(read("a,1\nb,\"2\nc,3\n", csv()), ["a=1", bad]);
    assert_eq!(read("a,1\nb,\"2", csv()), ["a=1", bad]);
}

#[test]
fn old_line_ends_in_csv_are_bad_not_silently_columns() {
    let bad = read("a,1\rb,2\nc,3\n", csv());
    assert_eq!(bad, ["1: a carriage return inside the line, outside quotes", "c=3"]);
}

#[test]
fn a_huge_line_is_bad_and_the_next_one_is_read() {
    let max_line_bytes = 1000;
    let huge = "x".repeat(5000);
    let bad = "2: longer than 1000 bytes (--max-line-bytes allows more)";
    let text = format!("a\t1\nb\t{huge}\nc\t3\n");
    assert_eq!(read(text, InputOptions { max_line_bytes, ..tsv() }), ["a=1", bad, "c=3"]);
    let text = format!("a,1\nb,{huge}\nc,3\n");
    assert_eq!(read(text, InputOptions { max_line_bytes, ..csv() }), ["a=1", bad, "c=3"]);
    let text = format!("{{\"id\":1,\"v\":1}}\n{{\"id\":2,\"v\":\"{huge}\"}}\n{{\"id\":3,\"v\":3}}\n");
    assert_eq!(read(text, InputOptions { max_line_bytes, ..jsonl(Some("v")) }), ["1=1", bad, "3=3"]);
}

#[test]
fn a_csv_record_is_bounded_over_its_lines() {
    let text = format!("a,\"1\n{}c,3\n", "12345678\n".repeat(8));
    let read = read(text, InputOptions { max_line_bytes: 50, ..csv() });
    assert!(read[0].starts_with("1: longer than 50 bytes") && read[0].ends_with("is a quote missing?"), "{read:?}");
    assert_eq!(read.last().unwrap(), "c=3", "reading goes on after what was passed over");
}

#[test]
fn columns_have_the_header_s_names() {
    let header = |format, key, value| InputOptions { header: true, ..options(format, key, value) };
    let text = "\u{feff}name,email,\"full, name\"\r\nx,a@b,X Y\r\n";
    assert_eq!(read(text, header(Format::Csv, "email", Some("full, name"))), ["a@b=X Y"]);
    assert_eq!(read(text, header(Format::Csv, "2", Some("name"))), ["a@b=x"], "a number where no name is that");
    assert_eq!(read("2\t1\nx\ty\n", header(Format::Tsv, "1", Some("2"))), ["y=x"], "names come before numbers");
    assert_eq!(read("a\tb\tc\n1\t2\t3\n", header(Format::Tsv, "a", None)), [r"1=2\t3"]);
}

#[test]
fn a_header_that_does_not_fit_is_refused_before_anything_is_read() {
    let header = |format, key| InputOptions { header: true, ..options(format, key, None) };
    let error = open_error("name\temail\n", header(Format::Tsv, "mail"));
    assert_eq!(error, "the header has no column `mail`; it has name, email");
    assert!(open_error("a,b\n", header(Format::Csv, "3")).contains("no column `3`"));
    assert!(open_error("a,b\n", header(Format::Csv, "0")).contains("no column `0`"));
    assert!(open_error("\n", header(Format::Csv, "a")).starts_with("empty"));
    assert!(open_error("\"a\n", header(Format::Csv, "a")).starts_with("the header: a quoted column"));
}

#[test]
fn json_values_are_fields_or_the_whole_line() {
    let line = r#"{"id":"a","v":"text","n":{"x y":[1, 2]},"f":1.50}"#;
    assert_eq!(read(line, jsonl(None)), [format!("a={}", line.escape_default())]);
    assert_eq!(read(line, jsonl(Some("v"))), ["a=text"]);
    assert_eq!(read(line, jsonl(Some("f"))), ["a=1.50"], "numbers stay as they are written");
    assert_eq!(read(line, jsonl(Some("n.x y"))), ["a=[1, 2]"]);
    assert_eq!(read(line, options(Format::Jsonl, "f", Some("/n/x y"))), ["1.50=[1, 2]"]);
    assert_eq!(read(r#"{"a.b":{"c/d~":"1"},"id":2}"#, jsonl(Some("/a.b/c~1d~0"))), ["2=1"]);
    assert_eq!(
        read(r#"{"id":"\u00e9\n\ud83d\ude00"}"#, jsonl(Some("id"))),
        [r"\xc3\xa9\n\xf0\x9f\x98\x80=\xc3\xa9\n\xf0\x9f\x98\x80"]
    );
}

#[test]
fn json_lines_without_a_usable_key_are_bad() {
    for (line, reason) in [
        ("{}", "no field `id`"),
        ("[1]", "no field `id`: it is looked for in something that is no object"),
        ("{\"id\":null}", "the field `id` is null"),
        ("{\"id\":[1]}", "the field `id` is no string or number"),
        ("{\"id\":1", "not JSON: EOF while parsing an object at byte 7"),
        ("{\"id\":1} {}", "not JSON: trailing characters at byte 10"),
        ("id\t1", "not JSON: expected value at byte 1"),
    ] {
        assert_eq!(read(line, jsonl(None)), [format!("1: {reason}")], "{line}");
    }
    let surrogate = read(r#"{"id":"\ud800"}"#, jsonl(None)).remove(0);
    assert!(surrogate.starts_with("1: the field `id` cannot be decoded"), "{surrogate}");
}

#[test]
fn json_that_is_not_utf_8_is_bad() {
    let bad = read(b"{\"id\":\"\xff\"}\n{\"id\":2}", jsonl(None));
    assert!(bad[0].starts_with("1: not JSON: "), "{bad:?}");
    assert!(bad[1].starts_with("2={"), "{bad:?}");
}

#[test]
fn deep_json_does_not_exhaust_the_stack() {
    let deep = format!("{{\"id\":1,\"v\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let read = read(deep, jsonl(Some("id")));
    assert_eq!(read.len(), 1);
}

#[test]
fn keys_and_values_may_be_hex_and_base64() {
    let encoded = || InputOptions { key_encoding: Encoding::Hex, value_encoding: Encoding::Base64, ..tsv() };
    assert_eq!(read("00fF\tAAE=\n", encoded()), [r"\x00\xff=\x00\x01"]);
    assert_eq!(read("0\tAAE=\n", encoded()), ["1: the key is not hex: Odd number of digits"]);
    let bad = read("00\tA\n", encoded()).remove(0);
    assert!(bad.starts_with("1: the value is not base64: "), "{bad}");
    let value = InputOptions { value_encoding: Encoding::Hex, ..jsonl(Some("v")) };
    assert_eq!(read(r#"{"id":1,"v":"ff00"}"#, value), [r"1=\xff\x00"]);
}

#[test]
fn lines_are_left_out_at_the_beginning() {
    let skip = |skip_lines, options| InputOptions { skip_lines, ..options };
    assert_eq!(read("a\t1\n\nbad\nc\t3\n", skip(3, tsv())), ["c=3"]);
    assert_eq!(read("a\t1\n", skip(9, tsv())), [""; 0]);
    assert_eq!(read("\"a\n\",1\nb,2\n", skip(2, csv())), ["b=2"], "two lines are one record here");
    let header = InputOptions { header: true, ..options(Format::Csv, "k", Some("v")) };
    assert_eq!(read("v,k\n1,a\n2,b\n", skip(2, header)), ["b=2"], "the header still counts");
}

#[test]
fn going_on_where_a_load_stopped_reads_every_record_once() {
    let text = "a,1\n\n\"b\nb\",2\nbad\nc,\"3\n\"\nd,4\n";
    let whole = read(text, csv());
    let mut input = Input::open(text.as_bytes(), csv()).unwrap();
    let mut entry = Entry::default();
    for stop in 1..=whole.len() {
        assert_ne!(input.next(&mut entry).unwrap(), Item::End);
        let skip_lines = input.lines_done();
        assert_eq!(read(text, InputOptions { skip_lines, ..csv() }), whole[stop..], "stopped after {stop}");
    }
}
