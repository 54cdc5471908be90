//! Reads that go through databases and collections, and last longer than one of a key.

use std::ops::Bound;

use aiodb::ScanOptions;
use bytes::Bytes;

use super::Keyspace;
use crate::collection::{Owner, Span};
use crate::entry::{self, original_key, stored_key};
use crate::expiring;
use crate::locks::Database;
use crate::refusal::Refusal;
use crate::walk::{self, Walk};

impl Keyspace {
    /// Keys of a database in their order, from those that come after `after` on, for as long as `visit` wants more. They are those of one
    /// moment unless the store ends it.
    pub(crate) fn visit_names(
        &self,
        database: Database,
        after: Option<&[u8]>,
        now_ms: u64,
        visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Refusal> {
        self.failures.note(self.scan_names(database, after, now_ms, visit))
    }

    fn scan_names(
        &self,
        database: Database,
        after: Option<&[u8]>,
        now_ms: u64,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let mut options = ScanOptions::all();
        if let Some(after) = after {
            options = options.after(&stored_key(after));
        }
        let tables = self.tables(database);
        let mut walk = Walk::new(options, false);
        loop {
            let visited = walk.go(
                |rest| tables.scan_keys(rest, now_ms),
                |expired, key, value| {
                    let is_gone = match expired {
                        Some(names) => names.contains(key),
                        None => entry::stored_expiry_ms(value).is_some_and(|at_ms| at_ms <= now_ms),
                    };
                    is_gone || visit(original_key(key))
                },
            );
            match visited {
                // A value that cannot be read is one key, which its command will be told.
                Err(refusal) if refusal.is_unreadable() => {
                    let mut names = tables.keys.scan(walk.rest().keys_only().limit(1))?;
                    let Some((key, _)) = names.next_record()? else { return Ok(()) };
                    walk.come_to(key);
                    if !visit(original_key(key)) {
                        return Ok(());
                    }
                }
                visited => return visited,
            }
        }
    }

    /// How many keys a database has that have not expired.
    pub(crate) fn size(&self, database: Database, now_ms: u64) -> Result<u64, Refusal> {
        self.failures.note(self.count(database, now_ms))
    }

    fn count(&self, database: Database, now_ms: u64) -> Result<u64, Refusal> {
        let tables = self.tables(database);
        let Some((elements, first_ms)) = tables.due_elements(now_ms) else {
            return Ok(self.sizes.of(database)?.unwrap_or(0));
        };
        walk::at_a_moment(|| {
            let snapshot = self.db.snapshot()?;
            let rows = snapshot.scan(elements, tables.due_span(first_ms).keys_only())?;
            let due = expiring::count_due(rows, now_ms)?;
            Ok(self.sizes.at(&snapshot, database)?.saturating_sub(due))
        })
    }

    /// Elements in the order of their names, for as long as `visit` wants more. The caller has a claim on their key: they are those of one
    /// moment, also where the store ends a scan.
    pub(crate) fn visit_elements(
        &self,
        owner: Owner,
        span: &Span,
        mut visit: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let Some(elements) = self.tables(owner.database).elements() else { return Ok(()) };
        let mut options = ScanOptions::all();
        options = match &span.from {
            Bound::Unbounded => options.from(&owner.prefix()),
            Bound::Included(name) => options.from(&owner.element_key(name)),
            Bound::Excluded(name) => options.after(&owner.element_key(name)),
        };
        options = match &span.to {
            Bound::Unbounded => options.before(&owner.end()),
            Bound::Included(name) => options.to(&owner.element_key(name)),
            Bound::Excluded(name) => options.before(&owner.element_key(name)),
        };
        options = if span.is_backward { options.backward() } else { options };
        options = if span.values { options } else { options.keys_only() };
        let mut walk = Walk::new(options, span.is_backward);
        let visited =
            walk.go(|rest| Ok((elements.scan(rest)?, ())), |(), key, value| visit(&key[owner.prefix().len()..], value));
        self.failures.note(visited)
    }

    /// The last key of a database.
    pub(crate) fn last_name(&self, database: Database) -> Result<Option<Bytes>, Refusal> {
        let mut scan = self.noted(self.table(database).scan(ScanOptions::all().keys_only().backward().limit(1)))?;
        Ok(self.noted(scan.next_record())?.map(|(key, _)| Bytes::copy_from_slice(original_key(key))))
    }
}
