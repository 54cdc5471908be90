//! The measured loop of gets: every thread keeps its reader full and checks every value that comes back.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aiodb::io::Disk;
use aiodb::{Reader, Table};
use hdrhistogram::Histogram;

use super::counters::BlockDevice;
use super::dataset::Dataset;
use super::round::{self, LATENCY_SAMPLE_EVERY, Round, Tally, empty_latencies};
use crate::CliError;

/// A token's low bits hold the pair's number, the bits above them the latency sample it belongs to (0: none).
const NUMBER_BITS: u32 = 40;

/// The most pairs that a benchmark can tell apart.
pub(crate) const MAX_PAIRS: u64 = 1 << NUMBER_BITS;

/// Random gets of existing keys.
pub(crate) struct Gets<'a> {
    pub table: &'a Table,
    pub data: Dataset,
    pub threads: usize,
    /// Gets that each thread keeps in flight.
    pub depth: usize,
    /// Bytes of each value that are copied out of the reader's buffer.
    pub copy_bytes: usize,
}

impl Gets<'_> {
    pub(crate) fn run(&self, disk: Option<&BlockDevice>, duration: Duration) -> Result<Round, CliError> {
        round::run(
            self.threads,
            disk,
            |_| Ok(GetLoop::new(self, self.table.reader(self.depth)?)),
            |mut gets, _| gets.run(duration),
        )
    }
}

struct GetLoop {
    reader: Reader<Disk>,
    data: Dataset,
    depth: u64,
    random: fastrand::Rng,
    submitted: u64,
    /// When the sampled gets in flight were submitted.
    sample_starts: Vec<Instant>,
    free_samples: Vec<usize>,
    latency_ns: Histogram<u64>,
    copy: Vec<u8>,
}

impl GetLoop {
    fn new(gets: &Gets, reader: Reader<Disk>) -> GetLoop {
        GetLoop {
            reader,
            data: gets.data,
            depth: gets.depth as u64,
            random: fastrand::Rng::new(),
            submitted: 0,
            sample_starts: vec![Instant::now(); gets.depth],
            free_samples: (0..gets.depth).collect(),
            latency_ns: empty_latencies(),
            copy: vec![0; gets.copy_bytes],
        }
    }

    /// Gets until the time is up. The clock starts when as many gets have ended as are kept in flight: a loop that first fills
    /// the device and one that reads on while it fills it are then alike.
    fn run(&mut self, duration: Duration) -> Result<Tally, CliError> {
        let (mut finished, mut start, mut end) = (0, None, None);
        loop {
            while end.is_none() && self.reader.has_room() {
                self.submit()?;
            }
            let Some(sample) = self.poll()? else { break };
            finished += 1;
            if finished == self.depth {
                start = Some(Instant::now());
            }
            // The clock is read for the sampled gets alone, so the end is noticed a few gets late, and counted so.
            if let (Some(now), Some(start), None) = (sample, start, end)
                && now - start >= duration
            {
                end = Some((finished - self.depth, now - start));
            }
        }
        let (in_time, elapsed) = end.expect("the loop ends when nothing is in flight, after the time is up");
        let latency_ns = std::mem::replace(&mut self.latency_ns, empty_latencies());
        Ok(Tally { in_time, finished, elapsed, latency_ns })
    }

    fn submit(&mut self) -> Result<(), CliError> {
        let number = self.random.u64(..self.data.pairs);
        let mut token = number;
        if self.submitted.is_multiple_of(LATENCY_SAMPLE_EVERY) {
            let sample = self.free_samples.pop().expect("there are as many samples as gets in flight");
            self.sample_starts[sample] = Instant::now();
            token |= (sample as u64 + 1) << NUMBER_BITS;
        }
        self.submitted += 1;
        Ok(self.reader.submit(&self.data.key(number), token)?)
    }

    /// Takes one answer and checks it. `None` when nothing is in flight, `Some(Some(now))` if the get was sampled.
    fn poll(&mut self) -> Result<Option<Option<Instant>>, CliError> {
        let Some(got) = self.reader.poll()? else { return Ok(None) };
        let number = got.token & (MAX_PAIRS - 1);
        let value = got.value?.ok_or_else(|| wrong(number, "is missing"))?;
        if !self.data.is_value(number, value) {
            return Err(wrong(number, "came back with another value"));
        }
        let copy_bytes = self.copy.len();
        if copy_bytes > 0 {
            self.copy.copy_from_slice(&value[..copy_bytes]);
            black_box(&mut self.copy);
        }
        let Some(sample) = (got.token >> NUMBER_BITS).checked_sub(1) else { return Ok(Some(None)) };
        let now = Instant::now();
        let latency = now - self.sample_starts[sample as usize];
        self.latency_ns.record(latency.as_nanos() as u64).expect("the histogram grows as needed");
        self.free_samples.push(sample as usize);
        Ok(Some(Some(now)))
    }
}

fn wrong(number: u64, what: &str) -> CliError {
    CliError::failed(format!("pair {number} {what}: the store is damaged, or this is a bug; run `aiodb verify` on it"))
}
