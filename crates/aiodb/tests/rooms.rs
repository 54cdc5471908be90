//! The order of the rooms of the engine: imports go down only, and no circle of files is larger than a few. And its layers: each flow
//! names no layer of the state above the one that it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use imports::{Edge, Graph};

/// From the bottom to the top. A file may import from its own room and from those before it.
const ROOMS: [&str; 12] =
    ["leaves", "io", "format", "cache", "log", "index", "store", "flow", "api", "tools", "fuzzing", "lib.rs"];

/// Files that import each other in a circle, at most.
const MAX_CIRCLE: usize = 3;

/// Files beside the rooms, at most.
const MAX_LEAVES: usize = 12;

/// The layers of an open store (`store/`), from the bottom to the top, and the files above them whose methods or functions take one: each
/// stands with the highest that it takes.
const LAYERS: [(&str, &[&str]); 6] = [
    ("host", &[]),
    (
        "read_path",
        &[
            "api/batch.rs",
            "api/stream.rs",
            "flow/cached.rs",
            "flow/get.rs",
            "flow/look_ups.rs",
            "flow/merging.rs",
            "flow/ordered_files.rs",
            "flow/paused.rs",
            "flow/read.rs",
            "flow/read_ahead.rs",
            "flow/recovery/counts.rs",
            "flow/recovery/in_runs.rs",
            "flow/scan/fetch.rs",
            "flow/scan/stretches.rs",
            "flow/upkeep/memory.rs",
        ],
    ),
    (
        "append_path",
        &[
            "flow/lead.rs",
            "flow/moves.rs",
            "flow/open_batch.rs",
            "flow/publish.rs",
            "flow/snapshot.rs",
            "flow/spilled.rs",
            "flow/upkeep/settle.rs",
        ],
    ),
    (
        "upkeep",
        &[
            "flow/recovery/segments.rs",
            "flow/upkeep/checkpoint.rs",
            "flow/upkeep/commits.rs",
            "flow/upkeep/merges.rs",
            "flow/upkeep/purge.rs",
            "flow/upkeep/reclaim.rs",
            "flow/upkeep/reclaim/chunks.rs",
            "flow/upkeep/reclaim/need.rs",
            "flow/upkeep/reclaim/victim.rs",
            "flow/upkeep/spill.rs",
            "flow/upkeep/warm.rs",
            "flow/verify.rs",
            "tools/accounting.rs",
            "tools/backup.rs",
        ],
    ),
    (
        "write_path",
        &[
            "flow/applied.rs",
            "flow/batch.rs",
            "flow/conditional.rs",
            "flow/futures/drivers.rs",
            "flow/ingest.rs",
            "flow/operation.rs",
            "flow/room.rs",
            "flow/tables.rs",
            "flow/upkeep/drops.rs",
            "flow/upkeep/fold.rs",
            "flow/write.rs",
        ],
    ),
    (
        "engine",
        &[
            // Opens and closes it.
            "flow/lifecycle.rs",
            // Bring every layer up to the log, before anything else may use it.
            "flow/recovery.rs",
            "flow/recovery/ingested.rs",
            "flow/recovery/pending.rs",
            // Count all of it, with what recovery did.
            "flow/metrics.rs",
            "flow/metrics_file.rs",
            "flow/stats.rs",
            // The threads: every kind of work behind the scenes, and the metrics file.
            "flow/upkeep/background.rs",
        ],
    ),
];

/// Files that name the whole engine only to keep it alive or to pass it on.
const KEEPERS: [&str; 7] = [
    "api/db.rs",
    "api/open.rs",
    "flow/futures.rs",
    "flow/futures/driven.rs",
    "flow/futures/drivers.rs",
    "flow/get.rs",
    "flow/reader.rs",
];

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

#[test]
fn few_flows_take_the_whole_engine() {
    let graph = Graph::of_crate(env!("CARGO_MANIFEST_DIR")).expect("the sources can be read");
    let layer_of = |edge: &Edge| {
        let within = edge.to.strip_prefix("src/store").ok()?.with_extension("");
        LAYERS.iter().position(|(layer, _)| within == Path::new(layer))
    };
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut keeping: BTreeSet<String> = BTreeSet::new();
    for edge in graph.edges().iter().filter(|edge| !edge.from.starts_with("src/store")) {
        let Some(layer) = layer_of(edge) else { continue };
        let file = edge.from.strip_prefix("src").expect("sources lie in src").display().to_string();
        if layer + 1 == LAYERS.len() && KEEPERS.contains(&file.as_str()) {
            keeping.insert(file);
            continue;
        }
        let highest = taken.entry(file).or_default();
        *highest = layer.max(*highest);
    }
    assert_eq!(keeping, KEEPERS.iter().map(ToString::to_string).collect(), "files that keep the engine alive");
    let listed: BTreeMap<String, usize> = LAYERS
        .iter()
        .enumerate()
        .flat_map(|(layer, (_, files))| files.iter().map(move |file| (file.to_string(), layer)))
        .collect();
    let name = |layer: Option<&usize>| layer.map_or("none", |layer| LAYERS[*layer].0);
    let differing: Vec<String> = taken
        .keys()
        .chain(listed.keys().filter(|file| !taken.contains_key(*file)))
        .filter(|file| taken.get(*file) != listed.get(*file))
        .map(|file| format!("{file} takes {}, but is listed with {}", name(taken.get(file)), name(listed.get(file))))
        .collect();
    assert!(differing.is_empty(), "the table of layers is wrong:\n{}", differing.join("\n"));
}
