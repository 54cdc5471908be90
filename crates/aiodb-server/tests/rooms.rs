//! The order of this crate's files: none imports one that imports it, at any distance.

use imports::Graph;

#[test]
fn no_files_import_each_other_in_a_circle() {
    let graph = Graph::of_crate(env!("CARGO_MANIFEST_DIR")).expect("the sources of this crate can be read");
    assert!(!graph.edges().is_empty(), "the reader found no imports at all");
    let circles: String = graph.circles().iter().map(ToString::to_string).collect();
    assert!(circles.is_empty(), "{circles}Move what both sides need below them.");
}
