//! A store on several disks: one directory on each.

use aiodb::{Db, IndexKind, Options};

fn main() -> aiodb::Result<()> {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    run(directory.path())
}

fn run(path: &std::path::Path) -> aiodb::Result<()> {
    let disks = [path.join("disk-a"), path.join("disk-b")]; // Where the disks are mounted.
    let db = Db::open_several(&disks, Options::default())?;
    let table = db.table_or_create("t", IndexKind::Lsm)?;
    table.put(b"key", &[7; 4096])?;
    db.close()?;
    // All of them are needed, in any order; a missing one is named by the error.
    let alone = Db::open(&disks[0], Options::default());
    println!("{}", alone.err().expect("one is missing"));
    let db = Db::open_several(&[&disks[1], &disks[0]], Options::default())?;
    assert_eq!(db.table("t")?.get(b"key")?, Some(vec![7; 4096]));
    db.close()
}

#[test]
fn it_runs() {
    main().expect("the example does what it shows");
}
