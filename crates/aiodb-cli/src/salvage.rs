//! `salvage`: what can be proved right in a damaged store, in a new one.

use crate::backup::in_bytes;
use crate::encoding::Encoding;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::Progress;
use aiodb::{KeySpan, SalvageReport};
use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Take what is sound out of a damaged store
#[derive(Args)]
#[command(
    long_about = "Write everything that can be proved right in a damaged store into a new one, and list what cannot. The \
                  newest sound version of each key is taken, with its merge operands and the time at which it \
                  expires; deleted keys stay deleted. Indexes are not needed, nor is \
                  any other file but the segments of the log. The damaged store is only read.\n\nThe exit code is 1 if \
                  anything is lost or in doubt. A store whose indexes alone are damaged is mended by verify --rebuild.",
    after_help = "Examples:\n  aiodb salvage /data/store /data/salvaged\n  aiodb salvage /data/store /data/salvaged \
                  --json > report.json"
)]
pub struct SalvageArgs {
    /// Directory of the damaged store
    store: PathBuf,
    /// Directory for the new store; made if it is missing, else it must be empty
    out: PathBuf,
    /// Another directory of a store that lies in several; one that is lost may be left out. The new store lies in one
    #[arg(long, value_name = "DIR")]
    also: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(args: SalvageArgs, output: &Output) -> Result<Exit, CliError> {
    let mut progress = Progress::new(output, Some(0));
    let directories: Vec<_> = std::iter::once(&args.store).chain(&args.also).collect();
    let report = aiodb::salvage_several(&directories, &args.out, &mut in_bytes(&mut progress));
    progress.finish();
    let report = report?;
    output.result(&to_json(&report), &to_text(&report))?;
    Ok(if report.is_complete() { Exit::Success } else { Exit::Negative })
}

fn to_json(report: &SalvageReport) -> Value {
    let lost = report.lost.iter().map(|region| {
        json!({
            "file": region.path,
            "offset_bytes": region.offset,
            "length_bytes": region.length,
            "what": region.what,
        })
    });
    let doubtful = report.doubtful.iter().map(|doubtful| {
        let (key, encoding) = Encoding::Text.encode(&doubtful.key);
        json!({
            "table": doubtful.table,
            "key": key,
            "key_encoding": encoding.name(),
            "older_version_written": doubtful.delivered,
        })
    });
    let older = report.older.iter().map(|span| {
        let ((first, first_encoding), (last, last_encoding)) =
            (Encoding::Text.encode(&span.first), Encoding::Text.encode(&span.last));
        json!({
            "table": span.table,
            "first_key": first,
            "first_key_encoding": first_encoding.name(),
            "last_key": last,
            "last_key_encoding": last_encoding.name(),
            "keys": span.keys,
        })
    });
    json!({
        "complete": report.is_complete(),
        "segments": report.segments,
        "records": report.records,
        "keys_by_table": report.tables,
        "value_bytes": report.value_bytes,
        "lost_regions": report.lost_regions,
        "lost": lost.collect::<Vec<_>>(),
        "doubtful_keys": report.doubtful_keys,
        "doubtful": doubtful.collect::<Vec<_>>(),
        "keys_older_than_damage": report.older_than_damage,
        "older_than_damage": older.collect::<Vec<_>>(),
        "notes": report.notes,
    })
}

fn to_text(report: &SalvageReport) -> String {
    let mut text =
        format!("read {} segments, {} sound records\n", HumanCount(report.segments), HumanCount(report.records));
    for (table, keys) in &report.tables {
        let _ = writeln!(text, "wrote table `{table}`: {} keys", HumanCount(*keys));
    }
    let _ = writeln!(text, "wrote {} of values", BinaryBytes(report.value_bytes));
    for note in &report.notes {
        let _ = writeln!(text, "{note}");
    }
    if report.is_complete() {
        text.push_str("nothing is lost\n");
        return text;
    }
    let _ = writeln!(text, "{} places do not check out", HumanCount(report.lost_regions));
    for region in &report.lost {
        let (path, offset, length) = (region.path.display(), region.offset, region.length);
        let _ = writeln!(text, "  {path}, {length} bytes at {offset}: {}", region.what);
    }
    let _ = writeln!(text, "{} keys whose newest version is lost", HumanCount(report.doubtful_keys));
    for doubtful in &report.doubtful {
        let written = if doubtful.delivered { "an older version was written" } else { "nothing was written" };
        let key = String::from_utf8_lossy(&doubtful.key);
        let _ = writeln!(text, "  {key:?} of table `{}`: {written}", doubtful.table);
    }
    let older = HumanCount(report.older_than_damage);
    let _ =
        writeln!(text, "{older} keys are older than what is lost: any of them may have been changed or deleted there");
    for KeySpan { table, first, last, keys } in &report.older {
        let [first, last] = [first, last].map(|key| String::from_utf8_lossy(key));
        let _ = match keys {
            1 => writeln!(text, "  {first:?} of table `{table}`"),
            _ => writeln!(text, "  {} from {first:?} to {last:?} of table `{table}`", HumanCount(*keys)),
        };
    }
    text
}
