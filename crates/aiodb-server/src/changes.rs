//! Changes of the databases that are one write.

use std::borrow::Cow;

use crate::collection::{Owner, expiring_ms};
use crate::entry::Entry;
use crate::locks::{Database, Key};
use crate::packed::Packed;

/// Changes that are made together, in this order.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    /// Databases that are emptied.
    pub(crate) cleared: Vec<Database>,
    /// Collections whose elements go.
    pub(crate) dropped: Vec<Owner>,
    /// Rows of the tables of elements that get a value, or lose it.
    pub(crate) rows: Vec<Row<'a>>,
    /// Keys that get a value, or lose it.
    pub(crate) keys: Vec<ChangedKey<'a>>,
    /// How many more keys databases have than before, or since they were emptied here.
    pub(crate) sizes: Vec<(Database, i64)>,
}

impl Changes<'_> {
    /// The times at which keys expire that are given some, with their databases.
    pub(crate) fn expiring(&self) -> impl Iterator<Item = (Database, u64)> {
        let given = self.rows.iter().filter(|row| row.value.is_some());
        given.filter_map(|row| Some((row.database, expiring_ms(&row.key)?)))
    }
}

/// A key that gets a value, or loses it.
pub(crate) struct ChangedKey<'a> {
    pub(crate) key: &'a Key,
    pub(crate) entry: Option<&'a Entry>,
    /// All elements of the collection that it will have, if they are known and few.
    pub(crate) elements: Option<Packed>,
}

impl ChangedKey<'_> {
    /// The collection that it will have.
    pub(crate) fn owner(&self) -> Option<Owner> {
        let collection = self.entry?.collection()?;
        Some(Owner { database: self.key.database, number: collection.number })
    }
}

/// A row of a table of elements.
pub(crate) struct Row<'a> {
    pub(crate) database: Database,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Cow<'a, [u8]>>,
}
