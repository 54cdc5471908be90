//! `backup` and `restore`: copies of a store in a repository, and stores from them.

use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{BackendChoice, StoreArgs};
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb::{BackupOptions, Repository, RepositoryReport, RestorePoint};
use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Copy a store into a backup repository
#[derive(Args)]
#[command(
    long_about = "Copy a store that nobody has open into a backup repository, as a new restore point. A repository is a \
                  directory for the backups of one store; only what it does not hold yet is copied. A program that has \
                  the store open backs it up itself while it goes on working (Db::backup).\n\nWith --list, --verify or \
                  --remove the one directory named is the repository.",
    after_help = "Examples:\n  aiodb backup /data/store /backup/store\n  aiodb backup --list /backup/store\n  \
                  aiodb backup --verify /backup/store\n  aiodb backup --remove 3 /backup/store"
)]
pub struct BackupArgs {
    /// Directory of the store
    #[arg(required_unless_present_any = ["list", "verify", "remove"], value_name = "STORE")]
    directories: Vec<PathBuf>,
    /// Another directory of a store that lies in several, one per disk
    #[arg(long, value_name = "DIR", conflicts_with_all = ["list", "verify", "remove"])]
    also: Vec<PathBuf>,
    /// List the restore points of a repository
    #[arg(long, conflicts_with_all = ["verify", "remove", "pace"])]
    list: bool,
    /// Read every file of a repository and check it; the exit code is 1 if any is damaged
    #[arg(long, conflicts_with_all = ["remove", "pace"])]
    verify: bool,
    /// Remove a restore point, and what no other one needs
    #[arg(long, value_name = "N", conflicts_with = "pace")]
    remove: Option<u64>,
    /// Read at most this many MiB of log and indexes in a second
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pace: Option<u64>,
}

/// Make a store from a backup
#[derive(Args)]
#[command(
    long_about = "Make a store in an empty directory from a restore point of a backup repository, the latest if none is \
                  named. Every byte is checked. The new store has the identity of the original: its backups may go into \
                  the same repository, but files of the two stores must not be mixed.",
    after_help = "Examples:\n  aiodb restore /backup/store /data/restored\n  aiodb restore /backup/store /data/restored \
                  --point 3"
)]
pub struct RestoreArgs {
    /// Directory of the backups
    repository: PathBuf,
    /// Directory for the store; made if it is missing, else it must be empty
    target: PathBuf,
    /// Number of the restore point
    #[arg(long, value_name = "N")]
    point: Option<u64>,
}

/// `aiodb backup`.
pub fn backup(args: BackupArgs, output: &Output) -> Result<Exit, CliError> {
    let of_repository = args.list || args.verify || args.remove.is_some();
    let also = args.also;
    match &args.directories[..] {
        [repository] if args.list => list(&Repository::open(repository)?, output),
        [repository] if args.verify => verify(&Repository::open(repository)?, output),
        [repository] if of_repository => {
            let number = args.remove.expect("the only one left");
            Repository::open(repository)?.remove(number)?;
            output.result(&json!({"removed_point": number}), &format!("removed restore point {number}\n"))?;
            Ok(Exit::Success)
        }
        [store, repository] if !of_repository => make(store, also, repository, args.pace, output),
        _ if of_repository => Err(CliError::Usage("name one directory, the backup repository".into())),
        _ => Err(CliError::Usage("name two directories: the store, then the backup repository".into())),
    }
}

fn make(
    store: &Path,
    also: Vec<PathBuf>,
    repository: &Path,
    pace: Option<u64>,
    output: &Output,
) -> Result<Exit, CliError> {
    let store = StoreArgs {
        store: store.to_path_buf(),
        also,
        backend: BackendChoice::Auto,
        max_open_files: None,
        memory_bytes: None,
    };
    let db = store.open_with(store.options())?;
    let options = BackupOptions { bytes_per_second: pace.map(|mib| mib << 20) };
    let mut progress = Progress::new(output, Some(0));
    let report = db.backup(repository, &options, &mut in_bytes(&mut progress));
    progress.finish();
    let (report, elapsed) = (report?, progress.elapsed());
    db.close()?;
    let mut json = point_json(&report.point);
    json["copied_bytes"] = report.copied_bytes.into();
    json["seconds"] = elapsed.as_secs_f64().into();
    let text = format!(
        "restore point {}: {}, of which {} were copied ({})\n",
        report.point.number,
        BinaryBytes(report.point.bytes),
        BinaryBytes(report.copied_bytes),
        rate(report.copied_bytes >> 20, "MiB", elapsed),
    );
    output.result(&json, &text)?;
    Ok(Exit::Success)
}

fn list(repository: &Repository, output: &Output) -> Result<Exit, CliError> {
    let points = repository.points();
    let mut text = String::new();
    for point in &points {
        let _ = writeln!(
            text,
            "{:>6}  {}  {:>12}  {:>8} segments  last sequence {}",
            point.number,
            made_at(point),
            BinaryBytes(point.bytes).to_string(),
            HumanCount(point.segments).to_string(),
            HumanCount(point.last_sequence),
        );
    }
    if points.is_empty() {
        text.push_str("no restore points\n");
    }
    output.result(&points.iter().map(point_json).collect(), &text)?;
    Ok(Exit::Success)
}

fn verify(repository: &Repository, output: &Output) -> Result<Exit, CliError> {
    let mut progress = Progress::new(output, Some(0));
    let report = repository.verify(&mut in_bytes(&mut progress));
    progress.finish();
    let report = report?;
    let damage: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
    let json = json!({
        "sound": damage.is_empty(),
        "files": report.files,
        "bytes": report.bytes,
        "damage": damage,
        "damaged_points": report.damaged_points,
        "points_without_index": report.points_without_index,
    });
    output.result(&json, &verify_text(&report))?;
    Ok(if damage.is_empty() { Exit::Success } else { Exit::Negative })
}

fn verify_text(report: &RepositoryReport) -> String {
    let mut text = format!("checked {} files ({})\n", HumanCount(report.files), BinaryBytes(report.bytes));
    if report.damage.is_empty() {
        text.push_str("no damage found\n");
        return text;
    }
    for damage in &report.damage {
        let _ = writeln!(text, "  {damage}");
    }
    for (what, points) in [
        ("restore points that cannot be restored", &report.damaged_points),
        ("restore points whose `lsm` index the first opening makes again", &report.points_without_index),
    ] {
        if !points.is_empty() {
            let points: Vec<String> = points.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "{what}: {}", points.join(", "));
        }
    }
    text
}

/// `aiodb restore`.
pub fn restore(args: RestoreArgs, output: &Output) -> Result<Exit, CliError> {
    let repository = Repository::open(&args.repository)?;
    let mut progress = Progress::new(output, Some(0));
    let report = repository.restore(args.point, &args.target, &mut in_bytes(&mut progress));
    progress.finish();
    let (report, elapsed) = (report?, progress.elapsed());
    let json = json!({
        "point": report.point,
        "last_sequence": report.last_sequence,
        "bytes": report.bytes,
        "seconds": elapsed.as_secs_f64(),
        "index_damage": report.index_damage.as_ref().map(ToString::to_string),
    });
    let mut text = format!(
        "restored point {} into {}: {} ({})\n",
        report.point,
        args.target.display(),
        BinaryBytes(report.bytes),
        rate(report.bytes >> 20, "MiB", elapsed),
    );
    if let Some(damage) = &report.index_damage {
        let _ = writeln!(
            text,
            "{damage}\nThe index of `lsm` tables was left out: the first opening makes it again from the log."
        );
    }
    output.result(&json, &text)?;
    Ok(Exit::Success)
}

/// Progress as the engine tells it.
pub fn in_bytes(progress: &mut Progress) -> impl FnMut(u64, u64) {
    |done_bytes, total_bytes| {
        progress.update(done_bytes, Some(total_bytes), |elapsed| rate(done_bytes >> 20, "MiB", elapsed));
    }
}

fn point_json(point: &RestorePoint) -> Value {
    json!({
        "point": point.number,
        "created_ms": point.created_ms,
        "created": made_at(point),
        "bytes": point.bytes,
        "segments": point.segments,
        "last_sequence": point.last_sequence,
    })
}

fn made_at(point: &RestorePoint) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(point.created_ms)).to_string()
}
