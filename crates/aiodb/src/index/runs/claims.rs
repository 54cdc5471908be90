//! Which runs the steps that are under way merge: two steps side by side merge different ones.

use std::ops::Range;
use std::sync::Arc;

use super::policy::Job;
use super::set::RunSet;
use super::{FILE_BYTES, Runs};
use crate::Result;
use crate::config::MergePolicy;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::sync::{Mutex, Rank};

/// Why the list of claims is never found locked for good.
const NO_PANIC: &str = "no code panics while it changes the list of claims";

/// The claims of all steps under way. Held to choose a job and to claim it, so that the set in which it is chosen has all edits of those
/// that are no longer here.
#[derive(Default)]
pub(super) struct Claims(Mutex<Vec<Claim>, { Rank::RunClaims as u8 }>);

/// What one step has to itself until its edit is made.
struct Claim {
    /// The numbers of its runs, the oldest of which tells it from others.
    runs: Vec<u64>,
    /// Bytes that it may write.
    bytes: u64,
}

/// A job that is claimed until this is dropped.
pub(super) struct Claimed<'a, D: Device> {
    of: &'a Claims,
    /// The set in which the job was chosen.
    pub(super) set: Arc<RunSet<D>>,
    pub(super) job: Job,
    pub(super) step_bytes: u64,
}

impl<D: Device> Drop for Claimed<'_, D> {
    fn drop(&mut self) {
        let own = self.set.runs[self.job.runs.end - 1].number;
        let mut claims = self.of.0.lock().expect(NO_PANIC);
        if let Some(at) = claims.iter().position(|claim| claim.runs.last() == Some(&own)) {
            claims.swap_remove(at);
        }
    }
}

impl<D: Device> Runs<D> {
    /// Claims the job that is chosen among runs of which these are claimed; `None` if there is none.
    pub(super) fn claim(
        &self,
        choose: impl Fn(MergePolicy, &RunSet<D>, &[Range<usize>]) -> Option<Job>,
        budget_bytes: u64,
    ) -> Result<Option<Claimed<'_, D>>> {
        let mut claims = self.claims.0.lock().expect(NO_PANIC);
        let set = self.set()?;
        let claimed: Vec<_> = match planted::is_on(Bug::ClaimUnseen) {
            true => Vec::new(),
            false => claims.iter().filter_map(|claim| place_of(&set, claim)).collect(),
        };
        let Some(job) = choose(self.policy, &set, &claimed) else { return Ok(None) };
        let promised = claims.iter().map(|claim| claim.bytes).sum();
        let step_bytes = self.step_bytes(budget_bytes, promised)?;
        let runs = set.runs[job.runs.clone()].iter().map(|run| run.number).collect();
        claims.push(Claim { runs, bytes: step_bytes });
        Ok(Some(Claimed { of: &self.claims, set, job, step_bytes }))
    }

    /// Whether the disk has room for the files of two merges at once.
    pub(super) fn has_room_for_two(&self) -> bool {
        self.file_bytes() == FILE_BYTES
    }
}

/// The places of the claimed runs that are left: after the last edit of a merge only its oldest run is.
fn place_of<D: Device>(set: &RunSet<D>, claim: &Claim) -> Option<Range<usize>> {
    let is_claimed = |number: &u64| claim.runs.contains(number);
    let first = set.runs.iter().position(|run| is_claimed(&run.number))?;
    let count = set.runs[first..].iter().take_while(|run| is_claimed(&run.number)).count();
    Some(first..first + count)
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
