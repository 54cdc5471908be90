//! Counts again what the counters of live bytes should say. For tests: the counters only choose what reclaim empties,
//! so a wrong one shows as space that never comes back.

use std::collections::BTreeMap;

use crate::catalog::TableIndex;
use crate::engine::Engine;
use crate::index::Location;
use crate::io::Device;
use crate::log::place::footprint;
use crate::log::record::decode_chunks;
use crate::publish::hash_location;
use crate::{Db, Result};

/// Entries of an ordered index that are looked at in one transaction.
const ENTRIES_PER_VISIT: usize = 1000;

/// What the indexes refer to in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Live {
    records: i64,
    bytes: i64,
    chunk_bytes: i64,
}

impl<D: Device> Db<D> {
    /// Counts what the indexes refer to in each segment, and says in words where the counters differ; those of chunks only
    /// if asked. Makes a checkpoint first. Nothing else may use the store meanwhile.
    #[doc(hidden)]
    pub fn recount(&self, chunks: bool) -> Result<Vec<String>> {
        self.engine().check_open()?;
        self.engine().recount(chunks)
    }
}

impl<D: Device> Engine<D> {
    fn recount(&self, chunks: bool) -> Result<Vec<String>> {
        while !self.purge_some()? {}
        // The tail of an ordered index holds entries beside those that they will replace.
        self.checkpoint()?;
        let mut counted: BTreeMap<u32, Live> = BTreeMap::new();
        for generation in self.catalog.generations() {
            match &generation.index {
                TableIndex::Hash(index) => {
                    let mut locations = Vec::new();
                    index.for_each(&mut |location| locations.push(location));
                    for location in locations {
                        let mut list = Vec::new();
                        self.with_record(location, &mut |record| {
                            list.extend_from_slice(if record.chunked { record.value } else { &[] });
                        })?;
                        count(&mut counted, hash_location(location), &list);
                    }
                }
                TableIndex::Lmdb => {
                    let mut entries = Vec::new();
                    let mut after = None;
                    loop {
                        let mut collect = |_: &[u8], entry| entries.push(entry);
                        after = self.lmdb().visit(generation.id, after.as_deref(), ENTRIES_PER_VISIT, &mut collect)?;
                        if after.is_none() {
                            break;
                        }
                    }
                    for entry in entries {
                        let list = if entry.chunked { self.read_chunk_list(&entry)? } else { Vec::new() };
                        count(&mut counted, entry.location, &list);
                    }
                }
            }
        }
        Ok(self.differences(&counted, chunks))
    }

    fn differences(&self, counted: &BTreeMap<u32, Live>, chunks: bool) -> Vec<String> {
        use std::sync::atomic::Ordering::Relaxed;
        let mut out = Vec::new();
        for segment in self.segments.in_use() {
            let mut known = Live {
                records: segment.live_records.load(Relaxed),
                bytes: segment.live_bytes.load(Relaxed),
                chunk_bytes: segment.live_chunks().values().sum(),
            };
            let found = counted.get(&segment.number).copied().unwrap_or_default();
            if !chunks {
                known.chunk_bytes = found.chunk_bytes;
            }
            if known != found {
                out.push(format!("segment {}: counted {known:?}, there are {found:?}", segment.number));
            }
        }
        out
    }
}

fn count(counted: &mut BTreeMap<u32, Live>, location: Location, list: &[u8]) {
    let live = counted.entry(location.segment).or_default();
    live.records += 1;
    live.bytes += footprint(location.length);
    for chunk in decode_chunks(list).map(|(_, chunks)| chunks).unwrap_or_default() {
        counted.entry(chunk.location.segment).or_default().chunk_bytes += footprint(chunk.location.length);
    }
}
