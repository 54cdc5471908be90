//! Backups of a store that stays in use, and a store from one.

use aiodb::{BackupOptions, Db, IndexKind, Options, Repository};

fn main() -> aiodb::Result<()> {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    run(directory.path())
}

fn run(path: &std::path::Path) -> aiodb::Result<()> {
    let db = Db::open(path.join("store"), Options::default())?;
    let table = db.table_or_create("t", IndexKind::Lsm)?;
    table.put(b"key", b"first")?;
    let repository = path.join("backups");
    let first = db.backup(&repository, &BackupOptions::default(), &mut |_, _| {})?.point;
    table.put(b"key", b"second")?;
    // Only what is new is copied.
    db.backup(&repository, &BackupOptions::default(), &mut |_, _| {})?;
    db.close()?;

    let restored = path.join("restored");
    Repository::open(&repository)?.restore(Some(first.number), &restored, &mut |_, _| {})?;
    let db = Db::open(&restored, Options::default())?;
    assert_eq!(db.table("t")?.get(b"key")?, Some(b"first".to_vec()));
    db.close()
}

#[test]
fn it_runs() {
    main().expect("the example does what it shows");
}
