//! What an answer of the store may be, and which failures the script has made likely. Whatever else it answers is a violation.

use aiodb::Error;

use crate::model::{Cell, Held, Model, Moments};
use crate::state::{Run, Violation};

impl Run<'_> {
    /// What a key may be found to hold by a look that began at a moment; nothing if its table does not exist.
    pub(crate) fn accepted(&mut self, table: usize, key: usize, from: Moments) -> Vec<Cell> {
        let held = self.possible(table, key);
        self.cells(&held, from)
    }

    /// All that a key may hold for the call that has just returned; nothing if its table does not exist.
    pub(crate) fn possible(&mut self, table: usize, key: usize) -> Vec<Held> {
        self.notice_published();
        let before = self.before.as_ref().and_then(|before| before[table].as_ref()).map(|held| &held[key]);
        self.model.held(table, key).into_iter().chain(before).cloned().collect()
    }

    /// What is to be found of any of these.
    pub(crate) fn cells(&mut self, held: &[Held], from: Moments) -> Vec<Cell> {
        let moments = self.moments(from);
        held.iter().flat_map(|held| held.cells(moments)).collect()
    }

    /// What is learned when a call that changes no contents has succeeded.
    pub(crate) fn done(
        &mut self,
        what: &str,
        outcome: aiodb::Result<()>,
        learned: impl FnOnce(&mut Model),
    ) -> Result<(), Violation> {
        self.notice_published();
        if outcome.is_ok() && !self.device.has_crashed() {
            learned(&mut self.model);
            return Ok(());
        }
        self.unexpected(what, outcome)
    }

    /// Whether an outcome can be explained by what the script has made go wrong.
    pub(crate) fn unexpected(&mut self, what: &str, outcome: aiodb::Result<()>) -> Result<(), Violation> {
        if self.device.has_crashed() {
            return Ok(());
        }
        match outcome {
            Ok(()) => Err(format!("{what} succeeded")),
            Err(Error::Io { .. }) if self.allowed.errors => {
                if self.failed.is_none() {
                    self.find_out(Vec::new());
                }
                Ok(())
            }
            Err(Error::Failed { .. }) if self.allowed.errors => {
                self.failed = self.failed.or(Some(0));
                Ok(())
            }
            Err(Error::DiskFull { .. }) if self.allowed.full => Ok(()),
            // What a failed flush has lost is reported, like all damage.
            Err(Error::Corruption { .. }) if self.allowed.damage || self.failed.is_some() => Ok(()),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    /// An answer must be one of those accepted; none are when the table does not exist.
    pub(crate) fn check_answer(
        &mut self,
        found: aiodb::Result<Cell>,
        accepted: &[Cell],
        what: &str,
    ) -> Result<(), Violation> {
        if self.device.has_crashed() {
            return Ok(());
        }
        self.report.answers += 1;
        match found {
            Ok(found) => {
                self.see(found.hash());
                if accepted.contains(&found) {
                    return Ok(());
                }
                Err(format!("{what} found {found:x?} instead of {accepted:x?}"))
            }
            Err(Error::NoSuchTable { .. }) if accepted.is_empty() => Ok(()),
            Err(Error::Io { .. }) if self.allowed.errors => {
                // It may have written the batch that a write waited for, or tried to.
                if self.failed.is_none() && !self.life().waiting.is_empty() {
                    self.find_out(Vec::new());
                }
                Ok(())
            }
            // What a failed flush has lost is reported, like all damage.
            Err(Error::Corruption { .. }) if self.allowed.damage || self.failed.is_some() => Ok(()),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }
}
