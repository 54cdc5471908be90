//! Which filters of sorted runs are in memory: all, as long as there is room for them.
//!
//! A filter saves a look-up a read of its run, whatever the size of the run. So filters of small runs save the most for their bytes, and
//! those of the largest ones go first. A put in a `hash` table looks its key up, and one in an `lsm` table does not: filters of `hash`
//! tables go last. (Method: Dayan, Athanassoulis and Idreos, "Monkey: Optimal Navigable Key-Value Store", SIGMOD 2017, which gives
//! small runs more bits a key than large ones; here a filter has all its bits or none.)

use std::sync::{Arc, TryLockError};

use super::Runs;
use super::file::RunFile;
use super::set::{Run, RunSet};
use crate::Result;
use crate::io::Device;

/// Filters come back to memory where they leave one part in so many of their room free, so that none comes and goes.
const SLACK_SHARE: u64 = 16;

/// The files of a run, for their filters.
pub(crate) struct FilteredRun<D: Device> {
    /// Whether puts look keys up in it.
    pub(super) is_asked_by_puts: bool,
    pub(super) files: Vec<Arc<RunFile<D>>>,
}

/// A file whose filter is not in memory, where there is room for it.
pub(crate) struct LeftOut<D: Device>(Arc<RunFile<D>>);

impl<D: Device> LeftOut<D> {
    /// Reads the filter.
    pub(crate) fn load(&self) -> Result<()> {
        self.0.load_filter()
    }
}

impl<D: Device> FilteredRun<D> {
    pub(super) fn new(run: &Run<D>, is_asked_by_puts: bool) -> FilteredRun<D> {
        FilteredRun { is_asked_by_puts, files: run.pieces().map(|piece| Arc::clone(piece.file)).collect() }
    }

    fn filter_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.filter_bytes()).sum()
    }
}

/// What came of a look at filters.
pub(crate) struct Fitted<D: Device> {
    /// Those that can come back, the most useful first.
    pub(crate) back: Vec<LeftOut<D>>,
    /// Bytes of those that are not in memory.
    pub(crate) left_out_bytes: u64,
}

/// Gives back the filters of the runs that lie beyond `room`, the most useful counted first. Sets of runs keep those that they have: see
/// [`Runs::take_filters`]. `in_memory` are the bytes of all filters there, those of files too that no run has yet or any more: while there are such,
/// fewer come back.
pub(crate) fn fit_filters<D: Device>(mut runs: Vec<FilteredRun<D>>, room: u64, in_memory: u64) -> Fitted<D> {
    runs.sort_by_cached_key(|run| (!run.is_asked_by_puts, run.filter_bytes()));
    let mut fitted = Fitted { back: Vec::new(), left_out_bytes: 0 };
    let (mut bytes, mut kept) = (0, 0);
    let mut can_be_back = Vec::new();
    for file in runs.iter().flat_map(|run| &run.files) {
        bytes += file.filter_bytes();
        if bytes > room {
            file.give_filter_back();
        }
        if file.can_load_filter() {
            fitted.left_out_bytes += file.filter_bytes();
            can_be_back.push((bytes, file));
        } else {
            kept += file.filter_bytes();
        }
    }
    let elsewhere = in_memory.saturating_sub(kept);
    let most = (room - room / SLACK_SHARE).saturating_sub(elsewhere);
    let fitting = can_be_back.into_iter().take_while(|(bytes, _)| *bytes <= most);
    fitted.back.extend(fitting.map(|(_, file)| LeftOut(Arc::clone(file))));
    fitted
}

impl<D: Device> RunSet<D> {
    /// All runs, for their filters.
    pub(super) fn filtered(&self, is_asked_by_puts: bool) -> impl Iterator<Item = FilteredRun<D>> {
        self.runs.iter().map(move |run| FilteredRun::new(run, is_asked_by_puts))
    }
}

impl<D: Device> Runs<D> {
    /// All runs, for their filters.
    pub(crate) fn filtered(&self) -> Vec<FilteredRun<D>> {
        self.set().map_or_else(|_| Vec::new(), |set| set.filtered(false).collect())
    }

    /// Look-ups that begin from now on know which filters have left memory or come there. Where the set is being changed, the next call does
    /// it.
    pub(crate) fn take_filters(&self) {
        let editing = match self.editing.try_lock() {
            Err(TryLockError::WouldBlock) => return,
            editing => editing.expect("no code panics while it makes an edit"),
        };
        if let Some(set) = self.set().ok().and_then(|set| set.with_present_filters()) {
            let mut now = self.set.write().expect("no code panics while it holds the set");
            // A store that is closed has none.
            if now.is_some() {
                *now = Some(Arc::new(set));
            }
        }
        drop(editing);
    }
}
