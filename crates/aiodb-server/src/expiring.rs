//! The rows of keys that expire, by their times; and from when on a database has such keys, so that nothing is read to find that none
//! has expired.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use aiodb::{Scan, ScanOptions};

use crate::collection::{expiring_keys, expiring_ms, expiring_name, expiring_number};
use crate::refusal::Refusal;
use crate::walk::Walk;

/// Keys that one search finds at most, and bytes of their rows, about.
pub(crate) const SEARCHED: usize = 4096;
const SEARCHED_BYTES: usize = 4 << 20;

/// A time before which no key of a database expires. It is known from searches, of which one goes on at a time, and from the
/// writes since. At first nothing is known.
#[derive(Default)]
pub(crate) struct Expiring(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// No row of a key that expires has a time before this one, in milliseconds since 1970, nor will a write that is under way
    /// bring one.
    first_ms: u64,
    /// The times that writes under way bring, and how many bring each.
    under_way: BTreeMap<u64, usize>,
    /// The least time of the writes that the search may have missed: those that were under way when it began, or have begun since.
    missed_ms: u64,
}

impl Expiring {
    /// No key expires before this time.
    pub(crate) fn first_ms(&self) -> u64 {
        self.known().first_ms
    }

    /// A write begins after which a key expires at this time.
    pub(crate) fn write_begins(&self, at_ms: u64) {
        let mut known = self.known();
        known.first_ms = known.first_ms.min(at_ms);
        known.missed_ms = known.missed_ms.min(at_ms);
        *known.under_way.entry(at_ms).or_default() += 1;
    }

    /// Such a write is there, or was refused. One that nobody waits for any more counts as under way from then on.
    pub(crate) fn write_ends(&self, at_ms: u64) {
        let mut known = self.known();
        if let Some(count) = known.under_way.get_mut(&at_ms) {
            *count -= 1;
            if *count == 0 {
                known.under_way.remove(&at_ms);
            }
        }
    }

    /// A search for the first time begins, at the time that is returned.
    pub(crate) fn search_begins(&self) -> u64 {
        let mut known = self.known();
        known.missed_ms = known.under_way.first_key_value().map_or(u64::MAX, |(at_ms, _)| *at_ms);
        known.first_ms
    }

    /// The search has found the first time; `None` if nothing expires.
    pub(crate) fn search_ends(&self, found_ms: Option<u64>) {
        let mut known = self.known();
        known.first_ms = found_ms.unwrap_or(u64::MAX).min(known.missed_ms);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("no code panics while it holds the times")
    }
}

/// What a search for keys that have expired has found.
pub(crate) struct Expired {
    /// Their rows and stored keys, in the order of their times.
    pub(crate) rows: Vec<(Vec<u8>, Vec<u8>)>,
    /// Rows of collections that cannot be read, so that nobody knows whose they are.
    pub(crate) unread: Vec<Vec<u8>>,
    /// Whether these are all.
    pub(crate) are_all: bool,
    /// When the first of all expires.
    pub(crate) first_ms: Option<u64>,
    bytes: usize,
}

impl Default for Expired {
    fn default() -> Expired {
        Expired { rows: Vec::new(), unread: Vec::new(), are_all: true, first_ms: None, bytes: 0 }
    }
}

impl Expired {
    /// The last row.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.rows.last().map(|(row, _)| &row[..]).max(self.unread.last().map(|row| &row[..]))
    }

    /// Takes the next row, with its value if that can be read; whether more are wanted.
    fn take(&mut self, row: &[u8], value: Option<&[u8]>, now_ms: u64) -> bool {
        let Some(at_ms) = expiring_ms(row) else { return false };
        self.first_ms.get_or_insert(at_ms);
        if at_ms > now_ms {
            return false;
        }
        match (expiring_number(row), value) {
            (Some(_), None) => self.unread.push(row.to_vec()),
            // That of a string has no value.
            (_, value) => self.rows.push((row.to_vec(), expiring_name(row, value.unwrap_or_default()).to_vec())),
        }
        self.bytes += row.len() + value.map_or(0, <[u8]>::len);
        self.are_all = self.rows.len() + self.unread.len() < SEARCHED && self.bytes < SEARCHED_BYTES;
        self.are_all
    }
}

/// The rows of keys that expire at this time or later.
pub(crate) fn span(from_ms: u64) -> ScanOptions {
    let (first, end) = expiring_keys(from_ms);
    ScanOptions::all().from(&first).before(&end)
}

/// Looks at rows of keys that expire until one has not, or for [`SEARCHED`] keys and [`SEARCHED_BYTES`]. `begin` makes a scan.
pub(crate) fn due(
    begin: impl Fn(ScanOptions) -> aiodb::Result<Scan>,
    rows: ScanOptions,
    now_ms: u64,
) -> Result<Expired, Refusal> {
    let (mut walk, mut expired) = (Walk::new(rows, false), Expired::default());
    loop {
        let outcome = walk.go(|rest| Ok((begin(rest)?, ())), |(), row, value| expired.take(row, Some(value), now_ms));
        match outcome {
            // One row that cannot be read does not hide those behind it. Its key is in the index.
            Err(refusal) if refusal.is_unreadable() => {
                let mut rows = begin(walk.rest().keys_only().limit(1))?;
                let Some((row, _)) = rows.next_record()? else { return Ok(expired) };
                walk.come_to(row);
                if !expired.take(row, None, now_ms) {
                    return Ok(expired);
                }
            }
            outcome => return outcome.map(|()| expired),
        }
    }
}

/// How many of these rows, whose values do not matter, are of keys that have expired.
pub(crate) fn count_due(mut scan: Scan, now_ms: u64) -> Result<u64, Refusal> {
    let mut count = 0;
    while let Some((key, _)) = scan.next_record()?
        && expiring_ms(key).is_some_and(|at_ms| at_ms <= now_ms)
    {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
