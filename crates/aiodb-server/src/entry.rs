//! What is stored under a key: the time at which it expires, and its value.
//!
//! | offset | size | meaning |
//! | ------ | ---- | ------- |
//! | 0 | 1 | 0: a string that stays; 1: a string that expires |
//! | 1 | 8 | only of one that expires: when, in milliseconds since 1970, little-endian |
//! | 1 or 9 | rest | the string |
//!
//! The engine knows the same time and removes the record after it; that it stands here too is what TTL answers from.
//!
//! Redis has an empty key and the engine has none, so a key that is empty or begins with a zero byte gets a zero byte in
//! front. All others are stored as they are, and the order of keys stays.

use std::borrow::Cow;
use std::num::NonZeroU64;

use bytes::Bytes;

use crate::refusal::Refusal;

const STAYS: u8 = 0;
const EXPIRES: u8 = 1;

/// A string with the time at which it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) value: Bytes,
    /// In milliseconds since 1970.
    pub(crate) expires_ms: Option<NonZeroU64>,
}

impl Entry {
    /// A string that stays.
    pub(crate) fn lasting(value: Bytes) -> Entry {
        Entry { value, expires_ms: None }
    }

    /// Whether it counts as absent at this time.
    pub(crate) fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at| at.get() <= now_ms)
    }

    /// The stored bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(9 + self.value.len());
        match self.expires_ms {
            None => bytes.push(STAYS),
            Some(at) => {
                bytes.push(EXPIRES);
                bytes.extend_from_slice(&at.get().to_le_bytes());
            }
        }
        bytes.extend_from_slice(&self.value);
        bytes
    }

    /// Reads stored bytes.
    pub(crate) fn decode(stored: Vec<u8>) -> Result<Entry, Refusal> {
        let stored = Bytes::from(stored);
        match stored.first() {
            Some(&STAYS) => Ok(Entry::lasting(stored.slice(1..))),
            Some(&EXPIRES) if stored.len() >= 9 => {
                let at = u64::from_le_bytes(*stored[1..].first_chunk().expect("the length was checked"));
                Ok(Entry { value: stored.slice(9..), expires_ms: NonZeroU64::new(at) })
            }
            Some(kind) => Err(Refusal::Foreign { reason: format!("has the kind {kind}: a newer aiodb wrote it") }),
            None => Err(Refusal::Foreign { reason: "is empty: another program wrote it".into() }),
        }
    }
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
