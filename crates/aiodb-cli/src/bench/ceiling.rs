//! What the device itself gives at a depth and block size: the faster of `fio` and our own raw loop.

use std::time::Duration;

use super::fio::{Fio, FioEngine};
use super::raw::{RawReads, ReadSample};
use super::stats::Summary;
use crate::CliError;

/// A way to measure the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Fio(Fio, FioEngine),
    Raw,
}

impl Source {
    /// The name in tables and reports.
    pub(crate) fn name(&self) -> String {
        match self {
            Source::Fio(fio, engine) => format!("{} {}", fio.version, engine.name()),
            Source::Raw => "raw loop".to_owned(),
        }
    }

    pub(crate) fn measure(&self, reads: &RawReads, duration: Duration) -> Result<ReadSample, CliError> {
        match self {
            Source::Fio(fio, engine) => fio.read(*engine, reads, duration),
            Source::Raw => reads.run(duration),
        }
    }
}

/// The ways to measure the device that work on this machine.
pub(crate) struct Sources {
    usable: Vec<Source>,
    /// What could not be used and why.
    pub notes: Vec<String>,
}

impl Sources {
    /// Tries each way once, shortly. A container may forbid io_uring; `fio` may be missing.
    pub(crate) fn probe(reads: &RawReads) -> Sources {
        let mut sources = Sources { usable: Vec::new(), notes: Vec::new() };
        match Fio::find() {
            Some(fio) => {
                let _works = sources.try_source(Source::Fio(fio.clone(), FioEngine::IoUring), reads)
                    || sources.try_source(Source::Fio(fio, FioEngine::Libaio), reads);
            }
            None => sources.notes.push("fio is not installed: the ceiling is the raw loop alone".to_owned()),
        }
        sources.try_source(Source::Raw, reads);
        if sources.usable.is_empty() {
            sources
                .notes
                .push("the device itself could not be measured: there is no ceiling to compare with".to_owned());
        }
        sources
    }

    fn try_source(&mut self, source: Source, reads: &RawReads) -> bool {
        match source.measure(reads, Duration::from_millis(50)) {
            Ok(_) => self.usable.push(source.clone()),
            Err(error) => self.notes.push(format!("{} is not used as a ceiling: {error}", source.name())),
        }
        self.usable.contains(&source)
    }

    /// Measures every way `rounds` times in turn and chooses the one with the highest median. The choice is made
    /// before the paired rounds and not from them: the larger of two noisy values in every round would be too high.
    /// A way that fails at this depth is left out of the choice, and noted.
    pub(crate) fn choose(
        &self,
        reads: &RawReads,
        rounds: usize,
        duration: Duration,
        notes: &mut Vec<String>,
    ) -> Option<Ceiling> {
        let mut samples: Vec<Result<Vec<ReadSample>, CliError>> = self.usable.iter().map(|_| Ok(Vec::new())).collect();
        for _ in 0..rounds.max(1) {
            for (source, samples) in self.usable.iter().zip(&mut samples) {
                if let Ok(sampled) = samples {
                    match source.measure(reads, duration) {
                        Ok(sample) => sampled.push(sample),
                        Err(error) => *samples = Err(error),
                    }
                }
            }
        }
        let mut measured = Vec::new();
        for (source, samples) in self.usable.iter().zip(samples) {
            match samples {
                Ok(samples) => measured.push((source.clone(), median(&samples))),
                Err(error) => notes.push(format!("{} is no ceiling at depth {}: {error}", source.name(), reads.depth)),
            }
        }
        let fastest = measured.iter().max_by(|a, b| a.1.reads_per_s.total_cmp(&b.1.reads_per_s)).cloned();
        fastest.map(|(source, sample)| Ceiling { source, warm_up_reads_per_s: sample.reads_per_s, measured })
    }
}

fn median(samples: &[ReadSample]) -> ReadSample {
    let of = |value: fn(&ReadSample) -> f64| {
        let values: Vec<f64> = samples.iter().map(value).collect();
        Summary::of(&values).expect("at least one round was measured").median
    };
    ReadSample { reads_per_s: of(|s| s.reads_per_s), cpu_us_per_read: of(|s| s.cpu_us_per_read) }
}

/// The chosen way for one point.
pub(crate) struct Ceiling {
    pub source: Source,
    /// What it gave when it was chosen; a later round far below this is marked.
    pub warm_up_reads_per_s: f64,
    measured: Vec<(Source, ReadSample)>,
}

impl Ceiling {
    /// What `fio` gave when the ceiling was chosen.
    pub(crate) fn fio(&self) -> Option<ReadSample> {
        self.measured.iter().find(|(source, _)| matches!(source, Source::Fio(..))).map(|(_, sample)| *sample)
    }

    /// What our own loop gave when the ceiling was chosen.
    pub(crate) fn raw(&self) -> Option<ReadSample> {
        self.measured.iter().find(|(source, _)| *source == Source::Raw).map(|(_, sample)| *sample)
    }
}
