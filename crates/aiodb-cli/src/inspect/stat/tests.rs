use super::{to_json, to_text};
use aiodb::{Compression, Durability, IndexKind, MemoryStats, Stats, StorageMode, TableModes, TableStats};

fn stats() -> Stats {
    let table = |name: &str, kind, keys_exact| TableStats {
        name: name.into(),
        kind,
        keys: 1_234_567,
        keys_in_files: 0,
        keys_exact,
        index_memory_bytes: 3 << 20,
        index_disk_bytes: 5 << 30,
        index_plain_bytes: 9 << 30,
        inline_bytes: 0,
        block_compression: Compression::Zstd(3),
        modes: TableModes { keys: StorageMode::Memory, values: StorageMode::Disk },
        runs: 145,
        run_bytes: 146,
        merge_debt_bytes: 147,
        blocks: 160,
        cached_blocks: 140,
        cached_block_bytes: 141,
        cached_values: 142,
        cached_value_bytes: 143,
        value_hits: 139,
        value_misses: 144,
    };
    Stats {
        format_version: 1,
        store_id: "0123abcd".into(),
        durability: Durability::Sync,
        backend: "uring",
        direct: true,
        block_bytes: 512,
        fallbacks: vec!["why something else was refused".into()],
        segment_bytes: 1 << 20,
        segments_in_use: 101,
        segments_free: 102,
        segments_retiring: 103,
        live_bytes: 104,
        log_bytes_written: 105,
        batches_written: 106,
        records_written: 107,
        bytes_moved_by_reclaim: 109,
        last_sequence: 110,
        last_batch: 111,
        durable_batch: 118,
        unsettled_tags: 108,
        runs: 148,
        runs_above_bound: 149,
        merge_debt_bytes: 150,
        snapshots: 119,
        kept_versions: 120,
        kept_versions_in_files: 126,
        held_bytes: 127,
        waiting_range_deletes: 121,
        clock_ahead_ms: -122_000,
        oldest_pin_ms: 123,
        open_files: 124,
        max_open_files: 125,
        memory: MemoryStats {
            budget_bytes: 128,
            memtable_bytes: 129,
            run_bytes: 130,
            hash_bytes: 131,
            version_bytes: 132,
            batch_bytes: 133,
            buffer_bytes: 134,
            block_cache_bytes: 135,
            cache_bytes: 136,
            filters_left_out_bytes: 139,
        },
        memory_full_seconds: Some(137),
        disk_full_seconds: Some(138),
        warnings: vec!["what an operator should know".into()],
        trouble: None,
        checkpoints: 112,
        checkpoint_log_lag_bytes: 113,
        recovered_batches: 114,
        recovered_records: 115,
        recovered_pending_records: 116,
        rebuilt_indexes: true,
        recovery_ms: 117,
        tables: vec![table("größe", IndexKind::Lmdb, true), table("sessions", IndexKind::Hash, false)],
    }
}

#[test]
fn every_number_is_shown_to_people_and_to_programs() {
    let (text, json) = (to_text(&stats()), to_json(&stats()).to_string());
    for number in (101..=139).chain(145..=150) {
        assert!(text.contains(&format!("{number}")), "{number} is missing in:\n{text}");
        let is_there = |sign: &str| json.contains(&format!(":{sign}{number}"));
        assert!(is_there("") || is_there("-"), "{number} is missing in {json}");
    }
    assert!(text.contains("behind the store's time"), "{text}");
    assert!(text.contains("what an operator should know") && json.contains("what an operator should know"));
    assert!(text.contains("why something else was refused") && json.contains("why something else was refused"));
}

#[test]
fn sizes_have_binary_units_and_exact_bytes() {
    let text = to_text(&stats());
    assert!(text.contains("1.00 MiB (1,048,576 B)"), "{text}");
    assert!(text.contains("101 (101.00 MiB)"), "{text}");
}

#[test]
fn tables_are_aligned_and_estimates_are_marked() {
    let text = to_text(&stats());
    let (at, width) = (text.find("\ntable ").expect("tables are shown") + 1, "sorted runs".len());
    let lines: Vec<&str> = text[at..].lines().collect();
    let wanted = [
        ("table", "index             keys  index memory    index disk  uncompressed  inline   blocks"),
        ("größe", "lmdb         1,234,567      3.00 MiB      5.00 GiB      9.00 GiB       0   zstd:3"),
        ("sessions", "hash        ~1,234,567      3.00 MiB      5.00 GiB      9.00 GiB       0   zstd:3"),
        ("in memory", "          keys          values    value hits        misses"),
        ("größe", " memory      -     disk   ~0 %           139           144"),
        ("sessions", " memory ~100 %     disk   ~0 %           139           144"),
        ("sorted runs", "           runs         bytes  merges behind"),
        ("sessions", "            145         146 B          147 B"),
    ];
    assert_eq!(lines, wanted.map(|(name, rest)| format!("{name:width$}  {rest}")));
}
