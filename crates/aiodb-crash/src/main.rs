//! `make crash` and `make crash-power`.

use aiodb_crash::process::Aiodb;
use aiodb_crash::{kill, planted};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Crashes stores for real, and checks what is there afterwards
#[derive(Parser)]
struct Cli {
    /// The `aiodb` command
    #[arg(long)]
    aiodb: PathBuf,
    /// Replays what the writers do; the moments of the crashes are the machine's
    #[arg(long)]
    seed: Option<u64>,
    /// Where stores are made: on a real disk
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    #[command(subcommand)]
    crash: Crash,
}

#[derive(Subcommand)]
enum Crash {
    /// Kill the command with SIGKILL under load
    Kill {
        /// How often
        #[arg(long, default_value_t = 300)]
        kills: u64,
    },
    /// Plant bugs in the command, which must be built with the feature `planted-bugs`: each must lose something
    Planted {
        /// How often each is killed at most
        #[arg(long, default_value_t = 300)]
        kills: u64,
    },
    /// Cut the power below an ext4 file system (as root)
    #[cfg(feature = "power")]
    Power {
        /// Machines that are recorded
        #[arg(long, default_value_t = 5)]
        runs: u64,
        /// Power cuts of each
        #[arg(long, default_value_t = 60)]
        cuts: u64,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..));
    println!("seed {seed}");
    let aiodb = Aiodb::new(cli.aiodb);
    let held = match cli.crash {
        Crash::Kill { kills } => in_scratch(&cli.dir, |directory| kills_held(&aiodb, directory, seed, kills)),
        Crash::Planted { kills } => in_scratch(&cli.dir, |directory| bugs_were_seen(&aiodb, directory, seed, kills)),
        #[cfg(feature = "power")]
        Crash::Power { runs, cuts } => {
            in_scratch(&cli.dir, |directory| power_held(&aiodb, directory, seed, runs, cuts))
        }
    };
    match held {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("aiodb-crash: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Calls `work` with a directory that is removed if all went well, and kept to be looked at if not.
fn in_scratch(under: &Path, work: impl FnOnce(&Path) -> Result<String, String>) -> Result<String, String> {
    let made = std::fs::create_dir_all(under).and_then(|()| tempfile::tempdir_in(under));
    let directory = made.map_err(|error| format!("{}: {error}", under.display()))?;
    work(directory.path()).map_err(|what| format!("{what}\nwhat is left: {}", directory.keep().display()))
}

fn kills_held(aiodb: &Aiodb, directory: &Path, seed: u64, kills: u64) -> Result<String, String> {
    let report = kill::run(aiodb, directory, seed, kills)?;
    Ok(format!(
        "{} kills ({} before anything was acknowledged), {} acknowledged writes there afterwards, {} whole stores compared",
        report.kills, report.kills_while_opening, report.acknowledged, report.checks
    ))
}

fn bugs_were_seen(aiodb: &Aiodb, directory: &Path, seed: u64, kills: u64) -> Result<String, String> {
    planted::hunt(aiodb, directory, seed, kills, &mut |bug, lost| println!("{bug}: {}", first_part(lost)))?;
    // Counted by `.ci/run`.
    Ok(format!("test result: planted bugs under kills: {} passed; 0 failed;", planted::BUGS.len()))
}

/// A line's worth of a complaint.
fn first_part(text: &str) -> String {
    text.chars().take(160).collect()
}

#[cfg(feature = "power")]
fn power_held(aiodb: &Aiodb, directory: &Path, seed: u64, runs: u64, cuts: u64) -> Result<String, String> {
    if let Err(missing) = aiodb_crash::power::is_possible() {
        return Ok(format!("skipped: {missing}"));
    }
    let mut total = aiodb_crash::power::Report::default();
    for run in 0..runs {
        total.add(aiodb_crash::power::run(aiodb, directory, seed.wrapping_add(run), cuts)?);
    }
    Ok(total.to_string())
}
