//! A second client, whose `sync` writes are in the log and wait for their batch while the first one goes on.
//!
//! Until then no client sees them, and a crash may take them or not. Any call of the first client that writes the batch ends the
//! waiting; what that call itself has read may be from before or from after.

use aiodb::Durability;
use aiodb::io::Device;

use crate::model::Contents;
use crate::process::Written;
use crate::script::{Require, Write};
use crate::state::{Run, Violation};

/// Writes of the second client that wait at a time.
const MOST_WAITING: usize = 3;

impl Run<'_> {
    /// The second client writes a group, if what it requires is there, and waits.
    pub(crate) fn append(
        &mut self,
        requirements: &[(usize, usize, Require)],
        writes: &[(usize, usize, Write)],
    ) -> Result<(), Violation> {
        if self.life().waiting.len() == MOST_WAITING {
            return self.await_write(0);
        }
        self.write_batch_by(requirements, writes, Durability::Sync, |run, batch| {
            run.db().append_with(batch, Durability::Sync).map(Written::Appended)
        })
    }

    /// The second client waits no longer.
    pub(crate) fn await_write(&mut self, number: usize) -> Result<(), Violation> {
        let count = self.life().waiting.len();
        if count == 0 {
            return Ok(());
        }
        let waiting = &self.life().waiting[number % count];
        let (change, outcome) = (waiting.change, waiting.write.wait());
        if let Err(error) = outcome {
            return self.unexpected("a write that waited", Err(error));
        }
        self.notice_published();
        let waits_still = self.life().waiting.iter().any(|waiting| waiting.change == change);
        if waits_still && !self.device.has_crashed() {
            return Err("a write was acknowledged that still waits for its batch".into());
        }
        Ok(())
    }

    /// Takes note of what waits no longer. Called before anything that was read is compared.
    pub(crate) fn notice_published(&mut self) {
        // The process died before its clients were told whether the write was made.
        if self.device.has_crashed() {
            return;
        }
        let Some(life) = &mut self.life else { return };
        let published: Vec<usize> = life
            .waiting
            .extract_if(.., |waiting| waiting.write.is_acknowledged())
            .map(|waiting| waiting.change)
            .collect();
        if published.is_empty() {
            return;
        }
        self.before.get_or_insert_with(|| self.model.current().clone());
        for change in published {
            let effects = self.model.publish(change, self.device.clock_ms());
            self.clients_see(&effects);
        }
    }

    /// What the store may be found to hold by the call that has just returned, as a whole.
    pub(crate) fn possible_contents(&mut self) -> Vec<Contents> {
        self.notice_published();
        std::iter::once(self.model.current().clone()).chain(self.before.clone()).collect()
    }

    /// The contents as the log has them, with all that waits.
    pub(crate) fn contents_in_log(&self) -> Contents {
        let waiting = self.life.iter().flat_map(|life| &life.waiting).map(|waiting| waiting.change);
        self.model.in_log(&waiting.collect::<Vec<_>>())
    }
}
