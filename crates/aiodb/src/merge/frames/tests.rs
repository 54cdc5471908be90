use super::{Frames, number};
use crate::MergeOperator;

/// As Java writes them, see `VIntCoding` of Cassandra.
fn encoded(number: u64) -> Vec<u8> {
    let more = (0..8).find(|more| number >> (7 + 7 * more) == 0).unwrap_or(8);
    let bytes = number.to_be_bytes();
    if more == 8 {
        return [&[0xff], &bytes[..]].concat();
    }
    let mut encoded = bytes[7 - more..].to_vec();
    encoded[0] |= !(0xff_u32 >> more) as u8;
    encoded
}

fn framed(body: &[u8]) -> Vec<u8> {
    [encoded(body.len() as u64), body.to_vec()].concat()
}

fn with_cover(meaning: u64, parts: u64, earliest: i64, latest: i64, row: &[u8]) -> Vec<u8> {
    let later = encoded((latest - earliest) as u64);
    framed(&[&[1], &encoded(meaning)[..], &encoded(parts), &earliest.to_be_bytes(), &later, row].concat())
}

fn alone(row: &[u8]) -> Vec<u8> {
    framed(&[&[0], row].concat())
}

fn merged(values: &[Vec<u8>]) -> Vec<u8> {
    let operands: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    Frames.merge(b"key", None, &operands).expect("every value can be merged")
}

#[test]
fn a_frame_is_left_out_where_a_later_one_has_all_of_its_parts() {
    let (old, new) = (with_cover(0, 0b111, 10, 20, b"old"), with_cover(0, 0b111, 21, 22, b"new"));
    assert_eq!(merged(&[old.clone(), new.clone()]), new);
    assert_eq!(merged(&[new.clone(), old]), new, "the order in which they came does not matter");
    let part = with_cover(0, 0b010, 15, 15, b"part");
    assert_eq!(merged(&[part, new.clone()]), new);
}

#[test]
fn several_frames_can_have_the_parts_of_one() {
    let old = with_cover(0, 0b110, 1, 5, b"old");
    let (left, right) = (with_cover(0, 0b100, 6, 6, b"left"), with_cover(0, 0b011, 7, 9, b"right"));
    assert_eq!(merged(&[left.clone(), old, right.clone()]), [left, right].concat());
}

#[test]
fn a_frame_stays_where_anything_of_it_may_count() {
    let new = with_cover(0, 0b011, 20, 30, b"new");
    for other in [
        with_cover(0, 0b111, 10, 10, b"a part that the later one has not"),
        with_cover(0, 0b001, 20, 20, b"of the same time"),
        with_cover(0, 0b001, 10, 25, b"later than the earliest of the later one"),
        with_cover(1, 0b001, 10, 10, b"of another meaning"),
        alone(b"by itself"),
    ] {
        assert_eq!(merged(&[other.clone(), new.clone()]), [other, new.clone()].concat());
    }
}

#[test]
fn what_is_no_frame_is_kept_as_it_is() {
    let (old, new) = (with_cover(0, 1, 1, 1, b"old"), with_cover(0, 1, 2, 2, b"new"));
    for other in [&b"\x05abc"[..], b"\x00", b"\xff", &[3, 1, 0, 0], &new[..new.len() - 1]] {
        let values = [old.clone(), new.clone(), other.to_vec()];
        assert_eq!(merged(&values), values.concat(), "{other:?}");
    }
}

#[test]
fn numbers_are_read_as_java_writes_them() {
    for (bytes, wanted) in [(&[0x7f][..], 127), (&[0x80, 0x80], 128), (&[0xc0, 0x40, 0x00], 16384)] {
        assert_eq!(number(&mut &bytes[..]), Some(wanted));
        assert_eq!(encoded(wanted), bytes);
    }
    for wanted in (0..64).flat_map(|bits| [(1_u64 << bits) - 1, 1 << bits]).chain([u64::MAX]) {
        let bytes = encoded(wanted);
        let mut rest = &bytes[..];
        assert_eq!((number(&mut rest), rest.len()), (Some(wanted), 0));
        assert_eq!(number(&mut &bytes[..bytes.len() - 1]), None);
    }
}

/// The value read must not depend on which operands the engine folds first.
#[test]
fn it_does_not_matter_what_is_merged_first() {
    let mut kinds = vec![alone(b"row")];
    for (meaning, parts) in [(0, 0b01), (0, 0b11), (1, 0b10)] {
        for (earliest, latest) in [(1, 1), (1, 2), (2, 2), (3, 4)] {
            kinds.push(with_cover(meaning, parts, earliest, latest, b"row"));
        }
    }
    for number in 0..kinds.len().pow(4) {
        let values: Vec<_> = (0..4).map(|place| kinds[number / kinds.len().pow(place) % kinds.len()].clone()).collect();
        let all = merged(&values);
        for cut in 1..4 {
            assert_eq!(merged(&[merged(&values[..cut]), merged(&values[cut..])]), all, "{values:?} cut at {cut}");
        }
    }
}
