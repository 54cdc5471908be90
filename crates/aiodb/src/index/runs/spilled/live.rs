//! What the places in the runs of a `hash` table take of segments: of each that counts, once.

use std::collections::BTreeMap;

use crate::format::location::Location;
use crate::format::place::footprint;
use crate::format::spilled::SpilledLive;

/// Bytes and records by segment.
type Sums = BTreeMap<u32, (i64, i64)>;

/// The counts.
#[derive(Default)]
pub(super) struct Live {
    sums: Sums,
    /// While a checkpoint is being made: how many shards it has encoded, and what has changed there since.
    encoding: Option<(usize, Sums)>,
}

impl Live {
    pub(super) fn new(live: &[SpilledLive]) -> Live {
        let sums = live.iter().map(|live| (live.segment, (live.bytes, live.records))).collect();
        Live { sums, encoding: None }
    }

    /// Counts a place of a shard, or counts it off.
    pub(super) fn count(&mut self, shard: usize, place: Location, sign: i64) {
        add(&mut self.sums, place, sign);
        if let Some((_, since)) = self.encoding.as_mut().filter(|(encoded, _)| shard < *encoded) {
            add(since, place, sign);
        }
    }

    pub(super) fn begin_checkpoint(&mut self) {
        self.encoding = Some((0, Sums::new()));
    }

    /// Notes that all shards up to this one are encoded.
    pub(super) fn note_encoded(&mut self, shard: usize) {
        if let Some((encoded, _)) = &mut self.encoding {
            *encoded = shard + 1;
        }
    }

    /// The counts as they were in each shard when it was encoded.
    pub(super) fn end_checkpoint(&mut self) -> Vec<SpilledLive> {
        let mut sums = self.sums.clone();
        for (segment, (bytes, records)) in self.encoding.take().map(|(_, since)| since).unwrap_or_default() {
            let sum = sums.entry(segment).or_default();
            *sum = (sum.0 - bytes, sum.1 - records);
        }
        listed(&sums)
    }

    pub(super) fn all(&self) -> Vec<SpilledLive> {
        listed(&self.sums)
    }
}

fn add(sums: &mut Sums, place: Location, sign: i64) {
    let sum = sums.entry(place.segment).or_default();
    *sum = (sum.0 + sign * footprint(place.length), sum.1 + sign);
    if *sum == (0, 0) {
        sums.remove(&place.segment);
    }
}

fn listed(sums: &Sums) -> Vec<SpilledLive> {
    let is_any = |sum: &(&u32, &(i64, i64))| *sum.1 != (0, 0);
    let one = |(&segment, &(bytes, records)): (&u32, &(i64, i64))| SpilledLive { segment, bytes, records };
    sums.iter().filter(is_any).map(one).collect()
}
