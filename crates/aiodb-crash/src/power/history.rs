//! What was acknowledged when, and so what must be there after a power cut.

use crate::model::{Contents, advance, differences};
use crate::workload::{Operation, WRITERS};

/// A moment of the harness: everything that it sends, hears or starts has its own.
type Moment = u64;

struct Made {
    operation: Operation,
    sent: Moment,
    /// When the acknowledgement was heard, and how much had reached the disk by then.
    acknowledged: Option<(Moment, usize)>,
}

/// From this many disk requests on, everything that was acknowledged before a moment is durable.
struct Promise {
    entries: usize,
    covers: Moment,
}

/// The operations of a run and their acknowledgements.
#[derive(Default)]
pub struct History {
    now: Moment,
    begin: usize,
    writers: [Vec<Made>; WRITERS],
    promises: Vec<Promise>,
    /// When the process began that has not acknowledged anything yet.
    beginning: Option<Moment>,
}

impl History {
    /// The store has been made.
    pub fn created(&mut self, entries: usize) {
        self.begin = entries;
    }

    /// Disk requests that made the store.
    pub fn begin(&self) -> usize {
        self.begin
    }

    /// A process opens the store: that makes durable what the one before had acknowledged.
    pub fn process_begins(&mut self) {
        self.beginning = Some(self.tick());
    }

    /// A process has closed the store: everything is durable.
    pub fn process_ended(&mut self, entries: usize) {
        let covers = self.tick();
        self.promises.push(Promise { entries, covers });
    }

    /// An operation is sent.
    pub fn sent(&mut self, operation: &Operation) {
        let sent = self.tick();
        let made = Made { operation: operation.clone(), sent, acknowledged: None };
        self.writers[operation.writer].push(made);
    }

    /// The operation of this writer that was sent last is acknowledged.
    pub fn acknowledged(&mut self, operation: &Operation, entries: usize) {
        let now = self.tick();
        let made = self.writers[operation.writer].last_mut().expect("it was sent");
        made.acknowledged = Some((now, entries));
        if operation.durability == "sync" {
            // It makes everything before it durable, and what was acknowledged before it was sent is before it.
            self.promises.push(Promise { entries, covers: made.sent });
        }
        if let Some(covers) = self.beginning.take() {
            self.promises.push(Promise { entries, covers });
        }
    }

    /// Compares what a writer's keys hold after a power cut with what they may; returns the operations that had to be
    /// there.
    pub fn check(&self, writer: usize, entries: usize, found: &Contents) -> Result<u64, String> {
        let made = &self.writers[writer];
        let required = self.required(writer, entries);
        // After each operation what the keys may hold: operations that no process lived to acknowledge may be there or not.
        let mut possible = vec![Contents::new()];
        let mut matches = required == 0 && found.is_empty();
        let mut nearest = None;
        for (count, made) in made.iter().enumerate().map(|(number, made)| (number + 1, made)) {
            let before = made.acknowledged.is_none().then(|| possible.clone());
            possible.iter_mut().for_each(|contents| advance(contents, &made.operation.changes));
            possible.extend(before.into_iter().flatten());
            if count >= required {
                matches |= possible.contains(found);
                let described = possible.iter().map(|contents| differences(found, contents)).min_by_key(String::len);
                nearest = nearest.into_iter().chain(described).min_by_key(String::len);
            }
        }
        if !matches {
            let nearest = nearest.unwrap_or_default();
            return Err(format!(
                "writer {writer} has none of the states after {required} to {} operations: {nearest}",
                made.len()
            ));
        }
        Ok(required as u64)
    }

    /// How many of a writer's first operations must be there.
    fn required(&self, writer: usize, entries: usize) -> usize {
        let kept = self.promises.iter().filter(|promise| promise.entries <= entries);
        let covered = kept.map(|promise| promise.covers).max().unwrap_or(0);
        let is_required = |made: &Made| {
            made.acknowledged
                .is_some_and(|(moment, at)| moment < covered || (made.operation.durability == "sync" && at <= entries))
        };
        self.writers[writer].iter().rposition(is_required).map_or(0, |last| last + 1)
    }

    fn tick(&mut self) -> Moment {
        self.now += 1;
        self.now
    }
}
