//! The paper's thesis in money: what a requirement costs with all data in memory and with values on SSD, from measured
//! rates and given prices, and where the two cross. `model` is the arithmetic and measures nothing; here the rates are found
//! among results, or measured by the benchmarks whose rows they are.

mod model;

use std::path::{Path, PathBuf};

use clap::Args;

use super::arguments::{OutputArgs, parse_index};
use super::copy_size::{self, CopySizeArgs};
use super::dataset::VALUE_BYTES;
use super::outcome::Outcome;
use super::queue_depth::{self, QueueDepthArgs};
use super::rows::Rows;
use super::rows::copy_size::{CopySizeRow, LMDB};
use super::rows::cost::{CostRow, GB};
use super::rows::queue_depth::QueueDepthRow;
use super::table::whole;
use super::terminal::progress;
use crate::CliError;
use aiodb::IndexKind;
use model::{Prices, Rates, Requirement};

/// The prices' date and kind, for later readers of the result.
const DEFAULT_PRICES: &str = "default prices are assumptions of 2025-06: server DDR5 4.00 USD/GB, data-centre NVMe 0.10 \
                              USD/GB, a node without either 3000 USD; give today's with --dram-usd-per-gb, \
                              --ssd-usd-per-gb and --node-usd";

/// Requirements that one command works out at most.
const MAX_REQUIREMENTS: usize = 1000;

#[derive(Args)]
pub(super) struct CostArgs {
    /// Directory with results of `bench queue-depth` and `bench copy-size` (results/ beside a report); the latest of
    /// each counts. Without it both are measured briefly
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Directory on the disk to measure, where there are no results
    #[arg(long, default_value = ".", conflicts_with = "results")]
    dir: PathBuf,
    /// Sizes of the data in gigabytes, keys and values
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000,10000", value_parser = positive)]
    data_gb: Vec<f64>,
    /// Gets per second
    #[arg(long, value_delimiter = ',', default_value = "10000,100000,1000000", value_parser = positive)]
    gets_per_s: Vec<f64>,
    /// Bytes of a value
    #[arg(long, value_delimiter = ',', default_value = "1024,4096",
          value_parser = clap::value_parser!(u64).range(1..=aiodb::MAX_VALUE_BYTES as u64))]
    value_bytes: Vec<u64>,
    /// Bytes of a key
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=aiodb::MAX_KEY_BYTES as u64))]
    key_bytes: u64,
    /// Price of memory; an assumption of 2025-06
    #[arg(long, value_name = "USD", default_value = "4.00", value_parser = positive)]
    dram_usd_per_gb: f64,
    /// Price of SSDs; an assumption of 2025-06
    #[arg(long, value_name = "USD", default_value = "0.10", value_parser = positive)]
    ssd_usd_per_gb: f64,
    /// Price of a node without memory and SSDs; an assumption of 2025-06
    #[arg(long, value_name = "USD", default_value = "3000", value_parser = not_negative)]
    node_usd: f64,
    /// Cores of a node, each taken to do what one core did here
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=4096))]
    node_cores: u64,
    /// Memory that a node takes
    #[arg(long, default_value = "1024", value_parser = positive)]
    node_memory_gb: f64,
    /// SSDs that a node takes
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1024))]
    node_devices: u64,
    /// Size of an SSD, each taken to do what the one here did
    #[arg(long, default_value = "1920", value_parser = positive)]
    device_gb: f64,
    /// Memory for each pair beyond key and value, where all data is in memory
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = not_negative)]
    memory_overhead: f64,
    /// Index of our store
    #[arg(long, default_value = "lmdb", value_parser = parse_index)]
    index: IndexKind,
    /// Memory for each pair's place in our index [default: 110 for lmdb, 2 for lsm, 11 for hash]
    #[arg(long, value_name = "BYTES", value_parser = not_negative)]
    index_bytes: Option<f64>,
    /// Space on SSD by the data: headers, and what is dead and not yet reclaimed
    #[arg(long, default_value = "1.25", value_parser = at_least_one)]
    ssd_space_factor: f64,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

pub(super) fn run(args: &CostArgs) -> Result<Outcome, CliError> {
    let requirements = requirements(args)?;
    let (outcomes, origin) = match &args.results {
        Some(results) => (Outcome::load_all(results)?, format!("rates from the results in {}", results.display())),
        None => (
            measured(&args.dir, args.index)?,
            "rates measured briefly by this command; results are steadier".to_owned(),
        ),
    };
    let sources = Sources::among(&outcomes, args.index).map_err(|missing| missing.into_error(args))?;
    let rates = sources.rates();
    let prices = prices(args);
    let rows =
        requirements.into_iter().map(|requirement| row(requirement, &rates, &prices)).collect::<Result<_, _>>()?;
    let mut notes = vec![origin, DEFAULT_PRICES.to_owned()];
    notes.extend(sources.notes());
    notes.push(assumptions(args, &prices));
    Ok(Outcome::new(args.results.as_deref().unwrap_or(&args.dir), notes, Rows::Cost(rows)))
}

/// Every size of data, rate and size of value with every other.
fn requirements(args: &CostArgs) -> Result<Vec<Requirement>, CliError> {
    let count = args.data_gb.len() * args.gets_per_s.len() * args.value_bytes.len();
    if count > MAX_REQUIREMENTS {
        return Err(CliError::Usage(format!("{count} requirements at once: at most {MAX_REQUIREMENTS} make a table")));
    }
    let mut requirements = Vec::with_capacity(count);
    for &value_bytes in &args.value_bytes {
        for &gets_per_s in &args.gets_per_s {
            for &data_gb in &args.data_gb {
                let (key_bytes, value_bytes) = (args.key_bytes as f64, value_bytes as f64);
                let data_bytes = data_gb * GB;
                if data_bytes < key_bytes + value_bytes {
                    return Err(CliError::Usage(format!(
                        "{data_gb} GB of data are less than one pair of {key_bytes} + {value_bytes} bytes: give more \
                         --data-gb"
                    )));
                }
                requirements.push(Requirement { data_bytes, gets_per_s, key_bytes, value_bytes });
            }
        }
    }
    Ok(requirements)
}

fn prices(args: &CostArgs) -> Prices {
    let index_bytes = match args.index {
        IndexKind::Lmdb => 110.0,
        // Filters and fences.
        IndexKind::Lsm => 2.0,
        IndexKind::Hash => 11.0,
    };
    Prices {
        dram_usd_per_gb: args.dram_usd_per_gb,
        ssd_usd_per_gb: args.ssd_usd_per_gb,
        node_usd: args.node_usd,
        node_cores: args.node_cores as f64,
        node_memory_bytes: args.node_memory_gb * GB,
        node_devices: args.node_devices as f64,
        device_bytes: args.device_gb * GB,
        memory_overhead_bytes: args.memory_overhead,
        index_bytes: args.index_bytes.unwrap_or(index_bytes),
        ssd_space_factor: args.ssd_space_factor,
    }
}

fn row(requirement: Requirement, rates: &Rates, prices: &Prices) -> Result<CostRow, CliError> {
    let unknown = || CliError::failed("the rate of memory is known for one size only: measure --copy-bytes 0,4096");
    let memory_rate = rates.memory_gets_per_s(requirement.value_bytes).ok_or_else(unknown)?;
    let memory = model::in_memory(requirement, rates, prices).ok_or_else(unknown)?;
    let ssd = model::on_ssd(requirement, rates, prices);
    Ok(CostRow {
        value_bytes: requirement.value_bytes as u64,
        data_bytes: requirement.data_bytes,
        gets_per_s: requirement.gets_per_s,
        memory_gets_per_s_per_core: memory_rate,
        memory_nodes: memory.nodes,
        memory_bytes: memory.memory_bytes,
        memory_bound: memory.bound,
        memory_usd: memory.usd,
        ssd_gets_per_s_per_device: rates.device_gets_per_s(requirement.value_bytes),
        ssd_nodes: ssd.nodes,
        ssd_devices: ssd.devices,
        ssd_memory_bytes: ssd.memory_bytes,
        ssd_bound: ssd.bound,
        ssd_usd: ssd.usd,
        ssd_to_memory_usd: ssd.usd / memory.usd,
        crossing_gets_per_s: model::crossing(requirement, rates, prices),
    })
}

/// The results that the rates are taken from.
#[derive(Debug)]
struct Sources<'a> {
    queue_depth: &'a Outcome,
    /// The row with the most gets per second.
    device: &'a QueueDepthRow,
    copy_size: &'a Outcome,
    memory: Vec<&'a CopySizeRow>,
}

/// What is not among the results.
#[derive(Debug, PartialEq, Eq)]
enum Missing {
    QueueDepth(&'static str),
    CopySize,
    /// A rate that cannot have been measured.
    Absurd(&'static str),
}

impl Missing {
    fn into_error(self, args: &CostArgs) -> CliError {
        let place = args.results.as_deref().unwrap_or(Path::new("the results just measured")).display();
        CliError::failed(match self {
            Missing::QueueDepth(index) => format!(
                "no gets with index {index} in {place}: run `aiodb bench queue-depth --index {index} --report \
                 DIR/report.html` and give DIR/results"
            ),
            Missing::CopySize => format!(
                "no gets from memory at two sizes in {place}: run `aiodb bench copy-size --report DIR/report.html` and \
                 give DIR/results"
            ),
            Missing::Absurd(bench) => {
                format!("{place}: the latest result of {bench} has a rate that is not above zero: measure it again")
            }
        })
    }
}

impl<'a> Sources<'a> {
    /// The latest results of each kind; `outcomes` are sorted by date.
    fn among(outcomes: &'a [Outcome], index: IndexKind) -> Result<Sources<'a>, Missing> {
        let latest_first = || outcomes.iter().rev();
        let best_device = |outcome: &'a Outcome| match &outcome.rows {
            Rows::QueueDepth(rows) => {
                let own = rows.iter().filter(|row| row.index == index.name());
                Some((outcome, own.max_by(|a, b| a.gets_per_s.total_cmp(&b.gets_per_s))?))
            }
            _ => None,
        };
        let (queue_depth, device) = latest_first().find_map(best_device).ok_or(Missing::QueueDepth(index.name()))?;
        let in_memory = |outcome: &'a Outcome| match &outcome.rows {
            Rows::CopySize(rows) => {
                let mut own: Vec<&CopySizeRow> = rows.iter().filter(|row| row.series == LMDB).collect();
                own.sort_by_key(|row| row.copy_bytes);
                own.dedup_by_key(|row| row.copy_bytes);
                (own.len() > 1).then_some((outcome, own))
            }
            _ => None,
        };
        let (copy_size, memory) = latest_first().find_map(in_memory).ok_or(Missing::CopySize)?;
        let sane = |rate: f64| rate.is_finite() && rate > 0.0;
        if !sane(device.gets_per_s) || !sane(device.cpu_us_per_get) {
            return Err(Missing::Absurd("queue-depth"));
        }
        if !memory.iter().all(|row| sane(row.gets_per_s)) {
            return Err(Missing::Absurd("copy-size"));
        }
        Ok(Sources { queue_depth, device, copy_size, memory })
    }

    fn rates(&self) -> Rates {
        Rates {
            memory: self.memory.iter().map(|row| (row.copy_bytes as f64, row.gets_per_s)).collect(),
            device_gets_per_s: self.device.gets_per_s,
            device_value_bytes: VALUE_BYTES as f64,
            device_cpu_us_per_get: self.device.cpu_us_per_get,
        }
    }

    fn notes(&self) -> Vec<String> {
        let (device, memory) = (&self.queue_depth.environment, &self.copy_size.environment);
        let mut notes = vec![
            format!(
                "device: {} gets/s and {:.2} µs of CPU each (index {}, {}, {} threads, depth {}), measured {} at commit {}",
                whole(self.device.gets_per_s),
                self.device.cpu_us_per_get,
                self.device.index,
                self.device.backend,
                self.device.threads,
                self.device.depth_per_thread,
                device.date_utc,
                self.queue_depth.commit,
            ),
            format!(
                "memory: one core of {}, LMDB, look-up and copy, measured {} at commit {}",
                memory.cpu, memory.date_utc, self.copy_size.commit
            ),
        ];
        if device.cpu != memory.cpu {
            notes.push(format!("the rates are from different processors: {} and {}", device.cpu, memory.cpu));
        }
        notes
    }
}

fn assumptions(args: &CostArgs, prices: &Prices) -> String {
    format!(
        "DRAM {} and SSD {} USD/GB; a node: {} USD, {} cores, at most {} GB of memory and {} SSDs of {} GB; in memory \
         {} bytes more for each pair, no copy on SSD; on SSD {} bytes of index in memory for each pair and {} times the \
         data; 1 GB is 10^9 bytes; all cores and devices are taken to do what one did, and devices to keep their \
         bandwidth with values above {VALUE_BYTES} bytes",
        prices.dram_usd_per_gb,
        prices.ssd_usd_per_gb,
        prices.node_usd,
        prices.node_cores,
        args.node_memory_gb,
        prices.node_devices,
        args.device_gb,
        prices.memory_overhead_bytes,
        prices.index_bytes,
        prices.ssd_space_factor,
    )
}

/// Both benchmarks as small as they make sense, where there are no results.
fn measured(dir: &Path, index: IndexKind) -> Result<Vec<Outcome>, CliError> {
    let dir = dir.as_os_str();
    progress("no --results: measuring gets against queue depth briefly");
    let depths = ["--quick", "--depths", "64,256", "--index", index.name(), "--dir"];
    let depths: QueueDepthArgs = parsed(depths.iter().map(|text| text.as_ref()).chain([dir]))?;
    let queue_depth = queue_depth::run(&depths)?;
    progress("measuring gets from memory briefly");
    let sizes = ["--pairs", "100000", "--rounds", "3", "--round-ms", "500", "--dir"];
    let sizes: CopySizeArgs = parsed(sizes.iter().map(|text| text.as_ref()).chain([dir]))?;
    Ok(vec![copy_size::run(&sizes)?, queue_depth])
}

/// The arguments of another benchmark, with its defaults for what is not given.
fn parsed<'a, A: Args>(arguments: impl Iterator<Item = &'a std::ffi::OsStr>) -> Result<A, CliError> {
    let command = A::augment_args(clap::Command::new("bench").no_binary_name(true));
    let matches = command.try_get_matches_from(arguments);
    matches.and_then(|matches| A::from_arg_matches(&matches)).map_err(|error| CliError::failed(error.to_string()))
}

/// The most that an amount on the command line can be: more is a slip.
const MAX_AMOUNT: f64 = 1e12;

fn amount(text: &str, least: f64, wanted: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| (least..=MAX_AMOUNT).contains(value));
    value.ok_or_else(|| format!("{wanted}, at most {MAX_AMOUNT:e}"))
}

fn positive(text: &str) -> Result<f64, String> {
    amount(text, f64::MIN_POSITIVE, "a number above zero")
}

fn not_negative(text: &str) -> Result<f64, String> {
    amount(text, 0.0, "a number from zero on")
}

fn at_least_one(text: &str) -> Result<f64, String> {
    amount(text, 1.0, "a number from one on")
}

#[cfg(test)]
mod tests;
