//! First steps: tables, puts, scans, snapshots, merges and expiry.

use std::time::Duration;

use aiodb::merge::Add;
use aiodb::{Batch, Db, IndexKind, MergeOperators, Options, ScanOptions, TableOptions, WriteOptions};

fn main() -> aiodb::Result<()> {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    run(directory.path())
}

fn run(path: &std::path::Path) -> aiodb::Result<()> {
    let options = Options { merge_operators: MergeOperators::default().with(Add), ..Options::default() };
    let db = Db::open(path, options)?;
    let rooms = db.table_or_create("rooms", IndexKind::Lsm)?;
    rooms.put(b"kitchen", b"21.5")?; // On the device when it returns.
    rooms.put_with(b"sauna", b"80.0", WriteOptions::expiring(Duration::from_secs(3600)))?;

    let mut batch = Batch::new();
    batch.put(&rooms, b"cellar", b"12.0")?.put(&rooms, b"attic", b"17.5")?;
    db.write(&batch)?; // All of it or nothing.

    let before = db.snapshot()?;
    rooms.delete_range(b"a", b"d")?;
    let keys = |scan: aiodb::Scan| scan.map(|record| Ok(record?.0)).collect::<aiodb::Result<Vec<_>>>();
    assert_eq!(keys(rooms.scan(ScanOptions::all())?)?, [&b"kitchen"[..], b"sauna"]);
    assert_eq!(keys(before.scan(&rooms, ScanOptions::prefix(b"c"))?)?, [b"cellar"]);

    let visits =
        db.create_table_with("visits", TableOptions { merge: Some("add".into()), ..IndexKind::Hash.into() })?;
    for _ in 0..3 {
        visits.merge(b"kitchen", &1i64.to_le_bytes())?; // Nothing is read.
    }
    assert_eq!(visits.get(b"kitchen")?, Some(3i64.to_le_bytes().to_vec()));
    assert!(rooms.compare_and_set(b"kitchen", Some(b"21.5"), Some(b"22.0"))?);
    db.close()
}

#[test]
fn it_runs() {
    main().expect("the example does what it shows");
}
