//! The edges between the files of a crate, and the circles that they close.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::edge::Edge;
use crate::modules::{Error, Modules};

/// The test of a crate whose files are to have an order: fails if one imports a file that imports it, at any distance.
///
/// # Panics
///
/// On a circle, which it shows, on sources that cannot be read, and on sources without any import.
pub fn assert_no_circles(directory: impl AsRef<Path>) {
    let graph = Graph::of_crate(directory).expect("the sources of this crate can be read");
    assert!(!graph.edges().is_empty(), "the reader found no imports at all");
    let circles: String = graph.circles().iter().map(ToString::to_string).collect();
    assert!(circles.is_empty(), "{circles}Move what both sides need below them.");
}

/// The files of a crate and what they import from each other.
#[derive(Debug)]
pub struct Graph {
    edges: Vec<Edge>,
}

impl Graph {
    /// Reads the sources of the crate whose `Cargo.toml` lies in `directory`; a test passes `env!("CARGO_MANIFEST_DIR")`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is not Rust, or is declared and not there.
    pub fn of_crate(directory: impl AsRef<Path>) -> Result<Graph, Error> {
        let directory = directory.as_ref();
        let roots = ["src/lib.rs", "src/main.rs"].map(Path::new);
        let roots: Vec<&Path> = roots.into_iter().filter(|root| directory.join(root).is_file()).collect();
        if roots.is_empty() {
            return Err(Error::NoRoot { directory: directory.to_path_buf() });
        }
        let mut edges = BTreeSet::new();
        for root in roots {
            edges.extend(Modules::read(directory, root)?.edges());
        }
        Ok(Graph { edges: edges.into_iter().collect() })
    }

    /// All imports, in the order of files and lines. No edge leads from a file to itself.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// All circles, each as large as it is: two files are in the same one where either reaches the other.
    pub fn circles(&self) -> Vec<Circle> {
        let mut next: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for edge in &self.edges {
            next.entry(&edge.from).or_default().insert(&edge.to);
        }
        let reached: BTreeMap<&Path, BTreeSet<&Path>> =
            next.keys().map(|file| (*file, reachable(&next, file))).collect();
        let mut circles = Vec::new();
        let mut placed: BTreeSet<&Path> = BTreeSet::new();
        for (file, ahead) in &reached {
            if placed.contains(file) || !ahead.contains(file) {
                continue;
            }
            let back = |other: &&&Path| reached.get(*other).is_some_and(|ahead| ahead.contains(file));
            let files: BTreeSet<&Path> = ahead.iter().filter(back).copied().collect();
            placed.extend(&files);
            circles.push(self.circle(&files));
        }
        circles
    }

    fn circle(&self, files: &BTreeSet<&Path>) -> Circle {
        let within = |edge: &&Edge| files.contains(edge.from.as_path()) && files.contains(edge.to.as_path());
        let edges: Vec<Edge> = self.edges.iter().filter(within).cloned().collect();
        let shortest = files.iter().map(|file| way_round(&edges, file)).min_by_key(Vec::len);
        Circle {
            files: files.iter().map(|file| file.to_path_buf()).collect(),
            shortest: shortest.expect("a circle has files"),
            edges,
        }
    }
}

/// The files that can be reached from `start` in one step or more.
fn reachable<'a>(next: &BTreeMap<&'a Path, BTreeSet<&'a Path>>, start: &'a Path) -> BTreeSet<&'a Path> {
    let mut found = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for &other in next.get(file).into_iter().flatten() {
            if found.insert(other) {
                open.push(other);
            }
        }
    }
    found
}

/// The fewest imports that lead from a file of a circle back to it.
fn way_round(edges: &[Edge], file: &Path) -> Vec<Edge> {
    let mut came_by: BTreeMap<&Path, &Edge> = BTreeMap::new();
    let mut open = VecDeque::from([file]);
    while let Some(at) = open.pop_front() {
        for edge in edges.iter().filter(|edge| edge.from == at) {
            if !came_by.contains_key(edge.to.as_path()) {
                came_by.insert(&edge.to, edge);
                open.push_back(&edge.to);
            }
        }
    }
    let mut way = vec![came_by[file].clone()];
    while let Some(first) = way.last().filter(|edge| edge.from != file) {
        way.push(came_by[first.from.as_path()].clone());
    }
    way.reverse();
    way
}

/// Files that import each other. It displays itself as the shortest way round, and then the first import of each file from
/// each.
#[derive(Clone, Debug)]
pub struct Circle {
    /// Its files, in the order of their names.
    pub files: Vec<PathBuf>,
    /// The imports between them, in the order of files and lines.
    pub edges: Vec<Edge>,
    /// The fewest of these that lead from a file back to it.
    pub shortest: Vec<Edge>,
}

impl fmt::Display for Circle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} files import each other in a circle; the shortest way round:", self.files.len())?;
        for edge in &self.shortest {
            writeln!(formatter, "  {edge}")?;
        }
        let mut told: BTreeSet<(&Path, &Path)> = self.shortest.iter().map(Edge::files).collect();
        let others: Vec<&Edge> = self.edges.iter().filter(|edge| told.insert(edge.files())).collect();
        if !others.is_empty() {
            writeln!(formatter, "and between its files besides:")?;
        }
        others.into_iter().try_for_each(|edge| writeln!(formatter, "  {edge}"))
    }
}
