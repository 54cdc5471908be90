//! A sorted stream becomes a new table: its records go to the log in pieces, and their places straight into sorted runs.
//!
//! The records are ordinary puts of a table that does not exist yet. So nothing publishes them, and a replay passes over them as over
//! those of a dropped table. One edit of the runs' manifest brings their places in; the record that makes the table, after it, is the
//! moment from which on all of it is there. Until then the segments are protected from reclaim as those of a large value on its way are.

use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use crate::flow::operation::Stored;
use crate::flow::publish::Publication;
use crate::flow::tables::{check_modes, check_settings};
use crate::format::batch::{Append, Placed};
use crate::format::place::Cursor;
use crate::format::record::{Chunk, Form, Kind, decode_chunks};
use crate::format::settings::{Settings, check_name};
use crate::index::accounting::{Accounting, ChunkBytes};
use crate::index::codec::encode_key;
use crate::index::runs::counts::IngestCounts;
use crate::index::runs::ingest::{Ingested, RunIngest};
use crate::io::{Device, InPhase, Phase};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::commit::Operation;
use crate::store::upkeep::Upkeep;
use crate::store::write_path::WritePath;
use crate::sync::atomic::Ordering;
use crate::{Durability, Error, IndexKind, Result, TableOptions};

/// Bytes of records that are appended under one commit lock, unless one record has more.
const PIECE_BYTES: usize = 256 << 10;

/// A new table whose contents are on their way. To be ended by [`WritePath::end_ingest`], whatever becomes of it; after an error at once.
pub(crate) struct Ingesting<D: Device> {
    pub(crate) generation: Arc<Generation>,
    name: String,
    /// Protects its segments from reclaim, see `WritePath::stage`; `None` once it has ended.
    staged: Option<u64>,
    /// `None` once its files are named, or may be, or it has ended.
    runs: Option<RunIngest<D>>,
    piece: Piece,
    pub(crate) records: u64,
}

/// Records that are to be appended together.
struct Piece {
    /// Keys and values as their records have them.
    bytes: Vec<u8>,
    records: Vec<Waiting>,
    cursor: Cursor,
}

/// A record in a piece.
struct Waiting {
    key: Range<usize>,
    value: Range<usize>,
    form: Form,
    separate: bool,
}

impl Default for Piece {
    fn default() -> Piece {
        Piece { bytes: Vec::new(), records: Vec::new(), cursor: Cursor::new() }
    }
}

impl Piece {
    fn add(&mut self, key: &[u8], value: &[u8], form: Form, separate: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        let key_end = start + key.len();
        self.records.push(Waiting { key: start..key_end, value: key_end..self.bytes.len(), form, separate });
    }

    fn append(&self, table: u32, record: &Waiting) -> Append<'_> {
        let (key, value) = (&self.bytes[record.key.clone()], &self.bytes[record.value.clone()]);
        put(table, key, value, record.form, record.separate)
    }
}

fn put<'a>(table: u32, key: &'a [u8], value: &'a [u8], form: Form, separate: bool) -> Append<'a> {
    let mut append = Append::new(Kind::Put, table, key, value);
    (append.form, append.separate) = (form, separate);
    append
}

impl<D: Device> WritePath<D> {
    /// Begins to make a table of kind `lsm` with its contents. Its name is taken from now on.
    pub(crate) fn begin_ingest(&self, name: &str, options: &TableOptions) -> Result<Ingesting<D>> {
        if options.kind != IndexKind::Lsm {
            let (value, allowed) = (options.kind.name().to_string(), "`lsm`: tables of other kinds are filled by puts");
            return Err(Error::Option { option: "index of an ingested table", value, allowed });
        }
        check_name(name)?;
        self.commit.check()?;
        let settings = Settings::new(options);
        check_settings(&settings)?;
        check_modes(settings.kind, options.modes)?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        self.check_new_name(name)?;
        self.prepare_index(&settings)?;
        let generation = Arc::new(self.catalog.reserve(name, settings));
        generation.set_modes(options.modes);
        let staged = if planted::is_on(Bug::IngestUnprotected) { u64::MAX } else { self.stage() };
        let filter = self.filter_of(&generation.settings);
        let (base, compression) = (self.commit.next_sequence(), generation.settings.block_compression);
        let runs =
            self.runs_of(&generation).begin_ingest(generation.id, base, filter, compression, self.catalog.counting());
        let name = name.to_string();
        Ok(Ingesting { generation, name, staged: Some(staged), runs: Some(runs), piece: Piece::default(), records: 0 })
    }

    /// Takes a record whose key comes after those before.
    pub(crate) fn ingest(
        &self,
        ingesting: &mut Ingesting<D>,
        key: &[u8],
        value: &[u8],
        expires_ms: Option<NonZeroU64>,
    ) -> Result<()> {
        let generation = Arc::clone(&ingesting.generation);
        let stored: Stored<'_> = self.stored(&generation, key, value)?;
        let form = Form { expires_ms, ..stored.form };
        let whole = put(generation.id, key, &stored.bytes, form, false);
        let append = Append { separate: self.separates(&generation, &whole), ..whole };
        let separate = append.separate;
        let most = PIECE_BYTES.min(self.max_batch_bytes());
        let mut cursor = ingesting.piece.cursor;
        cursor.take(&append);
        if cursor.end > most && !ingesting.piece.records.is_empty() {
            self.append_piece(ingesting)?;
            cursor = Cursor::new();
            cursor.take(&append);
        }
        ingesting.piece.add(key, &stored.bytes, form, separate);
        ingesting.piece.cursor = cursor;
        ingesting.records += 1;
        Ok(())
    }

    /// Appends the records that wait, and adds their places to the runs.
    fn append_piece(&self, ingesting: &mut Ingesting<D>) -> Result<()> {
        let (generation, piece) = (&ingesting.generation, &mut ingesting.piece);
        if piece.records.is_empty() {
            return Ok(());
        }
        // No index is told of them: so they have no generation.
        let operation =
            |record| Operation { generation: None, append: piece.append(generation.id, record), hash: 0, over: None };
        let operations: Vec<_> = piece.records.iter().map(operation).collect();
        let appended = self.append(&operations, Durability::None, None, || true)?;
        let placed = appended.expect("what is always permitted is appended").placed;
        let runs = ingesting.runs.as_mut().expect("an ingest that has come to its end takes no more");
        for (operation, placed) in operations.iter().zip(&placed) {
            let new = self.ingested(generation, &operation.append, placed);
            runs.add(self.runs_of(generation), new)?;
        }
        runs.flush()?;
        piece.bytes.clear();
        piece.records.clear();
        piece.cursor = Cursor::new();
        Ok(())
    }

    /// The entry of a record that was appended.
    fn ingested(&self, generation: &Generation, append: &Append<'_>, placed: &Placed) -> Ingested {
        let Append { kind, form, key, value, .. } = *append;
        let publication =
            Publication { key, hash: 0, placed, kind, form, value, replayed: None, out_of_order: false, over: None };
        self.count_appended(generation, &publication);
        let life = |segment| self.segments.get(segment).life();
        let list = form.chunked.then(|| decode_chunks(value)).flatten();
        let chunks: Vec<Chunk> = list.map(|(_, chunks)| chunks).unwrap_or_default();
        Ingested {
            key: encode_key(generation.id, key),
            entry: publication.entry(generation.settings.inline_bytes),
            life: life(placed.location.segment),
            chunks: chunks.into_iter().map(|chunk| (chunk, life(chunk.location.segment))).collect(),
        }
    }

    /// Makes the table with all that was taken: durable, and there for all readers, when this returns. After an error no table is there, but
    /// for [`Error::MadeWithoutModes`]; where the outcome of a write is unknown, the next opening finds all of it or nothing.
    pub(crate) fn finish_ingest(&self, ingesting: &mut Ingesting<D>) -> Result<Arc<TableSlot>> {
        let _phase = InPhase::enter(&self.device, Phase::TableCreate);
        self.append_piece(ingesting)?;
        let generation = Arc::clone(&ingesting.generation);
        let mut runs = ingesting.runs.take().expect("an ingest ends once");
        runs.complete(self.runs_of(&generation))?;
        // The log has all records durably before anything leads to them.
        self.flush()?;
        self.name_ingested(&generation, runs)?;
        let _changing = self.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let (name, id) = (&ingesting.name, generation.id);
        let settings = generation.settings.encode_made(ingesting.records > 0);
        let made = self.change_tables(Kind::TableCreate, id, name, &settings, || {
            self.catalog.apply_create(name, &generation.settings, id);
            // Found before anybody else can drop it, and make another of its name.
            self.catalog.find(name)
        });
        if let Err(error) = &made
            // Where it is not known whether the record is in the log, the next opening decides: nothing may be missing then.
            && self.commit.failure().is_none()
            && !matches!(error, Error::Closed)
        {
            self.forget_generation(|| Some(self.catalog.give_up(Arc::clone(&generation))));
        }
        let made = made??;
        self.give_modes(&made, generation.modes())?;
        Ok(made)
    }

    /// Brings the entries of an ingest into the index, where nobody asks for them yet.
    fn name_ingested(&self, generation: &Arc<Generation>, runs: RunIngest<D>) -> Result<()> {
        if runs.counts().is_empty() {
            return Ok(());
        }
        let ordered = self.ordered_of(generation);
        // The runs are believed at the next opening if they are not behind the checkpoint, even where that knows no table of theirs.
        self.making_room(|| self.commit_memtable(ordered))?;
        let (counts, durable) = (runs.counts().clone(), self.commit.durable());
        if !planted::is_on(Bug::IngestUncounted) {
            self.count_ingested(&counts, 1);
        }
        let named = self.with_context(ordered, &Accounting::NONE, |context| {
            self.runs_of(generation).name_ingested(runs, durable, context)
        });
        named.inspect_err(|_| self.count_ingested(&counts, -1))?;
        self.suspicion.expect(counts.live_bytes());
        Ok(())
    }

    /// Gives up what an ingest has taken for itself: its name, files that are not named, and the segments that it protects. Does nothing
    /// the second time.
    pub(crate) fn end_ingest(&self, ingesting: &mut Ingesting<D>) {
        let Some(staged) = ingesting.staged.take() else { return };
        // First: their room is there when others are told so.
        ingesting.runs = None;
        ingesting.piece = Piece::default();
        self.catalog.release(&ingesting.name);
        self.staging.end(staged);
        self.note_freeing();
    }
}

impl<D: Device> Upkeep<D> {
    /// Counts the entries of an ingest as alive, or takes them off.
    fn count_ingested(&self, counts: &IngestCounts, sign: i64) {
        for (&(number, life), (bytes, records)) in &counts.live {
            if let Some(segment) = self.segments.find(number).filter(|segment| segment.life() == life) {
                segment.live_bytes.fetch_add(sign * bytes, Ordering::Relaxed);
                segment.live_records.fetch_add(sign * records, Ordering::Relaxed);
            }
        }
        for count in &counts.of_files {
            let bytes = sign * count.bytes;
            self.count_named(count.table, ChunkBytes { segment: count.segment, life: count.life, bytes });
        }
    }
}
