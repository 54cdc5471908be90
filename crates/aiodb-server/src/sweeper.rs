//! Keys that have expired: they go with their elements when nobody has come by them, in steps of a bounded size.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::try_join_all;
use tokio::sync::watch;

use crate::command::{Server, now_ms};
use crate::entry::original_key;
use crate::expiring::Expired;
use crate::keyspace::Keyspace;
use crate::locks::{Claim, Database, Key};
use crate::refusal::Refusal;
use crate::space::{Space, Stored};

/// Time between two rounds, unless the first one leaves something.
const PERIOD: Duration = Duration::from_millis(100);

/// Keys of a database that go in one write, and bytes of their names and rows, about: a write has a largest size.
const AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Entries that are read at a time: each is read whole.
const READS_AT_ONCE: usize = 8;

/// Removes what has expired until the server ends.
pub(crate) async fn sweep(server: Arc<Server>, mut ending: watch::Receiver<bool>) {
    while !*ending.borrow() {
        if sweep_databases(&server.keyspace).await {
            // More expires than goes in a round at a time: it must not become more and more.
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = ending.changed() => {}
        }
    }
}

/// One round. Whether it may have left something that would go.
async fn sweep_databases(keyspace: &Keyspace) -> bool {
    let mut leaves_some = false;
    for database in 0..keyspace.databases() {
        // What could not be removed, on a disk that fails, is still there in a later round.
        leaves_some |= sweep_database(keyspace, database).await.unwrap_or(false);
    }
    leaves_some
}

async fn sweep_database(keyspace: &Keyspace, database: Database) -> Result<bool, Refusal> {
    if keyspace.first_expiry_ms(database) > now_ms() {
        return Ok(false);
    }
    let Expired { rows, are_all, .. } = tokio::task::block_in_place(|| keyspace.expired(database, now_ms()))?;
    let key = |stored: &[u8]| Key { database, name: Bytes::copy_from_slice(original_key(stored)) };
    let mut rows = rows.into_iter().map(|(row, stored)| Due { row, key: key(&stored) }).peekable();
    while rows.peek().is_some() {
        let mut bytes = 0;
        let mut some = Vec::new();
        while let Some(due) = rows.next_if(|_| some.len() < AT_ONCE && bytes < BYTES_AT_ONCE) {
            bytes += due.row.len() + due.key.name.len();
            some.push(due);
        }
        match keyspace.try_claim(&Claim::on_keys(some.iter().map(|due| (&due.key, true)))) {
            Some(_held) => remove(keyspace, &some).await?,
            // Somebody has one of the keys. Who wants another is not to wait for him because of this.
            None => {
                for due in some {
                    let _held = keyspace.claim(&Claim::on_keys(std::iter::once((&due.key, true)))).await;
                    remove(keyspace, std::slice::from_ref(&due)).await?;
                }
            }
        }
    }
    Ok(!are_all)
}

/// A key that has expired, and the row that says so.
struct Due {
    row: Vec<u8>,
    key: Key,
}

/// Removes keys in one write, as far as they are still as their rows say. The caller has a claim on them.
async fn remove(keyspace: &Keyspace, due: &[Due]) -> Result<(), Refusal> {
    let mut space = Space::new(keyspace, now_ms());
    for some in due.chunks(READS_AT_ONCE) {
        let entries = some.iter().map(async |Due { row, key }| {
            // Otherwise somebody was here since: the key has another value or time, or none.
            if !keyspace.expires(key, row).await? {
                return Ok(None);
            }
            // No value is kept.
            match keyspace.get(key).await.map(|entry| entry.as_ref().map(Stored::of)).transpose() {
                Some(Err(refusal)) if !refusal.is_of_record() => Err(refusal),
                entry => Ok(Some(entry)),
            }
        });
        for (Due { row, key }, entry) in some.iter().zip(try_join_all(entries).await?) {
            if let Some(entry) = entry {
                space.expire(key.clone(), row.clone(), entry);
            }
        }
    }
    if space.is_changed() {
        keyspace.write(&space.changes()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
