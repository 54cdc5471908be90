use std::sync::Arc;

use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::store::engine::Engine;
use crate::{Db, Durability, IndexKind, MergeOperators, Options, TableOptions};

/// Appends operands.
struct Append;

impl crate::merge::MergeOperator for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        Ok([base.unwrap_or_default(), &operands.concat()].concat())
    }
}

/// A writer that panicked while it folded does not stop all others from folding for ever.
#[test]
fn writers_fold_after_one_that_panicked() {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let merge_operators = MergeOperators::default().with(Append);
    let options = Options { background: false, merge_operators, ..Options::default() };
    let db = Db::open_on(device, "/store", options).expect("the store can be made");
    let merged = TableOptions { merge: Some("append".into()), ..IndexKind::Hash.into() };
    let table = db.create_table_with("t", merged).expect("the table can be made");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    let panics = || {
        let _folding = engine.settling.urgent.begin(false).expect("nobody folds");
        panic!("a bug");
    };
    std::thread::scope(|scope| scope.spawn(panics).join().expect_err("it panics"));
    for _ in 0..2 * super::MAX_OPERANDS {
        table.merge_with(b"key", b"x", Durability::None).expect("a merge works");
    }
    assert!(engine.meters.folded_keys.sum() > 0, "a writer has folded");
    assert_eq!(table.get(b"key").expect("a get works"), Some(vec![b'x'; 2 * super::MAX_OPERANDS]));
}
