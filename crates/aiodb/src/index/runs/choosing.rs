//! The choice of a step's merge among the runs that no other step has claimed.

use std::ops::Range;

use super::claims::Claimed;
use super::policy::{Job, choose};
use super::set::RunSet;
use super::{FILE_BYTES, Runs};
use crate::Result;
use crate::config::MergePolicy;
use crate::io::Device;

impl<D: Device> Runs<D> {
    /// Claims the job that is chosen among runs of which these are claimed; `None` if there is none.
    pub(super) fn claim(
        &self,
        choose: impl Fn(MergePolicy, &RunSet<D>, &[Range<usize>]) -> Option<Job>,
        budget_bytes: u64,
    ) -> Result<Option<Claimed<'_, D>>> {
        let claims = self.claims.lock();
        let set = self.set()?;
        let Some(job) = choose(self.policy, &set, &claims.places(&set)) else { return Ok(None) };
        let step_bytes = self.step_bytes(budget_bytes, claims.promised_bytes())?;
        Ok(Some(claims.claim(set, job, step_bytes)))
    }

    /// [`Runs::claim`] of the most useful merge.
    pub(super) fn claim_most_useful(&self, budget_bytes: u64) -> Result<Option<Claimed<'_, D>>> {
        self.claim(|policy, set, claimed| choose(policy, &set.shapes(), claimed), budget_bytes)
    }

    /// Whether the disk has room for the files of two merges at once.
    pub(super) fn has_room_for_two(&self) -> bool {
        self.file_bytes() == FILE_BYTES
    }
}
