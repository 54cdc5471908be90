use super::*;

pub(crate) fn load() -> ChurnLoad {
    ChurnLoad {
        index: "lsm".to_owned(),
        pattern: "zipf".to_owned(),
        durability: "interval 1000 ms".to_owned(),
        key_bytes: 25,
        value_bytes: 75,
        inline_bytes: 0,
        records: 1000,
        live_bytes: 100_000,
        writers: 8,
        memory_limit_bytes: None,
        file_system_bytes: 1 << 40,
    }
}

/// A stretch of two seconds.
pub(crate) fn stretch(number: u32, overwrites_per_s: f64, longest_us: f64) -> ChurnStretch {
    ChurnStretch {
        load: load(),
        at_s: 2.0 * f64::from(number),
        seconds: 2.0,
        overwrites: 1500 * u64::from(number),
        overwrites_per_s,
        p50_us: 5.0,
        p99_us: 9.0,
        p999_us: 50.0,
        longest_us,
        refused: 0,
        directory_bytes: 150_000,
        most_directory_bytes: 160_000,
        space: 1.5,
        device_written_bytes: Some(1 << 20),
        processors: 0.5,
        resident_bytes: 1 << 20,
    }
}

pub(crate) fn end() -> ChurnEnd {
    ChurnEnd {
        overwrites: 5000,
        seconds: 10.0,
        caught_up_s: 2.5,
        is_at_rest: true,
        refused: 3,
        device_written_bytes: Some(1_250_000),
        process_written_bytes: Some(1_000_000),
        reclaim_written_bytes: 250_000,
        directory_bytes_before: 120_000,
        most_directory_bytes: 170_000,
        directory_bytes_at_rest: 140_000,
        checked_records: 1000,
    }
}

#[test]
fn a_run_is_its_stretches_and_what_it_ends_with() {
    let stretches = [stretch(1, 800.0, 70.0), stretch(2, 200.0, 900.0), stretch(3, 400.0, 30.0)];
    let run = ChurnRun::of(load(), &stretches, end());
    assert_eq!((run.user_bytes, run.overwrites_per_s, run.overwrites_per_s_caught_up), (500_000, 500.0, 400.0));
    assert_eq!((run.worst_stretch_overwrites_per_s, run.worst_to_mean, run.last_to_first), (200.0, 0.4, 0.5));
    assert_eq!((run.longest_us, run.refused), (900.0, 3));
    assert_eq!((run.device_bytes_per_user_byte, run.process_bytes_per_user_byte), (Some(2.5), Some(2.0)));
    assert_eq!(run.reclaim_bytes_per_user_byte, 0.5);
    assert_eq!((run.space_before, run.most_space, run.space_at_rest), (1.2, 1.7, 1.4));
}

#[test]
fn the_ends_of_a_long_run_are_a_tenth_of_its_stretches_each() {
    let rates = (0..20u32).map(|number| if number < 2 { 300.0 } else { 100.0 + f64::from(number / 19) * 100.0 });
    let stretches: Vec<ChurnStretch> = (1..).zip(rates).map(|(number, rate)| stretch(number, rate, 1.0)).collect();
    // 300 and 300 at first, 100 and 200 at last.
    assert_eq!(ChurnRun::of(load(), &stretches, end()).last_to_first, 0.5);
}

#[test]
fn a_disk_that_does_not_count_leaves_no_ratio() {
    let end = ChurnEnd { device_written_bytes: None, process_written_bytes: None, ..end() };
    let run = ChurnRun::of(load(), &[stretch(1, 500.0, 1.0)], end);
    assert_eq!((run.device_bytes_per_user_byte, run.process_bytes_per_user_byte), (None, None));
    assert_eq!((run.worst_to_mean, run.last_to_first), (1.0, 1.0));
}

#[test]
fn stretches_and_runs_have_tables_of_their_own_and_one_list_in_json() {
    let stretches = [stretch(1, 800.0, 70.0), stretch(2, 200.0, 900.0)];
    let run = ChurnRun::of(load(), &stretches, end());
    let rows: Vec<ChurnRow> = stretches.into_iter().map(ChurnRow::Stretch).chain([ChurnRow::Run(run)]).collect();
    let lines: Vec<usize> = tables(&rows).iter().map(|table| table.rows.len()).collect();
    assert_eq!(lines, [1, 2]);
    let json = serde_json::to_value(&rows).expect("JSON");
    assert_eq!((&json[0]["series"], &json[0]["pattern"]), (&"stretch".into(), &"zipf".into()));
    assert_eq!((&json[2]["series"], &json[2]["live_bytes"]), (&"run".into(), &100_000.into()));
    assert_eq!(serde_json::from_value::<Vec<ChurnRow>>(json).expect("rows"), rows);
}
