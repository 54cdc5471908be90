use std::sync::Arc;

use crate::engine::Engine;
use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::{Batch, Db, Durability, IndexKind, Options};

/// A store that works only when it is told to, on a simulated machine with a real directory for the file that LMDB maps.
fn store(directory: &tempfile::TempDir) -> (SimDevice, Db<SimDevice>) {
    let device = SimDevice::new(1);
    device.set_real_directory(directory.path());
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: 1 << 20, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    (device, db)
}

/// A commit of the ordered index lets nobody in: whoever adds to an ordered table waits for it, all others go on.
#[test]
fn only_writes_to_ordered_tables_wait_for_the_ordered_index() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (_device, db) = store(&directory);
    let ordered = db.create_table("ordered", IndexKind::Lmdb).expect("the table can be made");
    let hash = db.create_table("hash", IndexKind::Hash).expect("the table can be made");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.0;
    let commit = engine.lmdb().pace.begin();
    engine.lmdb().pace.allow(0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut both = Batch::new();
            both.put(&hash, b"key", b"both").and_then(|batch| batch.put(&ordered, b"key", b"both")).expect("both fit");
            db.write_with(&both, Durability::None).expect("the machine runs")
        });
        for durability in [Durability::Sync, Durability::None] {
            hash.put_with(b"other", b"value", durability).expect("the machine runs");
            hash.put_with(b"large", &[1; 300_000], durability).expect("the machine runs");
        }
        db.create_table("passing", IndexKind::Lmdb).expect("the table can be made");
        db.drop_table("passing").expect("the table can be dropped");
        assert!(!waiting.is_finished(), "what goes to both waits for the ordered one");
        assert_eq!(hash.get(b"key").expect("the machine runs"), None);
        drop(commit);
        waiting.join().expect("the writer comes to its end");
    });
    assert_eq!(ordered.get(b"key").expect("the machine runs").as_deref(), Some(&b"both"[..]));
}
