//! `aiodb verify`: reads everything back and lists what is damaged.

use crate::error::CliError;
use crate::exit::Exit;
use crate::options::ReadArgs;
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb::{Error, Options, VerifyReport};
use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use std::fmt::Write;

/// The engine stops listing damage here.
const MAX_DAMAGE_LISTED: usize = 1000;

/// Read everything back and check it
#[derive(Args)]
#[command(
    long_about = "Read every segment, batch, record and index entry of a store and check it against its checksums. \
                  Damaged places are listed with file and offset; the exit code is 1 if there are any, also if the \
                  store cannot be opened because of damage.\n\nWith --rebuild the indexes are first made anew from the \
                  log, which mends a damaged index but not a damaged log.",
    after_help = "Examples:\n  aiodb verify /data/store\n  aiodb verify /data/store --rebuild"
)]
pub struct VerifyArgs {
    #[command(flatten)]
    store: ReadArgs,
    /// First rebuild all indexes from the log
    #[arg(long, conflicts_with = "read_only")]
    rebuild: bool,
}

/// Runs the command.
pub fn verify(args: VerifyArgs, output: &Output) -> Result<Exit, CliError> {
    let db = match args.store.store.open_with(Options { rebuild_index: args.rebuild, ..args.store.options() }) {
        Ok(db) => db,
        Err(error @ (Error::Corruption { .. } | Error::Index { .. })) => return unopened(error, &args, output),
        Err(error) => return Err(error.into()),
    };
    let mut progress = Progress::new(output, Some(0));
    let report = db.verify(&mut |done_bytes, total_bytes| {
        let mib_done = done_bytes >> 20;
        progress.update(done_bytes, Some(total_bytes), |elapsed| rate(mib_done, "MiB", elapsed));
    });
    progress.finish();
    let report = report?;
    // The report comes before the store is closed: what was found must be told whatever closing does.
    output.result(&to_json(&report, true, &args), &to_text(&report, &args))?;
    db.close()?;
    Ok(if report.damage.is_empty() { Exit::Success } else { Exit::Negative })
}

/// Damage that prevents opening is what the user asked about: a finding, not a failure of this command.
fn unopened(error: Error, args: &VerifyArgs, output: &Output) -> Result<Exit, CliError> {
    let report = VerifyReport { damage: vec![error], ..VerifyReport::default() };
    let mut text = "the store cannot be opened, nothing else was checked\n".to_string();
    list_damage(&mut text, &report, args);
    output.result(&to_json(&report, false, args), &text)?;
    Ok(Exit::Negative)
}

fn to_json(report: &VerifyReport, opened: bool, args: &VerifyArgs) -> Value {
    json!({
        "sound": report.damage.is_empty(),
        "opened": opened,
        "rebuilt_indexes": opened && args.rebuild,
        "segments": report.segments,
        "batches": report.batches,
        "records": report.records,
        "bytes": report.bytes,
        "index_entries": report.index_entries,
        "damage": report.damage.iter().map(damage_json).collect::<Vec<_>>(),
    })
}

fn damage_json(damage: &Error) -> Value {
    match damage {
        Error::Corruption { path, offset, what } => json!({"file": path, "offset_bytes": offset, "what": what}),
        Error::Index { path, reason } => json!({"file": path, "offset_bytes": null, "what": reason}),
        Error::Io { path, reason, .. } => json!({"file": path, "offset_bytes": null, "what": reason}),
        other => json!({"file": null, "offset_bytes": null, "what": other.to_string()}),
    }
}

fn to_text(report: &VerifyReport, args: &VerifyArgs) -> String {
    let mut text = format!(
        "checked {} segments, {} batches, {} records ({}) and {} index entries\n",
        HumanCount(report.segments),
        HumanCount(report.batches),
        HumanCount(report.records),
        BinaryBytes(report.bytes),
        HumanCount(report.index_entries),
    );
    if report.damage.is_empty() {
        text.push_str("no damage found\n");
    } else {
        list_damage(&mut text, report, args);
    }
    text
}

fn list_damage(text: &mut String, report: &VerifyReport, args: &VerifyArgs) {
    let number = report.damage.len();
    let at_least = if number >= MAX_DAMAGE_LISTED { "at least " } else { "" };
    let _ = writeln!(text, "damage found in {at_least}{number} {}", if number == 1 { "place" } else { "places" });
    for damage in &report.damage {
        let _ = writeln!(text, "  {damage}");
    }
    if !args.rebuild {
        let store = args.store.store.store.display();
        let also: String = args.store.store.also.iter().map(|other| format!(" --also {}", other.display())).collect();
        let _ = writeln!(
            text,
            "`aiodb verify {store}{also} --rebuild` mends a damaged index; a damaged log needs a backup"
        );
    }
}
