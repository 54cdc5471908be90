//! Keys that have expired: they go with their elements when nobody has come by them, in steps of a bounded size.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::future::try_join_all;
use tokio::sync::watch;

use crate::collection::expiring_number;
use crate::command::{Server, now_ms};
use crate::entry::original_key;
use crate::keyspace::Keyspace;
use crate::locks::{Claim, Database, Key};
use crate::refusal::{Refusal, repeated};
use crate::space::{Space, Stored};

/// Time between two rounds, unless the first one leaves something.
const PERIOD: Duration = Duration::from_millis(100);

/// Keys of a database that go in one write, and bytes of their names and rows, about: a write has a largest size.
const AT_ONCE: usize = 64;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Entries that are read at a time: each is read whole.
const READS_AT_ONCE: usize = 8;

/// After a round with failures the next one waits for so many times as long as it took, so that they are not most of what the disk does.
const PAUSE_OF_FAILURES: u32 = 9;

/// Failures that the log is told of, each once.
const MOST_TOLD: usize = 128;

/// Removes what has expired until the server ends.
pub(crate) async fn sweep(server: Arc<Server>, mut ending: watch::Receiver<bool>) {
    let mut failures = Failures::default();
    while !*ending.borrow() {
        let begun = Instant::now();
        let leaves_some = sweep_databases(&server.keyspace, &mut failures).await;
        let (count, lines) = failures.take();
        lines.iter().for_each(|line| server.log.warn(line));
        if leaves_some {
            // More expires than goes in a round at a time: it must not become more and more.
            tokio::task::yield_now().await;
            continue;
        }
        let pause = if count == 0 { PERIOD } else { PERIOD.max(begun.elapsed() * PAUSE_OF_FAILURES) };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = ending.changed() => {}
        }
    }
}

/// What could not be removed. It is still there in later rounds.
#[derive(Default)]
struct Failures {
    /// Those of this round.
    count: usize,
    /// Of which the log was told: databases, with the row or, of a whole database, the reason.
    told: BTreeSet<(Database, Vec<u8>)>,
    /// What the log is to be told.
    lines: Vec<String>,
}

impl Failures {
    fn add(&mut self, database: Database, what: &[u8], line: impl FnOnce() -> String) {
        self.count += 1;
        if self.told.len() < MOST_TOLD && self.told.insert((database, what.to_vec())) {
            self.lines.push(line());
            if self.told.len() == MOST_TOLD {
                self.lines.push("of more that cannot be removed nothing is said until the next start".into());
            }
        }
    }

    /// How many there were since this was last asked, and what the log is to be told.
    fn take(&mut self) -> (usize, Vec<String>) {
        (std::mem::take(&mut self.count), std::mem::take(&mut self.lines))
    }
}

/// One round. Whether it may have left something that would go.
async fn sweep_databases(keyspace: &Keyspace, failures: &mut Failures) -> bool {
    let mut leaves_some = false;
    for database in 0..keyspace.databases() {
        match sweep_database(keyspace, database, failures).await {
            Ok(left) => leaves_some |= left,
            Err(refusal) => {
                let reason = refusal.line();
                failures.add(database, &reason, || {
                    let reason = String::from_utf8_lossy(&reason);
                    format!("what has expired of database {database} is not removed, which is tried again: {reason}")
                });
            }
        }
    }
    leaves_some
}

async fn sweep_database(keyspace: &Keyspace, database: Database, failures: &mut Failures) -> Result<bool, Refusal> {
    if keyspace.first_expiry_ms(database) > now_ms() {
        return Ok(false);
    }
    let mut expired = tokio::task::block_in_place(|| keyspace.expired(database, now_ms()))?;
    loop {
        let last = expired.last().filter(|_| !expired.are_all).map(<[u8]>::to_vec);
        for row in &expired.unread {
            failures.add(database, row, || {
                format!("a collection of database {database} has expired, and which one cannot be read: it stays")
            });
        }
        let has_removed = remove_all(keyspace, database, expired.rows, failures).await?;
        let Some(last) = last else { return Ok(false) };
        if has_removed {
            return Ok(true);
        }
        // None of these can be removed. What has expired after them is not to wait for them.
        expired = tokio::task::block_in_place(|| keyspace.expired_after(database, &last, now_ms()))?;
    }
}

/// Removes keys in writes of a bounded size; whether some could be.
async fn remove_all(
    keyspace: &Keyspace,
    database: Database,
    rows: Vec<(Vec<u8>, Vec<u8>)>,
    failures: &mut Failures,
) -> Result<bool, Refusal> {
    let mut has_removed = false;
    let key = |stored: &[u8]| Key { database, name: Bytes::copy_from_slice(original_key(stored)) };
    let mut rows = rows.into_iter().map(|(row, stored)| Due { row, key: key(&stored) }).peekable();
    while rows.peek().is_some() {
        let mut bytes = 0;
        let mut some = Vec::new();
        while let Some(due) = rows.next_if(|_| some.len() < AT_ONCE && bytes < BYTES_AT_ONCE) {
            bytes += due.row.len() + due.key.name.len();
            some.push(due);
        }
        let together = match keyspace.try_claim(&Claim::on_keys(some.iter().map(|due| (&due.key, true)))) {
            Some(_held) => remove(keyspace, &some).await.map(|()| true),
            // Somebody has one of the keys. Who wants another is not to wait for him because of this.
            None => Ok(false),
        };
        match together {
            Ok(true) => {
                has_removed = true;
                continue;
            }
            // One of them cannot be read. The others go.
            Err(refusal) if !refusal.is_unreadable() => return Err(refusal),
            _ => {}
        }
        for due in some {
            let _held = keyspace.claim(&Claim::on_keys(std::iter::once((&due.key, true)))).await;
            match remove(keyspace, std::slice::from_ref(&due)).await {
                Ok(()) => has_removed = true,
                Err(refusal) if refusal.is_unreadable() => failures.add(database, &due.row, || due.failure(&refusal)),
                Err(refusal) => return Err(refusal),
            }
        }
    }
    Ok(has_removed)
}

/// A key that has expired, and the row that says so.
struct Due {
    row: Vec<u8>,
    key: Key,
}

impl Due {
    /// What the log is told if it cannot be removed.
    fn failure(&self, refusal: &Refusal) -> String {
        let (name, database) = (repeated(&self.key.name).escape_ascii(), self.key.database);
        let reason = refusal.line();
        format!(
            "key \"{name}\" of database {database} has expired and cannot be removed, which is tried again: {}",
            String::from_utf8_lossy(&reason)
        )
    }
}

/// Removes keys in one write, as far as they are still as their rows say. The caller has a claim on them.
async fn remove(keyspace: &Keyspace, due: &[Due]) -> Result<(), Refusal> {
    let mut space = Space::new(keyspace, now_ms());
    for some in due.chunks(READS_AT_ONCE) {
        let entries = some.iter().map(async |Due { row, key }| {
            let is_sure = match keyspace.expires(key, row).await {
                // Somebody was here since: the key has another value or time, or none.
                Ok(false) => return Ok(None),
                Ok(true) => true,
                // The row of a string has its key only, which was read already.
                Err(refusal) if refusal.is_unreadable() && expiring_number(row).is_none() => false,
                Err(refusal) => return Err(refusal),
            };
            // No value is kept.
            match keyspace.get(key).await.map(|entry| entry.as_ref().map(Stored::of)).transpose() {
                Some(Err(refusal)) if !is_sure || !refusal.is_of_record() => Err(refusal),
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
