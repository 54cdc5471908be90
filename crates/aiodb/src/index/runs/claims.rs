//! Which runs the steps that are under way merge: two steps side by side merge different ones.

use std::ops::Range;
use std::sync::Arc;

use super::policy::Job;
use super::set::RunSet;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::sync::{Mutex, MutexGuard, Rank};

/// Why the list of claims is never found locked for good.
const NO_PANIC: &str = "no code panics while it changes the list of claims";

/// The claims of all steps under way. Held to choose a job and to claim it, so that the set in which it is chosen has all edits of those
/// that are no longer here.
#[derive(Default)]
pub(super) struct Claims(Mutex<Vec<Claim>, { Rank::RunClaims as u8 }>);

/// What one step has to itself until its edit is made.
pub(super) struct Claim {
    /// The numbers of its runs, the oldest of which tells it from others.
    runs: Vec<u64>,
    /// Bytes that it may write.
    bytes: u64,
}

/// The claims of all steps, which none changes while this is held.
pub(super) struct ClaimsHeld<'a> {
    of: &'a Claims,
    claims: MutexGuard<'a, Vec<Claim>>,
}

/// A job that is claimed until this is dropped.
pub(super) struct Claimed<'a, D: Device> {
    of: &'a Claims,
    /// The set in which the job was chosen.
    pub(super) set: Arc<RunSet<D>>,
    pub(super) job: Job,
    pub(super) step_bytes: u64,
}

impl Claims {
    pub(super) fn lock(&self) -> ClaimsHeld<'_> {
        ClaimsHeld { of: self, claims: self.0.lock().expect(NO_PANIC) }
    }
}

impl<'a> ClaimsHeld<'a> {
    /// The places in a set of the runs that are claimed.
    pub(super) fn places<D: Device>(&self, set: &RunSet<D>) -> Vec<Range<usize>> {
        match planted::is_on(Bug::ClaimUnseen) {
            true => Vec::new(),
            false => self.claims.iter().filter_map(|claim| place_of(set, claim)).collect(),
        }
    }

    /// Bytes that the steps with claims may write.
    pub(super) fn promised_bytes(&self) -> u64 {
        self.claims.iter().map(|claim| claim.bytes).sum()
    }

    /// Claims a job of this set for a step that may write so many bytes.
    pub(super) fn claim<D: Device>(mut self, set: Arc<RunSet<D>>, job: Job, step_bytes: u64) -> Claimed<'a, D> {
        let runs = set.runs[job.runs.clone()].iter().map(|run| run.number).collect();
        self.claims.push(Claim { runs, bytes: step_bytes });
        Claimed { of: self.of, set, job, step_bytes }
    }
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

/// The places of the claimed runs that are left: after the last edit of a merge only its oldest run is.
fn place_of<D: Device>(set: &RunSet<D>, claim: &Claim) -> Option<Range<usize>> {
    let is_claimed = |number: &u64| claim.runs.contains(number);
    let first = set.runs.iter().position(|run| is_claimed(&run.number))?;
    let count = set.runs[first..].iter().take_while(|run| is_claimed(&run.number)).count();
    Some(first..first + count)
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
