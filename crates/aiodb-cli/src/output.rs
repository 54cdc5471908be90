//! What a command tells people and programs: results on stdout, everything else on stderr.

use crate::error::CliError;
use crate::exit::Exit;
use serde_json::{Value, json};
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// Where results and messages go, and in which form.
pub struct Output {
    json: bool,
}

impl Output {
    /// Text for people, or JSON for programs.
    pub fn new(json: bool) -> Output {
        Output { json }
    }

    /// Whether a program reads the result.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person watches stderr: only then is a progress bar of use.
    pub fn has_terminal(&self) -> bool {
        !self.json && io::stderr().is_terminal()
    }

    /// The result of a command: `value` on one line for programs, or `text` (which ends with a newline, or is empty).
    pub fn result(&self, value: &Value, text: &str) -> Result<(), CliError> {
        if self.json { self.bytes(format!("{value}\n").as_bytes()) } else { self.bytes(text.as_bytes()) }
    }

    /// Bytes on stdout exactly as they are.
    pub fn bytes(&self, bytes: &[u8]) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CliError::Output)
    }

    /// A failure, on stderr. A reader of stdout that went away (`aiodb tables ... | head`) needs no message.
    pub fn error(&self, error: &CliError) {
        if matches!(error, CliError::Output(cause) if cause.kind() == io::ErrorKind::BrokenPipe) {
            return;
        }
        print_error(self.json, error.kind(), &error.to_string());
    }
}

fn print_error(json: bool, kind: &str, message: &str) {
    // Nothing can be told to anyone if stderr is closed; the exit code remains.
    let _ = if json {
        writeln!(io::stderr(), "{}", json!({"error": {"kind": kind, "message": message}}))
    } else {
        writeln!(io::stderr(), "aiodb: {message}")
    };
}

/// Prints what the argument parser says: help and version as they are, errors as JSON where the command line has
/// `--json` (it could not be parsed, so it is only searched).
pub fn usage_error(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
        let message = error.render().to_string();
        print_error(true, "usage", message.trim_start_matches("error: ").trim_end());
    } else {
        // As above: a closed stdout or stderr leaves only the exit code.
        let _ = error.print();
    }
    if error.use_stderr() { Exit::Usage.into() } else { Exit::Success.into() }
}
