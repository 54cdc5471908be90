//! The order of this crate's files: none imports one that imports it, at any distance.

#[test]
fn no_files_import_each_other_in_a_circle() {
    imports::assert_no_circles(env!("CARGO_MANIFEST_DIR"));
}
