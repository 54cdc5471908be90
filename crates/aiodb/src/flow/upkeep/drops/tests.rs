use crate::filter::Expiry;
use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::log::Claim;
use crate::{CompactionFilters, Db, Durability, IndexKind, Options, Step, TableOptions};

/// Nothing is freed for a filter: neither for a file that is written for its sake, nor for its deletes.
#[test]
fn a_full_disk_keeps_what_a_filter_gives_up() {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let compaction_filters = CompactionFilters::default().with(Expiry);
    let options = Options { background: false, segment_bytes: 1 << 20, compaction_filters, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    let filter = Some("expiry".to_string());
    let table_options = TableOptions { inline_bytes: 64, compaction_filter: filter, ..IndexKind::Lsm.into() };
    let table = db.create_table_with("t", table_options).expect("the table can be made");
    let value = [&1u64.to_le_bytes()[..], b"value"].concat();
    (0..10).for_each(|key| table.put_with(&[key], &value, Durability::None).map(drop).expect("the machine runs"));
    db.checkpoint().expect("the machine runs");
    let engine = &db.engine.engine;
    let state = || {
        let metrics = db.metrics();
        (metrics.filter_asked_entries, metrics.filter_waiting_keys, metrics.filter_dropped_keys)
    };
    let merge = || db.step(Step::Merge).expect("the machine runs");
    device.set_capacity(Some(device.used_bytes()));
    merge();
    assert_eq!(state(), (0, 0, 0));
    device.set_capacity(None);
    // Something else has taken of the reserve.
    let taken = engine.segments.take_free(Claim::Moves).expect("a segment is free");
    merge();
    merge();
    assert_eq!(state(), (10, 10, 0));
    assert!(table.get(&[7]).expect("the machine runs").is_some());
    engine.segments.set_free(taken);
    merge();
    assert_eq!(state(), (10, 0, 10));
    assert!(table.get(&[7]).expect("the machine runs").is_none());
}
