//! The order of the rooms of the engine: imports go down only, and no circle of files is larger than a few.

use std::path::Path;

use imports::Graph;

/// From the bottom to the top. A file may import from its own room and from those before it.
const ROOMS: [&str; 12] =
    ["leaves", "io", "format", "cache", "log", "index", "store", "flow", "api", "tools", "fuzzing", "lib.rs"];

/// Files that import each other in a circle, at most.
const MAX_CIRCLE: usize = 3;

/// Files beside the rooms, at most.
const MAX_LEAVES: usize = 12;

/// The room of a file; one that lies in no room is a leaf, below all.
fn room_of(file: &Path) -> usize {
    let first = file.strip_prefix("src").expect("sources lie in src").iter().next().expect("a file has a name");
    let name = Path::new(first).file_stem().expect("a file has a name").to_string_lossy();
    if name == "lib" {
        return ROOMS.len() - 1;
    }
    ROOMS.iter().position(|room| *room == name).unwrap_or(0)
}

#[test]
fn imports_go_down() {
    let graph = Graph::of_crate(env!("CARGO_MANIFEST_DIR")).expect("the sources can be read");
    let up = |edge: &&imports::Edge| room_of(&edge.from) < room_of(&edge.to);
    let upward: Vec<String> = graph
        .edges()
        .iter()
        .filter(up)
        .map(|edge| {
            let (from, to) = (ROOMS[room_of(&edge.from)], ROOMS[room_of(&edge.to)]);
            format!(
                "{}:{} in {from} names {} of {to} ({})",
                edge.from.display(),
                edge.line,
                edge.name,
                edge.to.display()
            )
        })
        .collect();
    assert!(upward.is_empty(), "imports that go up:\n{}", upward.join("\n"));
}

#[test]
fn no_circle_is_large() {
    let graph = Graph::of_crate(env!("CARGO_MANIFEST_DIR")).expect("the sources can be read");
    let large: Vec<_> = graph.circles().into_iter().filter(|circle| circle.files.len() > MAX_CIRCLE).collect();
    let shown: Vec<String> = large.iter().map(ToString::to_string).collect();
    assert!(large.is_empty(), "{}", shown.join("\n"));
}

#[test]
fn few_files_lie_beside_the_rooms() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let is_file = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "rs");
    let entries =
        std::fs::read_dir(sources).expect("the sources are there").map(|entry| entry.expect("it can be read"));
    let leaves =
        entries.filter(is_file).filter(|entry| room_of(&Path::new("src").join(entry.file_name())) == 0).count();
    assert!(leaves <= MAX_LEAVES, "{leaves} files lie beside the rooms");
}
