//! Tables that are made with their contents, while other things happen.

use std::num::NonZeroU64;

use aiodb::Error;
use aiodb::io::Device;

use crate::model::Effect;
use crate::process::Ingesting;
use crate::script::{Ingested, key_bytes, table_name};
use crate::state::{Run, Violation};

impl Run<'_> {
    /// Begins to ingest a table, or is told that it is there. Another ingest that was under way is given up.
    pub(crate) fn begin_ingest(&mut self, table: usize) -> Result<(), Violation> {
        self.life().ingesting = None;
        let exists = self.model.exists(table);
        match self.db().ingest(&table_name(table), self.table_options(table)) {
            Ok(_) if exists && !self.device.has_crashed() => Err("a table is ingested that exists".into()),
            Ok(ingest) => {
                // In the order of their bytes.
                let mut keys: Vec<usize> = (0..self.script.setup.keys).collect();
                keys.sort_by_key(|key| key_bytes(*key));
                self.life().ingesting = Some(Ingesting { ingest, table, keys, next: 0, effects: Vec::new() });
                Ok(())
            }
            Err(Error::TableExists { .. }) if exists => Ok(()),
            Err(error) => self.unexpected("beginning an ingest", Err(error)),
        }
    }

    /// Gives the ingest that is under way some records more, if there is one.
    pub(crate) fn ingest_on(&mut self, records: &[Ingested]) -> Result<(), Violation> {
        let now_ms = self.device.wall_ms();
        for Ingested { skipped, value, expires_in_ms } in records {
            let Some(Ingesting { ingest, table, keys, next, .. }) = &mut self.life().ingesting else {
                return Ok(());
            };
            *next += skipped;
            let Some(key) = keys.get(*next).copied() else { return Ok(()) };
            *next += 1;
            let (table, bytes) = (*table, value.bytes());
            let until_ms = expires_in_ms.map(|ms| now_ms + ms);
            let taken = match until_ms.and_then(NonZeroU64::new) {
                Some(until_ms) => ingest.put_until(&key_bytes(key), &bytes, until_ms),
                None => ingest.put(&key_bytes(key), &bytes),
            };
            let held = self.held(table, key, &bytes, until_ms);
            self.life().ingesting.iter_mut().for_each(|one| one.effects.push(Effect::Set(table, key, held.clone())));
            self.estimated[table] |= until_ms.is_some();
            if let Err(error) = taken {
                self.life().ingesting = None;
                return self.unexpected("a record of an ingest", Err(error));
            }
        }
        Ok(())
    }

    /// Makes the table with what was ingested.
    pub(crate) fn finish_ingest(&mut self) -> Result<(), Violation> {
        let Some(Ingesting { ingest, table, effects, .. }) = self.life().ingesting.take() else { return Ok(()) };
        let effects = [Effect::Create(table)].into_iter().chain(effects).collect();
        self.make(table, effects, |_| ingest.finish().map(drop))
    }

    /// Gives up the ingest that is under way.
    pub(crate) fn abandon_ingest(&mut self) {
        self.life().ingesting = None;
    }

    /// Whether a table is being ingested.
    pub(crate) fn is_ingested(&self, table: usize) -> bool {
        let ingesting = self.life.as_ref().and_then(|life| life.ingesting.as_ref());
        ingesting.is_some_and(|ingesting| ingesting.table == table)
    }
}
