//! Gets and writes as futures: any async runtime will do, this one is from the crate `futures`.

use aiodb::{Db, IndexKind, Options};
use futures::executor::block_on;
use futures::future::try_join_all;

fn main() -> aiodb::Result<()> {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    run(directory.path())
}

fn run(path: &std::path::Path) -> aiodb::Result<()> {
    let db = Db::open(path, Options::default())?;
    let table = db.table_or_create("readings", IndexKind::Hash)?;
    block_on(async {
        // A hundred puts share a few writes of the device; each is on it when its future is ready.
        let keys: Vec<String> = (0..100).map(|number| format!("sensor {number}")).collect();
        try_join_all(keys.iter().map(|key| table.put_async(key.as_bytes(), b"20.0"))).await?;
        let values = try_join_all(keys.iter().map(|key| table.get_async(key.as_bytes()))).await?;
        assert!(values.iter().all(|value| value.as_deref() == Some(b"20.0")));
        aiodb::Result::Ok(())
    })?;
    db.close()
}

#[test]
fn it_runs() {
    main().expect("the example does what it shows");
}
