//! What the checkpoint of a `hash` index says of the runs that have a part of it.

use crate::format::run::manifest::{ManifestRun, RunFileName};
use crate::format::segment::{array, u32_at, u64_at};

/// What the places in the runs take of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpilledLive {
    pub(crate) segment: u32,
    pub(crate) bytes: i64,
    pub(crate) records: i64,
}

/// The runs of a `hash` table. Of a run there are only its number and its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpilledManifest {
    /// The number of the next file: of all tables.
    pub(crate) next_file: u64,
    /// Newest first; their numbers fall.
    pub(crate) runs: Vec<ManifestRun>,
    /// By segment.
    pub(crate) live: Vec<SpilledLive>,
}

const RUN_BYTES: usize = 12;
const FILE_BYTES: usize = 16;
const LIVE_BYTES: usize = 20;

impl SpilledManifest {
    /// Appends the bytes:
    ///
    /// | part     | layout                                                                                                     |
    /// | -------- | ---------------------------------------------------------------------------------------------------------- |
    /// | counters | number of the next file (8), runs (4), segments (4)                                                        |
    /// | runs     | newest first, each: number (8), files (4); each file: number (8), units (4), units of the data blocks (4)  |
    /// | segments | each: segment (4), bytes (8, signed) and records (8, signed) that the places in the runs take there        |
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next_file.to_le_bytes());
        out.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.live.len() as u32).to_le_bytes());
        for run in &self.runs {
            out.extend_from_slice(&run.number.to_le_bytes());
            out.extend_from_slice(&(run.files.len() as u32).to_le_bytes());
            for file in &run.files {
                out.extend_from_slice(&file.number.to_le_bytes());
                out.extend_from_slice(&file.units.to_le_bytes());
                out.extend_from_slice(&file.data_units.to_le_bytes());
            }
        }
        for live in &self.live {
            out.extend_from_slice(&live.segment.to_le_bytes());
            out.extend_from_slice(&live.bytes.to_le_bytes());
            out.extend_from_slice(&live.records.to_le_bytes());
        }
    }

    /// Takes the bytes of [`SpilledManifest::encode`], which must be all; `None` where they are malformed.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<SpilledManifest> {
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at_checked(length)?;
            bytes = rest;
            Some(taken)
        };
        let counters = take(16)?;
        let mut manifest = SpilledManifest { next_file: u64_at(counters, 0), ..SpilledManifest::default() };
        for _ in 0..u32_at(counters, 8) {
            let head = take(RUN_BYTES)?;
            let mut run = ManifestRun { number: u64_at(head, 0), ..ManifestRun::default() };
            for _ in 0..u32_at(head, 8) {
                let file = take(FILE_BYTES)?;
                let (number, units, data_units) = (u64_at(file, 0), u32_at(file, 8), u32_at(file, 12));
                if data_units >= units {
                    return None;
                }
                run.files.push(RunFileName { number, units, data_units });
            }
            if run.files.is_empty() {
                return None;
            }
            manifest.runs.push(run);
        }
        for _ in 0..u32_at(counters, 12) {
            let live = take(LIVE_BYTES)?;
            let signed = |at| i64::from_le_bytes(array(live, at));
            manifest.live.push(SpilledLive { segment: u32_at(live, 0), bytes: signed(4), records: signed(12) });
        }
        let falls = manifest.runs.windows(2).all(|pair| pair[0].number > pair[1].number);
        (falls && bytes.is_empty()).then_some(manifest)
    }
}

#[cfg(test)]
mod tests;
