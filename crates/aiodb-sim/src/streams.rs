//! Values that are written and read piece by piece, while other things happen.

use std::io::{Read, Write};

use aiodb::{Durability, Error};

use crate::model::{Cell, Effect, Moments};
use crate::process::{Reading, Writing};
use crate::script::{MOST_STREAMS, Value, key_bytes};
use crate::state::{Run, Violation};

impl Run<'_> {
    /// Puts a value from a source of bytes.
    pub(crate) fn put_stream(
        &mut self,
        table: usize,
        key: usize,
        value: Value,
        durability: Durability,
    ) -> Result<(), Violation> {
        let bytes = value.bytes();
        let effects = vec![Effect::Set(table, key, self.held(table, key, &bytes, None))];
        let key = key_bytes(key);
        let put = |run: &mut Self| run.table(table)?.put_stream_with(&key, &bytes[..], durability).map(drop);
        self.write(effects, durability, put)
    }

    /// Begins to write a value.
    pub(crate) fn begin_writing(&mut self, table: usize, key: usize, value: Value) -> Result<(), Violation> {
        if self.life().writing.len() == MOST_STREAMS {
            self.life().writing.remove(0);
        }
        let exists = self.model.exists(table);
        match self.table(table).and_then(|table| table.write_stream(&key_bytes(key))) {
            Ok(writer) => {
                let (emptied, value) = (self.model.emptied(table), value.bytes());
                self.life().writing.push(Writing { writer, table, key, emptied, value, pushed: 0 });
                Ok(())
            }
            Err(Error::NoSuchTable { .. }) if !exists => Ok(()),
            Err(error) => self.unexpected("beginning to write a value", Err(error)),
        }
    }

    /// Gives a writer more of its value.
    pub(crate) fn write_on(&mut self, number: usize, length: usize) -> Result<(), Violation> {
        let count = self.life().writing.len();
        if count == 0 {
            return Ok(());
        }
        let writing = &mut self.life().writing[number % count];
        let end = writing.value.len().min(writing.pushed + length);
        let outcome = writing.writer.write_all(&writing.value[writing.pushed..end]);
        writing.pushed = end;
        match outcome {
            Ok(()) => Ok(()),
            Err(error) => {
                self.life().writing.remove(number % count);
                self.unexpected("writing more of a value", Err(engine_error(error)?))
            }
        }
    }

    /// Makes what a writer was given visible.
    pub(crate) fn finish_writing(&mut self, number: usize, durability: Durability) -> Result<(), Violation> {
        let count = self.life().writing.len();
        if count == 0 {
            return Ok(());
        }
        let Writing { writer, table, key, emptied, value, pushed } = self.life().writing.remove(number % count);
        let is_current = self.model.emptied(table) == emptied;
        match writer.finish_with(durability) {
            Err(Error::TableEmptied { .. } | Error::NoSuchTable { .. }) if !is_current => Ok(()),
            Ok(_) if !is_current && !self.device.has_crashed() => {
                Err("a value was stored in a table that was emptied after it was begun".into())
            }
            outcome => {
                let effects = vec![Effect::Set(table, key, self.held(table, key, &value[..pushed], None))];
                let effects = if is_current { effects } else { Vec::new() };
                self.write_to(&[], effects, durability, |_| outcome.map(drop))
            }
        }
    }

    /// Begins to read a value.
    pub(crate) fn begin_reading(&mut self, table: usize, key: usize) -> Result<(), Violation> {
        if self.life().reading.len() == MOST_STREAMS {
            self.life().reading.remove(0);
        }
        let from = self.look_at_clock();
        let begun = self.table(table).and_then(|table| table.read_stream(&key_bytes(key)));
        let accepted = self.accepted_bytes(table, key, from);
        match begun {
            Ok(Some(reader)) if !self.device.has_crashed() => {
                let accepted: Vec<Vec<u8>> =
                    accepted.into_iter().flatten().filter(|bytes| bytes.len() as u64 == reader.length()).collect();
                if accepted.is_empty() {
                    return Err(format!("a value of {} bytes is read that the key does not hold", reader.length()));
                }
                self.life().reading.push(Reading { reader, accepted, read: 0 });
                Ok(())
            }
            Ok(found) => {
                let cells = self.accepted(table, key, from);
                self.check_answer(
                    Ok(found.map_or(Cell::Absent, |_| Cell::Damaged)),
                    &cells,
                    "beginning to read a value",
                )
            }
            Err(error) => {
                let cells = self.accepted(table, key, from);
                self.check_answer(Err(error), &cells, "beginning to read a value")
            }
        }
    }

    /// Reads more of a value: it is what it was when the reader began, whatever has happened since.
    pub(crate) fn read_on(&mut self, number: usize, length: usize) -> Result<(), Violation> {
        let count = self.life().reading.len();
        if count == 0 {
            return Ok(());
        }
        let Reading { reader, accepted, read } = &mut self.life().reading[number % count];
        let mut bytes = vec![0; length];
        let outcome = reader.read(&mut bytes);
        let got = match outcome {
            Ok(got) => got,
            Err(error) => {
                self.life().reading.remove(number % count);
                return self.check_answer(Err(engine_error(error)?), &[Cell::Damaged], "reading more of a value");
            }
        };
        accepted.retain(|value| value.get(*read..*read + got) == Some(&bytes[..got]));
        *read += got;
        let (is_right, ended) = (!accepted.is_empty(), got == 0);
        let is_whole = accepted.iter().all(|value| value.len() == *read);
        if self.device.has_crashed() {
            return Ok(());
        }
        self.report.answers += 1;
        match (is_right, ended) {
            (false, _) => Err("other bytes are read than the value had when its reader began".into()),
            (true, true) if !is_whole => Err("a value ended too early".into()),
            (true, true) => {
                self.life().reading.remove(number % count);
                Ok(())
            }
            (true, false) => Ok(()),
        }
    }

    /// Reads a part of a value.
    pub(crate) fn get_range(
        &mut self,
        table: usize,
        key: usize,
        offset: usize,
        length: usize,
    ) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let found = self.table(table).and_then(|table| table.get_range(&key_bytes(key), offset as u64, length));
        let part = |value: Vec<u8>| {
            let start = offset.min(value.len());
            value[start..value.len().min(start.saturating_add(length))].to_vec()
        };
        let accepted = self.accepted_bytes(table, key, from);
        let cells: Vec<Cell> = accepted.into_iter().map(|value| Cell::of(value.map(part).as_deref())).collect();
        self.check_answer(found.map(|bytes| Cell::of(bytes.as_deref())), &cells, "a get of a part")
    }

    /// The bytes that a key may be found to hold; nothing if its table does not exist.
    fn accepted_bytes(&mut self, table: usize, key: usize, from: Moments) -> Vec<Option<Vec<u8>>> {
        let held = self.possible(table, key);
        let moments = self.moments(from);
        held.iter().flat_map(|held| held.bytes(moments)).collect()
    }
}

/// The error of the engine that an error of a stream contains.
fn engine_error(error: std::io::Error) -> Result<Error, Violation> {
    let what = error.to_string();
    error.downcast::<Error>().map_err(|_| format!("an error of a stream is none of the engine's: {what}"))
}
