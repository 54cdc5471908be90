//! What the sorted runs of `lsm` tables prove. Their blocks have checksums of their own, so what one says of a key was once written: that the key was
//! deleted, or which record was its newest.

use super::versions::Versions;
use crate::format::run::RunSeed;
use crate::format::run::block::Block;
use crate::format::run::manifest::{RunFileName, RunManifest};
use crate::format::run::sealed::unseal;
use crate::format::segment::{Damage, u16_at};
use crate::index::codec::{decode_key, table_of};
use crate::io::UNIT_BYTES;

/// Bytes of the table's id before an index key's other bytes.
const TABLE_BYTES: usize = 4;

/// Notes what the runs of a store prove, once all records of the log are noted; `read` reads a file of them by its number, as far as it is there. Returns the sequence below which they have all records, 0 if that cannot be
/// said since a part of them is not there.
pub(super) fn note(
    manifest: &RunManifest,
    store: &[u8; 16],
    read: impl Fn(u64) -> Vec<u8>,
    versions: &mut Versions,
) -> u64 {
    for range in manifest.ranges.iter().filter(|range| range.start.len().min(range.end.len()) >= TABLE_BYTES) {
        let (table, start) = (table_of(&range.start), &range.start[TABLE_BYTES..]);
        // A range up to the table's end ends at the next table.
        let end = if table_of(&range.end) == table { &range.end[TABLE_BYTES..] } else { &[] };
        versions.note_removed(table, range.sequence, start, end);
    }
    let mut is_whole = true;
    for file in manifest.files() {
        is_whole &= note_file(file, &read(file.number), RunSeed::new(store, file.number), versions);
    }
    if is_whole { manifest.next_sequence } else { 0 }
}

/// Notes what the blocks of a file prove; false if one of them does not check out.
fn note_file(file: &RunFileName, bytes: &[u8], seed: RunSeed, versions: &mut Versions) -> bool {
    let data_bytes = file.data_units as usize * UNIT_BYTES;
    let (data, mut is_whole) = (&bytes[..data_bytes.min(bytes.len())], bytes.len() >= data_bytes);
    let mut at = 0;
    while at + UNIT_BYTES <= data.len() {
        let length = usize::from(u16_at(data, at + 4)) * UNIT_BYTES;
        let noted = data.get(at..at + length).filter(|block| !block.is_empty()).map(|block| {
            let bytes = unseal(block, seed, at as u64)?;
            note_block(&Block::decode(&bytes)?, versions)
        });
        // Behind a damaged block every unit is tried: none but the beginning of a block checks out.
        let is_sound = matches!(noted, Some(Ok(())));
        is_whole &= is_sound;
        at += if is_sound { length } else { UNIT_BYTES };
    }
    is_whole
}

fn note_block(block: &Block<'_>, versions: &mut Versions) -> Result<(), Damage> {
    let mut keys = block.keys();
    while let Some((index_key, (entries, _))) = keys.next()? {
        if index_key.len() < TABLE_BYTES {
            return Err(Damage::Foreign("a key without a table"));
        }
        // Of a long key the runs have a digest.
        if let Some((table, key)) = decode_key(index_key) {
            versions.note_in_runs(table, key, &entries);
        }
    }
    Ok(())
}
