//! What runs have done, in numbers.

use aiodb::io::Phase;
use aiodb::io::sim::Counters;

/// More operations between two crashes than this are counted as this many.
const MOST_COUNTED: usize = 1000;

/// Sums over runs.
#[derive(Clone, Debug)]
pub struct Report {
    /// Scripts run.
    pub runs: u64,
    /// Crashes followed by a recovery that was checked, and how many of them were power cuts.
    pub cycles: u64,
    /// See `cycles`.
    pub power_cuts: u64,
    /// Further crashes, during recovery.
    pub crashes_in_recovery: u64,
    /// Stores closed and opened again.
    pub reopened: u64,
    /// Operations performed.
    pub operations: u64,
    /// Answers compared with the model, those after recoveries included.
    pub answers: u64,
    /// Scans compared with the model.
    pub scans: u64,
    /// Stores verified and recounted.
    pub verified: u64,
    /// Restore points made.
    pub backups: u64,
    /// Stores restored and compared.
    pub restores: u64,
    /// Crashes inside each phase, in the order of [`Phase::ALL`]. A crash counts for all phases that it is in.
    pub phases: [u64; Phase::ALL.len()],
    /// Crashes in none.
    pub no_phase: u64,
    /// Crashes after which LMDB's file was as it was, was an earlier one, was missing.
    pub index_states: [u64; 3],
    /// Bytes changed at rest.
    pub rotten_bytes: u64,
    /// Runs that ended because damage was reported.
    pub damage_reported: u64,
    /// Recoveries that lost the log's end to damage and could not know it.
    pub damage_beyond_detection: u64,
    /// What the simulated machines counted.
    pub machine: Counters,
    /// How many times there were so many operations between two crashes.
    between: Vec<u64>,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            runs: 0,
            cycles: 0,
            power_cuts: 0,
            crashes_in_recovery: 0,
            reopened: 0,
            operations: 0,
            answers: 0,
            scans: 0,
            verified: 0,
            backups: 0,
            restores: 0,
            phases: [0; Phase::ALL.len()],
            no_phase: 0,
            index_states: [0; 3],
            rotten_bytes: 0,
            damage_reported: 0,
            damage_beyond_detection: 0,
            machine: Counters::default(),
            between: vec![0; MOST_COUNTED + 1],
        }
    }
}

impl Report {
    /// Takes note of a crash in these phases, so many operations after the one before.
    pub fn crashed(&mut self, phases: &[Phase], operations: usize) {
        for (count, phase) in self.phases.iter_mut().zip(Phase::ALL) {
            *count += u64::from(phases.contains(&phase));
        }
        self.no_phase += u64::from(phases.is_empty());
        self.between[operations.min(MOST_COUNTED)] += 1;
    }

    /// Operations between two crashes: the median.
    pub fn median_operations(&self) -> usize {
        let half = self.between.iter().sum::<u64>() / 2;
        let mut sum = 0;
        let reached = self.between.iter().position(|count| {
            sum += count;
            sum > half
        });
        reached.unwrap_or(0)
    }

    /// Adds what a run's machine has counted.
    pub fn add_machine(&mut self, counted: &Counters) {
        let sum = &mut self.machine;
        let pairs = [
            (&mut sum.steps, counted.steps),
            (&mut sum.read_bytes, counted.read_bytes),
            (&mut sum.writes, counted.writes),
            (&mut sum.syncs, counted.syncs),
            (&mut sum.crashes, counted.crashes),
            (&mut sum.torn_writes, counted.torn_writes),
            (&mut sum.lost_sectors, counted.lost_sectors),
            (&mut sum.lost_names, counted.lost_names),
            (&mut sum.lost_writes, counted.lost_writes),
            (&mut sum.lost_syncs, counted.lost_syncs),
            (&mut sum.misdirected_writes, counted.misdirected_writes),
            (&mut sum.delayed_calls, counted.delayed_calls),
            (&mut sum.refused_for_space, counted.refused_for_space),
        ];
        pairs.into_iter().for_each(|(sum, counted)| *sum += counted);
        sum.failed.iter_mut().zip(counted.failed).for_each(|(sum, counted)| *sum += counted);
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let machine = &self.machine;
        writeln!(f, "runs                         {:>12}", self.runs)?;
        writeln!(f, "crashes and recoveries       {:>12}", self.cycles)?;
        writeln!(f, "  of them power cuts         {:>12}", self.power_cuts)?;
        writeln!(f, "  crashes during recovery    {:>12}", self.crashes_in_recovery)?;
        writeln!(f, "  operations between, median {:>12}", self.median_operations())?;
        writeln!(f, "closed and opened again      {:>12}", self.reopened)?;
        writeln!(f, "operations                   {:>12}", self.operations)?;
        writeln!(f, "answers checked              {:>12}", self.answers)?;
        writeln!(f, "scans checked                {:>12}", self.scans)?;
        writeln!(f, "stores verified, recounted   {:>12}", self.verified)?;
        writeln!(f, "backups made                 {:>12}", self.backups)?;
        writeln!(f, "  restored and compared      {:>12}", self.restores)?;
        writeln!(f, "crashes inside")?;
        for (phase, count) in Phase::ALL.iter().zip(self.phases) {
            writeln!(f, "  {:<26} {count:>12}", format!("{phase:?}"))?;
        }
        writeln!(f, "  {:<26} {:>12}", "none of these", self.no_phase)?;
        writeln!(f, "LMDB's file after a crash")?;
        for (state, count) in ["as it was", "an earlier state", "missing"].iter().zip(self.index_states) {
            writeln!(f, "  {state:<26} {count:>12}")?;
        }
        writeln!(f, "faults")?;
        let faults = [
            ("torn writes", machine.torn_writes),
            ("sectors lost by power cuts", machine.lost_sectors),
            ("names lost by power cuts", machine.lost_names),
            ("failed reads", machine.failed[0]),
            ("failed writes", machine.failed[1]),
            ("failed flushes", machine.failed[2]),
            ("refusals for lack of space", machine.refused_for_space),
            ("delayed calls", machine.delayed_calls),
            ("lost writes", machine.lost_writes),
            ("lost flushes", machine.lost_syncs),
            ("misdirected writes", machine.misdirected_writes),
            ("rotten bytes", self.rotten_bytes),
        ];
        for (name, count) in faults {
            writeln!(f, "  {name:<26} {count:>12}")?;
        }
        writeln!(f, "damage reported, run ended   {:>12}", self.damage_reported)?;
        write!(f, "damage beyond detection      {:>12}", self.damage_beyond_detection)
    }
}
