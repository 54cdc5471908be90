//! The supply of free segments: they are made, given back by reclaim, or returned to the file system; and the claims of writes to them.

use std::path::Path;

use super::pool::Pool;
use super::{Segment, Segments, State, UNFILLED_END};
use crate::format::segment::{self, SegmentHeader};
use crate::io::{Access, AlignedBuffer, Device, File, WriteSync};
use crate::planted::{self, Bug};
use crate::sync::MutexGuard;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Error, Result};

/// Free segments that ordinary writes may not take: one for deletes, two for reclaim, and one whose space the files of a
/// checkpoint can have, without which no segment that reclaim empties becomes free.
pub(crate) const RESERVED_SEGMENTS: usize = 4;

/// What both manifests of a checkpoint take, generously...
const MANIFEST_BYTES: u64 = 16 << 10;
/// ...and what they take for each segment.
const MANIFEST_SEGMENT_BYTES: u64 = 512;

/// Free segments that stay beyond the reserve; more are given back to the file system.
const SPARE_SEGMENTS: usize = 4;

/// The most segments that are made ahead of need: as many as stay free beyond the reserve.
pub(super) const MAX_AHEAD_SEGMENTS: usize = SPARE_SEGMENTS;

/// How much of a new segment is written at a time.
pub(super) const PREWRITE_BYTES: usize = 1 << 20;

/// A new segment is filled if so many batches were flushed while a writer waited since the last segment was made: flushes that
/// change the file's layout too take a third longer and more.
pub(super) const WAITED_FLUSHES_PER_FILL: u32 = 16;

/// How far down a write may use up the free segments when no more can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Not the reserve.
    Ordinary,
    /// Deletes and dropped tables make room, but only through reclaim: its segment is not for them.
    Deletes,
    /// The moves of reclaim make room, but only after a checkpoint: they leave it the last segment, unless the disk has room for its files.
    Moves,
    /// Records that must be written before anything else can be done.
    Recovery,
}

impl Claim {
    /// Free segments that are left to others.
    fn left_free(self) -> usize {
        match self {
            Claim::Ordinary if planted::is_on(Bug::ReserveTakenByPuts) => 0,
            Claim::Ordinary => RESERVED_SEGMENTS,
            Claim::Deletes => RESERVED_SEGMENTS - 1,
            Claim::Moves => 1,
            Claim::Recovery => 0,
        }
    }
}

/// Space of the first directory that new segments may not take while this lives.
pub(crate) struct Lent<'a>(&'a AtomicU32);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<D: Device> Segments<D> {
    /// Takes a free segment. A claim that must leave the reserve alone makes a new segment or is refused.
    pub(crate) fn take_free(&self, claim: Claim) -> Result<&Segment<D>> {
        loop {
            // Others take segments at the same time: what is left for whom is judged and changed under one lock.
            let mut pool = self.pool();
            if self.may_give(&pool, claim) {
                let number = pool.take_free().expect("more are free than are left to others");
                self.assess_reserve(pool);
                self.asked_for.fetch_add(1, Ordering::Relaxed);
                return Ok(self.get(number));
            }
            drop(pool);
            self.create_for(claim)?;
        }
    }

    /// Whether [`Segments::take_free`] need not make a segment, unless another caller is faster.
    pub(crate) fn has_free(&self, claim: Claim) -> bool {
        self.may_give(&self.pool(), claim)
    }

    fn may_give(&self, pool: &Pool, claim: Claim) -> bool {
        let count = pool.free_count();
        let is_enough =
            count > claim.left_free() || claim == Claim::Moves && count > 0 && self.has_room_for_checkpoint(pool);
        is_enough && (claim != Claim::Ordinary || self.leaves_for_emptying(pool, 1))
    }

    /// Whether the first directory's disk has room for the files of the next checkpoint beside the segments that there are.
    fn has_room_for_checkpoint(&self, pool: &Pool) -> bool {
        let reserved = self.reserved_for_indexes.load(Ordering::Relaxed);
        let free = self.device.free_bytes(&self.directories[0]);
        let manifests = MANIFEST_BYTES + u64::from(pool.end()) * MANIFEST_SEGMENT_BYTES;
        let is_refused = self.checkpoint_refused.load(Ordering::Relaxed) || self.lent.load(Ordering::Relaxed) > 0;
        !is_refused && free.is_some_and(|free| free >= reserved + manifests)
    }

    /// Notes whether the last checkpoint has found room for its files: where it has not, the last segment is for the next one.
    pub(crate) fn note_checkpoint(&self, is_refused: bool) {
        self.checkpoint_refused.store(is_refused, Ordering::Relaxed);
    }

    /// Free segments, the reserve among them.
    pub(crate) fn free_count(&self) -> usize {
        self.pool().free_count()
    }

    /// Whether all is free that ordinary writes must leave free. Only while it is may they append: what others have taken of it is
    /// for what makes room.
    pub(crate) fn is_reserve_whole(&self) -> bool {
        self.whole.load(Ordering::Relaxed) || planted::is_on(Bug::ReserveTakenByPuts)
    }

    /// Makes the reserve whole, or says that there is no space for that.
    pub(crate) fn restore_reserve(&self) -> Result<()> {
        while self.create_below(RESERVED_SEGMENTS)? {}
        let pool = self.pool();
        let leaves_enough = self.leaves_for_emptying(&pool, 0);
        self.assess_reserve(pool);
        if leaves_enough { Ok(()) } else { Err(self.refuse()) }
    }

    /// Notes whether the reserve is whole. Who changes the pool keeps its lock until this is done, or an older judgement could come last.
    fn assess_reserve(&self, pool: MutexGuard<'_, Pool>) {
        let is_whole = pool.free_count() >= RESERVED_SEGMENTS && self.leaves_for_emptying(&pool, 0);
        let held = (!planted::is_on(Bug::ReserveNotedLate)).then_some(pool);
        self.whole.store(is_whole, Ordering::Relaxed);
        drop(held);
    }

    /// Whether enough is free for the log to be emptied after so many segments have been taken.
    fn leaves_for_emptying(&self, pool: &Pool, taken: u64) -> bool {
        let reserved = self.reserved_for_emptying.load(Ordering::Relaxed);
        if reserved == 0 || planted::is_on(Bug::ReserveTakenByPuts) {
            return true;
        }
        let free = pool.free_count() as u64 * self.segment_bytes;
        let wanted = (RESERVED_SEGMENTS as u64 + taken) * self.segment_bytes + reserved;
        free >= wanted || free.saturating_add(self.unmade_of(pool)) >= wanted
    }

    /// Bytes of the segments that can still be made in one of the directories.
    pub(crate) fn unmade_bytes(&self) -> u64 {
        self.unmade_of(&self.pool())
    }

    fn unmade_of(&self, pool: &Pool) -> u64 {
        let reserved = |ordinal| if ordinal == 0 { self.reserved_for_indexes.load(Ordering::Relaxed) } else { 0 };
        let most = self.most_segments();
        let free = |(ordinal, path): (usize, &std::path::PathBuf)| {
            // Where the system cannot say how much is free, a segment is refused when it does not fit.
            let on_disk = self.device.free_bytes(path).map_or(u64::MAX, |free| free.saturating_sub(reserved(ordinal)));
            on_disk.min(pool.to_make(ordinal, most).saturating_mul(self.segment_bytes))
        };
        self.directories.iter().enumerate().map(free).max().unwrap_or(0)
    }

    /// The most segments that a store may have: a slot of a `hash` index can point into no longer log.
    fn most_segments(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Bounds the segments by so many.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn bound(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Makes a segment for a writer that has found none beyond the reserve, unless one is there by now: it may just have been made.
    /// Where none can be made, the writer may have the part of the reserve that its claim admits.
    pub(crate) fn make_for(&self, claim: Claim) -> Result<()> {
        self.asked_for.fetch_add(1, Ordering::Relaxed);
        self.create_for(claim)
    }

    fn create_for(&self, claim: Claim) -> Result<()> {
        if claim == Claim::Ordinary && !self.leaves_for_emptying(&self.pool(), 1) {
            return Err(self.refuse());
        }
        match self.create_below(RESERVED_SEGMENTS + 1) {
            Err(error) if error.is_full() && self.has_free(claim) => Ok(()),
            made => made.map(drop),
        }
    }

    fn refuse(&self) -> Error {
        self.refused.store(true, Ordering::Relaxed);
        self.full()
    }

    /// Prevents the making of segments until the returned guard is dropped.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn hold_making(&self) -> MutexGuard<'_, bool> {
        self.lock_making().expect("the store is open")
    }

    /// How many segments were taken or missed so far.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn asked_for(&self) -> usize {
        self.asked_for.load(Ordering::Relaxed)
    }

    /// Makes free segments until the reserve and one more are there.
    pub(crate) fn replenish(&self) -> Result<()> {
        while self.create_below(RESERVED_SEGMENTS + 1)? {}
        if self.leaves_for_emptying(&self.pool(), 1) { Ok(()) } else { Err(self.refuse()) }
    }

    /// Makes a segment ahead of need, if fewer are there than are asked for while one is made. True if it made one.
    pub(crate) fn make_ahead(&self) -> Result<bool> {
        let before = self.asked_for.load(Ordering::Relaxed);
        let ahead = self.ahead.load(Ordering::Relaxed);
        if !self.create_below(RESERVED_SEGMENTS + ahead)? {
            return Ok(false);
        }
        let asked_for = self.asked_for.load(Ordering::Relaxed) - before;
        self.ahead.store(wanted_ahead(ahead, asked_for), Ordering::Relaxed);
        Ok(true)
    }

    /// Gives the space of a free segment back to the file system of the first directory, where the files of a
    /// checkpoint need it. No segment is made from it until the returned loan is dropped. `None` if there is none.
    pub(crate) fn lend_one(&self) -> Result<Option<Lent<'_>>> {
        let _making = self.lock_making()?;
        let Some(number) = self.take_free_in_first(0) else { return Ok(None) };
        self.lent.fetch_add(1, Ordering::Relaxed);
        let lent = Lent(&self.lent);
        let segment = self.get(number);
        self.give_back(segment).inspect_err(|_| self.set_free(segment))?;
        Ok(Some(lent))
    }

    /// The right to make segments and to give their space back, unless the store is closed.
    fn lock_making(&self) -> Result<MutexGuard<'_, bool>> {
        let making = self.making.lock().expect(NO_PANIC);
        if *making { Err(Error::Closed) } else { Ok(making) }
    }

    /// No segment is made from now on, and no space given back.
    pub(crate) fn close(&self) {
        *self.making.lock().expect(NO_PANIC) = true;
    }

    fn give_back(&self, segment: &Segment<D>) -> Result<()> {
        segment.file.truncate(0).map_err(|e| Error::io("give back the space of", self.path(segment.number), &e))?;
        self.set_absent(segment);
        self.assess_reserve(self.pool());
        Ok(())
    }

    /// Gives back the space of files that are no segments yet: once recovery knows that no part of the log is missing, none of their
    /// bytes can be of use, and on a full disk indexes and other segments may need the space.
    pub(crate) fn give_back_absent(&self) -> Result<()> {
        let looked_at = |segment: &Segment<D>, e: &std::io::Error| Error::io("look at", self.path(segment.number), e);
        for segment in self.iter().filter(|segment| segment.state() == State::Absent) {
            if segment.file.length().map_err(|e| looked_at(segment, &e))? > 0 {
                self.give_back(segment)?;
            }
        }
        Ok(())
    }

    /// Gives a retired segment back, or its space to the file system when there are plenty or its file is not whole.
    pub(crate) fn release(&self, segment: &Segment<D>) -> Result<()> {
        let (plenty, wanted) = {
            let pool = self.pool();
            let for_checkpoints = self.ordinal(segment.number) == 0 && pool.free_in(0) == 0;
            (pool.free_count() >= RESERVED_SEGMENTS + SPARE_SEGMENTS, for_checkpoints)
        };
        let unfilled = segment.end.load(Ordering::Relaxed) == UNFILLED_END;
        if unfilled || plenty && !wanted {
            let _making = self.lock_making()?;
            self.give_back(segment)?;
        } else {
            self.set_free(segment);
        }
        self.released.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives free segments beyond the reserve back to the file system of the first directory.
    pub(crate) fn give_back_spare(&self) -> Result<()> {
        let _making = self.lock_making()?;
        while let Some(number) = self.take_free_in_first(RESERVED_SEGMENTS) {
            let segment = self.get(number);
            self.give_back(segment).inspect_err(|_| self.set_free(segment))?;
        }
        Ok(())
    }

    /// Takes a free segment of the first directory, if more than so many are free.
    fn take_free_in_first(&self, left: usize) -> Option<u32> {
        let mut pool = self.pool();
        let number = if pool.free_count() > left { pool.take_free_in(0) } else { None };
        self.assess_reserve(pool);
        number
    }

    /// Free segments that ordinary writes may take.
    pub(crate) fn spare(&self) -> u64 {
        self.pool().free_count().saturating_sub(RESERVED_SEGMENTS) as u64
    }

    /// How many segments were given back since the store was opened.
    pub(crate) fn released(&self) -> u64 {
        self.released.load(Ordering::Relaxed)
    }

    /// Reserves so many bytes of the first directory's disk: no segment that is made from now on takes them.
    pub(crate) fn reserve_for_indexes(&self, bytes: u64) {
        self.reserved_for_indexes.store(bytes, Ordering::Relaxed);
    }

    /// Reserves so many bytes, on the disk or in free segments: ordinary writes do not take them.
    pub(crate) fn reserve_for_emptying(&self, bytes: u64) {
        let pool = self.pool();
        self.reserved_for_emptying.store(bytes, Ordering::Relaxed);
        self.assess_reserve(pool);
    }

    /// Takes note of a batch that a writer waited for until it was flushed.
    pub(crate) fn note_waited_flush(&self) {
        self.waited_flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the last attempt to make a segment was refused for lack of space.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Declares an opened segment absent: its file was being filled or emptied when the process died. The bytes there
    /// stay until the segment is filled again.
    pub(crate) fn set_absent(&self, segment: &Segment<D>) {
        segment.set_state(State::Absent);
        self.pool().add_absent(segment.number);
    }

    /// Declares an opened segment free.
    pub(crate) fn set_free(&self, segment: &Segment<D>) {
        segment.set_state(State::Free);
        let mut pool = self.pool();
        pool.add_free(segment.number);
        self.assess_reserve(pool);
    }

    /// Makes a free segment in the directory that lacks one most and has room, unless so many are free. True if it made one.
    pub(super) fn create_below(&self, count: usize) -> Result<bool> {
        let _making = self.lock_making()?;
        let free = self.pool().free_count();
        if free >= count {
            if free > RESERVED_SEGMENTS && self.leaves_for_emptying(&self.pool(), 1) {
                self.refused.store(false, Ordering::Relaxed);
            }
            return Ok(false);
        }
        let made = self.create_where_there_is_room();
        // While there is one for ordinary writes, the disk is not full for any write.
        let is_refused = made.as_ref().is_err_and(Error::is_full) && free <= RESERVED_SEGMENTS;
        self.refused.store(is_refused, Ordering::Relaxed);
        made.map(|()| true)
    }

    fn create_where_there_is_room(&self) -> Result<()> {
        let mut refusal = None;
        let by_need = self.pool().by_need();
        for ordinal in by_need {
            match self.create_in(ordinal) {
                Err(error @ (Error::DiskFull { .. } | Error::StoreFull { .. })) => {
                    // A full disk can be made empty again, the limit of the store stays.
                    refusal = refusal.filter(|first| matches!(first, Error::DiskFull { .. })).or(Some(error));
                }
                made => return made,
            }
        }
        Err(refusal.expect("a store has a directory"))
    }

    /// Makes a new free segment in a directory, or fills an absent one again. Space is taken before the segment counts, so that
    /// later writes do not fail for lack of it. Where writers wait for flushes every byte is written too, so that flushes do
    /// not change the file's layout; elsewhere that would write each byte twice, see
    /// `docs/decisions/0020-segments-are-filled-for-flushes.md`.
    /// The caller holds `making`.
    fn create_in(&self, ordinal: usize) -> Result<()> {
        // The caller is refused and does not wait: the checkpoint may wait for the writer that wants the segment.
        if ordinal == 0 && (self.lent.load(Ordering::Relaxed) > 0 || !self.leaves_enough()) {
            return Err(self.full());
        }
        let (number, absent) = self.pool().next_to_make(ordinal);
        let most = self.most_segments();
        if number as usize >= most {
            return Err(Error::StoreFull { path: self.root(), max_bytes: most as u64 * self.segment_bytes });
        }
        let path = self.path(number);
        if absent {
            let segment = self.get(number);
            self.fill(&segment.file, number, &path).inspect_err(|_| {
                // The space was not to be had; the file stays absent, whatever it grew to.
                let _ = segment.file.truncate(0);
            })?;
            self.pool().remove_absent(number);
            self.set_free(segment);
            return Ok(());
        }
        let directory = self.log_directory(ordinal);
        let new_path = directory.join(format!("{number:08}.seg.new"));
        let file = self.device.open(&new_path, Access::NEW_SEGMENT).map_err(|e| Error::io("create", &new_path, &e))?;
        let made = self.fill(&file, number, &new_path).and_then(|()| {
            self.device.rename(&new_path, &path).map_err(|e| Error::io("name", &path, &e))?;
            if planted::is_on(Bug::SegmentNameUnflushed) {
                return Ok(());
            }
            self.device.sync_dir(&directory).map_err(|e| Error::io("flush", &directory, &e))
        });
        if let Err(error) = made {
            // Half a file is of no use; if it cannot be removed either, the next open removes it.
            let _ = self.device.remove(&new_path);
            return Err(error);
        }
        let segment = self.insert(number, file);
        self.set_free(segment);
        Ok(())
    }

    /// Whether another segment in the first directory leaves on its disk the room that the indexes need.
    fn leaves_enough(&self) -> bool {
        let reserved = self.reserved_for_indexes.load(Ordering::Relaxed);
        // Where the system cannot say how much is free, a segment is refused when it does not fit.
        reserved == 0
            || self.device.free_bytes(&self.directories[0]).is_none_or(|free| free >= self.segment_bytes + reserved)
    }

    fn fill(&self, file: &D::File, number: u32, path: &Path) -> Result<()> {
        let refused = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => self.full(),
            _ => Error::io("write", path, &e),
        };
        let reserved = file.reserve(self.segment_bytes).map_err(refused)?;
        let filled = !reserved || self.waited_flushes.swap(0, Ordering::Relaxed) >= WAITED_FLUSHES_PER_FILL;
        let mut zeros = AlignedBuffer::new(PREWRITE_BYTES.min(self.segment_bytes as usize));
        let header = SegmentHeader {
            store: self.store,
            segment: number,
            directories: self.directory_count(),
            segment_bytes: self.segment_bytes,
            life: 0,
            first_batch: 0,
            previous_checksum: 0,
            previous_segment: 0,
            previous_end: 0,
            durable_batch: 0,
        };
        let mut at = zeros.len() as u64;
        while filled && at < self.segment_bytes {
            file.write_at(&zeros, at, WriteSync::Later).map_err(refused)?;
            at += zeros.len() as u64;
        }
        segment::put(&mut zeros, 0, &header.encode());
        file.write_at(&zeros, 0, WriteSync::Later).map_err(refused)?;
        file.sync().map_err(refused)
    }
}

/// How many segments are to be there ahead of need, after one was made and `asked_for` were asked for meanwhile: as many and one.
/// The number rises at once and falls by one: writes come in bursts.
pub(super) fn wanted_ahead(ahead: usize, asked_for: usize) -> usize {
    (asked_for + 1).max(ahead - 1).clamp(1, MAX_AHEAD_SEGMENTS)
}

/// Why the right to make segments is never found poisoned.
const NO_PANIC: &str = "no code panics while it makes a segment";
