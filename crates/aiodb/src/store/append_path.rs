//! The layer that brings a record from an open batch to the log and into the indexes. Upkeep appends too, so no method here asks for
//! upkeep: the work that a publication leaves is queued.

use std::ops::Deref;

use crate::Error;
use crate::io::Device;
use crate::store::background::Background;
use crate::store::epochs::Epochs;
use crate::store::read_path::ReadPath;
use crate::store::settling::Settling;
use crate::store::staging::Staging;
use crate::sync::{Mutex, Rank};

/// The layer of appends and publications.
pub(crate) struct AppendPath<D: Device> {
    /// Writers between append and publication.
    pub(crate) publishers: Epochs,
    pub(crate) settling: Settling,
    pub(crate) staging: Staging,
    pub(crate) background: Background,
    /// Why an index could not say of a record that was being moved whether it is current: it stays where it is.
    pub(crate) unmoved: Mutex<Option<Error>, { Rank::Unmoved as u8 }>,
    /// Whether the files of the ordered index are on another disk than the rest.
    pub(crate) lmdb_lies_apart: bool,
    pub(crate) reads: ReadPath<D>,
}

impl<D: Device> Deref for AppendPath<D> {
    type Target = ReadPath<D>;

    fn deref(&self) -> &ReadPath<D> {
        &self.reads
    }
}
