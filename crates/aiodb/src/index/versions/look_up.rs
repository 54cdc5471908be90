//! A look-up of one key in the list and all layers, as steps between which a block is read: by the calling thread, or by a queue of reads
//! that never blocks one.

use std::io;
use std::sync::Arc;

use super::layer::{Found, Layer, put_on_top};
use super::scratch::device_file;
use crate::format::versions::KeyVersions;
use crate::io::{Device, UNIT_BYTES};
use crate::planted::{self, Bug};
use crate::{Error, Result};

/// A look-up on its way. It sees the layers that there were when it began, and holds their files.
pub(in crate::index) struct VersionLookUp {
    layers: Arc<Vec<Arc<Layer>>>,
    /// How many of them are to be asked yet: the oldest comes first.
    left: usize,
    /// A block of the layer that was asked last: the file and its number there.
    awaited: Option<(usize, usize)>,
    /// What the layers have that were asked.
    found: KeyVersions,
    /// What the list had.
    listed: KeyVersions,
}

impl VersionLookUp {
    pub(super) fn new(listed: KeyVersions, layers: Arc<Vec<Arc<Layer>>>) -> VersionLookUp {
        VersionLookUp { left: layers.len(), layers, awaited: None, found: KeyVersions::new(), listed }
    }

    /// Goes on until a block must be read: then there is one that is awaited. False once the look-up is at its end.
    pub(in crate::index) fn proceed(&mut self, key: &[u8]) -> bool {
        while let Some(number) = self.left.checked_sub(1) {
            self.left = number;
            let layer = &self.layers[number];
            if layer.is_in_memory() && planted::is_on(Bug::FrozenVersionsUnseen) {
                continue;
            }
            match layer.find(key) {
                Found::Versions(versions) => self.put_on_top(versions),
                Found::Block { file, block } => {
                    self.awaited = Some((file, block));
                    return true;
                }
            }
        }
        let listed = std::mem::take(&mut self.listed);
        self.put_on_top(listed);
        false
    }

    fn put_on_top(&mut self, versions: KeyVersions) {
        for version in versions {
            put_on_top(&mut self.found, version);
        }
    }

    /// Whether it waits for a block.
    pub(in crate::index) fn is_paused(&self) -> bool {
        self.awaited.is_some()
    }

    /// Where the awaited block lies: the file, the offset there, and its length, in bytes. There must be one.
    pub(in crate::index) fn awaited<D: Device>(&self) -> (&D::File, u64, usize) {
        let (file, block) = self.awaited.expect("a block is awaited");
        let file = self.layers[self.left].file(file);
        let (start, end) = file.fences.units_of(block);
        let (offset, length) = (u64::from(start) * UNIT_BYTES as u64, (end - start) as usize * UNIT_BYTES);
        (device_file::<D>(file.scratch()), offset, length)
    }

    /// The error of a read of the awaited block that failed.
    pub(in crate::index) fn read_error(&self, error: &io::Error) -> Error {
        let (file, _) = self.awaited.expect("a block is awaited");
        Error::io("read", self.layers[self.left].file(file).scratch().path(), error)
    }

    /// Takes in the bytes of the awaited block.
    pub(in crate::index) fn take_in(&mut self, key: &[u8], bytes: &[u8]) -> Result<()> {
        let awaited = self.awaited.take().expect("a block is awaited");
        let versions = self.layers[self.left].find_in(key, awaited, bytes)?;
        self.put_on_top(versions);
        Ok(())
    }

    /// Goes on to the end: the calling thread reads the blocks.
    pub(in crate::index) fn finish(&mut self, key: &[u8]) -> Result<()> {
        while self.is_paused() || self.proceed(key) {
            let (file, block) = self.awaited.expect("a block is awaited");
            let file = self.layers[self.left].file(file);
            let (start, end) = file.fences.units_of(block);
            let bytes = file.read(start, end)?;
            self.take_in(key, &bytes)?;
        }
        Ok(())
    }

    /// What was found, once it is at its end.
    pub(in crate::index) fn found(&self) -> &KeyVersions {
        debug_assert!(self.left == 0 && self.awaited.is_none(), "it is at its end");
        &self.found
    }
}
