//! Which records of a victim must stay: those that an index refers to, and deletes without which older records would come back.

use std::sync::Arc;

use crate::Result;
use crate::flow::look_ups::Wanted;
use crate::format::batch::Found;
use crate::format::record::Kind;
use crate::format::segment::array;
use crate::io::Device;
use crate::log::Segment;
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::reclaiming::{Alive, Victim};
use crate::store::upkeep::Upkeep;

/// The reason why a record of a victim must stay.
pub(super) enum Need {
    /// None.
    Nothing,
    /// An index refers to it.
    Record,
    /// Older records might come back without it; see [`Alive::tombstone`].
    Tombstone(u64),
    /// Its key must be looked up first, in an ordered index.
    LookUp,
}

/// A gathered record whose key must be looked up.
pub(super) struct Doubtful {
    /// Its place among the gathered ones.
    pub(super) number: usize,
    /// Bytes that are moved if it is alive.
    pub(super) bytes: usize,
}

impl<D: Device> Upkeep<D> {
    /// The reason why a record must stay. `oldest_dead` is [`Victim::oldest_dead`].
    pub(super) fn need(
        &self,
        segment: &Segment<D>,
        found: &Found<'_>,
        generation: &Arc<Generation>,
        oldest_dead: u64,
    ) -> Result<Need> {
        let record = &found.record;
        // The entries of an ordered index lead to deletes that are not looked for.
        let is_in_hash = |key| self.is_in_hash(generation, self.hash(key), found.location);
        let needed = match record.kind {
            Kind::Put | Kind::Merge if matches!(generation.index, TableIndex::Ordered) => return Ok(Need::LookUp),
            Kind::Put | Kind::Merge => is_in_hash(record.key)?,
            Kind::Delete | Kind::RangeTombstone => {
                if record.kind == Kind::Delete {
                    self.settle_delete(generation, self.hash(record.key), found.location)?;
                }
                let life = origin_life(segment, found);
                // Records that were dead then are dead now, unless their segment has gone since: no other segment need be asked.
                if is_tombstone_needed(oldest_dead, life) {
                    return Ok(Need::Record);
                }
                let is_referred_to = match record.kind {
                    Kind::Delete => is_in_hash(record.key)?,
                    _ => self.ordered_of(generation).ranges.is_waiting(record.sequence),
                };
                if !is_referred_to {
                    return Ok(Need::Tombstone(life));
                }
                true
            }
            Kind::Chunk => {
                let named = self.naming_record(generation, record.key, found.location)?.is_some();
                if !named {
                    self.count_off_naming_record(generation, self.hash(record.key))?;
                }
                named
            }
            // The manifest has the tables.
            _ => false,
        };
        Ok(if needed { Need::Record } else { Need::Nothing })
    }

    /// Leaves out the gathered records of ordered tables that are not current any more: looks their keys up.
    pub(super) fn leave_out_dead(&self, victim: &mut Victim, doubtful: &[Doubtful]) -> Result<()> {
        let key_of = |one: &Doubtful| {
            let Alive { generation, key, .. } = &victim.alive[one.number];
            Wanted { generation: generation.as_ref().expect("a record that counts has a table"), key }
        };
        let wanted: Vec<_> = doubtful.iter().map(key_of).collect();
        let found = self.look_up_all(&wanted);
        let mut is_dead = vec![false; victim.alive.len()];
        for (Doubtful { number, bytes }, looked_up) in doubtful.iter().zip(found) {
            let (record, looked_up) = (&mut victim.alive[*number], looked_up?);
            if looked_up.chain.at_place(record.location).is_some() {
                record.looked_up = Some(looked_up);
                victim.alive_bytes += bytes;
            } else {
                is_dead[*number] = true;
            }
        }
        let mut is_dead = is_dead.into_iter();
        victim.alive.retain(|_| !is_dead.next().expect("there is one for each"));
        Ok(())
    }

    /// Leaves out the deletes that no index refers to where no record is left that could come back. The segments are asked after
    /// the index, which forgets a delete only after the records below it are counted as dead; and once for all deletes, since there
    /// may be many of both. The victim is not asked: its dead records go with it.
    pub(super) fn leave_out_tombstones(&self, victim: &mut Victim) -> Result<()> {
        if victim.alive.iter().all(|alive| alive.tombstone.is_none()) {
            return Ok(());
        }
        if let Some(waits_until) = self.count_what_deletes_have_left(&victim.alive)? {
            if waits_until > 0 {
                victim.waits_until = victim.waits_until.max(waits_until);
                victim.waiting += victim.alive.iter().filter(|alive| alive.tombstone.is_some()).count() as u64;
            }
            victim.alive.iter_mut().for_each(|alive| alive.tombstone = None);
            return Ok(());
        }
        let oldest_dead = self.oldest_life_with_dead_records(self.segments.find(victim.number));
        let is_needed =
            |alive: &mut Alive| alive.tombstone.take().is_none_or(|life| is_tombstone_needed(oldest_dead, life));
        victim.alive.retain_mut(is_needed);
        Ok(())
    }

    /// Sees to it that what deletes stand before is counted as dead: in LMDB that is so once its file has them, in runs once
    /// those are merged with the oldest; and a replay counts twice what was committed already. If that is not so yet, returns the
    /// sequence up to which runs must be merged for it, also for a commit that has found no room, or 0 if that has and there is nothing to merge.
    fn count_what_deletes_have_left(&self, alive: &[Alive]) -> Result<Option<u64>> {
        for ordered in self.ordered.open() {
            let is_in = |alive: &&Alive| alive.generation.as_ref().is_some_and(|table| table.kind() == ordered.kind());
            let deletes = alive.iter().filter(|alive| alive.tombstone.is_some() && is_in(alive));
            let newest = deletes.map(|delete| delete.sequence + 1).max().unwrap_or(0);
            let wanted = newest.max(ordered.replayed());
            if ordered.counted_sequence() >= wanted {
                continue;
            }
            if ordered.committed_sequence() < wanted {
                match self.making_room(|| self.commit_memtable(ordered)) {
                    // Merges of what is committed make room for it, and are waited for.
                    Err(error) if error.is_full() => {
                        let (committed, counted) = (ordered.committed_sequence(), ordered.counted_sequence());
                        return Ok(Some(if counted < committed { committed } else { 0 }));
                    }
                    committed => committed?,
                }
            }
            // Merges of runs come to that in time.
            if ordered.counted_sequence() < wanted {
                return Ok(Some(wanted));
            }
        }
        Ok(None)
    }
}

/// A delete must stay in the log while an older record of its key may lie in a segment that was in use when it was written, or
/// a rebuilt index would bring that record back.
fn is_tombstone_needed(oldest_dead: u64, origin_life: u64) -> bool {
    oldest_dead <= origin_life && !planted::is_on(Bug::TombstoneDroppedEarly)
}

/// The life of the segment in which a delete, of a key or a range, was first written.
pub(super) fn origin_life<D: Device>(segment: &Segment<D>, found: &Found<'_>) -> u64 {
    let value = found.record.value;
    if found.record.moved.is_some() && value.len() >= 8 { u64::from_le_bytes(array(value, 0)) } else { segment.life() }
}
