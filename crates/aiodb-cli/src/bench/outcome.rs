//! What a benchmark leaves behind: one JSON object with everything needed to judge its rows and to run it again.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::rows::Rows;
use crate::CliError;

/// The result of one run of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// The command line.
    pub command: String,
    /// The commit that the program was built from, `unknown` outside a repository.
    pub commit: String,
    pub environment: Environment,
    /// What a reader must know: fallbacks, how latency was sampled, what the conclusions are.
    pub notes: Vec<String>,
    #[serde(flatten)]
    pub rows: Rows,
}

impl Outcome {
    /// Rows just measured, with files under `dir`.
    pub(crate) fn new(dir: &Path, mut notes: Vec<String>, rows: Rows) -> Outcome {
        // Several stores may have met the same obstacle.
        let mut known = HashSet::new();
        notes.retain(|note| known.insert(note.clone()));
        Outcome {
            command: command_line(std::env::args()),
            commit: env!("AIODB_COMMIT").to_owned(),
            environment: Environment::of(dir),
            notes,
            rows,
        }
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain structures with text keys become JSON")
    }

    /// Writes the object into the directory of results beside a report; earlier results stay.
    pub(crate) fn save_into(&self, results: &Path) -> Result<(), CliError> {
        let date = self.environment.date_utc.replace(':', "");
        let path = results.join(format!("{}-{date}.json", self.rows.bench()));
        fs::create_dir_all(results).map_err(|error| cannot("make", results, &error))?;
        write_file(&path, &self.to_json())
    }

    /// All results in a directory, by benchmark and then by date.
    pub(crate) fn load_all(results: &Path) -> Result<Vec<Outcome>, CliError> {
        let entries = fs::read_dir(results).map_err(|error| cannot("list", results, &error))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        let mut outcomes = paths.iter().map(|path| Outcome::load(path)).collect::<Result<Vec<_>, _>>()?;
        outcomes.sort_by_cached_key(|outcome| (outcome.rows.bench(), outcome.environment.date_utc.clone()));
        Ok(outcomes)
    }

    fn load(path: &Path) -> Result<Outcome, CliError> {
        let text = fs::read_to_string(path).map_err(|error| cannot("read", path, &error))?;
        serde_json::from_str(&text).map_err(|error| {
            CliError::failed(format!("{} is not a benchmark's result: {error}; move it away", path.display()))
        })
    }
}

/// Writes a text file, replacing what was there.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    fs::write(path, text).map_err(|error| cannot("write", path, &error))
}

fn cannot(action: &str, path: &Path, error: &std::io::Error) -> CliError {
    CliError::failed(format!("cannot {action} {}: {error}", path.display()))
}

/// The command as one would type it: the program's bare name, arguments quoted where a shell needs it.
fn command_line(mut arguments: impl Iterator<Item = String>) -> String {
    let program = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name().map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    let quoted = arguments.map(|argument| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+%@".contains(c);
        match !argument.is_empty() && argument.chars().all(plain) {
            true => argument,
            false => format!("'{}'", argument.replace('\'', r"'\''")),
        }
    });
    std::iter::once(name).chain(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
pub(crate) mod tests;
