use super::*;

fn operations(per_s: f64) -> Operations {
    Operations {
        count: 1000,
        per_s,
        per_s_rounds: vec![per_s],
        per_s_caught_up: per_s / 2.0,
        rounds_not_caught_up: 0,
        p50_us: 1.0,
        p99_us: 2.0,
        cpu_us_each: 3.0,
    }
}

pub(crate) fn row() -> MergeRow {
    let ratio = |median| Ratio { median, min: median, max: median };
    MergeRow {
        index: "hash".to_owned(),
        durability: "none".to_owned(),
        key_bytes: 25,
        value_bytes: 8,
        inline_bytes: 0,
        keys: 1,
        writers: 8,
        merges: operations(90_000.0),
        puts: operations(100_000.0),
        merges_to_puts: ratio(0.9),
        merges_to_puts_caught_up: ratio(0.8),
        is_settled_before_gets: true,
        gets_of_merged: operations(5_000.0),
        gets_of_put: operations(10_000.0),
        gets_of_merged_to_put: ratio(0.5),
        checked_counters: 1,
    }
}

#[test]
fn ratios_are_of_paired_rounds() {
    let ratio = Ratio::of(&[10.0, 40.0, 300.0], &[20.0, 40.0, 100.0]);
    assert_eq!(ratio, Ratio { median: 1.0, min: 0.5, max: 3.0 });
}

#[test]
fn a_point_is_named_with_its_numbers() {
    let words = row().in_words();
    assert_eq!(
        words,
        "hash, none, 1 key, 8 writers: 90,000 merges/s, 0.90 of the puts; gets at 0.50 of the rate of those of put keys"
    );
    assert_eq!(tables(&[row(), row()]).iter().map(|table| table.rows.len()).collect::<Vec<_>>(), [2, 2]);
}

#[test]
fn what_was_still_owed_is_said() {
    assert_eq!(row().not_caught_up(), None);
    let puts = Operations { rounds_not_caught_up: 2, ..operations(100_000.0) };
    let place = "hash, none, 1 key, 8 writers: not caught up with after 0 rounds of merges and 2 of puts";
    let behind = MergeRow { puts, ..row() };
    assert_eq!(behind.not_caught_up().as_deref(), Some(place));
    let later = MergeRow { is_settled_before_gets: false, ..behind };
    assert_eq!(later.not_caught_up(), Some(format!("{place}, nor before the gets")));
}
