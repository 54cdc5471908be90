//! Whether the runs say what the model says.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::{KEYS, Model, World};
use crate::Result;
use crate::index::chain::VersionChain;
use crate::index::codec::table_of;
use crate::index::memtable::parts::Chains;
use crate::index::memtable::{RangeQuery, Reached};
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::runs::scan::RunWalk;
use crate::index::runs::tests::segments::{Counts, Segments};
use crate::index::snapshots::View;
use crate::io::{AlignedBuffer, File};

impl World {
    /// Compares everything with the model.
    pub(in super::super) fn check(&self) {
        self.check_view(&self.model, &View::LATEST);
        for (_, sequence, model) in &self.open_snapshots {
            self.check_view(model, &View { sequence: *sequence, ..View::LATEST });
        }
        self.check_ranges();
        self.check_counts();
    }

    /// Looks everything up; the first error that it meets.
    pub(in super::super) fn try_check(&self) -> Result<()> {
        for key in self.model.keys() {
            let found = self.lookup(key, &View::LATEST)?.without_delete();
            assert_same(&found, &self.model[key].clone().without_delete(), &View::LATEST);
        }
        self.runs().for_each_entry(&mut |_, _, _| Ok(()))
    }

    fn check_view(&self, model: &Model, view: &View) {
        for table in &self.tables {
            for number in 0..KEYS {
                let key = [&table.to_be_bytes()[..], format!("key{number:04}").as_bytes()].concat();
                let found = self.lookup(&key, view).expect("nothing fails").without_delete();
                let known = model.get(&key).cloned().unwrap_or_default().without_delete();
                assert_same(&found, &known, view);
            }
        }
    }

    /// Scans all runs in small parts, both ways, with a walk that goes on and with new ones.
    fn check_ranges(&self) {
        for (backward, goes_on) in [(false, false), (false, true), (true, false), (true, true)] {
            let (mut found, mut walk) = (Chains::new(), RunWalk::default());
            let (mut start, mut end) = (Bound::Unbounded, Bound::Unbounded);
            loop {
                let range = (as_slice(&start), as_slice(&end));
                let query = RangeQuery { range, whole: range, backward, limit: 7, newest: u64::MAX, cached: goes_on };
                let (part, reached) = self.runs().range(query, &mut walk).expect("nothing fails");
                found.extend(part);
                if !goes_on {
                    walk = RunWalk::default();
                }
                match reached {
                    Reached::End => break,
                    Reached::Key(key) if backward => end = Bound::Excluded(key),
                    Reached::Key(key) => start = Bound::Excluded(key),
                }
            }
            for (key, chain) in &found {
                let mut alone = VersionChain::default();
                let mut look_up = self.runs().begin_lookup(key, u64::MAX).expect("it is open");
                look_up.finish(key, &mut alone).expect("nothing fails");
                assert_same(chain, &alone, &View::LATEST);
                assert_same(chain, &self.lookup_in_steps(key).expect("nothing fails"), &View::LATEST);
            }
            let mut known = BTreeSet::new();
            self.runs()
                .for_each_entry(&mut |key, _, _| {
                    known.insert(Box::<[u8]>::from(key));
                    Ok(())
                })
                .expect("nothing fails");
            assert!(known.iter().map(|key| &key[..]).eq(found.keys().map(|key| &key[..])), "a scan finds every key");
        }
    }

    /// A look-up in the runs as a pipelined reader makes it.
    fn lookup_in_steps(&self, key: &[u8]) -> Result<VersionChain> {
        let mut chain = VersionChain::default();
        let mut look_up = self.runs().begin_lookup(key, u64::MAX)?;
        while look_up.proceed(key, &mut chain)? {
            let AwaitedBytes { file, offset, length } = look_up.awaited();
            let mut bytes = AlignedBuffer::new(length);
            assert_eq!(file.read_at(&mut bytes, offset).map_err(|error| look_up.read_error(&error))?, length);
            look_up.take_in(key, &bytes, &mut chain)?;
        }
        Ok(chain)
    }

    /// The counts of the runs, of lives that go on.
    pub(super) fn counts_of_runs(&self) -> Counts {
        let (live, chunks) = (self.runs().live().expect("it is open"), self.runs().live_chunks().expect("it is open"));
        let goes_on = |segment, life| self.segments.life_of(segment) == life;
        let live = live.iter().filter(|count| goes_on(count.segment, count.life));
        let chunks = chunks.iter().filter(|(_, count)| goes_on(count.segment, count.life));
        let live = live.map(|count| (count.segment, (count.bytes, count.records))).collect();
        (live, chunks.map(|(table, count)| ((*table, count.segment), count.bytes)).collect())
    }

    /// The counts are what is there, superseded entries included.
    fn check_counts(&self) {
        let recount = Segments::default();
        let mut tables = BTreeSet::new();
        self.runs()
            .for_each_entry(&mut |key, entry, next_life| {
                let life = self.segments.life_of(entry.location.segment);
                if life > 0 && life < next_life {
                    recount.count(key, entry, 1);
                }
                tables.insert(table_of(key));
                Ok(())
            })
            .expect("nothing fails");
        assert!(tables.is_subset(&self.runs().tables().expect("it is open")));
        let mut counted = self.counts_of_runs();
        counted.1.retain(|(table, _), _| !self.gone.contains(table));
        self.assert_counts(counted, recount.counts(&self.gone), "the counts of the runs");
        let range = (Bound::Unbounded, Bound::Unbounded);
        let all =
            RangeQuery { range, whole: range, backward: false, limit: usize::MAX, newest: u64::MAX, cached: false };
        let (in_memtables, _) = self.memtable.range(all);
        if self.unfinished.is_none() {
            for (key, chain) in &in_memtables {
                chain.entries().iter().for_each(|entry| recount.count(key, entry, 1));
            }
            let (in_memory, expected) = (self.segments.counts(&self.gone), recount.counts(&self.gone));
            self.assert_counts(in_memory, expected, "what is counted in memory");
        }
    }

    /// Chunks are counted by file: while a merge is going on, those of entries that it has taken in count twice.
    fn assert_counts(&self, found: Counts, expected: Counts, what: &str) {
        assert_eq!(found.0, expected.0, "{what}");
        if self.runs().set().expect("it is open").runs.iter().all(|run| run.merge == 0) {
            assert_eq!(found.1, expected.1, "{what}: chunks");
        }
        for (key, bytes) in expected.1 {
            assert!(found.1.get(&key).is_some_and(|found| *found >= bytes), "{what}: too few chunks in {key:?}");
        }
    }
}

/// What is retained for a snapshot has no inline values: the log has them.
fn assert_same(found: &VersionChain, known: &VersionChain, view: &View) {
    assert_eq!(found.entries(), known.entries(), "at {}", view.sequence);
    for (found, known) in found.entries().iter().zip(known.entries()) {
        let may_lack_it = !view.is_latest() && found.inline.is_none();
        assert!(may_lack_it || found.inline == known.inline, "at {}: {found:?} {known:?}", view.sequence);
    }
}

fn as_slice(bound: &Bound<Box<[u8]>>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}
