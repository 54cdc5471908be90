//! `aiodb scan`: the records of a table, in order where the table has one.

use crate::encoding::Encoding;
use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{ReadArgs, TableArgs};
use crate::output::Output;
use aiodb::{IndexKind, ScanOptions, Table};
use clap::Args;
use serde_json::json;
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;

/// Print the records of a table
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct ScanArgs {
    #[command(flatten)]
    store: ReadArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Only keys that begin with this
    #[arg(long, conflicts_with_all = ["from", "to"])]
    prefix: Option<OsString>,
    /// Only this key and those after it
    #[arg(long, value_name = "KEY")]
    from: Option<OsString>,
    /// Only this key and those before it
    #[arg(long, value_name = "KEY")]
    to: Option<OsString>,
    /// From the last key to the first
    #[arg(long)]
    backward: bool,
    /// Print no values
    #[arg(long)]
    keys_only: bool,
    /// Stop after this many records
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// How keys are written, here and in what is printed
    #[arg(long, value_enum, default_value = "text")]
    key_encoding: Encoding,
    /// How values are printed
    #[arg(long, value_enum, default_value = "text")]
    value_encoding: Encoding,
}

const ABOUT: &str = "\
Print the records of a table as they are at one moment: lines KEY<tab>VALUE in the order of the keys' bytes. Tables \
with a hash index have no order: they are printed whole (or up to --limit), and --prefix, --from, --to and --backward \
are refused.

Keys and values are printed exactly; one that holds tabs or newlines is told apart only with an encoding. With --json \
they are text where they are UTF-8 and base64 otherwise.";

const EXAMPLES: &str = "\
Examples:
  aiodb scan /data/store --limit 10
  aiodb scan /data/store --prefix user: --keys-only
  aiodb scan /data/store --from 2024 --to 2025 --backward
  aiodb scan /data/store --table pages --value-encoding base64";

/// Runs the command.
pub fn run(args: ScanArgs, output: &Output) -> Result<Exit, CliError> {
    let options = args.options()?;
    let db = args.store.open()?;
    let table = db.table(&args.table.table)?;
    let mut out = BufWriter::with_capacity(256 << 10, io::stdout().lock());
    args.print(&table, options, output.is_json(), &mut out)?;
    out.flush().map_err(CliError::Output)?;
    db.close()?;
    Ok(Exit::Success)
}

impl ScanArgs {
    fn options(&self) -> Result<ScanOptions, CliError> {
        let mut options = match &self.prefix {
            Some(prefix) => ScanOptions::prefix(&self.key(prefix)?),
            None => ScanOptions::all(),
        };
        if let Some(from) = &self.from {
            options = options.from(&self.key(from)?);
        }
        if let Some(to) = &self.to {
            options = options.to(&self.key(to)?);
        }
        if self.backward {
            options = options.backward();
        }
        Ok(if self.keys_only { options.keys_only() } else { options })
    }

    fn key(&self, written: &OsString) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let decoded = self.key_encoding.decode_to(written.as_bytes(), &mut bytes);
        decoded.map_err(|reason| CliError::Usage(format!("the key is {reason}")))?;
        Ok(bytes)
    }

    fn print(&self, table: &Table, options: ScanOptions, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
        let ranged = self.prefix.is_some() || self.from.is_some() || self.to.is_some() || self.backward;
        let unordered = table.kind() == IndexKind::Hash && !ranged;
        let mut scan = if unordered { table.iterate()? } else { table.scan(options)? };
        let mut number = 0;
        if json {
            out.write_all(b"{\"records\":[").map_err(CliError::Output)?;
        }
        while self.limit.is_none_or(|limit| number < limit) {
            let Some((key, value)) = scan.next_record()? else { break };
            let value = (!self.keys_only).then_some(value);
            let written = if json { self.write_json(number, key, value, out) } else { self.write(key, value, out) };
            written.map_err(CliError::Output)?;
            number += 1;
        }
        if json { out.write_all(b"]}\n").map_err(CliError::Output) } else { Ok(()) }
    }

    fn write(&self, key: &[u8], value: Option<&[u8]>, out: &mut dyn Write) -> io::Result<()> {
        self.key_encoding.write(key, out)?;
        if let Some(value) = value {
            out.write_all(b"\t")?;
            self.value_encoding.write(value, out)?;
        }
        out.write_all(b"\n")
    }

    fn write_json(&self, number: u64, key: &[u8], value: Option<&[u8]>, out: &mut dyn Write) -> io::Result<()> {
        let (key, key_encoding) = self.key_encoding.encode(key);
        let mut record = json!({"key": key, "key_encoding": key_encoding.name()});
        if let Some(value) = value {
            let (value, encoding) = self.value_encoding.encode(value);
            record["value"] = value.into();
            record["encoding"] = encoding.name().into();
        }
        let comma = if number > 0 { "," } else { "" };
        write!(out, "{comma}{record}")
    }
}
