//! The conversation of a merge with the compaction filters of its tables.
//!
//! A merge keeps what a filter gives up: it is deleted afterwards by a record in the log, if nothing newer has come. So the index does not
//! lead, and one that is made again from the log has what was given up as little.

use std::sync::Arc;

use super::filtering::{self, EntryMark, Filtering, Marker, Passes, only_put, plain_value};
use crate::filter::{FilterEntry, FilterRange, GuardedPass, TableFilter, Verdict};
use crate::format::run::marks::NEVER;
use crate::index::chain::VersionChain;
use crate::index::codec::table_of;
use crate::planted::{self, Bug};

/// Entries that a filter is asked about at once.
const ASKED_AT_ONCE: usize = 256;

/// Keys wait for a filter's answer until they have so many bytes, with their values.
const MAX_WAITING_BYTES: usize = 256 << 10;

/// What a merge has left of a key.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) chain: VersionChain,
    /// The latest life of the segments to which its entries lead.
    pub(super) latest_life: u64,
    /// What was noted of its inputs for filters.
    pub(super) carried: EntryMark,
}

/// A key that waits for what is written before it.
struct Waiting {
    key: Box<[u8]>,
    taken: Taken,
    mark: EntryMark,
    /// Whether the filter is to be asked.
    is_asked: bool,
    /// The value to be shown.
    value: Option<Arc<[u8]>>,
}

/// A merge in its conversation with filters.
pub(super) struct Asking<'a> {
    marker: Marker<'a>,
    passes: Passes,
    has_oldest: bool,
    /// Whether there was room for what filters give up when this step began: it may give up as much as a file has.
    may_ask: bool,
    /// Records that are newer are not asked about: the oldest snapshot does not see them.
    newest: u64,
    waiting: Vec<Waiting>,
    waiting_bytes: usize,
    /// Whether a filter is to be asked about a key that waits.
    is_question: bool,
    asked: usize,
}

/// A key whose fate is known.
pub(super) struct Decided {
    pub(super) key: Box<[u8]>,
    pub(super) taken: Taken,
    pub(super) mark: EntryMark,
    pub(super) is_dropped: bool,
}

impl<'a> Asking<'a> {
    pub(super) fn new(
        filtering: &'a Filtering<'a>,
        mut passes: Passes,
        oldest_snapshot: u64,
        has_oldest: bool,
    ) -> Asking<'a> {
        let newest = if planted::is_on(Bug::AskedAboveSnapshot) { u64::MAX } else { oldest_snapshot };
        let may_ask = filtering.asks && (filtering.has_room)();
        if !may_ask {
            // It would miss what this step passes by.
            passes.pass = None;
        }
        Asking {
            marker: Marker::new(filtering),
            passes,
            has_oldest,
            may_ask,
            newest,
            waiting: Vec::new(),
            waiting_bytes: 0,
            is_question: false,
            asked: 0,
        }
    }

    /// What filters know, for the next step.
    pub(super) fn into_passes(self) -> Passes {
        self.passes
    }

    /// Whether a step should end here, since nothing more can be given up for now.
    pub(super) fn is_full(&self) -> bool {
        self.asked > 0 && !(self.marker.filtering.has_room)()
    }

    /// Bytes of what waits, about.
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes as u64
    }

    /// Whether all that waits is to be decided before this key is offered.
    pub(super) fn is_due_before(&self, key: &[u8]) -> bool {
        let is_full = self.waiting.len() >= ASKED_AT_ONCE || self.waiting_bytes >= MAX_WAITING_BYTES;
        self.waiting.last().is_some_and(|last| is_full || table_of(&last.key) != table_of(key))
    }

    /// Takes what a merge has left of a key.
    pub(super) fn offer(&mut self, key: Box<[u8]>, taken: Taken) {
        let (mark, is_asked) = self.question(&key, &taken.chain, taken.carried);
        let value = if is_asked { taken.chain.newest().and_then(plain_value) } else { None };
        self.is_question |= is_asked;
        self.waiting_bytes += key.len() + taken.chain.inline_bytes() + value.as_ref().map_or(0, |value| value.len());
        self.waiting.push(Waiting { key, taken, mark, is_asked, value });
    }

    /// What is noted of a key, and whether its filter is to be asked about it.
    fn question(&mut self, key: &[u8], chain: &VersionChain, carried: EntryMark) -> (EntryMark, bool) {
        let table = table_of(key);
        self.marker.come_to(table);
        if self.passes.pass.as_ref().is_some_and(|(of, _)| *of != table) {
            self.passes.pass = None;
        }
        let Some((_, entry)) = only_put(key, chain) else { return (EntryMark::NEVER, false) };
        match &self.marker.filter {
            TableFilter::None => return (EntryMark::NEVER, false),
            TableFilter::Unregistered => return (carried.asked(), false),
            TableFilter::Registered(..) => {}
        }
        let is_at_work = match &self.passes.pass {
            _ if chain.is_partial() => return (carried.asked(), false),
            Some((_, None)) => return (carried.asked(), false),
            Some((_, Some(_))) => true,
            None => self.is_question,
        };
        let may_go = is_at_work || carried.mark <= self.passes.now_ms;
        (carried, may_go && self.may_ask && entry.sequence <= self.newest)
    }

    /// Decides what becomes of the keys that wait.
    pub(super) fn decide(&mut self) -> Vec<Decided> {
        let waiting = std::mem::take(&mut self.waiting);
        (self.waiting_bytes, self.is_question) = (0, false);
        let mut verdicts = self.judge(&waiting).unwrap_or_default().into_iter();
        let decided = |waiting: Waiting| {
            let verdict = if waiting.is_asked { verdicts.next() } else { None };
            let is_dropped = verdict == Some(Verdict::Drop);
            let mark = match verdict {
                Some(Verdict::Keep) => self.mark_kept(&waiting),
                Some(Verdict::Drop) => self.mark_dropped(&waiting),
                // Also where the filter has panicked.
                None if waiting.is_asked => waiting.mark.asked(),
                None => waiting.mark,
            };
            Decided { key: waiting.key, taken: waiting.taken, mark, is_dropped }
        };
        waiting.into_iter().map(decided).collect()
    }

    /// The verdicts on the entries that are asked about, in their order; `None` if there are none.
    fn judge(&mut self, waiting: &[Waiting]) -> Option<Vec<Verdict>> {
        let entries: Vec<_> = waiting.iter().filter(|waiting| waiting.is_asked).map(seen).collect();
        let (first, TableFilter::Registered(name, filter)) = (entries.first()?, &self.marker.filter) else {
            return None;
        };
        let filtering = self.marker.filtering;
        let range = FilterRange::new(first.key, self.passes.now_ms, self.has_oldest);
        let (_, pass) = self.passes.pass.get_or_insert_with(|| {
            let begun = GuardedPass::begin(name, &**filter, &range).inspect_err(filtering.failed);
            (self.marker.table, begun.ok())
        });
        let mut verdicts = vec![Verdict::default(); entries.len()];
        let judged = pass.as_mut().map_or(Ok(()), |pass| pass.judge(&entries, &mut verdicts));
        if judged.inspect_err(filtering.failed).is_err() {
            *pass = None;
        }
        self.asked += entries.len();
        (filtering.asked)(entries.len());
        if planted::is_on(Bug::VerdictOfNeighbour) {
            verdicts.rotate_right(1);
        }
        pass.is_some().then_some(verdicts)
    }

    /// The mark of an entry that its filter has kept at the time of this merge.
    fn mark_kept(&mut self, waiting: &Waiting) -> EntryMark {
        let mark = self.marker.mark_here(&waiting.key, &waiting.taken.chain);
        if mark.due_ms <= self.passes.now_ms { EntryMark { mark: mark.mark, ..EntryMark::NEVER } } else { mark }
    }

    /// Tells of an entry that its filter has given up. Who opens the file later asks again, in case its delete is lost.
    fn mark_dropped(&self, waiting: &Waiting) -> EntryMark {
        let filtering = self.marker.filtering;
        if let Some((user_key, entry)) = only_put(&waiting.key, &waiting.taken.chain)
            && !planted::is_on(Bug::FilteredInPlace)
        {
            (filtering.dropped)(self.marker.table, user_key, entry.sequence);
        }
        // What went for the sake of another may not find that again.
        let mark = waiting.mark.mark.min(self.passes.now_ms);
        EntryMark { mark, due_ms: mark, next_due_ms: NEVER }
    }
}

/// An entry as its filter sees it.
fn seen(waiting: &Waiting) -> FilterEntry<'_> {
    let (key, entry) = only_put(&waiting.key, &waiting.taken.chain).expect("only such entries are asked about");
    filtering::seen(key, entry, waiting.value.as_deref())
}
