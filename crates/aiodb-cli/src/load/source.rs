//! Where records come from: the arguments that say how a file of lines is read, and how it is opened with them.

use super::input::{Format, Input, InputOptions};
use super::interrupt::{Interrupt, InterruptibleRead};
use crate::encoding::Encoding;
use crate::error::CliError;
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;

/// The longest line by default, in bytes: the longest value and key as text, and room for the columns around them.
pub const DEFAULT_MAX_LINE_BYTES: u64 = (1 << 30) + (1 << 20);

/// A file of lines and how records are written in it.
#[derive(Args)]
pub struct SourceArgs {
    /// File of lines; - reads stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Format of the lines [default: by the file's extension]
    #[arg(long, value_enum)]
    format: Option<FileFormat>,
    /// Column of the key: a number from 1, or a name with --header; for JSON lines a field [default: 1]
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column or field of the value [default: TSV: all after the key; CSV: the other of two; JSON lines: the line]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// The first line names the columns (TSV and CSV)
    #[arg(long)]
    header: bool,
    /// How keys are written
    #[arg(long, value_enum, default_value = "text")]
    key_encoding: Encoding,
    /// How values are written
    #[arg(long, value_enum, default_value = "text")]
    value_encoding: Encoding,
    /// Leave out the first N lines of the file (with --header the first of them still names the columns)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip_lines: u64,
    /// A longer line (for CSV: record) is a bad line [default: 1 GiB and 1 MiB]
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_LINE_BYTES, hide_default_value = true)]
    max_line_bytes: u64,
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FileFormat {
    /// Columns between tabs, without quoting
    Tsv,
    /// RFC 4180
    Csv,
    /// One JSON object a line
    Jsonl,
    /// Commands of the Redis protocol, as an append-only file has them
    Resp,
}

impl FileFormat {
    /// That of lines; `None` of commands.
    fn of_lines(self) -> Option<Format> {
        match self {
            FileFormat::Tsv => Some(Format::Tsv),
            FileFormat::Csv => Some(Format::Csv),
            FileFormat::Jsonl => Some(Format::Jsonl),
            FileFormat::Resp => None,
        }
    }
}

/// An opened file of lines.
pub struct Source {
    /// The records in it.
    pub input: Input<InterruptibleRead>,
    /// Its length in bytes, if that is known.
    pub total_bytes: Option<u64>,
}

impl SourceArgs {
    /// Opens the file and, with a header, finds the columns.
    pub fn open(&self, interrupt: &Rc<Interrupt>) -> Result<Source, CliError> {
        let options = self.options()?;
        let (file, total_bytes) = self.open_file()?;
        let input = Input::open(InterruptibleRead::new(file, Rc::clone(interrupt)), options);
        let input = input.map_err(|reason| CliError::Input { name: self.name(), reason })?;
        Ok(Source { input, total_bytes })
    }

    /// Whether the file has commands of the Redis protocol.
    pub fn has_commands(&self) -> bool {
        self.format == Some(FileFormat::Resp)
    }

    /// Whether an argument is given that says what is key and what is value.
    pub fn names_columns(&self) -> bool {
        let has_encoding = self.key_encoding != Encoding::Text || self.value_encoding != Encoding::Text;
        self.header || self.key.is_some() || self.value.is_some() || has_encoding
    }

    /// Opens the file, and says its length if that is known.
    pub fn open_file(&self) -> Result<(File, Option<u64>), CliError> {
        let file = if self.is_stdin() {
            io::stdin().as_fd().try_clone_to_owned().map(File::from)
        } else {
            File::open(&self.file)
        };
        let file = file.map_err(|error| self.unreadable(&error))?;
        let metadata = file.metadata().map_err(|error| self.unreadable(&error))?;
        if metadata.is_dir() {
            return Err(CliError::Input {
                name: self.name(),
                reason: "this is a directory, not a file of lines".into(),
            });
        }
        let total_bytes = metadata.is_file().then_some(metadata.len());
        Ok((file, total_bytes))
    }

    /// The file's name for messages.
    pub fn name(&self) -> String {
        if self.is_stdin() { "stdin".into() } else { self.file.display().to_string() }
    }

    /// The error of a file that cannot be read on.
    pub fn unreadable(&self, error: &io::Error) -> CliError {
        CliError::Input { name: self.name(), reason: format!("cannot be read: {error}") }
    }

    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    /// Checks that the arguments fit together.
    fn options(&self) -> Result<InputOptions, CliError> {
        let usage = |message: &str| Err(CliError::Usage(message.into()));
        let format = self.format.map_or_else(|| Format::of_file(&self.file), FileFormat::of_lines);
        let Some(format) = format else {
            return usage("the format cannot be told from the file's name: add --format tsv, csv, jsonl or resp");
        };
        if format == Format::Jsonl {
            if self.header {
                return usage("--header is for tsv and csv; in JSON lines --key and --value name fields");
            }
            if self.key.is_none() {
                return usage("JSON lines need --key FIELD");
            }
            if self.value.is_none() && self.value_encoding != Encoding::Text {
                return usage("--value-encoding needs --value FIELD: without it the value is the whole line");
            }
        } else if !self.header {
            for column in self.key.iter().chain(&self.value) {
                if column.parse::<usize>().map_or(true, |number| number == 0) {
                    return usage(&format!("`{column}` is no column number from 1; to name columns, add --header"));
                }
            }
        }
        Ok(InputOptions {
            format,
            header: self.header,
            key: self.key.clone().unwrap_or_else(|| "1".into()),
            value: self.value.clone(),
            key_encoding: self.key_encoding,
            value_encoding: self.value_encoding,
            skip_lines: self.skip_lines,
            max_line_bytes: self.max_line_bytes,
        })
    }
}
