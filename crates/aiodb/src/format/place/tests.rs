use std::num::NonZeroU64;

use super::*;
use crate::format::record::Origin;

/// Bytes of a record's key here: with it the record beside a separate value takes as much before a move as later.
const KEY_BYTES: usize = 24;

const RECORDS: usize = 4000;

fn put<'a>(key: &'a [u8], value: &'a [u8], separate: bool) -> Append<'a> {
    Append { separate, ..Append::new(Kind::Put, 16, key, value) }
}

/// Bytes of a log that each of many such records takes.
fn bytes_of_each(append: &Append<'_>) -> f64 {
    let mut cursor = Cursor::new();
    (0..RECORDS).for_each(|_| cursor.take(append));
    cursor.end as f64 / RECORDS as f64
}

/// What a record counts, and the bytes that a get of it reads.
fn counted(append: &Append<'_>) -> (i64, u32) {
    let read = if append.separate { append.value.len() } else { append.record_length() } as u32;
    let beside = beside_bytes(append.key.len(), &append.form);
    (Counting::AsTheyLie.bytes(read, append.separate, beside), read)
}

#[test]
fn what_is_counted_is_what_records_take_among_their_like() {
    let (key, bytes) = ([1; KEY_BYTES], vec![2; 100_000]);
    let lengths =
        [1, 100, 512, 1000, 1024, 1025, 1280, 1536, 2000, 2048, 2049, 3000, 4000, 4096, 4097, 5000, 6200, 7000];
    for length in lengths.into_iter().chain([8192, 8193, 10_000, 65_536, 100_000]) {
        for separate in [false, true] {
            let append = put(&key, &bytes[..length], separate);
            let counted = counted(&append).0 as f64;
            let taken = bytes_of_each(&append);
            let of_both = format!("{length} bytes, separate: {separate}: {counted} counted, {taken} taken");
            assert!((counted - taken).abs() <= taken * 0.02, "{of_both}");
        }
    }
}

/// Stores of earlier programs have their counts as these numbers, for ever.
#[test]
fn counts_by_length_stay_as_they_are() {
    let known = [(1, 16), (64, 65), (1000, 1024), (1073, 1365), (1280, 1365), (2048, 4096), (3000, 4096), (4080, 4096)];
    for (length, bytes) in known.into_iter().chain([(4081, 4096), (4097, 4608), (6200, 6656), (8192, 8192)]) {
        for is_separate in [false, true] {
            assert_eq!(Counting::ByLength.bytes(length, is_separate, 64), bytes, "{length} bytes");
        }
    }
}

#[test]
fn the_denser_form_is_chosen() {
    let bytes = vec![2; 5000];
    for key_bytes in [1, 24, 100, 479] {
        for length in 1..=bytes.len() {
            let append = put(&bytes[..key_bytes], &bytes[..length], false);
            let is_separate = Counting::AsTheyLie.is_denser_separate(&append);
            // Near the rest, which is slow to lay out.
            if length % 61 != 0 && !(950..1050).contains(&length) && !(1900..2100).contains(&length) {
                continue;
            }
            let [whole, separate] = [false, true].map(|separate| bytes_of_each(&Append { separate, ..append }));
            let (chosen, other) = if is_separate { (separate, whole) } else { (whole, separate) };
            assert!(chosen <= other * 1.08, "a key of {key_bytes} bytes, a value of {length}: {chosen}, not {other}");
        }
    }
    let is_separate =
        |length: usize| Counting::AsTheyLie.is_denser_separate(&put(&bytes[..24], &bytes[..length], false));
    let lengths = [100, 512, 960, 1000, 1024, 1025, 1280, 1500, 2000, 2048, 2049, 4000, 4096, 5000];
    let chosen: Vec<_> = lengths.into_iter().filter(|length| is_separate(*length)).collect();
    assert_eq!(
        chosen,
        [1000, 1024, 2000, 2048, 4096, 5000],
        "those that fill their sectors, and those that no unit has room for"
    );
}

#[test]
fn a_lone_put_takes_one_unit() {
    let (key, bytes) = ([1; KEY_BYTES], vec![2; 5000]);
    let taken = |appends: &[Append<'_>]| batch_bytes(appends.iter());
    for length in [1, 1000, 1024, 2048, 3000, UNIT_BYTES - BATCH_HEADER_BYTES - RECORD_HEADER_BYTES - KEY_BYTES] {
        assert_eq!(taken(&[put(&key, &bytes[..length], true)]), UNIT_BYTES, "a value of {length} bytes");
    }
    let longer = UNIT_BYTES - BATCH_HEADER_BYTES - RECORD_HEADER_BYTES - KEY_BYTES + 1;
    assert_eq!(taken(&[put(&key, &bytes[..longer], true)]), 2 * UNIT_BYTES);
    // A list of chunks finds them as separate values.
    let chunk = Append { separate: true, ..Append::new(Kind::Chunk, 16, &key, &bytes[..1000]) };
    assert_eq!(taken(&[chunk]), 2 * UNIT_BYTES);
    // Three in the first unit, four in the second, and so on.
    let many: Vec<_> = (0..11).map(|_| put(&key, &bytes[..1024], true)).collect();
    assert_eq!(taken(&many), 3 * UNIT_BYTES);
    // What is wanted whole stays so.
    let whole: Vec<_> = (0..12).map(|_| put(&key, &bytes[..1024], false)).collect();
    assert_eq!(taken(&whole), 4 * UNIT_BYTES);
}

/// Calls with many records, each as it was before a move and as it is moved, in tables of each rule by which a put is separate, and what it is.
fn for_moves(counting: Counting, mut check: impl FnMut(&Append<'_>, &Append<'_>, &str)) {
    let bytes = vec![2; 20_000];
    for (rule, of_rule) in [(counting, "lsm"), (Counting::ByLength, "lmdb")] {
        for length in (1..bytes.len()).step_by(7) {
            for (key_bytes, expires_ms) in [(8, None), (24, None), (24, NonZeroU64::new(5)), (479, None)] {
                for separate in [false, true] {
                    let mut append = put(&bytes[..key_bytes], &bytes[..length], separate);
                    append.form.expires_ms = expires_ms;
                    let mut moved = Append { moved: Some((Origin { segment: 1, offset: 4096 }, 7)), ..append };
                    let becomes = counting.may_become_separate(&moved) && rule.is_denser_separate(&moved);
                    moved.separate = separate || becomes;
                    check(&append, &moved, &format!("{of_rule}, {length} bytes, separate: {separate}"));
                }
            }
        }
    }
}

#[test]
fn a_move_takes_no_more_than_is_reserved_for_it() {
    for counting in [Counting::AsTheyLie, Counting::ByLength] {
        for_moves(counting, |append, moved, what| {
            let (before, read) = counted(append);
            // By length it is not counted what large parts leave of their units, nor what refers to them.
            if counting == Counting::ByLength && !moved.separate && moved.record_length() > MAX_PACKED_BYTES {
                return;
            }
            let growth = counted(moved).0 - before;
            let beside = beside_bytes(append.key.len(), &append.form);
            let reserved = counting.moved_growth(read, append.separate, beside) as i64;
            assert!(growth <= reserved, "{counting:?}, {what}: {growth} bytes, {reserved} reserved");
        });
    }
}

/// Of those that lie among the large parts already, whose keys are too long for a separate value.
#[test]
fn no_more_is_reserved_for_a_large_record_than_it_grows() {
    let (key, bytes) = (vec![1; 5000], vec![2; 20_000]);
    for length in (1..bytes.len()).step_by(61) {
        let append = put(&key, &bytes[..length], false);
        let moved = Append { moved: Some((Origin { segment: 1, offset: 4096 }, 7)), ..append };
        let ((before, read), (after, _)) = (counted(&append), counted(&moved));
        let reserved = Counting::AsTheyLie.moved_growth(read, false, beside_bytes(key.len(), &append.form)) as i64;
        assert_eq!(reserved, (after - before).max(0), "{length} bytes");
    }
}

#[test]
fn what_counting_by_length_leaves_out_is_known() {
    let (key, bytes) = ([1; KEY_BYTES], vec![2; 100_000]);
    let beside = beside_bytes(KEY_BYTES, &Form::default());
    for length in [1280, 1300, 1337, 1360, 1400, 2048, 3000, 4080, 5000, 6200, 8192, 65_536] {
        let by_length = Counting::ByLength.bytes(length, true, beside);
        let taken = bytes_of_each(&put(&key, &bytes[..length as usize], true));
        let known = by_length as f64 + Counting::ByLength.uncounted(length, true, beside) as f64;
        assert!(known >= taken * 0.98, "{length} bytes: {known} known, {taken} taken");
        assert!(known <= taken.max(by_length as f64) * 1.02, "{length} bytes: {known} known, {taken} taken");
        assert_eq!(Counting::AsTheyLie.uncounted(length, true, beside), 0);
    }
}
