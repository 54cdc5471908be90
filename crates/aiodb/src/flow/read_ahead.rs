//! Blocks of runs sorted by hash that many look-ups are about to need come to the cache, many at a time. A look-up by itself reads one, and
//! waits for it.

use crate::index::runs::lookup::AwaitedBytes;
use crate::index::runs::spilled::SpilledLookUp;
use crate::io::reads::{Done, Reads};
use crate::io::{Device, UNIT_BYTES};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::read_path::ReadPath;

/// Blocks that are read at a time.
const DEPTH: usize = 64;

/// Fewer look-ups are not worth a queue.
const FEW_LOOK_UPS: usize = 8;

impl<D: Device> ReadPath<D> {
    /// A look-up of a hash in the runs of its table, if the cache lacks a block for it.
    pub(crate) fn waiting_look_up(&self, generation: &Generation, hash: u64) -> Option<SpilledLookUp<D>> {
        let TableIndex::Hash(index) = &generation.index else { return None };
        let mut look_up = self.look_under(generation.id, index, hash).1?;
        // Who looks it up in earnest meets the error.
        look_up.proceed().unwrap_or(false).then_some(*look_up)
    }

    /// Has the cache of blocks take in what these look-ups wait for. What cannot be read is left to those who look up in earnest.
    pub(crate) fn read_ahead(&self, look_ups: Vec<SpilledLookUp<D>>) {
        if look_ups.len() < FEW_LOOK_UPS || !self.block_cache.is_on() {
            return;
        }
        let Ok(queue) = self.device.queue(DEPTH) else { return };
        // Dropped after the reads: they hold the files.
        let mut reading: Vec<Option<SpilledLookUp<D>>> = (0..DEPTH).map(|_| None).collect();
        let mut reads = Reads::new(queue, DEPTH, UNIT_BYTES, self.block_bytes);
        let (mut again, mut left) = (Vec::new(), look_ups.into_iter());
        loop {
            for (token, place) in reading.iter_mut().enumerate().filter(|(_, place)| place.is_none()) {
                let Some(look_up) = again.pop().or_else(|| left.next()) else { break };
                let AwaitedBytes { file, offset, length } = look_up.awaited();
                reads.push(file, offset, length, token as u64);
                *place = Some(look_up);
            }
            if reading.iter().all(Option::is_none) {
                return;
            }
            let Ok(Some(Done { slot, token, outcome })) = reads.poll(true) else { return };
            let mut look_up = reading[token as usize].take().expect("it was being read");
            let is_read = outcome.is_ok() && look_up.take_in(reads.bytes(slot)).is_ok();
            reads.release(slot);
            if is_read && look_up.proceed().unwrap_or(false) {
                again.push(look_up);
            }
        }
    }
}
