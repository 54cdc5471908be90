//! Reads that last longer than the store keeps their moment: it ends the oldest scans and snapshots where the disk, or its list of range
//! deletes, has no room for them. A walk goes on with another scan behind the last record that it has come to.

use aiodb::{Error, Scan, ScanOptions};

use crate::refusal::Refusal;

/// Moments in a row that may end before anything was read at them.
const ATTEMPTS: usize = 16;

/// Reads at one moment, or at another one if the store has ended it.
pub(crate) fn at_a_moment<T>(mut read: impl FnMut() -> Result<T, Refusal>) -> Result<T, Refusal> {
    for _ in 1..ATTEMPTS {
        match read() {
            Err(Refusal::Engine(Error::SnapshotEnded)) => {}
            outcome => return outcome,
        }
    }
    read()
}

/// How far one has come through records, in the order of their keys or the opposite one.
pub(crate) struct Walk {
    options: ScanOptions,
    is_backward: bool,
    /// The last key; empty at first. No stored key is empty.
    last: Vec<u8>,
    /// Moments that have ended since it came to that key.
    ended: usize,
}

impl Walk {
    /// A walk through these records, whose direction the options say too.
    pub(crate) fn new(options: ScanOptions, is_backward: bool) -> Walk {
        Walk { options, is_backward, last: Vec::new(), ended: 0 }
    }

    /// The records that are still to come.
    pub(crate) fn rest(&self) -> ScanOptions {
        match (&self.last[..], self.is_backward) {
            ([], _) => self.options.clone(),
            (last, false) => self.options.clone().after(last),
            (last, true) => self.options.clone().before(last),
        }
    }

    /// Comes to the record of a key, which is the next one.
    pub(crate) fn come_to(&mut self, key: &[u8]) {
        self.last.clear();
        self.last.extend_from_slice(key);
        self.ended = 0;
    }

    /// Goes on for as long as `visit` wants more. `begin` makes a scan, with what is to be known at its moment.
    pub(crate) fn go<T>(
        &mut self,
        mut begin: impl FnMut(ScanOptions) -> Result<(Scan, T), Refusal>,
        mut visit: impl FnMut(&T, &[u8], &[u8]) -> bool,
    ) -> Result<(), Refusal> {
        loop {
            let outcome = begin(self.rest()).and_then(|(scan, known)| {
                self.scan(scan, |key, value| visit(&known, key, value)).map_err(Refusal::from)
            });
            self.ended += 1;
            match outcome {
                Err(Refusal::Engine(Error::SnapshotEnded)) if self.ended < ATTEMPTS => {}
                outcome => return outcome,
            }
        }
    }

    fn scan(&mut self, mut scan: Scan, mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> aiodb::Result<()> {
        while let Some((key, value)) = scan.next_record()? {
            self.come_to(key);
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
