//! Tables as users see them.

use std::sync::Arc;

use crate::flow::lifecycle::Handle;
use crate::flow::reader::Reader;
use crate::flow::scan::{Scan, ScanOptions};
use crate::flow::snapshot::Moment;
use crate::format::record::encode_range_end;
use crate::index::codec::LONG_KEY_PREFIX_BYTES;
use crate::io::{Device, Disk};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::groups::group_key;
use crate::{Durability, Error, IndexKind, Result, Sequence, Snapshot, TableModes, TableOptions, WriteOptions};

/// So often many keys are read before a snapshot is taken for them, and a moment is taken before no table may change for it.
const MOST_ATTEMPTS: usize = 3;

/// A handle on the table of a name. Cheap to clone; it follows the name through truncates and swaps ([`crate::Db::swap_tables`]), and fails
/// with [`Error::NoSuchTable`] once the table was dropped or renamed.
pub struct Table<D: Device = Disk> {
    pub(crate) engine: Arc<Handle<D>>,
    pub(crate) slot: Arc<TableSlot>,
}

impl<D: Device> Clone for Table<D> {
    fn clone(&self) -> Self {
        Table { engine: Arc::clone(&self.engine), slot: Arc::clone(&self.slot) }
    }
}

impl<D: Device> Table<D> {
    /// The table's name.
    pub fn name(&self) -> &str {
        &self.slot.name
    }

    /// The kind of its index.
    pub fn kind(&self) -> IndexKind {
        self.slot.kind()
    }

    /// The options that the table was made with, and the modes that it has now.
    pub fn options(&self) -> TableOptions {
        let modes = self.modes();
        self.slot.with_settings(|settings| settings.options(modes))
    }

    /// What of the table memory keeps by preference, see [`crate::Db::set_table_modes`]; of one that was dropped, nothing.
    pub fn modes(&self) -> TableModes {
        self.slot.generation().map_or(TableModes::default(), |generation| generation.modes())
    }

    /// Whether gets and writes put the table's values into the store's cache ([`crate::Options::cache_bytes`]), until it is truncated or
    /// the store is closed. At first they do, but for a table with values on disk ([`crate::TableModes`]). A program that keeps values itself leaves the memory to other tables so.
    pub fn set_cached(&self, cached: bool) -> Result<()> {
        self.slot.generation()?.set_cached(cached);
        Ok(())
    }

    /// The value of a key, `None` if the key is absent. One device read, with the calling thread. Damage is
    /// [`Error::Corruption`], never `None`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let generation = self.slot.generation()?;
        self.engine.get(&generation, key, &generation.view())
    }

    /// The values of many keys, in their order, read side by side. Of a batch or a delete of a range that is written
    /// meanwhile all is seen or nothing. Where such come again and again, the keys are read in a snapshot: then this may fail with
    /// [`Error::SnapshotEnded`] on a full disk.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let (catalog, groups) = (&self.engine.catalog, &self.engine.groups);
        for _ in 0..MOST_ATTEMPTS {
            let (namings, ended) = (catalog.namings(), groups.ended());
            let generation = self.slot.generation()?;
            let values = get_many(keys, |depth| self.reader(depth))?;
            let is_same = || catalog.are_names_of(namings) && self.slot.has(&generation);
            let known = |key: &K| group_key(generation.id, self.engine.hash(key.as_ref()));
            let all_known = || keys.iter().map(known).collect();
            if keys.len() < 2 || is_same() && !groups.is_torn(ended, all_known) {
                return Ok(values);
            }
        }
        let (generation, moment) = self.moment()?;
        let snapshot = Snapshot { moment, tables: Arc::new(vec![(Arc::clone(&self.slot), generation)]) };
        snapshot.get_many(self, keys)
    }

    /// Stores a value in the store's durability class. Returns the write's place in the order of all writes.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Sequence> {
        self.put_with(key, value, WriteOptions::default())
    }

    /// Stores a value in a class of its own ([`Durability`] will do), or until a time. A value longer than 1 MiB (or a
    /// quarter of a segment) is written in parts; it becomes visible as a whole.
    pub fn put_with(&self, key: &[u8], value: &[u8], options: impl Into<WriteOptions>) -> Result<Sequence> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        self.engine.check_value(value)?;
        let options = options.into();
        let durability = self.durability(&options);
        self.engine.put(self.slot.generation()?, key, value, durability, options.expires_ms)
    }

    /// Adds an operand to a key's value in the store's durability class, without a read of the device: the table's merge operator
    /// combines them now, if memory has the value, or when the key is read. At most 1 MiB, or a quarter of a segment.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<Sequence> {
        self.merge_with(key, operand, WriteOptions::default())
    }

    /// Adds an operand in a class of its own.
    pub fn merge_with(&self, key: &[u8], operand: &[u8], options: impl Into<WriteOptions>) -> Result<Sequence> {
        self.engine.check_open()?;
        let generation = self.slot.generation()?;
        self.check_merge(&generation, key, operand)?;
        self.engine.merge(generation, key, operand, self.durability(&options.into()))
    }

    /// Removes all keys from `start` (inclusive) to `end` (exclusive; empty = to the table's end) in the store's
    /// durability class, atomically and in constant time; the space comes back in the background. Bounds have at most
    /// 448 bytes. Ordered tables only.
    pub fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<Sequence> {
        self.delete_range_with(start, end, WriteOptions::default())
    }

    /// Removes a range of keys in a class of its own.
    pub fn delete_range_with(&self, start: &[u8], end: &[u8], options: impl Into<WriteOptions>) -> Result<Sequence> {
        self.engine.check_open()?;
        let generation = self.slot.generation()?;
        self.check_range(&generation, start, end)?;
        let end = encode_range_end(0, end);
        let operation = self.engine.range_operation(generation, start, &end);
        self.engine.write(&[operation], self.durability(&options.into()))
    }

    /// The records of a range in the order of their keys, at this moment. Ordered tables only.
    pub fn scan(&self, options: ScanOptions) -> Result<Scan<D>> {
        let (generation, moment) = self.moment()?;
        Scan::new(&self.engine, generation, moment, options)
    }

    /// All records at this moment: in `hash` tables in no order.
    pub fn iterate(&self) -> Result<Scan<D>> {
        let (generation, moment) = self.moment()?;
        Scan::unordered(&self.engine, generation, moment)
    }

    /// The present moment, and what the table has then: if that goes, it goes later, and everything of it stays as long as the moment is held.
    fn moment(&self) -> Result<(Arc<Generation>, Arc<Moment<D>>)> {
        for _ in 0..MOST_ATTEMPTS {
            let generation = self.slot.generation()?;
            let moment = Moment::take(&self.engine)?;
            if self.slot.has(&generation) || planted::is_on(Bug::ScanOfTableThatIsGone) {
                return Ok((generation, Arc::new(moment)));
            }
        }
        let _changing = self.engine.catalog.changing.lock().expect("no code panics while it changes the catalog");
        Ok((self.slot.generation()?, Arc::new(Moment::take(&self.engine)?)))
    }

    pub(crate) fn durability(&self, options: &WriteOptions) -> Durability {
        options.durability.unwrap_or(self.engine.options.durability)
    }

    pub(super) fn check_merge(&self, generation: &Generation, key: &[u8], operand: &[u8]) -> Result<()> {
        self.engine.check_key(key)?;
        self.engine.check_merge_operator(generation)?;
        let (length, max) = (operand.len(), self.engine.whole_value_bytes());
        if length > max { Err(Error::ValueLength { length, max }) } else { Ok(()) }
    }

    pub(super) fn check_range(&self, generation: &Generation, start: &[u8], end: &[u8]) -> Result<()> {
        if !generation.kind().is_ordered() {
            return Err(Error::Unordered { name: self.name().to_string() });
        }
        for bound in [start, end] {
            if bound.len() > LONG_KEY_PREFIX_BYTES {
                return Err(Error::KeyLength { length: bound.len(), max: LONG_KEY_PREFIX_BYTES });
            }
        }
        self.engine.check_key(start)
    }

    /// Removes a key in the store's durability class. Deleting an absent key is no error.
    pub fn delete(&self, key: &[u8]) -> Result<Sequence> {
        self.delete_with(key, self.engine.options.durability)
    }

    /// Removes a key in a class of its own.
    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<Sequence> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let operation = self.engine.delete_operation(self.slot.generation()?, key);
        self.engine.write(&[operation], durability)
    }

    /// A reader with a device queue of its own that keeps up to `depth` (1 to 4096) gets in flight. It may be moved
    /// to another thread before its first use, not after.
    pub fn reader(&self, depth: usize) -> Result<Reader<D>> {
        self.engine.check_open()?;
        Reader::new(Arc::clone(&self.engine), Arc::clone(&self.slot), depth)
    }
}

/// The values of many keys, in their order, read side by side by a reader of a given depth.
pub(super) fn get_many<D: Device, K: AsRef<[u8]>>(
    keys: &[K],
    reader: impl FnOnce(usize) -> Result<Reader<D>>,
) -> Result<Vec<Option<Vec<u8>>>> {
    const MOST_IN_FLIGHT: usize = 64;
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut reader = reader(keys.len().min(MOST_IN_FLIGHT))?;
    let mut values = vec![None; keys.len()];
    let mut rest = keys.iter().enumerate();
    loop {
        while reader.has_room() {
            let Some((position, key)) = rest.next() else { break };
            reader.submit(key.as_ref(), position as u64)?;
        }
        let Some(got) = reader.poll()? else { return Ok(values) };
        values[got.token as usize] = got.value?.map(<[u8]>::to_vec);
    }
}
