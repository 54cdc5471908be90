//! Our own engine, as a program would embed it: default options but for the cache of values, one table.

use super::Engine;
use crate::error::{Error, Result};
use crate::records::Records;
use aiodb::{Db, Durability, IndexKind, Options, Table};
use serde_json::{Value, json};
use std::path::Path;

struct Aiodb {
    name: String,
    db: Db,
    table: Table,
}

pub(super) fn open(directory: &Path, index: IndexKind) -> Result<Box<dyn Engine>> {
    let name = format!("aiodb-{}", index.name());
    let db =
        Db::open(directory, Options { cache_bytes: 0, ..Options::default() }).map_err(Error::engine(&name, "open"))?;
    let table = db.table_or_create("records", index).map_err(Error::engine(&name, "create a table"))?;
    Ok(Box::new(Aiodb { name, db, table }))
}

impl Engine for Aiodb {
    fn preload(&self, records: &mut Records, count: u64) -> Result<()> {
        for _ in 0..count {
            let (key, value) = records.next();
            self.table.put_with(key, value, Durability::None).map_err(Error::engine(&self.name, "preload"))?;
        }
        Ok(())
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.table.put_with(key, value, Durability::Sync).map(drop).map_err(Error::engine(&self.name, "put"))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.table.get(key).map_err(Error::engine(&self.name, "get"))
    }

    fn finish(&self) -> Result<()> {
        self.db.sync().map_err(Error::engine(&self.name, "sync"))?;
        self.db.checkpoint().map_err(Error::engine(&self.name, "write a checkpoint"))
    }

    fn settings(&self) -> Value {
        let stats = self.db.stats();
        json!({
            "format_version": stats.format_version,
            "durability": format!("{:?}", stats.durability),
            "backend": stats.backend,
            "direct": stats.direct,
            "block_bytes": stats.block_bytes,
            "segment_bytes": stats.segment_bytes,
            "fallbacks": stats.fallbacks,
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(Error::engine(&self.name, "close"))
    }
}
