//! The chunks of large values, and the records that name them.

use std::sync::Arc;

use crate::Result;
use crate::flow::moves::Move;
use crate::flow::read::Outcome;
use crate::format::batch::Append;
use crate::format::location::Location;
use crate::format::place::footprint;
use crate::format::record::{Chunk, Form, Kind, Origin, encode_chunks};
use crate::index::Candidates;
use crate::index::chain::Entry;
use crate::index::memtable::LookedUp;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::commit::Operation;
use crate::store::reclaiming::Alive;
use crate::store::upkeep::Upkeep;

/// A record in an index, with what a look-up has found of its key where the index is ordered.
type Found = (Entry, Option<LookedUp>);

impl<D: Device> Upkeep<D> {
    /// The current record that names a chunk: its location, length and list.
    pub(super) fn naming_record(
        &self,
        generation: &Arc<Generation>,
        key: &[u8],
        chunk: Location,
    ) -> Result<Option<(Location, u64, Vec<Chunk>)>> {
        let _guard = self.epochs.pin();
        self.naming_record_pinned(generation, key, chunk)
    }

    fn naming_record_pinned(
        &self,
        generation: &Arc<Generation>,
        key: &[u8],
        chunk: Location,
    ) -> Result<Option<(Location, u64, Vec<Chunk>)>> {
        let mut candidates = Candidates::new();
        // A record that has expired for gets still has its chunks.
        let view = View { at_ms: Some(0), cached: false, ..View::LATEST };
        self.lookup(generation, key, &view, &mut candidates)?;
        for candidate in &candidates {
            let list = self.with_bytes(candidate.location, |bytes| {
                Ok(match self.interpret(generation.id, key, candidate, &view, bytes)? {
                    Outcome::Chunks(length, chunks) => Some(Some((length, chunks))),
                    Outcome::Unseen | Outcome::Operand(_) => None,
                    Outcome::Value(_) | Outcome::Deleted => Some(None),
                })
            })?;
            let Some(answer) = list else { continue };
            return Ok(answer
                .filter(|(_, chunks)| chunks.iter().any(|named| named.location.same_place(chunk)))
                .map(|(length, chunks)| (candidate.location, length, chunks)));
        }
        Ok(None)
    }

    /// Counts off the record that named a dead chunk, before the chunk's segment begins another life.
    pub(super) fn count_off_naming_record(&self, generation: &Arc<Generation>, hash: u64) -> Result<()> {
        self.settle_before_move(generation, hash)
    }

    /// After a chunk was moved: the record that names it is written again with the new place.
    pub(super) fn rename_chunk(&self, old: &Alive, new: Chunk) -> Result<()> {
        let generation = old.generation.as_ref().expect("a live chunk has a table");
        if planted::is_on(Bug::ChunkMoveForgotten) {
            return Ok(());
        }
        let Some((location, length, mut chunks)) = self.naming_record(generation, &old.key, old.location)? else {
            return self.count_off_naming_record(generation, old.hash);
        };
        for chunk in chunks.iter_mut().filter(|chunk| chunk.location.same_place(old.location)) {
            *chunk = new;
        }
        let list = encode_chunks(length, &chunks);
        let Some((named, looked_up)) = self.entry_at(generation, &old.key, location)? else { return Ok(()) };
        let mut append = Append::new(Kind::Put, old.table, &old.key, &list);
        append.form = named.form;
        append.moved = Some((Origin { segment: location.segment, offset: location.offset }, named.sequence));
        append.separate = self.stays_or_becomes_separate(generation, named.separate.is_some(), &append);
        let operation = Operation { generation: Some(Arc::clone(generation)), append, hash: old.hash, over: None };
        let one = Move { operation, looked_up };
        let still_current = |one: &Move<'_>| self.still_current(one);
        self.move_in_batches(&mut [one], still_current, |_, _| {
            if let Some(expires_ms) = named.form.expires_ms {
                let Location { segment, length, .. } = new.location;
                self.segments.add_expiring(segment, footprint(length), expires_ms.get());
            }
            Ok(())
        })
    }

    /// The record of a key at a location, if that is current, with what was found of the key in an ordered index.
    fn entry_at(&self, generation: &Generation, key: &[u8], location: Location) -> Result<Option<Found>> {
        let _guard = self.epochs.pin();
        let looked_up = self.look_up(generation, key)?;
        let is_ordered = matches!(generation.index, TableIndex::Ordered);
        let entry = looked_up.chain.at_place(location).cloned();
        Ok(entry.map(|entry| (entry, is_ordered.then_some(looked_up))))
    }

    /// The delete that takes the place of the record which names a chunk, if that has expired: without it older records of
    /// the key would come back. The chunk is not needed then.
    pub(super) fn expired_owner(&self, chunk: &Alive) -> Result<Option<Alive>> {
        let Some(generation) = chunk.generation.as_ref().filter(|_| chunk.kind == Kind::Chunk) else { return Ok(None) };
        let Some((location, ..)) = self.naming_record(generation, &chunk.key, chunk.location)? else { return Ok(None) };
        let named = self.entry_at(generation, &chunk.key, location)?;
        Ok(named.filter(|(named, _)| self.is_over(&named.form)).map(|(named, looked_up)| Alive {
            generation: Some(Arc::clone(generation)),
            kind: Kind::Delete,
            key: chunk.key.clone(),
            value: self.segments.get(location.segment).life().to_le_bytes().to_vec(),
            separate: false,
            form: Form::default(),
            sequence: named.sequence,
            location,
            tombstone: None,
            looked_up,
            ..*chunk
        }))
    }
}
