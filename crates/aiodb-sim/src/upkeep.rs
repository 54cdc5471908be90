//! What makes things durable or works in the background, called when the script says so.

use aiodb::io::Device;
use aiodb::{Durability, Error, Step};

use crate::model::{Effect, Held, Model};
use crate::script::key_bytes;
use crate::state::{Run, Violation};

/// What every budget leaves to buffers.
const BUFFER_BYTES: u64 = 8 << 20;

impl Run<'_> {
    /// Makes everything durable.
    pub(crate) fn sync(&mut self) -> Result<(), Violation> {
        let outcome = self.db().sync();
        self.done("a sync", outcome, Model::everything_is_durable)
    }

    /// Makes a checkpoint.
    pub(crate) fn checkpoint(&mut self) -> Result<(), Violation> {
        let outcome = self.db().checkpoint();
        self.checkpointed("a checkpoint", outcome)
    }

    /// Sets the budget of memory to so many bytes more than the least, which the store says when it refuses less.
    pub(crate) fn set_memory(&mut self, above: Option<u64>) -> Result<(), Violation> {
        let Some(least) = self.least_memory()? else { return Ok(()) };
        let bytes = above.map(|above| least + above);
        let outcome = self.db().set_memory_bytes(bytes);
        if outcome.is_ok() {
            self.memory_bytes = bytes;
            self.check_memory()?;
        }
        self.done("a budget", outcome, |_| {})
    }

    /// Has the next process begin with a budget of so many bytes more than the least.
    pub(crate) fn set_next_memory(&mut self, above: u64) -> Result<(), Violation> {
        if let Some(least) = self.least_memory()? {
            self.memory_bytes = Some(least + above);
        }
        Ok(())
    }

    /// The least budget, which the store says when it refuses less, unless it refuses everything.
    fn least_memory(&mut self) -> Result<Option<u64>, Violation> {
        match self.db().set_memory_bytes(Some(1)) {
            Err(Error::TooLittleMemory { least, .. }) => Ok(Some(least)),
            outcome => self.unexpected("a budget of one byte", outcome).map(|()| None),
        }
    }

    /// Caches have at once no more than is left of a new budget: the store has no threads that would come back to them.
    fn check_memory(&self) -> Result<(), Violation> {
        let memory = self.db().stats().memory;
        let others = memory.run_bytes + memory.hash_bytes + memory.batch_bytes + BUFFER_BYTES;
        let caches = memory.block_cache_bytes + memory.cache_bytes;
        if caches > memory.budget_bytes.saturating_sub(others) {
            return Err(format!("caches have too much: {memory:?}"));
        }
        Ok(())
    }

    /// Remembers how far the log has come.
    pub(crate) fn mark(&mut self) {
        self.mark = Some((self.db().sequence(), self.model.acknowledged()));
    }

    /// The same bit of background work, until a crash falls into it.
    pub(crate) fn steps(&mut self, step: Step, times: usize) -> Result<(), Violation> {
        (0..times).try_for_each(|_| match self.device.has_crashed() {
            true => Ok(()),
            false => self.step(step),
        })
    }

    /// A bit of background work.
    pub(crate) fn step(&mut self, step: Step) -> Result<(), Violation> {
        self.step_unnoticed(step)?;
        self.notice_dropped()
    }

    /// A bit of background work, after which nobody looks for what a compaction filter has given up.
    pub(crate) fn step_unnoticed(&mut self, step: Step) -> Result<(), Violation> {
        let outcome = self.db().step(step);
        if step == Step::Checkpoint {
            self.checkpointed("a step", outcome)
        } else {
            self.done("a step", outcome, |_| {})
        }
    }

    /// Looks for what compaction filters have given up: it is deleted in the log, and stays so.
    pub(crate) fn notice_dropped(&mut self) -> Result<(), Violation> {
        if self.device.has_crashed() {
            return Ok(());
        }
        if let Some(wrong) = self.watch.take_wrong() {
            return Err(wrong);
        }
        let contents = self.model.current().clone();
        for (table, key, held) in contents.iter().enumerate().flat_map(|(table, held)| {
            held.iter().flat_map(move |held| held.iter().enumerate().map(move |(key, held)| (table, key, held)))
        }) {
            // What expires may be seen again, if the clock was wrong.
            if !held.may_go() || held.until_ms().is_some() {
                continue;
            }
            let found = self.table(table).and_then(|table| table.get(&key_bytes(key)));
            if matches!(found, Ok(None)) && !self.device.has_crashed() {
                let effects = vec![Effect::Set(table, key, Held::default())];
                self.model.acknowledge(effects.clone(), Durability::None, self.device.clock_ms());
                self.clients_see(&effects);
            }
        }
        Ok(())
    }

    /// What is learned of a checkpoint.
    pub(crate) fn checkpointed(&mut self, what: &str, outcome: aiodb::Result<()>) -> Result<(), Violation> {
        if outcome.is_ok() && !self.device.has_crashed() {
            self.time_is_written();
        }
        self.done(what, outcome, Model::checkpoint)
    }

    /// Waits until what was written up to the mark is durable.
    pub(crate) fn wait_durable(&mut self) -> Result<(), Violation> {
        let Some((sequence, changes)) = self.mark else { return Ok(()) };
        let outcome = self.db().wait_durable(sequence);
        self.done("waiting for a sequence", outcome, |model| model.durable_up_to(changes))
    }
}
