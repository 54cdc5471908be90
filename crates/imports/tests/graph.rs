//! What counts as an import, and which circles imports close, on crates of a few lines.

use std::path::Path;

use imports::{Error, Graph};

/// A crate of these files, as its edges: `from:line to`.
fn edges(files: &[(&str, &str)]) -> Vec<String> {
    let edge = |edge: &imports::Edge| format!("{}:{} {}", short(&edge.from), edge.line, short(&edge.to));
    graph(files).expect("the crate can be read").edges().iter().map(edge).collect()
}

fn graph(files: &[(&str, &str)]) -> Result<Graph, Error> {
    let directory = tempfile::tempdir().expect("a directory for a crate");
    for (name, text) in files {
        let path = directory.path().join("src").join(name);
        std::fs::create_dir_all(path.parent().expect("a file lies in a directory")).expect("the directory is made");
        std::fs::write(path, text).expect("the file is written");
    }
    Graph::of_crate(directory.path())
}

fn short(path: &Path) -> String {
    path.strip_prefix("src").expect("paths begin at the crate").display().to_string()
}

#[test]
fn braces_are_taken_apart_each_with_its_line() {
    let found = edges(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "use std::io;\nuse crate::{\n    b::{B, inner::{self, Deep}},\n    c::*,\n    d as other,\n};"),
        ("b.rs", "pub struct B;\npub mod inner;"),
        ("b/inner.rs", "pub struct Deep;"),
        ("c.rs", ""),
        ("d.rs", ""),
    ]);
    assert_eq!(found, ["a.rs:3 b/inner.rs", "a.rs:3 b/inner.rs", "a.rs:3 b.rs", "a.rs:4 c.rs", "a.rs:5 d.rs"]);
}

#[test]
fn anchors_are_resolved_from_the_module_around_them() {
    let found = edges(&[
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a.rs",
            "mod child;\nuse self::child::Child;\nmod inline {\n    use super::super::b::B;\n    use super::child::Child;\n}",
        ),
        ("a/child.rs", "use super::super::b;\npub struct Child;"),
        ("b/mod.rs", "pub struct B;"),
    ]);
    assert_eq!(found, ["a/child.rs:1 b/mod.rs", "a.rs:2 a/child.rs", "a.rs:4 b/mod.rs", "a.rs:5 a/child.rs"]);
}

#[test]
fn a_module_below_needs_no_anchor_and_a_declaration_is_no_import() {
    let found = edges(&[
        ("main.rs", "mod a;\nmod b;\nuse a::A;\nfn main() {\n    b::run();\n    std::b::run();\n    ::b::run();\n}"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "mod silent;\npub fn run() {}"),
        ("b/silent.rs", ""),
    ]);
    assert_eq!(found, ["main.rs:3 a.rs", "main.rs:5 b.rs"]);
}

#[test]
fn paths_are_found_in_expressions_attributes_and_macros() {
    let found = edges(&[
        ("lib.rs", "mod a;\nmod b;"),
        (
            "a.rs",
            "fn f(x: crate::b::B) {\n    g(0..crate::b::MANY);\n    println!(\"{}\", super::b::text());\n}\n\
             #[arg(value_parser = super::b::parse)]\nstruct S {\n    #[doc = \"crate::b\"]\n    pub(crate) field: u8,\n    \
             pub(in crate::b) other: u8,\n}\n/// See [`crate::b`].\n// use crate::b;\nconst T: &str = \"crate::b::B\";",
        ),
        ("b.rs", "pub struct B;"),
    ]);
    assert_eq!(found, ["a.rs:1 b.rs", "a.rs:2 b.rs", "a.rs:3 b.rs", "a.rs:5 b.rs"]);
}

#[test]
fn the_use_of_a_bound_brings_nothing_in() {
    let found = edges(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "fn f<'a>(x: &'a u8) -> impl Sized + use<'a> {\n    crate::b::g(x)\n}"),
        ("b.rs", "pub fn g(x: &u8) -> &u8 { x }"),
    ]);
    assert_eq!(found, ["a.rs:2 b.rs"]);
}

#[test]
fn what_is_compiled_for_tests_alone_is_not_read() {
    let found = edges(&[
        (
            "lib.rs",
            "mod a;\nmod b;\n#[cfg(test)]\nmod tests;\n#[cfg(all(test, feature = \"f\"))]\npub(crate) mod more;",
        ),
        (
            "a.rs",
            "#[cfg(test)]\nuse crate::b::{B, C};\n#[cfg(test)]\n#[allow(unused)]\nconst fn f() -> crate::b::B { crate::b::B }\n\
             #[cfg(test)]\nconst X: crate::b::B = crate::b::B { };\n#[cfg(any(test, unix))]\nuse crate::b::B;\n\
             struct S { #[cfg(test)] x: crate::b::B, y: crate::b::B }\n#[cfg(test)]\nmod tests { use crate::b::B; }\n\
             #[cfg(not(test))]\nuse crate::b::C;",
        ),
        ("b.rs", "#![cfg(test)]\nuse crate::a;"),
    ]);
    assert_eq!(found, ["a.rs:9 b.rs", "a.rs:10 b.rs", "a.rs:14 b.rs"]);
}

#[test]
fn a_name_that_is_passed_on_counts_for_the_file_that_has_it() {
    let found = edges(&[
        (
            "lib.rs",
            "mod a;\nmod b;\nmod face;\npub use b::B;\npub use face::{Inner as Renamed, *};\nuse std::io::Read;",
        ),
        (
            "a.rs",
            "use crate::B;\nuse crate::Renamed;\nuse crate::Other;\nuse crate::face::Inner;\nuse crate::Read;\nuse crate::face;",
        ),
        ("b.rs", "pub struct B;"),
        ("face.rs", "mod inner;\npub use inner::*;"),
        ("face/inner.rs", "pub struct Inner;\npub struct Other;"),
    ]);
    let of_a: Vec<&String> = found.iter().filter(|edge| edge.starts_with("a.rs")).collect();
    assert_eq!(
        of_a,
        [
            "a.rs:1 b.rs",
            "a.rs:2 face/inner.rs",
            "a.rs:3 face/inner.rs",
            "a.rs:4 face/inner.rs",
            "a.rs:5 lib.rs",
            "a.rs:6 face.rs"
        ]
    );
}

#[test]
fn names_that_go_round_for_ever_end() {
    let found = edges(&[
        ("lib.rs", "mod a;\nmod b;\nuse hex;"),
        ("a.rs", "pub use crate::b::*;\nuse crate::b::X;\nuse hex::encode as hex;"),
        ("b.rs", "pub use crate::a::*;\npub use crate::a::X;"),
    ]);
    assert_eq!(found.len(), 4, "{found:?}");
}

#[test]
fn a_circle_is_whole_and_names_files_and_lines() {
    let graph = graph(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\nuse a::A;"),
        ("a.rs", "use crate::b::B;\npub struct A;"),
        ("b.rs", "\nuse crate::c::C;\npub struct B;"),
        ("c.rs", "use crate::a::A;\nuse crate::d::D;\nuse crate::a;\npub struct C;"),
        ("d.rs", "pub struct D;"),
    ])
    .expect("the crate can be read");
    let circles = graph.circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(
        circles[0].to_string(),
        "3 files import each other in a circle; the shortest way round:\n  src/a.rs:1 names crate::b::B of src/b.rs\n  \
         src/b.rs:2 names crate::c::C of src/c.rs\n  src/c.rs:1 names crate::a::A of src/a.rs\n"
    );
}

#[test]
fn a_child_that_names_its_parent_closes_a_circle_only_if_the_parent_names_it() {
    let child = ("a/child.rs", "use super::A;\npub fn run() {}");
    let apart = graph(&[("lib.rs", "mod a;"), ("a.rs", "mod child;\npub struct A;"), child]);
    assert!(apart.expect("the crate can be read").circles().is_empty());
    let both = graph(&[("lib.rs", "mod a;"), ("a.rs", "mod child;\npub struct A;\nfn f() { child::run() }"), child]);
    assert_eq!(both.expect("the crate can be read").circles().len(), 1);
}

#[test]
fn the_shortest_way_round_a_large_circle_comes_first() {
    let found = graph(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;"),
        ("a.rs", "use crate::b;"),
        ("b.rs", "use crate::c;"),
        ("c.rs", "use crate::a;\n\nuse crate::b;\nuse crate::b::B;"),
    ]);
    let circles = found.expect("the crate can be read").circles();
    assert_eq!(
        circles[0].to_string(),
        "3 files import each other in a circle; the shortest way round:\n  src/b.rs:1 names crate::c of src/c.rs\n  \
         src/c.rs:3 names crate::b of src/b.rs\nand between its files besides:\n  src/a.rs:1 names crate::b of src/b.rs\n  \
         src/c.rs:1 names crate::a of src/a.rs\n"
    );
}

#[test]
fn two_circles_are_two() {
    let found = graph(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;"),
        ("a.rs", "use crate::b;\nuse crate::c;"),
        ("b.rs", "use crate::a;"),
        ("c.rs", "use crate::d;"),
        ("d.rs", "use crate::c;"),
    ]);
    assert_eq!(found.expect("the crate can be read").circles().len(), 2);
}

#[test]
fn a_crate_that_cannot_be_read_is_no_crate_without_circles() {
    let missing = graph(&[("lib.rs", "mod a;")]);
    assert!(matches!(missing, Err(Error::NoFile { name, .. }) if name == "a"));
    let broken = graph(&[("lib.rs", "\n\nfn f() {")]);
    assert!(matches!(broken, Err(Error::NotRust { .. })));
    assert!(matches!(graph(&[("other.rs", "")]), Err(Error::NoRoot { .. })));
}

#[test]
fn this_crate_has_no_circle() {
    let own = Graph::of_crate(env!("CARGO_MANIFEST_DIR")).expect("the crate can be read");
    let circles: String = own.circles().iter().map(ToString::to_string).collect();
    assert!(!own.edges().is_empty() && circles.is_empty(), "{circles}");
}
