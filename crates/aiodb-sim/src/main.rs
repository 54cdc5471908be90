//! `aiodb-sim`: runs seeds until a number or a time is reached, and says what was done and what was found.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use aiodb_sim::minimise::{minimise, part_of};
use aiodb_sim::report::Report;
use aiodb_sim::run::{Violation, run};
use aiodb_sim::script::Script;
use aiodb_sim::workload::{FIRST_PRESSED, Tables, script};
use clap::{Parser, ValueEnum};

/// Runs aiodb on a simulated machine with seeded crashes and faults, against a reference model.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The first seed.
    #[arg(long, default_value_t = FIRST_PRESSED)]
    from: u64,
    /// How many seeds; without --minutes, 1000.
    #[arg(long)]
    seeds: Option<u64>,
    /// How long; without --seeds, any number of seeds.
    #[arg(long)]
    minutes: Option<f64>,
    /// The tables that runs use.
    #[arg(long, value_enum, default_value_t = Kinds::Any)]
    tables: Kinds,
    /// Print a seed's script and run only that.
    #[arg(long)]
    show: Option<u64>,
    /// With --show: only these actions, as a failure prints them.
    #[arg(long, value_delimiter = ',', requires = "show")]
    keep: Option<Vec<usize>>,
    /// Go on after a failure, up to so many.
    #[arg(long, default_value_t = 1)]
    failures: usize,
    /// Plant this bug in the engine, or all of them one after the other, and say how many seeds find each.
    #[cfg(feature = "planted-bugs")]
    #[arg(long)]
    planted: Option<String>,
    /// How many seconds a script that fails is made shorter.
    #[arg(long, default_value_t = 60)]
    minimise: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kinds {
    Any,
    Hash,
    Lmdb,
    Lsm,
}

impl From<Kinds> for Tables {
    fn from(kinds: Kinds) -> Tables {
        match kinds {
            Kinds::Any => Tables::Any,
            Kinds::Hash => Tables::Hash,
            Kinds::Lmdb => Tables::Lmdb,
            Kinds::Lsm => Tables::Lsm,
        }
    }
}

/// A run opens its store some ten times, with buffers each time that the system's allocator maps and unmaps.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A panic of the engine is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    #[cfg(feature = "planted-bugs")]
    if let Some(name) = &arguments.planted {
        return hunt(name, arguments.seeds.unwrap_or(MOST_SEEDS));
    }
    let failures = simulate(&arguments);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns how many seeds failed.
fn simulate(arguments: &Arguments) -> usize {
    let started = Instant::now();
    let time = arguments.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
    let seeds = match (arguments.show, arguments.seeds, time) {
        (Some(_), _, _) => 1,
        (None, Some(seeds), _) => seeds,
        (None, None, Some(_)) => u64::MAX,
        (None, None, None) => 1000,
    };
    let first = arguments.show.unwrap_or(arguments.from);
    let mut report = Report::default();
    let mut failures = 0;
    for seed in first..first.saturating_add(seeds) {
        if time.is_some_and(|time| started.elapsed() >= time) || failures >= arguments.failures {
            break;
        }
        let mut script = script(seed, arguments.tables.into());
        if let Some(actions) = &arguments.keep {
            script = part_of(&script, actions);
        }
        if arguments.show.is_some() {
            println!("{script}");
        }
        if let Err(violation) = run(&script, &mut report) {
            failures += 1;
            explain(&script, arguments, violation);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{report}");
    println!("seconds                      {seconds:>12.1}");
    println!("cycles a second              {:>12.0}", report.cycles as f64 / seconds);
    failures
}

/// Seeds after which a planted bug counts as missed.
#[cfg(feature = "planted-bugs")]
const MOST_SEEDS: u64 = 3000;

#[cfg(feature = "planted-bugs")]
fn hunt(name: &str, seeds: u64) -> ExitCode {
    let chosen: Vec<_> =
        aiodb::Bug::ALL.into_iter().filter(|bug| name == "all" || format!("{bug:?}") == name).collect();
    let mut missed = chosen.is_empty();
    for bug in chosen {
        match aiodb_sim::planted::hunt(bug, seeds) {
            Some(found) => {
                let what: String = found.violation.chars().take(100).collect();
                println!("{:<28} {:>5} seeds  {what}", format!("{bug:?}"), found.seeds);
            }
            None => {
                println!("{:<28} not found in {seeds} seeds", format!("{bug:?}"));
                missed = true;
            }
        }
    }
    if missed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn explain(script: &Script, arguments: &Arguments, violation: Violation) {
    println!("seed {} failed: {violation}", script.seed);
    if arguments.minimise == 0 {
        return;
    }
    let shortest = minimise(script, violation, Duration::from_secs(arguments.minimise));
    let actions: Vec<String> = shortest.actions.iter().map(usize::to_string).collect();
    println!("the shortest script found that fails: {}", shortest.violation);
    println!("{}", part_of(script, &shortest.actions));
    println!("again: aiodb-sim --show {} --keep {}", script.seed, actions.join(","));
}
