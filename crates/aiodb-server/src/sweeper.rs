//! Collections that have expired: their elements go when nobody has come by their keys, in steps of a bounded size.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::command::{Server, now_ms};
use crate::keyspace::Keyspace;
use crate::locks::{Claim, Database, Key};
use crate::refusal::Refusal;
use crate::space::Space;

/// Time between two rounds, unless the first one leaves something.
const PERIOD: Duration = Duration::from_millis(100);

/// Collections of a database that go in one round.
const AT_ONCE: usize = 64;

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
    if !keyspace.has_collections(database) {
        return Ok(false);
    }
    let names = tokio::task::block_in_place(|| keyspace.expired_names(database, now_ms(), AT_ONCE))?;
    let mut removed = 0;
    for name in names {
        let key = Key { database, name };
        let _held = keyspace.claim(&Claim::on_keys(std::iter::once((&key, true)))).await;
        let entry = keyspace.get(&key).await?;
        let is_expired = |entry: &crate::entry::Entry| entry.collection().is_some() && entry.has_expired(now_ms());
        if !entry.as_ref().is_some_and(is_expired) {
            // Somebody was here since.
            continue;
        }
        let mut space = Space::new(keyspace, now_ms());
        space.learn(key.clone(), entry);
        space.delete(key);
        keyspace.write(&space.changes()).await?;
        removed += 1;
    }
    Ok(removed == AT_ONCE)
}

#[cfg(test)]
mod tests;
