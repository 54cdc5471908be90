//! Which runs are merged next. Pure: it knows sizes, no bytes.
//!
//! Runs are tiered: where so many of one tier follow each other, they become one run of the next tier. The oldest run, which
//! has most of the keys, takes part only where the others together are not small beside it, so that it is not written again for
//! little. `docs/decisions/0040-sorted-runs.md` has the measurement.

use std::ops::Range;

use crate::config::MergePolicy;

/// Runs that are merged at once, at most: each takes a buffer.
const MAX_INPUTS: usize = 16;

/// What the policy knows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) tier: u32,
    /// The merge that it takes part in, 0 for none.
    pub(super) merge: u64,
    /// Bytes that a merge has yet to take in.
    pub(super) bytes: u64,
}

/// Runs that are being merged, or should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// Their places, newest first. The last one is where the merged entries go.
    pub(super) runs: Range<usize>,
    tier: u32,
}

/// The most useful merge: that of the lowest tier, which takes most runs away for the least work.
pub(super) fn choose(policy: MergePolicy, shapes: &[Shape]) -> Option<Job> {
    jobs(policy, shapes).into_iter().min_by_key(|job| job.tier)
}

/// A merge on the way to one run: one that was begun, or one of the oldest runs, small or not; the oldest itself only if the others
/// together have at least one in `least_share` of its bytes.
pub(super) fn choose_all(policy: MergePolicy, shapes: &[Shape], least_share: u64) -> Option<Job> {
    let newer = shapes.len().checked_sub(1)?;
    let end = newer + usize::from(has_share(shapes, least_share));
    let all = end.saturating_sub(MAX_INPUTS)..end;
    begun(policy, shapes).or_else(|| (all.len() > 1).then(|| job(shapes, all)))
}

/// A merge for a store in which nothing else is to be done: as [`choose_all`], where the oldest run would be taken in by a policy to which
/// few runs are enough.
pub(super) fn choose_at_rest(policy: MergePolicy, shapes: &[Shape]) -> Option<Job> {
    let is_wanted = shapes.len() > 1 && has_share(shapes, policy.oldest_ratio);
    begun(policy, shapes)
        .or_else(|| is_wanted.then(|| job(shapes, shapes.len().saturating_sub(MAX_INPUTS)..shapes.len())))
}

/// A merge that was begun.
fn begun(policy: MergePolicy, shapes: &[Shape]) -> Option<Job> {
    jobs(policy, shapes).into_iter().find(|job| shapes[job.runs.start].merge > 0)
}

/// Whether the newer runs together have at least one in so many bytes of the oldest.
fn has_share(shapes: &[Shape], of: u64) -> bool {
    shapes.split_last().is_some_and(|(oldest, newer)| {
        let bytes: u64 = newer.iter().map(|shape| shape.bytes).sum();
        bytes.saturating_mul(of) >= oldest.bytes
    })
}

/// Merges that were begun, and those that can be; shapes are newest first.
fn jobs(policy: MergePolicy, shapes: &[Shape]) -> Vec<Job> {
    let mut jobs = Vec::new();
    let mut at = 0;
    while at < shapes.len() {
        let first = shapes[at];
        let is_like_first = |shape: &&Shape| match first.merge {
            0 => (shape.merge, shape.tier) == (0, first.tier),
            merge => shape.merge == merge,
        };
        let end = at + shapes[at..].iter().take_while(is_like_first).count();
        if first.merge > 0 {
            jobs.push(job(shapes, at..end));
        } else if let Some(runs) = group(policy, shapes, at..end) {
            jobs.push(job(shapes, runs));
        }
        at = end;
    }
    jobs
}

fn job(shapes: &[Shape], runs: Range<usize>) -> Job {
    Job { tier: shapes[runs.start].tier, runs }
}

/// Of runs of one tier those that should be merged, perhaps with the oldest run.
fn group(policy: MergePolicy, shapes: &[Shape], like: Range<usize>) -> Option<Range<usize>> {
    let oldest = shapes.len() - 1;
    let end = like.end.min(oldest);
    let count = end.saturating_sub(like.start).min(MAX_INPUTS);
    if count < policy.fan_out {
        return None;
    }
    let runs = end - count..end;
    let bytes: u64 = shapes[runs.clone()].iter().map(|shape| shape.bytes).sum();
    let takes_oldest =
        end == oldest && shapes[oldest].merge == 0 && bytes * policy.oldest_ratio >= shapes[oldest].bytes;
    Some(if takes_oldest { runs.start..end + 1 } else { runs })
}
