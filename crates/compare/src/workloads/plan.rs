//! What is measured, how long and how often.

use super::Options;
use super::child::{Point, Workload};
use crate::engine::{IN_FLIGHT, Reads, TOGETHER};
use std::time::Duration;

/// Ways to read that only some engines have, with the most threads that use them: they are for reading much from few.
const FEW_THREADS: [(Reads, u32); 2] = [(IN_FLIGHT, 2), (TOGETHER, 8)];

/// Threads that scan or write at most: more would only wait for each other on few cores.
const MAX_BATCH_THREADS: u32 = 8;

/// The options with their defaults filled in.
#[derive(Debug)]
pub struct Plan {
    /// Pairs in each store.
    pub pairs: u64,
    threads: Vec<u32>,
    duration: Duration,
    rounds: u32,
    quick: bool,
}

/// A number of rounds of the same points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// How often.
    pub rounds: u32,
    /// What.
    pub points: Vec<Point>,
    /// For how long each.
    pub duration: Duration,
    /// How long the same is done before each.
    pub warm_up: Duration,
}

impl Plan {
    /// What the command line asks for.
    pub fn of(options: &Options) -> Plan {
        let quick = options.quick;
        let default_threads: &[u32] = if quick { &[1, 8, 64] } else { &[1, 2, 4, 8, 16, 32, 64] };
        Plan {
            pairs: options.pairs.unwrap_or(if quick { 250_000 } else { 500_000 }),
            threads: if options.threads.is_empty() { default_threads.to_vec() } else { options.threads.clone() },
            duration: Duration::from_millis(options.milliseconds.unwrap_or(if quick { 600 } else { 3_000 })),
            rounds: options.rounds.unwrap_or(if quick { 3 } else { 5 }),
            quick,
        }
    }

    /// Each setting at the points that tell settings apart; writes come last, since they change the store.
    pub fn sweep(&self) -> Vec<Rounds> {
        let ends = |point: &Point| {
            let first = self.threads.first() == Some(&point.threads);
            let last = self.threads.last() == Some(&point.threads);
            first || last || point.threads == MAX_BATCH_THREADS
        };
        let of = |wanted: &dyn Fn(&Point) -> bool| Rounds {
            rounds: 2,
            points: self.points().into_iter().filter(|point| wanted(point) && ends(point)).collect(),
            duration: self.duration / 2,
            warm_up: self.duration / 4,
        };
        vec![of(&|point| point.workload.only_reads()), of(&|point| !point.workload.only_reads())]
    }

    /// The comparison itself.
    pub fn comparison(&self) -> Vec<Rounds> {
        let of = |rounds, only_reads| Rounds {
            rounds,
            points: self.points().into_iter().filter(|point| point.workload.only_reads() == only_reads).collect(),
            duration: self.duration,
            warm_up: self.duration / 2,
        };
        vec![of(self.rounds, true), of(if self.quick { 1 } else { self.rounds }, false)]
    }

    fn points(&self) -> Vec<Point> {
        use Workload::*;
        let singly = |workload| {
            let one_by_one =
                self.threads.iter().map(move |&threads| Point { workload, threads, reads: Reads::OneByOne });
            let few = FEW_THREADS.into_iter().flat_map(move |(reads, most)| {
                let threads = self.threads.iter().filter(move |&&threads| threads <= most);
                threads.map(move |&threads| Point { workload, threads, reads })
            });
            one_by_one.chain(few)
        };
        let batches = |workload, most: u32| {
            let threads = self.threads.iter().filter(move |&&threads| threads <= most);
            threads.map(move |&threads| Point { workload, threads, reads: Reads::OneByOne })
        };
        let mixed = [Mixed95, Mixed50].into_iter().flat_map(singly).filter(|point| {
            // A few numbers of threads show what mixing does.
            !self.quick || point.threads <= MAX_BATCH_THREADS && !matches!(point.reads, Reads::Together(_))
        });
        let batch_threads = if self.quick { 1 } else { MAX_BATCH_THREADS };
        let reads = singly(Read).chain(batches(Scan, MAX_BATCH_THREADS)).chain(batches(FullScan, 1));
        reads.chain(mixed).chain(batches(Overwrite, batch_threads)).chain(batches(Bulk, batch_threads)).collect()
    }
}
