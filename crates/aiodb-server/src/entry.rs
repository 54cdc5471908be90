//! What is stored under a key: the time at which it expires, and its value.
//!
//! | offset | size | meaning |
//! | ------ | ---- | ------- |
//! | 0 | 1 | twice the kind (0 string, 1 hash, 2 set, 3 list, 4 sorted set), and 1 more if it expires |
//! | 1 | 8 | only of one that expires: when, in milliseconds since 1970, little-endian |
//! | 1 or 9 | rest | the string, or what [`Collection`] says of the others |
//!
//! The engine does not know that time: with a key go its elements and its part of the database's size (`sweeper.rs`).
//!
//! Redis has an empty key and the engine has none, so a key that is empty or begins with a zero byte gets a zero byte in
//! front. All others are stored as they are, and the order of keys stays.

use std::borrow::Cow;
use std::num::NonZeroU64;

use bytes::{Buf, Bytes};

use crate::collection::{Collection, Kind};
use crate::refusal::Refusal;

const STRING: u8 = 0;

/// A value with the time at which it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<V = Value> {
    pub(crate) value: V,
    /// In milliseconds since 1970.
    pub(crate) expires_ms: Option<NonZeroU64>,
}

/// What a key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    String(Bytes),
    Collection(Collection),
}

impl<V> Entry<V> {
    /// A value that stays.
    pub(crate) fn lasting(value: V) -> Entry<V> {
        Entry { value, expires_ms: None }
    }

    /// Whether it counts as absent at this time.
    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at.get() <= now_ms)
    }
}

impl Entry {
    /// What TYPE says.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.value {
            Value::String(_) => "string",
            Value::Collection(collection) => collection.kind.name(),
        }
    }

    /// The string, if it is one.
    pub(crate) fn string(self) -> Option<Bytes> {
        match self.value {
            Value::String(value) => Some(value),
            Value::Collection(_) => None,
        }
    }

    /// The collection, if it is one.
    pub(crate) fn collection(&self) -> Option<Collection> {
        match self.value {
            Value::String(_) => None,
            Value::Collection(collection) => Some(collection),
        }
    }

    /// The stored bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, length) = match &self.value {
            Value::String(value) => (STRING, value.len()),
            Value::Collection(collection) => (collection.kind as u8, Collection::BYTES),
        };
        let mut bytes = Vec::with_capacity(9 + length);
        bytes.push(2 * kind + u8::from(self.expires_ms.is_some()));
        bytes.extend(self.expires_ms.iter().flat_map(|at| at.get().to_le_bytes()));
        match &self.value {
            Value::String(value) => bytes.extend_from_slice(value),
            Value::Collection(collection) => collection.encode(&mut bytes),
        }
        bytes
    }

    /// Reads stored bytes.
    pub(crate) fn decode(stored: Vec<u8>) -> Result<Entry, Refusal> {
        let mut stored = Bytes::from(stored);
        let foreign = |reason: String| Refusal::Foreign { reason };
        let first = *stored.first().ok_or_else(|| foreign("is empty: another program wrote it".into()))?;
        stored.advance(1);
        let expires_ms = match first % 2 {
            0 => None,
            _ if stored.len() < 8 => return Err(foreign("ends too early".into())),
            _ => NonZeroU64::new(stored.get_u64_le()),
        };
        let value = match (first / 2, Kind::of_number(first / 2)) {
            (STRING, _) => Value::String(stored),
            (_, Some(kind)) => {
                let collection = Collection::decode(kind, &stored);
                Value::Collection(collection.ok_or_else(|| foreign("is no collection".into()))?)
            }
            _ => return Err(foreign(format!("has the kind {first}: a newer aiodb wrote it"))),
        };
        Ok(Entry { value, expires_ms })
    }
}

impl From<Entry<Bytes>> for Entry {
    fn from(string: Entry<Bytes>) -> Entry {
        Entry { value: Value::String(string.value), expires_ms: string.expires_ms }
    }
}

impl From<Entry<Collection>> for Entry {
    fn from(collection: Entry<Collection>) -> Entry {
        Entry { value: Value::Collection(collection.value), expires_ms: collection.expires_ms }
    }
}

/// When an entry with these stored bytes expires.
pub(crate) fn stored_expiry_ms(stored: &[u8]) -> Option<u64> {
    let (kind, rest) = stored.split_first()?;
    rest.first_chunk().filter(|_| kind % 2 == 1).map(|at_ms| u64::from_le_bytes(*at_ms))
}

/// The key under which the engine stores a key of Redis.
pub(crate) fn stored_key(key: &[u8]) -> Cow<'_, [u8]> {
    match key.first() {
        Some(0) | None => Cow::Owned([&[0], key].concat()),
        Some(_) => Cow::Borrowed(key),
    }
}

/// The opposite of [`stored_key`].
pub(crate) fn original_key(stored: &[u8]) -> &[u8] {
    stored.strip_prefix(&[0]).unwrap_or(stored)
}

#[cfg(test)]
mod tests;
