use std::sync::Arc;

use super::Catalog;
use crate::format::segment::Features;
use crate::format::settings::Settings;
use crate::{Compression, IndexKind, TableOptions};

const COMPRESSED: Compression = Compression::Zstd(3);

fn settings() -> Settings {
    Settings::new(&TableOptions { block_compression: COMPRESSED, ..IndexKind::Lsm.into() })
}

/// Merges meet keys of a generation before its table is there, and after.
#[test]
fn the_compression_of_blocks_is_known_without_the_table() {
    let catalog = Catalog::new([0; 16], 1 << 20, Features::default(), &Arc::default());
    let id = catalog.reserve("t", settings()).id;
    assert_eq!(catalog.block_compression(id), COMPRESSED, "while it is being made");
    catalog.apply_create("t", &settings(), id);
    catalog.release("t");
    assert_eq!(catalog.block_compression(id), COMPRESSED, "of the table");
    let emptied = catalog.next_id();
    catalog.apply_create("t", &settings(), emptied);
    catalog.apply_drop("t", emptied);
    for gone in [id, emptied] {
        assert_eq!(catalog.block_compression(gone), COMPRESSED, "until it is purged");
        catalog.forget(gone);
        assert_eq!(catalog.block_compression(gone), Compression::None, "of nothing");
    }
    let given_up = catalog.give_up(Arc::new(catalog.reserve("t", settings()))).id;
    catalog.release("t");
    assert_eq!(catalog.block_compression(given_up), COMPRESSED, "runs may have keys of what could not be made");
    let id = catalog.reserve("t", settings()).id;
    catalog.release("t");
    assert_eq!(catalog.block_compression(id), Compression::None, "of what was not made");
    // Dropped before who made it gives the name back.
    let id = catalog.reserve("t", settings()).id;
    catalog.apply_create("t", &settings(), id);
    catalog.apply_drop("t", id);
    catalog.release("t");
    assert_eq!(catalog.block_compression(id), COMPRESSED, "until it is purged");
}

/// A version says what there may be. Whether there is, tables say.
#[test]
fn a_version_makes_no_filters() {
    let all = Features { values: true, filters: true, compressed_blocks: true, counts_as_they_lie: true };
    let catalog = Catalog::new([0; 16], 1 << 20, all, &Arc::default());
    assert_eq!(catalog.features(), all);
    catalog.apply_create("t", &settings(), catalog.next_id());
    assert!(!catalog.has_filters());
    let filtered = TableOptions { compaction_filter: Some("expiry".to_string()), ..IndexKind::Lsm.into() };
    catalog.apply_create("filtered", &Settings::new(&filtered), catalog.next_id());
    assert!(catalog.has_filters());
}
