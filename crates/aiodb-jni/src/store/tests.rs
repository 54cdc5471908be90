use super::*;

fn table(kind: IndexKind, index_disk_bytes: u64) -> TableStats {
    let (keys_exact, index_memory_bytes, inline_bytes) = (true, 0, 0);
    let (index_plain_bytes, block_compression) = (index_disk_bytes, Compression::None);
    TableStats {
        name: "t".into(),
        kind,
        keys: 1,
        keys_in_files: 0,
        keys_exact,
        index_memory_bytes,
        index_disk_bytes,
        index_plain_bytes,
        inline_bytes,
        block_compression,
        modes: TableModes::default(),
        runs: 0,
        run_bytes: 0,
        merge_debt_bytes: 0,
        blocks: 0,
        cached_blocks: 0,
        cached_block_bytes: 0,
        cached_values: 0,
        cached_value_bytes: 0,
        value_hits: 0,
        value_misses: 0,
    }
}

#[test]
fn the_files_of_each_kind_of_index_count_once() {
    let (lmdb, runs) = (table(IndexKind::Lmdb, 100), table(IndexKind::Lsm, 7));
    assert_eq!(index_bytes(&[]), 0);
    assert_eq!(index_bytes(&[lmdb.clone(), lmdb.clone()]), 100);
    assert_eq!(index_bytes(&[runs.clone(), lmdb.clone(), runs, lmdb]), 107);
}

#[test]
fn a_table_has_its_modes_and_shares_in_its_lines() {
    let modes = TableModes { keys: StorageMode::Memory, values: StorageMode::Disk };
    let empty = TableStats { modes, keys: 0, ..table(IndexKind::Lmdb, 0) };
    let lines = lines_of(&empty);
    assert!(lines.starts_with("keys\tmemory\nvalues\tdisk\nrows\t0\n"), "no share is known: {lines}");
    let half = TableStats { blocks: 4, cached_blocks: 2, cached_values: 1, keys: 8, ..table(IndexKind::Lsm, 0) };
    let lines = lines_of(&half);
    assert!(lines.contains("keys_in_memory_ratio\t0.5\nvalues_in_memory_ratio\t0.125\nrows\t8\n"), "{lines}");
    let lines = lines_of(&TableStats { runs: 3, run_bytes: 5, merge_debt_bytes: 2, ..half });
    assert!(lines.contains("runs\t3\nrun_bytes\t5\nmerge_debt_bytes\t2\n"), "{lines}");
}

/// Java reads a line for each.
#[test]
fn notes_are_there_where_there_is_something_to_note() {
    assert_eq!(notes(None, None, &[]), "");
    let warnings = ["first\nline".to_string(), "second".into()];
    let all = notes(Some(61), Some(0), &warnings);
    assert_eq!(all, "memory_full_seconds\t61\ndisk_full_seconds\t0\nwarning\tfirst line\nwarning\tsecond\n");
}

#[test]
fn java_names_every_mode() {
    for mode_of_engine in StorageMode::ALL {
        assert_eq!(mode(mode_of_engine.name()).expect("Java knows it"), mode_of_engine);
    }
    assert!(matches!(mode("ram"), Err(Failure::Argument(_))));
}
