//! Look-ups of gets, until a block of a run must be read: the get goes on with them when it has been.

use std::io;

use crate::index::ordered::look_up::{LookUp, PausedLookUp};
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::runs::spilled::SpilledLookUp;
use crate::index::snapshots::View;
use crate::index::{Candidate, Candidates};
use crate::io::Device;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::read_path::ReadPath;
use crate::{Error, IndexKind, Result};

/// A look-up that waits for a block.
pub(crate) enum Paused<D: Device> {
    Ordered(Box<PausedLookUp<D>>),
    /// Of a `hash` table, places of which lie in runs.
    Hash(Box<SpilledLookUp<D>>),
}

impl<D: Device> Paused<D> {
    /// Where the block lies.
    pub(crate) fn awaited(&self) -> AwaitedBytes<'_, D> {
        match self {
            Paused::Ordered(look_up) => look_up.awaited(),
            Paused::Hash(look_up) => look_up.awaited(),
        }
    }

    /// The error of a read of it that failed.
    pub(crate) fn read_error(&self, error: &io::Error) -> Error {
        match self {
            Paused::Ordered(look_up) => look_up.read_error(error),
            Paused::Hash(look_up) => look_up.read_error(error),
        }
    }
}

impl<D: Device> ReadPath<D> {
    /// [`ReadPath::lookup`] until a block of a run must be read: then it returns the rest of the look-up.
    pub(crate) fn begin_lookup(
        &self,
        generation: &Generation,
        key: &[u8],
        view: &View,
        found: &mut Candidates,
    ) -> Result<Option<Paused<D>>> {
        match &generation.index {
            TableIndex::Hash(index) if view.is_latest() => {
                found.clear();
                let (places, below) = self.look_under(generation.id, index, self.hash(key));
                found.extend(places.into_iter().map(|location| Candidate { location, known: None }));
                let Some(look_up) = below else {
                    self.meters.looked_up(found.len());
                    return Ok(None);
                };
                self.proceed(look_up, found)
            }
            TableIndex::Ordered if generation.kind() == IndexKind::Lsm => {
                self.pause(self.ordered_of(generation).begin_lookup(generation.id, key, view)?, found)
            }
            _ => self.lookup(generation, key, view, found).map(|()| None),
        }
    }

    /// Goes on with a look-up whose block has been read, as [`ReadPath::begin_lookup`] does.
    pub(crate) fn resume_lookup(
        &self,
        generation: &Generation,
        paused: Paused<D>,
        bytes: &[u8],
        view: &View,
        found: &mut Candidates,
    ) -> Result<Option<Paused<D>>> {
        match paused {
            Paused::Ordered(paused) => {
                self.pause(self.ordered_of(generation).resume_lookup(paused, bytes, view)?, found)
            }
            Paused::Hash(mut look_up) => {
                look_up.take_in(bytes)?;
                self.proceed(look_up, found)
            }
        }
    }

    fn pause(&self, look_up: LookUp<D>, found: &mut Candidates) -> Result<Option<Paused<D>>> {
        match look_up {
            LookUp::Found(chain) => {
                found.clear();
                chain.candidates(0).for_each(|candidate| found.push(candidate));
                self.meters.looked_up(found.len());
                Ok(None)
            }
            LookUp::Paused(paused) => Ok(Some(Paused::Ordered(paused))),
        }
    }

    /// Goes on with a look-up in runs: what it finds comes after what memory had.
    fn proceed(&self, mut look_up: Box<SpilledLookUp<D>>, found: &mut Candidates) -> Result<Option<Paused<D>>> {
        if look_up.proceed()? {
            return Ok(Some(Paused::Hash(look_up)));
        }
        found.extend(look_up.places().map(|location| Candidate { location, known: None }));
        self.meters.looked_up(found.len());
        Ok(None)
    }
}
