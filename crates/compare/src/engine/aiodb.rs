//! Our own engine, as a program would embed it: default options, one table, and one for counters.

use super::{Engine, IN_FLIGHT, Reads, Resources, no_counters, put, run_one_by_one, sum_of};
use crate::batch::Batch;
use crate::class::{Class, INTERVAL};
use crate::error::{Error, Result};
use crate::records::Records;
use crate::stream::{Operation, Stream};
use aiodb::merge::Add;
use aiodb::{
    Db, Durability, Error as EngineError, IndexKind, MAX_INLINE_BYTES, MergeOperator, MergeOperators, Options,
    ScanOptions, Table, TableOptions,
};
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::FuturesUnordered;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

struct Aiodb {
    name: String,
    db: Db,
    table: Table,
    counters: Option<Table>,
    cache_bytes: u64,
}

/// Kind `lsm` with each value that may lie in the index there: who reads in the order of keys or many small values chooses that.
pub(super) fn inline_options() -> TableOptions {
    TableOptions { inline_bytes: MAX_INLINE_BYTES, ..IndexKind::Lsm.into() }
}

pub(super) fn open(
    directory: &Path,
    name: String,
    options: TableOptions,
    cache_percent: u8,
    resources: Resources,
) -> Result<Box<dyn Engine>> {
    let cache_bytes = resources.memory_percent(cache_percent).unwrap_or(0);
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(directory, Options { cache_bytes, merge_operators, ..Options::default() })
        .map_err(Error::engine(&name, "open"))?;
    let table = |table: &str, options: TableOptions| {
        let table = match db.table(table) {
            Err(EngineError::NoSuchTable { .. }) => db.create_table_with(table, options),
            found => found,
        };
        table.map_err(Error::engine(&name, "create a table"))
    };
    let adding = TableOptions { merge: Some(Add.name().to_owned()), ..options.clone() };
    let counters = resources.counters.then(|| table("counters", adding)).transpose()?;
    let table = table("records", options)?;
    Ok(Box::new(Aiodb { name, db, table, counters, cache_bytes }))
}

fn durability(class: Class) -> Durability {
    match class {
        Class::Sync => Durability::Sync,
        Class::Interval => Durability::Interval(INTERVAL),
        Class::None => Durability::None,
    }
}

impl Engine for Aiodb {
    fn write(&self, batch: &Batch) -> Result<()> {
        for (key, value) in batch.records() {
            self.table.put_with(key, value, Durability::None).map_err(Error::engine(&self.name, "write"))?;
        }
        Ok(())
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_in_class(key, value, Class::Sync)
    }

    fn put_in_class(&self, key: &[u8], value: &[u8], class: Class) -> Result<()> {
        self.table.put_with(key, value, durability(class)).map(drop).map_err(Error::engine(&self.name, "put"))
    }

    fn keeps_intervals(&self) -> bool {
        true
    }

    fn put_in_flight(
        &self,
        records: &mut Records,
        in_flight: usize,
        duration: Duration,
        took: &mut dyn FnMut(Duration),
    ) -> Result<()> {
        let start = Instant::now();
        let mut put = || {
            let (key, value) = records.next();
            let (begin, put) = (Instant::now(), self.table.put_async_with(key, value, Durability::Sync));
            async move { put.await.map(|_| begin.elapsed()) }
        };
        let mut puts: FuturesUnordered<_> = (0..in_flight).map(|_| put()).collect();
        while let Some(done) = block_on(puts.next()) {
            took(done.map_err(Error::engine(&self.name, "put"))?);
            if start.elapsed() < duration {
                puts.push(put());
            }
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.table.get(key).map_err(Error::engine(&self.name, "get"))
    }

    fn add(&self, key: &[u8], number: u64, class: Class) -> Result<()> {
        let merged = self.counters()?.merge_with(key, &number.to_le_bytes(), durability(class));
        merged.map(drop).map_err(Error::engine(&self.name, "merge"))
    }

    fn counter(&self, key: &[u8]) -> Result<Option<u64>> {
        let value = self.counters()?.get(key).map_err(Error::engine(&self.name, "get"))?;
        value.map(|value| sum_of(&self.name, &value)).transpose()
    }

    fn way_to_add(&self) -> &'static str {
        "its merge operator `add`"
    }

    fn ways_to_read(&self) -> Vec<Reads> {
        vec![IN_FLIGHT, Reads::OneByOne]
    }

    fn run(&self, reads: Reads, stream: &mut Stream) -> Result<()> {
        match reads {
            Reads::InFlight(depth) => self.run_in_flight(depth, stream),
            _ => run_one_by_one(self, stream, |key, seen| {
                let value = self.table.get(key).map_err(Error::engine(&self.name, "get"))?;
                value.iter().for_each(|value| seen(value));
                Ok(())
            }),
        }
    }

    fn scan(&self, from: &[u8], limit: u64, seen: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<Option<u64>> {
        if self.table.kind() == IndexKind::Hash {
            return Ok(None);
        }
        let options = ScanOptions::all().from(from).limit(limit);
        let mut scan = self.table.scan(options).map_err(Error::engine(&self.name, "begin a scan"))?;
        let mut count = 0;
        while let Some((key, value)) = scan.next_record().map_err(Error::engine(&self.name, "scan"))? {
            count += 1;
            if !seen(key, value) {
                break;
            }
        }
        Ok(Some(count))
    }

    fn make_durable(&self) -> Result<()> {
        self.db.sync().map_err(Error::engine(&self.name, "sync"))
    }

    fn finish(&self) -> Result<()> {
        self.make_durable()?;
        self.db.checkpoint().map_err(Error::engine(&self.name, "write a checkpoint"))
    }

    fn settings(&self) -> Value {
        let stats = self.db.stats();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "format_version": stats.format_version,
            "durability": format!("{:?}", stats.durability),
            "backend": stats.backend,
            "direct": stats.direct,
            "block_bytes": stats.block_bytes,
            "segment_bytes": stats.segment_bytes,
            "fallbacks": stats.fallbacks,
            "cache_bytes": self.cache_bytes,
            "inline_bytes": self.table.options().inline_bytes,
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(Error::engine(&self.name, "close"))
    }
}

impl Aiodb {
    fn counters(&self) -> Result<&Table> {
        self.counters.as_ref().ok_or_else(|| no_counters(&self.name))
    }

    fn run_in_flight(&self, depth: usize, stream: &mut Stream) -> Result<()> {
        let mut reader = self.table.reader(depth).map_err(Error::engine(&self.name, "make a reader"))?;
        let mut batch = Batch::default();
        let mut ended = false;
        loop {
            while !ended && reader.has_room() {
                match stream.next() {
                    None => ended = true,
                    Some(Operation::Get(number)) => {
                        let key = stream.key(number);
                        reader.submit(&key, number).map_err(Error::engine(&self.name, "submit a get"))?;
                    }
                    Some(Operation::Put(number)) => put(self, stream, &mut batch, number)?,
                }
            }
            let Some(got) = reader.poll().map_err(Error::engine(&self.name, "poll"))? else { return Ok(()) };
            let value = got.value.map_err(Error::engine(&self.name, "get"))?;
            stream.answer(got.token, value);
        }
    }
}
