use std::path::Path;
use std::sync::Arc;

use crate::format::manifest::Manifest;
use crate::index::lmdb::LmdbIndex;
use crate::index::range_tombstones::Ranges;
use crate::index::snapshots::Snapshots;
use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::io::small_file::replace_file;
use crate::retention::Retention;
use crate::{Db, IndexKind, Options};

fn open(device: &SimDevice) -> Db<SimDevice> {
    let options = Options { segment_bytes: 64 << 10, background: false, ..Options::default() };
    Db::open_on(device.clone(), "/store", options).expect("the store opens")
}

fn assert_counted(db: &Db<SimDevice>, when: &str) {
    let wrong = db.recount().expect("what is alive can be counted");
    assert!(wrong.is_empty(), "{when}: {}", wrong.join("; "));
}

/// Earlier programs counted the chunks of ordered tables in the manifest.
#[test]
fn counts_of_chunks_are_taken_over_from_a_manifest() {
    let (device, directory) = (SimDevice::new(1), tempfile::tempdir().expect("a directory can be made"));
    device.set_real_directory(directory.path());
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let db = open(&device);
    let table = db.create_table("t", IndexKind::Lmdb).expect("a table can be made");
    table.put(b"large", &vec![7; 300_000]).expect("a put works");
    let store = db.engine().segments.store;
    db.close().expect("a sound store can be closed");
    drop((db, table));

    let path = device.real_path(Path::new("/store/index/lmdb")).expect("LMDB has a place");
    let snapshots = Arc::new(Snapshots::new(Arc::new(Retention::default())));
    let index = LmdbIndex::open(&path, store, snapshots, Arc::<Ranges>::default(), false).expect("the index opens");
    let counted = index.live_chunks().expect("counts can be read");
    assert!(counted.len() >= 4, "chunks lie in {} segments", counted.len());
    index.set_live_chunks(&[]).expect("counts can be set");
    assert_eq!(index.live_chunks().expect("counts can be read"), []);
    index.close();
    drop(index);
    for name in ["/store/MANIFEST", "/store/MANIFEST.copy"] {
        let bytes = device.file_bytes(name).expect("the manifest is there");
        let mut manifest = Manifest::decode(&bytes, &store).expect("the manifest is sound");
        for segment in &mut manifest.segments {
            assert_eq!(segment.live_chunks, [], "LMDB counts them");
            let here = counted.iter().filter(|(_, chunks)| chunks.segment == segment.number);
            segment.live_chunks.extend(here.map(|(table, chunks)| (*table, chunks.bytes)));
        }
        replace_file(&device, Path::new(name), &manifest.encode(&store)).expect("the manifest can be replaced");
    }

    let db = open(&device);
    let ordered = db.engine().ordered.get(IndexKind::Lmdb).expect("it is open");
    let taken_over = ordered.committed.live_chunks().expect("counts can be read");
    assert_eq!(taken_over, counted, "as they were in the manifest");
    assert_counted(&db, "opened for the first time");
    db.close().expect("a sound store can be closed");
    drop(db);
    let db = open(&device);
    assert_counted(&db, "opened again");
}
