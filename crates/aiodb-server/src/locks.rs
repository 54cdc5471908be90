//! Locks on keys, held from what a command reads to what it writes, so that no other command's write comes in between.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::LazyLock;

use bytes::Bytes;
use foldhash::fast::RandomState;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keys share this many locks.
pub(crate) const STRIPES: usize = 16_384;

/// A set of keys, and a map by keys, whose hashes are quick. Each has a seed of its own.
pub(crate) type KeySet = HashSet<Key, RandomState>;
pub(crate) type KeyMap<V> = HashMap<Key, V, RandomState>;

/// The number of a database.
pub(crate) type Database = u16;

/// A key, and the database that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) database: Database,
    pub(crate) name: Bytes,
}

impl Key {
    /// The number of the lock that it shares.
    pub(crate) fn stripe(&self) -> usize {
        static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::default);
        HASHES.hash_one(self) as usize % STRIPES
    }
}

/// What a group of commands must have for itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nothing: each of its commands reads at one moment.
    Nothing,
    /// Stripes in ascending order, and whether they are written.
    Stripes(Vec<(usize, bool)>),
    /// All keys of all databases.
    Everything,
}

impl Claim {
    /// The claim on some keys, with whether they are written.
    pub(crate) fn on_keys<'a>(keys: impl Iterator<Item = (&'a Key, bool)>) -> Claim {
        let mut stripes: Vec<_> = keys.map(|(key, is_written)| (key.stripe(), is_written)).collect();
        // Of two claims on a stripe the one that writes comes last, and stays.
        stripes.sort_unstable();
        stripes.reverse();
        stripes.dedup_by_key(|(stripe, _)| *stripe);
        stripes.reverse();
        if stripes.is_empty() { Claim::Nothing } else { Claim::Stripes(stripes) }
    }
}

/// All locks.
pub(crate) struct Locks {
    everything: RwLock<()>,
    stripes: Box<[RwLock<()>]>,
}

/// Locks that are held. The claims on stripes come first, so that they go first.
pub(crate) struct Held<'a> {
    _stripes: Vec<Stripe<'a>>,
    _everything: Option<Stripe<'a>>,
}

#[expect(dead_code, reason = "a guard is there to be dropped")]
enum Stripe<'a> {
    Read(RwLockReadGuard<'a, ()>),
    Written(RwLockWriteGuard<'a, ()>),
}

impl Locks {
    pub(crate) fn new() -> Locks {
        Locks { everything: RwLock::new(()), stripes: (0..STRIPES).map(|_| RwLock::new(())).collect() }
    }

    /// What is claimed, if nobody has a part of it; only claims on stripes are tried.
    pub(crate) fn try_claim(&self, claim: &Claim) -> Option<Held<'_>> {
        let Claim::Stripes(wanted) = claim else { return None };
        let everything = Some(Stripe::Read(self.everything.try_read().ok()?));
        let take = |(stripe, is_written): &(usize, bool)| {
            let lock = &self.stripes[*stripe];
            Some(if *is_written {
                Stripe::Written(lock.try_write().ok()?)
            } else {
                Stripe::Read(lock.try_read().ok()?)
            })
        };
        let stripes = wanted.iter().map(take).collect::<Option<Vec<_>>>()?;
        Some(Held { _stripes: stripes, _everything: everything })
    }

    /// Waits for what is claimed. The order of locks is that of their numbers, so nobody waits for ever.
    pub(crate) async fn claim(&self, claim: &Claim) -> Held<'_> {
        let (everything, wanted) = match claim {
            Claim::Nothing => (None, &[][..]),
            Claim::Everything => (Some(Stripe::Written(self.everything.write().await)), &[][..]),
            Claim::Stripes(stripes) => (Some(Stripe::Read(read(&self.everything).await)), &stripes[..]),
        };
        let mut stripes = Vec::with_capacity(wanted.len());
        for (stripe, is_written) in wanted {
            let lock = &self.stripes[*stripe];
            stripes.push(match is_written {
                true => Stripe::Written(written(lock).await),
                false => Stripe::Read(read(lock).await),
            });
        }
        Held { _stripes: stripes, _everything: everything }
    }
}

/// A key of which nobody has a claim to write it.
pub(crate) struct Unwritten<'a> {
    _stripe: RwLockReadGuard<'a, ()>,
    _everything: RwLockReadGuard<'a, ()>,
}

impl Locks {
    /// Keeps a key from being written, unless somebody has, or waits for, a claim to do so.
    pub(crate) fn try_read(&self, key: &Key) -> Option<Unwritten<'_>> {
        let everything = self.everything.try_read().ok()?;
        let stripe = self.stripes[key.stripe()].try_read().ok()?;
        Some(Unwritten { _stripe: stripe, _everything: everything })
    }
}

/// Takes a lock to read. Most of the time it is free, and nothing has to be prepared for waiting.
async fn read(lock: &RwLock<()>) -> RwLockReadGuard<'_, ()> {
    match lock.try_read() {
        Ok(held) => held,
        Err(_) => lock.read().await,
    }
}

/// [`read`] to write.
async fn written(lock: &RwLock<()>) -> RwLockWriteGuard<'_, ()> {
    match lock.try_write() {
        Ok(held) => held,
        Err(_) => lock.write().await,
    }
}

#[cfg(test)]
mod tests;
