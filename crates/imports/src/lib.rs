//! Which files of a crate import which: the tests of the other crates read their own sources and fail on a circle
//! ([`assert_no_circles`], or what they ask a [`Graph`]), so that the order of the files stays true by itself.
//!
//! An import is a path that names something in another file of the crate: in a `use`, in an expression, in an attribute,
//! in the arguments of a macro. A name that a file only passes on counts for the file that has it, so that the face of a
//! crate or a folder makes no circle by itself. What is compiled for tests alone is not read.
//!
//! Not seen: calls of methods, which no path names; files that a macro declares; other targets than `src/lib.rs` and
//! `src/main.rs`.
//!
//! - [`graph`] finds circles in the edges;
//! - `modules` reads the files and says in which one a path ends;
//! - `source` reads one file: what it declares, and the paths that it names.

mod edge;
pub mod graph;
mod modules;
mod source;

pub use edge::Edge;
pub use graph::{Circle, Graph, assert_no_circles};
pub use modules::Error;
