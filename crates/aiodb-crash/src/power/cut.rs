//! Disks as a power cut may leave them.

use super::disk::{Entry, Recording, SECTOR_BYTES};
use fastrand::Rng;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How much of an image is zero or not.
const BLOCK_BYTES: usize = 64 << 10;

/// How many moments are looked at, of which the one with the most unflushed writes is taken: mostly many, since a disk
/// that has just been flushed loses nothing.
const CANDIDATES: [usize; 4] = [1, 8, 64, 64];

/// A disk after a power cut.
pub struct Cut {
    /// Requests that had reached the disk.
    pub entries: usize,
    /// The fate of the writes since the last flush, in words.
    pub kept: &'static str,
    /// Unflushed writes that are not there, or not wholly.
    pub lost: u64,
    /// Writes among them that are there in part.
    pub torn: u64,
    /// The disk's bytes.
    pub image: Vec<u8>,
}

impl Cut {
    /// Writes the disk into a file, which takes no space where it is zero.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let file = File::create(path)?;
        file.set_len(self.image.len() as u64)?;
        let blocks = self.image.chunks(BLOCK_BYTES).enumerate();
        for (number, block) in blocks.filter(|(_, block)| block.iter().any(|byte| *byte != 0)) {
            file.write_all_at(block, (number * BLOCK_BYTES) as u64)?;
        }
        Ok(())
    }
}

/// What a power cut does to unflushed writes.
const FATES: [&str; 6] = [
    "nothing unflushed kept",
    "everything unflushed kept",
    "half of the unflushed writes kept",
    "few of the unflushed writes kept",
    "half of the unflushed sectors kept",
    "unflushed writes kept up to one that is torn",
];

/// Power cuts at ascending moments of one recording.
pub struct Cuts {
    recording: Recording,
    moments: Vec<usize>,
    /// The disk with everything that was flushed before `flushed`.
    durable: Vec<u8>,
    flushed: usize,
}

impl Cuts {
    /// This many moments after the first `begin` requests.
    pub fn new(mut recording: Recording, begin: usize, count: u64, rng: &mut Rng) -> Cuts {
        let end = recording.entries.len();
        // Writes since the last flush, by moment.
        let mut unflushed = vec![0; end + 1];
        for at in 0..end {
            unflushed[at + 1] = if matches!(recording.entries[at], Entry::Flush) { 0 } else { unflushed[at] + 1 };
        }
        let mut moments: Vec<usize> = (0..count)
            .map(|_| {
                let candidates = (0..CANDIDATES[rng.usize(..CANDIDATES.len())]).map(|_| rng.usize(begin..=end));
                candidates.max_by_key(|moment| unflushed[*moment]).expect("there is one")
            })
            .collect();
        moments.sort_unstable_by(|one, other| other.cmp(one));
        let durable = std::mem::take(&mut recording.blank);
        Cuts { recording, moments, durable, flushed: 0 }
    }

    /// The next power cut.
    pub fn next(&mut self, rng: &mut Rng) -> Option<Cut> {
        let entries = self.moments.pop()?;
        self.advance(entries);
        let unflushed = self.unflushed(entries);
        let mut image = self.durable.clone();
        let fate = rng.usize(..FATES.len());
        let (mut lost, mut torn) = (0, 0);
        let torn_at = rng.usize(..unflushed.len().max(1));
        for (number, (offset, bytes)) in unflushed.into_iter().enumerate() {
            let sectors = bytes.chunks(SECTOR_BYTES).len();
            let kept: Vec<bool> = match fate {
                0 => vec![false; sectors],
                1 => vec![true; sectors],
                2 => vec![rng.bool(); sectors],
                3 => vec![rng.u8(..8) == 0; sectors],
                5 if number != torn_at => vec![number < torn_at; sectors],
                _ => (0..sectors).map(|_| rng.bool()).collect(),
            };
            lost += u64::from(kept.contains(&false));
            torn += u64::from(kept.contains(&false) && kept.contains(&true));
            for (sector, bytes) in bytes.chunks(SECTOR_BYTES).enumerate().filter(|(sector, _)| kept[*sector]) {
                let at = offset + sector * SECTOR_BYTES;
                image[at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
        Some(Cut { entries, kept: FATES[fate], lost, torn, image })
    }

    /// Brings the durable disk up to the last flush before `end`.
    fn advance(&mut self, end: usize) {
        let is_flush = |entry: &Entry| matches!(entry, Entry::Flush);
        if let Some(more) = self.recording.entries[self.flushed..end].iter().rposition(is_flush) {
            for entry in &self.recording.entries[self.flushed..self.flushed + more] {
                if let Entry::Write { offset, bytes } = entry {
                    self.durable[*offset..offset + bytes.len()].copy_from_slice(bytes);
                }
            }
            self.flushed += more + 1;
        }
    }

    /// The writes between the last flush and `end`.
    fn unflushed(&self, end: usize) -> Vec<(usize, &[u8])> {
        let writes = self.recording.entries[self.flushed..end].iter();
        writes
            .filter_map(|entry| match entry {
                Entry::Write { offset, bytes } => Some((*offset, &bytes[..])),
                Entry::Flush => None,
            })
            .collect()
    }
}
