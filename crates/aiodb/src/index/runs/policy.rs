//! Which runs are merged next. Pure: it knows sizes, no bytes.
//!
//! Runs are tiered by their bytes: where so many of one tier follow each other, they become one run, mostly of the next tier. Where
//! the same keys are written again and again, that run is no longer than they were, and stays in their tier. The oldest run, which
//! has most of the keys, takes part only where the others together are not small beside it, so that it is not written again for
//! little. `docs/decisions/0040-sorted-runs.md` has the measurement.

use std::ops::Range;

use crate::config::MergePolicy;

/// Runs that are merged at once, at most: each takes a buffer.
const MAX_INPUTS: usize = 16;

/// Runs of the lowest tier have fewer bytes than so many times this as are merged at once.
pub(super) const LEAST_BYTES: u64 = 16 << 10;

/// Which runs are to become one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compaction {
    /// Those with records before this sequence, which may have later ones as well...
    pub(crate) until: u64,
    /// ...and of them the oldest only if the others together have at least one in so many of its bytes...
    pub(crate) least_share: u64,
    /// ...or if it has at most so many bytes: then it takes part in the last merge.
    pub(crate) most_bytes: u64,
}

impl Compaction {
    /// All runs; the oldest one by its share.
    pub(crate) const fn of_all(least_share: u64) -> Compaction {
        Compaction { until: u64::MAX, least_share, most_bytes: 0 }
    }
}

/// What the policy knows of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// The merge that it takes part in, 0 for none.
    pub(super) merge: u64,
    /// Bytes that a merge has yet to take in.
    pub(super) bytes: u64,
}

/// The merge of runs that a step has claimed, which may be its first one: then no run says yet that it takes part.
const CLAIMED: u64 = u64::MAX;

/// Runs that are being merged, or should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// Their places, newest first. The last one is where the merged entries go.
    pub(super) runs: Range<usize>,
    tier: u32,
}

/// The most useful merge of runs that no step has claimed: that of the lowest tier, which takes most runs away for the least work. A step
/// claims all runs of its merge.
pub(super) fn choose(policy: MergePolicy, shapes: &[Shape], claimed: &[Range<usize>]) -> Option<Job> {
    let mut shapes = shapes.to_vec();
    for (number, shape) in shapes.iter_mut().enumerate() {
        if claimed.iter().any(|runs| runs.contains(&number)) {
            shape.merge = CLAIMED;
        }
    }
    let is_free = |job: &Job| shapes[job.runs.start].merge != CLAIMED;
    jobs(policy, &shapes).into_iter().filter(is_free).min_by_key(|job| job.tier)
}

/// A merge on the way to one run, of all but the `left_out` newest: one that was begun, or one of the oldest runs, small or not; the
/// oldest itself only where it is wanted.
pub(super) fn choose_all(policy: MergePolicy, shapes: &[Shape], left_out: usize, wanted: Compaction) -> Option<Job> {
    let newer = shapes.len().checked_sub(1)?;
    let is_last = shapes.len() <= left_out + MAX_INPUTS;
    let takes_oldest = has_share(&shapes[left_out.min(newer)..], wanted.least_share)
        || is_last && shapes[newer].bytes <= wanted.most_bytes;
    let end = newer + usize::from(takes_oldest);
    let all = end.saturating_sub(MAX_INPUTS).max(left_out)..end;
    begun(policy, shapes).or_else(|| (all.len() > 1).then_some(Job { runs: all, tier: 0 }))
}

/// A merge for a store in which nothing else is to be done: as [`choose_all`], where the oldest run would be taken in by a policy to which
/// few runs are enough.
pub(super) fn choose_at_rest(policy: MergePolicy, shapes: &[Shape]) -> Option<Job> {
    let is_wanted = shapes.len() > 1 && has_share(shapes, policy.oldest_ratio);
    begun(policy, shapes)
        .or_else(|| is_wanted.then(|| Job { runs: shapes.len().saturating_sub(MAX_INPUTS)..shapes.len(), tier: 0 }))
}

/// A merge that was begun.
fn begun(policy: MergePolicy, shapes: &[Shape]) -> Option<Job> {
    jobs(policy, shapes).into_iter().find(|job| shapes[job.runs.start].merge > 0)
}

/// Where a run comes, newest first, whose keys are in no other: behind those that are shorter, which would count as long as it otherwise and
/// be merged with it. Not between runs of a merge that was begun, nor behind one that has the oldest.
pub(super) fn place_of_new(shapes: &[Shape], bytes: u64) -> usize {
    let mut at = shapes.iter().position(|shape| shape.bytes >= bytes).unwrap_or(shapes.len());
    let in_merge = |at: usize| {
        let merge = shapes[at - 1].merge;
        merge > 0 && shapes.get(at).is_none_or(|older| older.merge == merge)
    };
    while at > 0 && in_merge(at) {
        at -= 1;
    }
    at
}

/// Whether the newer runs together have at least one in so many bytes of the oldest.
fn has_share(shapes: &[Shape], of: u64) -> bool {
    shapes.split_last().is_some_and(|(oldest, newer)| {
        let bytes: u64 = newer.iter().map(|shape| shape.bytes).sum();
        bytes.saturating_mul(of) >= oldest.bytes
    })
}

/// The runs that merges wait for or have begun, more of each tier than one merge takes in among them.
pub(super) fn waiting(policy: MergePolicy, shapes: &[Shape]) -> Vec<Range<usize>> {
    jobs_of_up_to(usize::MAX, policy, shapes).into_iter().map(|job| job.runs).collect()
}

/// Merges that were begun, and those that can be; shapes are newest first.
fn jobs(policy: MergePolicy, shapes: &[Shape]) -> Vec<Job> {
    jobs_of_up_to(MAX_INPUTS, policy, shapes)
}

/// [`jobs`] of so many runs each, at most.
fn jobs_of_up_to(most: usize, policy: MergePolicy, shapes: &[Shape]) -> Vec<Job> {
    let (tiers, mut jobs) = (tiers(policy, shapes), Vec::new());
    let mut at = 0;
    while at < shapes.len() {
        let (merge, tier) = (shapes[at].merge, tiers[at]);
        let is_like_first = |number: &usize| match merge {
            0 => (shapes[*number].merge, tiers[*number]) == (0, tier),
            merge => shapes[*number].merge == merge,
        };
        let end = at + (at..shapes.len()).take_while(is_like_first).count();
        if merge > 0 {
            jobs.push(Job { runs: at..end, tier });
        } else if let Some(runs) = group(most, policy, shapes, at..end) {
            jobs.push(Job { runs, tier });
        }
        at = end;
    }
    jobs
}

/// The tiers of runs, newest first. A run that is shorter than a newer one counts as long as that: it would be left alone between longer
/// ones otherwise.
fn tiers(policy: MergePolicy, shapes: &[Shape]) -> Vec<u32> {
    let times = (policy.fan_out as u64).max(2);
    let mut highest = 0;
    let tier_of = |shape: &Shape| {
        highest = (shape.bytes / LEAST_BYTES).max(1).ilog(times).max(highest);
        highest
    };
    shapes.iter().map(tier_of).collect()
}

/// Of runs of one tier those that should be merged, so many at most, perhaps with the oldest run.
fn group(most: usize, policy: MergePolicy, shapes: &[Shape], like: Range<usize>) -> Option<Range<usize>> {
    let oldest = shapes.len() - 1;
    let end = like.end.min(oldest);
    let count = end.saturating_sub(like.start).min(most);
    if count < policy.fan_out {
        return None;
    }
    let runs = end - count..end;
    let bytes: u64 = shapes[runs.clone()].iter().map(|shape| shape.bytes).sum();
    let takes_oldest =
        end == oldest && shapes[oldest].merge == 0 && bytes * policy.oldest_ratio >= shapes[oldest].bytes;
    Some(if takes_oldest { runs.start..end + 1 } else { runs })
}
