//! `aiodb load --format resp`: a file of Redis's commands becomes what `aiodb serve` would have made of them.

use super::interrupt::{Interrupt, InterruptibleRead};
use super::report::done;
use super::source::SourceArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb_server::{Config, Event, Layer, LoadError, Loaded};
use indicatif::HumanCount;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// What was refused: all of it counted, the first of it with number and reason.
#[derive(Default)]
struct Refused {
    shown: Vec<(u64, String)>,
    /// The one that stops the load.
    last: Option<(u64, String)>,
}

/// A load of commands.
pub struct CommandsLoad<'a> {
    pub store: &'a Path,
    pub source: &'a SourceArgs,
    /// Databases that commands may select.
    pub databases: Option<u16>,
    /// Whether the load goes on after commands that are refused.
    pub skips_refused: bool,
    /// How many of those are described.
    pub shown: usize,
}

/// Carries out the commands of the file.
pub fn run(args: &CommandsLoad<'_>, output: &Output) -> Result<Exit, CliError> {
    let interrupt = Rc::new(Interrupt::install()?);
    let name = args.source.name();
    let (file, total_bytes) = args.source.open_file()?;
    let input = InterruptibleRead::new(file, Rc::clone(&interrupt));
    let layer = Layer {
        dir: Some(args.store.into()),
        databases: args.databases,
        durability: Some("none".into()),
        ..Layer::default()
    };
    let config = Config::of_layers([layer]).map_err(|error| CliError::Usage(error.to_string()))?;
    let (mut progress, mut refused) = (Progress::new(output, total_bytes), Refused::default());
    let watch = |event: Event<'_>| {
        match event {
            Event::Progress { commands, bytes } => progress.update(bytes, total_bytes, |elapsed| {
                format!("{} commands, {}", HumanCount(commands), rate(commands, "commands", elapsed))
            }),
            Event::Refused { number, reason } if args.skips_refused => {
                if refused.shown.len() < args.shown {
                    progress.note(&format!("{name}: command {number}: {reason}"));
                    refused.shown.push((number, reason.into()));
                }
            }
            Event::Refused { number, reason } => {
                refused.last.get_or_insert((number, reason.into()));
            }
        }
        refused.last.is_none() && !interrupt.requested()
    };
    let (loaded, ended) = aiodb_server::load(config, input, args.source.skip_lines, watch)?;
    progress.finish();
    let ended = ended.filter(|_| !interrupt.requested());
    let is_complete = ended.is_none() && refused.last.is_none() && !interrupt.requested();
    let elapsed = progress.elapsed();
    output.result(
        &to_json(&loaded, &refused, is_complete, elapsed),
        &to_text(&loaded, &args.store.display().to_string(), is_complete, elapsed),
    )?;
    if let Some((line, reason)) = refused.last {
        return Err(CliError::BadCommand { name, number: line, reason });
    }
    match ended {
        Some(LoadError::Serve(error)) => Err(error.into()),
        Some(error) => Err(CliError::Input { name, reason: error.to_string() }),
        None if interrupt.requested() => Ok(Exit::Interrupted),
        None if loaded.refused > 0 => Ok(Exit::SkippedLines),
        None => Ok(Exit::Success),
    }
}

/// For programs.
fn to_json(loaded: &Loaded, refused: &Refused, is_complete: bool, elapsed: Duration) -> Value {
    let shown: Vec<Value> =
        refused.shown.iter().map(|(number, reason)| json!({"command": number, "reason": reason})).collect();
    json!({
        "ended": if is_complete { "complete" } else { "stopped" },
        "commands_done": loaded.commands,
        "commands_refused": loaded.refused,
        "commands_refused_shown": shown,
        "bytes_read": loaded.bytes,
        "elapsed_ms": elapsed.as_millis() as u64,
    })
}

/// For people.
fn to_text(loaded: &Loaded, store: &str, is_complete: bool, elapsed: Duration) -> String {
    let place = format!("on `{store}`");
    let mut text = done("carried out", loaded.commands, "commands", loaded.bytes, &place, elapsed);
    if loaded.refused > 0 {
        let _ = writeln!(text, "{} of them were refused", HumanCount(loaded.refused));
    }
    if !is_complete {
        let _ = writeln!(
            text,
            "stopped after command {}; to go on: the same command and input with --skip-lines {}",
            HumanCount(loaded.commands),
            loaded.commands
        );
    }
    text
}
