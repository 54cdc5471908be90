//! Takes out of a damaged store the records that can be proved right, and lists the damage.
//!
//! Two walks over the log. The first finds the newest sound version of each key; the second writes those versions into a
//! fresh store. Nothing is believed that has no checksum of its own: indexes are not looked at but for blocks of sorted runs, where something of the
//! log is lost; batches that do not check
//! out are searched record by record, and segments whose header is lost are read with the seed that their batches imply.
//! The source is only read.
//!
//! Where records are lost, older ones of their keys may come back. What is lost had sequences below a bound (`losses.rs`), so keys that are written in an
//! older version are in doubt, unless sorted runs prove something else (`runs.rs`).

mod losses;
mod reading;
mod runs;
mod scan;
mod source;
mod spans;
mod tables;
mod versions;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::location::Location;
use crate::format::record::{Chunk, Form, Kind, Record, decode_chunks};
use crate::format::segment::BATCH_MOVES;
use crate::io::disk::is_trial;
use crate::io::{Device, Disk, UNIT_BYTES};
use crate::store::clock;
use crate::{Db, Durability, Error, Options, Result};
use losses::Losses;
use reading::{FileBytes, Unread};
use scan::{Bytes, Item};
use source::Source;
use spans::Spans;
use tables::Tables;
use versions::{Operand, Versions};
use writer::{OldTable, Writer};

/// More than this is counted, not listed.
const MAX_LISTED: usize = 1000;

/// The findings of [`salvage`], and the counts of its writes.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Segments that were read.
    pub segments: u64,
    /// Records that check out, older versions included.
    pub records: u64,
    /// Keys that were written, by table.
    pub tables: BTreeMap<String, u64>,
    /// Bytes of their values and operands, as they are stored.
    pub value_bytes: u64,
    /// Places that do not check out, at most 1000 of them.
    pub lost: Vec<LostRegion>,
    /// All such places.
    pub lost_regions: u64,
    /// Keys of which a newer version was written and is lost, at most 1000 of them.
    pub doubtful: Vec<DoubtfulKey>,
    /// All such keys.
    pub doubtful_keys: u64,
    /// Keys that were written in a version that may have come back: lost bytes that do not say their keys may have had an overwrite of each of them, its delete
    /// or that of a range with it. As far as anything tells that something is lost, all other keys but the doubtful ones are as they were.
    pub older_than_damage: u64,
    /// Those keys, by table, in at most 1000 spans.
    pub older: Vec<KeySpan>,
    /// Other things that had to be done without.
    pub notes: Vec<String>,
}

/// Bytes of a damaged store that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRegion {
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes. Records among them that check out by themselves were taken all the same.
    pub length: u64,
    /// The fault there.
    pub what: String,
}

/// A key whose newest version is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoubtfulKey {
    /// The table.
    pub table: String,
    /// The key.
    pub key: Vec<u8>,
    /// Whether an older version of it was written to the new store.
    pub delivered: bool,
}

/// Keys of a table whose written versions may have come back: see [`SalvageReport::older_than_damage`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySpan {
    /// The table.
    pub table: String,
    /// The first key of the span.
    pub first: Vec<u8>,
    /// Its last key; the first one where it has only one.
    pub last: Vec<u8>,
    /// How many of the keys from the first to the last one are concerned.
    pub keys: u64,
}

impl SalvageReport {
    fn lose(&mut self, region: LostRegion) {
        self.lost_regions += 1;
        if self.lost.len() < MAX_LISTED {
            self.lost.push(region);
        }
    }

    fn doubt(&mut self, table: String, key: &[u8], delivered: bool) {
        self.doubtful_keys += 1;
        if self.doubtful.len() < MAX_LISTED {
            self.doubtful.push(DoubtfulKey { table, key: key.to_vec(), delivered });
        }
    }

    /// Whether everything was there.
    pub fn is_complete(&self) -> bool {
        self.lost_regions == 0 && self.doubtful_keys == 0 && self.notes.is_empty()
    }
}

/// Writes the records that can be proved right in the damaged store at `store` into a new store at `out`, a directory that is
/// missing or empty. Takes the newest sound version of each key, with its merge operands and the time at which it expires;
/// deleted and expired keys stay so. `progress` is told the bytes read and the bytes in all: the log is read
/// twice, a segment at a time. Some 60 bytes of memory are taken for each key, and 100 and the key for each operand. Of a store that lacks something
/// the sorted runs are read too, a file at a time.
///
/// The source is never changed, and may lie on a read-only file system. Fails with [`Error::NoStore`], [`Error::Locked`]
/// (a process has the store open), [`Error::NewerVersion`], [`Error::Occupied`], [`Error::DestinationFull`] or
/// [`Error::Io`]; damage is no failure, nor are bytes that the device does not give: they are lost, in units of 4096.
pub fn salvage(
    store: impl AsRef<Path>,
    out: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SalvageReport> {
    salvage_several(&[store], out, progress)
}

/// Like [`salvage`] for a store that lies in several directories, given in any order. A lost directory may be left out:
/// the report then lists the missing segments. The new store lies in one directory. Fails with [`Error::Directory`] if a
/// directory belongs to another store.
pub fn salvage_several<P: AsRef<Path>>(
    directories: &[P],
    out: impl AsRef<Path>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SalvageReport> {
    let (directories, out) = (directories.iter().map(AsRef::as_ref).collect::<Vec<&Path>>(), out.as_ref());
    let _locks = directories.iter().map(|directory| refuse_open_store(directory)).collect::<Result<Vec<_>>>()?;
    salvage_on(Disk::plain(), &directories, out, progress)
}

/// [`salvage_several`] from another device, into a store on the disk.
fn salvage_on<D: Device>(
    device: D,
    directories: &[&Path],
    out: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SalvageReport> {
    let mut report = SalvageReport::default();
    let source = Source::open(device, directories, &mut report)?;
    refuse_occupied(out)?;
    let mut salvage = Salvage {
        tables: Tables::new(source.manifest.as_ref()),
        versions: Versions::default(),
        losses: Losses::new(source.manifest.as_ref().map(|manifest| manifest.position.batch)),
        lost_below: 0,
        proven_to: 0,
        doubtful: BTreeSet::new(),
        older: BTreeMap::new(),
        most_spans: 1,
        last_batch: None,
        time_ms: source.manifest.as_ref().map_or(0, |manifest| manifest.time_ms),
        pending: Vec::new(),
        unread: Vec::new(),
        source,
    };
    salvage.find(&mut report, progress)?;
    salvage.write(out, &mut report, progress).map_err(|error| match error {
        Error::DiskFull { path } => Error::DestinationFull { path },
        other => other,
    })?;
    Ok(report)
}

/// Takes a shared lock where there is a lock file, without writing to it.
fn refuse_open_store(root: &Path) -> Result<Option<std::fs::File>> {
    let path = root.join("LOCK");
    let Ok(file) = std::fs::File::open(&path) else { return Ok(None) };
    match file.try_lock_shared() {
        Err(std::fs::TryLockError::WouldBlock) => {
            let holder = std::fs::read_to_string(&path).unwrap_or_default().trim().to_string();
            let holder = if holder.is_empty() { "another process".to_string() } else { holder };
            Err(Error::Locked { path: root.to_path_buf(), holder })
        }
        // Where files cannot be locked, no process has the store open either.
        _ => Ok(Some(file)),
    }
}

fn refuse_occupied(out: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|e| Error::io("list", out, &e))?,
    };
    let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let occupied = names.any(|name| name != "lost+found" && !is_trial(&name));
    if occupied { Err(Error::Occupied { path: out.to_path_buf() }) } else { Ok(()) }
}

/// A salvage in progress.
struct Salvage<D: Device> {
    source: Source<D>,
    tables: Tables,
    versions: Versions,
    losses: Losses,
    /// No record that is lost has this sequence or a higher one; known once all of the log is read.
    lost_below: u64,
    /// Below this sequence the sorted runs have all records of their tables.
    proven_to: u64,
    /// Keys of which a version newer than the one that is written is known to be lost.
    doubtful: BTreeSet<(u32, Vec<u8>)>,
    /// Keys that were written in a version that may have come back, by table, each with at most so many spans.
    older: BTreeMap<String, Spans>,
    most_spans: usize,
    /// The highest number of a sound batch, and the checksum that the next one names.
    last_batch: Option<(u64, u32)>,
    /// The latest time found in the store, in milliseconds since 1970.
    time_ms: u64,
    /// The pending batches with records that the log lacks.
    pending: Vec<usize>,
    /// What the device did not give of each segment when it was read first.
    unread: Vec<Vec<Unread>>,
}

impl<D: Device> Salvage<D> {
    /// Finds the newest sound version of each key.
    fn find(&mut self, report: &mut SalvageReport, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let total = 2 * self.source.bytes();
        let mut done = 0;
        for position in 0..self.source.segments.len() {
            let read = self.source.read(&self.source.segments[position])?;
            self.note_unread(position, &read, report);
            let segment = self.segment(position, &read);
            segment.walk(&mut |item| self.take(&segment, item, position, report));
            report.segments += 1;
            done += read.bytes.len() as u64;
            progress(done, total);
            self.unread.push(read.unread);
        }
        self.find_pending(report);
        self.find_missing_batches(report);
        self.bound_losses();
        if self.source.manifest.is_some() && !self.source.lacks_segments && report.is_complete() {
            self.tables.set_complete();
        } else if self.may_lack_tables(report) {
            self.tables.set_in_runs(self.source.tables_of_runs());
        }
        self.tables.apply();
        for id in self.tables.only_in_runs() {
            report.notes.push(format!(
                "nothing but the sorted runs tells of table {id}: it was ingested since the last checkpoint, or dropped \
                 shortly before that"
            ));
        }
        if self.lost_below > 0
            && let Some((manifest, store)) = self.source.runs()
        {
            let read = |number| self.source.read_run(number);
            self.proven_to = runs::note(&manifest, &store, read, &mut self.versions);
        }
        self.versions.apply_deletes();
        Ok(())
    }

    /// Lists what the device does not give of a segment. What that means for its records the walk over it finds out.
    fn note_unread(&mut self, position: usize, read: &FileBytes, report: &mut SalvageReport) {
        let segment = &self.source.segments[position];
        // A header that is not given is listed as one that does not check out.
        for Unread { range, reason } in read.unread.iter().filter(|unread| unread.range != (0..UNIT_BYTES as u64)) {
            let (path, what) = (segment.path.clone(), format!("the device does not give these bytes: {reason}"));
            report.lose(LostRegion { path, offset: range.start, length: range.end - range.start, what });
        }
        if read.bytes.is_empty() && !read.unread.is_empty() {
            self.losses.lose_in(segment.life);
        }
    }

    /// Finds out how old what is lost must be.
    fn bound_losses(&mut self) {
        self.source.lost_lives.iter().for_each(|life| self.losses.lose_in(Some(*life)));
        if self.source.lacks_directories || self.source.lacks_pending {
            self.losses.lose_in(None);
        }
        if self.source.manifest.is_none() {
            let lives: Option<Vec<u64>> = self.source.segments.iter().map(|segment| segment.life).collect();
            self.losses.lose_given_up(lives.and_then(|lives| lives.into_iter().max()));
        }
        self.lost_below = self.losses.below();
    }

    /// Whether a record of after the checkpoint may be lost, and so the one by which an ingested table came to be.
    fn may_lack_tables(&self, report: &SalvageReport) -> bool {
        let next_sequence = self.source.manifest.as_ref().map_or(0, |manifest| manifest.next_sequence);
        self.lost_below > next_sequence || !report.notes.is_empty()
    }

    fn segment<'a>(&self, position: usize, read: &'a FileBytes) -> Bytes<'a> {
        let segment = &self.source.segments[position];
        let FileBytes { bytes, unread } = read;
        Bytes { number: segment.number, seed: segment.seed, bytes, unread, known_end: segment.known_end }
    }

    /// Takes what is found in the segment at this position.
    fn take(&mut self, segment: &Bytes<'_>, item: Item<'_>, position: usize, report: &mut SalvageReport) {
        match item {
            Item::Record(found) => {
                report.records += 1;
                self.find_record(&found.record, found.location, segment.value_of(&found));
            }
            Item::Batch { number, checksum, first_sequence, time_ms } => {
                self.time_ms = self.time_ms.max(time_ms);
                self.losses.note_sound(number, first_sequence, self.source.segments[position].life);
                self.last_batch = self.last_batch.max(Some((number, checksum)));
            }
            Item::Suspect { table, sequence, key } => {
                self.versions.lose(table, key, sequence);
            }
            Item::SuspectRange { table, sequence, start, end } => {
                self.versions.lose_range(table, sequence, start, end);
            }
            Item::Damage { offset, length, batch, below } => {
                let segment = &self.source.segments[position];
                batch.into_iter().for_each(|number| self.losses.note_damaged(number));
                match below {
                    Some(bound) => self.losses.lose_below(bound),
                    None => self.losses.lose_in(segment.life),
                }
                let what = match batch {
                    Some(number) => format!("batch {number} does not check out"),
                    None => "no batch checks out here".to_string(),
                };
                report.lose(LostRegion { path: segment.path.clone(), offset, length, what });
            }
        }
    }

    /// Notes a record of any kind.
    fn find_record(&mut self, record: &Record<'_>, location: Location, value: Option<&[u8]>) {
        match (record.kind, value) {
            (Kind::Delete, _) => self.versions.note_base(record, true),
            (Kind::Put, Some(value)) if !record.form.chunked || self.chunks_are_sound(value) => {
                self.versions.note_base(record, false);
            }
            (Kind::Merge, Some(_)) => {
                self.tables.note_merge(record.table);
                self.versions.note_operand(record, location);
            }
            (Kind::Put | Kind::Merge, _) => self.versions.lose(record.table, record.key, record.sequence),
            (Kind::RangeTombstone, _) => self.versions.note_range(record),
            (Kind::TableCreate | Kind::TableDrop | Kind::TableTruncate, _) => self.tables.note(record),
            (Kind::Chunk | Kind::Large, _) => {}
        }
    }

    fn chunks_are_sound(&self, list: &[u8]) -> bool {
        let chunks = decode_chunks(list).map(|(_, chunks)| chunks);
        chunks.is_some_and(|chunks| chunks.iter().all(|chunk| self.source.read_chunk(chunk).is_some()))
    }

    /// Records that were acknowledged but not in the log when the process died. The number of its batch tells whether a pending
    /// file is of an earlier time.
    fn find_pending(&mut self, report: &mut SalvageReport) {
        let pending = Arc::clone(&self.source.pending);
        for (position, batch) in pending.iter().enumerate() {
            let number = batch.header.number;
            let later = self.last_batch.is_none_or(|(last, _)| number > last);
            let wanted = later || self.losses.is_damaged(number);
            if wanted && batch.header.flags & BATCH_MOVES == 0 {
                self.pending.push(position);
            }
        }
        for &position in &self.pending.clone() {
            let view = pending[position].view();
            for found in view.records() {
                report.records += 1;
                self.find_record(&found.record, found.location, view.value(&found));
            }
            self.losses.note_sound(view.number, pending[position].header.first_sequence, None);
        }
    }

    /// After the last checkpoint every batch must be there.
    fn find_missing_batches(&mut self, report: &mut SalvageReport) {
        let missing = self.losses.lose_missing();
        if missing > 0 {
            report.notes.push(format!("{missing} batches written after the last checkpoint are nowhere to be found"));
        }
    }

    /// Writes the versions that were found.
    fn write(&mut self, out: &Path, report: &mut SalvageReport, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let defaults = Options::default();
        let segment_bytes = self.source.segment_bytes.unwrap_or(defaults.segment_bytes);
        let db = Db::open(out, Options { segment_bytes, durability: Durability::None, ..defaults })?;
        self.doubtful = self.versions.doubtful();
        self.most_spans = MAX_LISTED / self.tables.known().count().max(1);
        let mut writer = Writer::new(&db, report);
        for (id, (name, settings)) in self.tables.known() {
            writer.table(*id, name, settings)?;
            writer.report.tables.insert(name.clone(), 0);
        }
        let total = 2 * self.source.bytes();
        let mut done = total / 2;
        for position in 0..self.source.segments.len() {
            let read = self.source.read(&self.source.segments[position])?;
            for unread in read.unread.iter().filter(|unread| !self.unread[position].contains(unread)) {
                let (path, range) = (self.source.segments[position].path.clone(), &unread.range);
                let what = format!(
                    "the device gave these bytes once and does not any more ({}): keys whose newest version is here are missing",
                    unread.reason
                );
                writer.report.lose(LostRegion { path, offset: range.start, length: range.end - range.start, what });
            }
            let segment = self.segment(position, &read);
            let mut outcome = Ok(());
            segment.walk(&mut |item| {
                if let (Ok(()), Item::Record(found)) = (&outcome, item) {
                    outcome = self.write_put(&mut writer, &found.record, segment.value_of(&found));
                }
            });
            outcome?;
            done += read.bytes.len() as u64;
            progress(done, total);
        }
        let pending = Arc::clone(&self.source.pending);
        for position in std::mem::take(&mut self.pending) {
            let view = pending[position].view();
            for found in view.records() {
                self.write_put(&mut writer, &found.record, view.value(&found))?;
            }
        }
        self.write_operands(&mut writer)?;
        drop(writer);
        self.tell_doubts(report);
        db.close()
    }

    fn write_put(&mut self, writer: &mut Writer<'_>, record: &Record<'_>, value: Option<&[u8]>) -> Result<()> {
        let (Kind::Put, Some(value)) = (record.kind, value) else { return Ok(()) };
        if !self.versions.wants(record) || self.has_expired(&record.form) {
            return Ok(());
        }
        let Some((name, settings)) = self.tables.find(record.table) else { return Ok(()) };
        let table = OldTable { id: record.table, name: &name, settings: &settings };
        if record.form.chunked {
            // Parts that could be read a moment ago.
            let Some(whole) = self.read_chunks(value) else { return Ok(()) };
            writer.put_large(record, table, &whole)?;
        } else {
            writer.copy(record.kind, table, record.key, record.form, value)?;
        }
        self.count_written(writer, record.table, record.key, name);
        Ok(())
    }

    /// Writes the operands, after all values that they are applied to.
    fn write_operands(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        for Operand { table, key, form, location, checksum } in self.versions.take_operands() {
            let Some((name, settings)) = self.tables.find(table) else { continue };
            // It could be read a moment ago.
            let Some(value) = self.source.read_value(location, checksum) else { continue };
            let old = OldTable { id: table, name: &name, settings: &settings };
            writer.copy(Kind::Merge, old, &key, form, &value)?;
            self.count_written(writer, table, &key, name);
        }
        Ok(())
    }

    fn count_written(&mut self, writer: &mut Writer<'_>, table: u32, key: &[u8], name: String) {
        if !self.versions.set_written(table, key) {
            return;
        }
        *writer.report.tables.entry(name.clone()).or_default() += 1;
        if self.versions.may_be_removed(table, key) && !self.doubtful.contains(&(table, key.to_vec())) {
            writer.report.doubt(name.clone(), key, true);
        }
        if self.versions.may_be_superseded(table, key, self.lost_below, self.proven_to) {
            writer.report.older_than_damage += 1;
            let most = self.most_spans;
            self.older.entry(name).or_insert_with(|| Spans::new(most)).add(key);
        }
    }

    /// Whether a record has expired by the clock of the process that wrote the store or of this machine, whichever is ahead; by
    /// this machine's alone, if the store's is so far ahead that it must have been wrong.
    fn has_expired(&self, form: &Form) -> bool {
        let now_ms = clock::later(self.time_ms, self.source.device_ms());
        form.expires_ms.is_some_and(|expires_ms| expires_ms.get() <= now_ms)
    }

    fn read_chunks(&self, list: &[u8]) -> Option<Vec<u8>> {
        let (_, chunks): (u64, Vec<Chunk>) = decode_chunks(list)?;
        let parts: Option<Vec<_>> = chunks.iter().map(|chunk| self.source.read_chunk(chunk)).collect();
        Some(parts?.concat())
    }

    /// Lists the keys of which a version newer than the written one is known to be lost, and those of which it may be.
    fn tell_doubts(&mut self, report: &mut SalvageReport) {
        for (table, key) in &self.doubtful {
            if let Some((name, _)) = self.tables.find(*table) {
                report.doubt(name, key, self.versions.is_written(*table, key));
            }
        }
        let spans = std::mem::take(&mut self.older).into_iter().flat_map(|(table, spans)| {
            let span = move |(first, last, keys)| KeySpan { table: table.clone(), first, last, keys };
            spans.finish().map(span)
        });
        report.older = spans.take(MAX_LISTED).collect();
    }
}

#[cfg(test)]
mod tests;
