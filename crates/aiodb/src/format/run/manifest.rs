//! The bytes of the manifest of a set of runs: all that is known of them, as of one edit.

use crate::checksum::crc32c;
use crate::format::entry::RangeTombstone;
use crate::format::position::{POSITION_BYTES, Position};
use crate::format::segment::{Damage, FIRST_VERSION, check_version, put, u32_at, u64_at};

const RUNS_MAGIC: &[u8; 8] = b"AIODBRNS";
const HEADER_BYTES: usize = 64;

/// A file of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunFileName {
    pub(crate) number: u64,
    /// Units of the file.
    pub(crate) units: u32,
    /// Units of its data blocks: what comes after them is read at opening.
    pub(crate) data_units: u32,
}

/// A run: files in the order of their keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ManifestRun {
    /// Its number in the history of the store.
    pub(crate) number: u64,
    /// The sequence after the position of the latest memtable of which it has all entries.
    pub(crate) until: u64,
    /// How many times its entries were merged.
    pub(crate) tier: u32,
    /// The oldest run of the merge that it takes part in, 0 for none. Such runs follow each other.
    pub(crate) merge: u64,
    /// Keys before this one are merged already, and count no more in `files`. The same in all runs of a merge.
    pub(crate) from: Box<[u8]>,
    /// Files that the merge has made, with the keys before `from`: in the oldest run of it alone.
    pub(crate) merged: Vec<RunFileName>,
    /// The files from which the run was made.
    pub(crate) files: Vec<RunFileName>,
}

/// What the entries of all runs take of a segment in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveCount {
    pub(crate) segment: u32,
    pub(crate) life: u64,
    pub(crate) bytes: i64,
    pub(crate) records: i64,
}

/// The chunks that a table's entries in one file name in one life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkCount {
    /// The number of the file.
    pub(crate) file: u64,
    pub(crate) table: u32,
    pub(crate) segment: u32,
    pub(crate) life: u64,
    pub(crate) bytes: i64,
}

/// The keys that a table has in all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyCount {
    pub(crate) table: u32,
    /// Keys of each run, added up.
    pub(crate) keys: i64,
    /// The same without keys whose newest entry is a delete, and less by as many.
    pub(crate) alive: i64,
}

/// The set of runs after an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunManifest {
    /// The number of the edit.
    pub(crate) edit: u64,
    /// The position in the log up to which the runs have its records; `None` before the first flush.
    pub(crate) position: Option<Position>,
    /// The sequence after that position.
    pub(crate) next_sequence: u64,
    /// The last batch on whose durability an edit has relied.
    pub(crate) durable_batch: u64,
    /// The number of the next file.
    pub(crate) next_file: u64,
    /// The number of the next run.
    pub(crate) next_run: u64,
    /// Newest first.
    pub(crate) runs: Vec<ManifestRun>,
    /// Range tombstones that are not carried out in all runs, by sequence.
    pub(crate) ranges: Vec<RangeTombstone>,
    pub(crate) live: Vec<LiveCount>,
    pub(crate) chunks: Vec<ChunkCount>,
    pub(crate) keys: Vec<KeyCount>,
}

impl RunManifest {
    /// The files of all runs.
    pub(crate) fn files(&self) -> impl Iterator<Item = &RunFileName> {
        self.runs.iter().flat_map(|run| run.merged.iter().chain(&run.files))
    }

    pub(crate) fn encode(&self, store: &[u8; 16]) -> Vec<u8> {
        let mut out = Writer(vec![0; HEADER_BYTES + POSITION_BYTES]);
        if let Some(position) = &self.position {
            position.encode(&mut out.0[HEADER_BYTES..]);
        }
        [self.next_sequence, self.durable_batch, self.next_file, self.next_run].into_iter().for_each(|n| out.u64(n));
        out.list(&self.runs, |out, run| {
            out.u64(run.number);
            out.u64(run.until);
            out.u32(run.tier);
            out.u64(run.merge);
            out.part(&run.from);
            for files in [&run.merged, &run.files] {
                out.list(files, |out, file| {
                    out.u64(file.number);
                    out.u32(file.units);
                    out.u32(file.data_units);
                });
            }
        });
        out.list(&self.ranges, |out, range| {
            out.u64(range.sequence);
            out.part(&range.start);
            out.part(&range.end);
        });
        out.list(&self.live, |out, live| {
            out.u32(live.segment);
            [live.life, live.bytes as u64, live.records as u64].into_iter().for_each(|n| out.u64(n));
        });
        out.list(&self.chunks, |out, chunks| {
            out.u64(chunks.file);
            out.u32(chunks.table);
            out.u32(chunks.segment);
            out.u64(chunks.life);
            out.u64(chunks.bytes as u64);
        });
        out.list(&self.keys, |out, keys| {
            out.u32(keys.table);
            out.u64(keys.keys as u64);
            out.u64(keys.alive as u64);
        });
        self.seal(out.0, store)
    }

    fn seal(&self, mut out: Vec<u8>, store: &[u8; 16]) -> Vec<u8> {
        let length = out.len() as u64;
        put(&mut out, 0, RUNS_MAGIC);
        put(&mut out, 8, &FIRST_VERSION.to_le_bytes());
        put(&mut out, 16, store);
        put(&mut out, 32, &length.to_le_bytes());
        put(&mut out, 40, &self.edit.to_le_bytes());
        out[48] = u8::from(self.position.is_some());
        let checksum = crc32c(&out[16..]);
        put(&mut out, 12, &checksum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8], store: &[u8; 16]) -> Result<RunManifest, Damage> {
        if bytes.len() < HEADER_BYTES || &bytes[0..8] != RUNS_MAGIC {
            return Err(Damage::Foreign("not the manifest of runs"));
        }
        check_version(bytes, FIRST_VERSION)?;
        if u64_at(bytes, 32) != bytes.len() as u64 || crc32c(&bytes[16..]) != u32_at(bytes, 12) {
            return Err(Damage::Checksum);
        }
        if &bytes[16..32] != store {
            return Err(Damage::Foreign("the manifest of another store's runs"));
        }
        Self::decode_body(bytes).ok_or(Damage::Foreign("a manifest whose parts do not fit"))
    }

    fn decode_body(bytes: &[u8]) -> Option<RunManifest> {
        let mut rest = Reader(bytes.get(HEADER_BYTES..)?);
        let position = Position::decode(rest.take(POSITION_BYTES)?);
        let position = match bytes[48] {
            0 => None,
            1 => Some(position),
            _ => return None,
        };
        let (next_sequence, durable_batch) = (rest.u64()?, rest.u64()?);
        let (next_file, next_run) = (rest.u64()?, rest.u64()?);
        let runs = rest.list(|rest| {
            let (number, until, tier, merge) = (rest.u64()?, rest.u64()?, rest.u32()?, rest.u64()?);
            let from = rest.part()?;
            Some(ManifestRun { number, until, tier, merge, from, merged: rest.files()?, files: rest.files()? })
        })?;
        let ranges = rest.list(|rest| {
            let sequence = rest.u64()?;
            let (start, end) = (rest.part()?, rest.part()?);
            (start.len() >= 4 && end.len() >= 4).then_some(RangeTombstone { start, end, sequence })
        })?;
        let live = rest.list(|rest| {
            let segment = rest.u32()?;
            let (life, bytes, records) = (rest.u64()?, rest.u64()? as i64, rest.u64()? as i64);
            Some(LiveCount { segment, life, bytes, records })
        })?;
        let chunks = rest.list(|rest| {
            let (file, table, segment, life) = (rest.u64()?, rest.u32()?, rest.u32()?, rest.u64()?);
            Some(ChunkCount { file, table, segment, life, bytes: rest.u64()? as i64 })
        })?;
        let keys = rest
            .list(|rest| Some(KeyCount { table: rest.u32()?, keys: rest.u64()? as i64, alive: rest.u64()? as i64 }))?;
        let edit = u64_at(bytes, 40);
        rest.0.is_empty().then_some(RunManifest {
            edit,
            position,
            next_sequence,
            durable_batch,
            next_file,
            next_run,
            runs,
            ranges,
            live,
            chunks,
            keys,
        })
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Bytes behind their length.
    fn part(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    /// Items behind their number.
    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|item| write(self, item));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32_at(bytes, 0))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64_at(bytes, 0))
    }

    fn part(&mut self) -> Option<Box<[u8]>> {
        let length = self.u32()? as usize;
        self.take(length).map(Into::into)
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Reader<'a>) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        // Not reserved: a wrong count must not take memory.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Some(items)
    }

    fn files(&mut self) -> Option<Vec<RunFileName>> {
        self.list(|rest| {
            let file = RunFileName { number: rest.u64()?, units: rest.u32()?, data_units: rest.u32()? };
            (file.data_units < file.units).then_some(file)
        })
    }
}
