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
        modes: aiodb::TableModes::default(),
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
