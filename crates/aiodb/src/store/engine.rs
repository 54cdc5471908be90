//! The state that all handles of one open store share.
//!
//! Its state lies in layers, each of which holds the one below: [`Host`], [`ReadPath`], [`AppendPath`], [`Upkeep`], [`WritePath`],
//! [`Engine`]. A flow is a method of the lowest layer that has what it uses, so it cannot reach what lies above.
//!
//! [`Host`]: crate::store::host::Host
//! [`ReadPath`]: crate::store::read_path::ReadPath
//! [`AppendPath`]: crate::store::append_path::AppendPath
//! [`Upkeep`]: crate::store::upkeep::Upkeep

use std::ops::Deref;
use std::sync::OnceLock;

use crate::io::Device;
use crate::store::recovered::Recovered;
use crate::store::write_path::WritePath;

/// An open store, whole: for flows that open it, count it or work through all of it.
pub(crate) struct Engine<D: Device> {
    /// Set when it has been recovered.
    pub(crate) recovered: OnceLock<Recovered>,
    pub(crate) writes: WritePath<D>,
}

impl<D: Device> Deref for Engine<D> {
    type Target = WritePath<D>;

    fn deref(&self) -> &WritePath<D> {
        &self.writes
    }
}
