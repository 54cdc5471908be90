//! `get`, `put` and `del`: one key at a time.

use crate::encoding::Encoding;
use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{IndexArgs, ReadArgs, StoreArgs, TableArgs, parse_durability};
use crate::output::Output;
use aiodb::{Durability, MAX_VALUE_BYTES};
use clap::Args;
use serde_json::json;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;

/// Print the value of a key
#[derive(Args)]
#[command(
    long_about = "Print the value of a key: exactly its bytes, without a newline. With --json the value is text where \
                  it is UTF-8 and base64 otherwise; `encoding` says which. If the key is absent the exit code is 1 \
                  and stdout stays empty.",
    after_help = "Examples:\n  aiodb get /data/store apple\n  aiodb get /data/store apple > apple.bin\n  \
                  aiodb get /data/store 00ff --key-encoding hex --json"
)]
pub struct GetArgs {
    #[command(flatten)]
    store: ReadArgs,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    table: TableArgs,
    /// How the value is printed (hex and base64 end with a newline)
    #[arg(long, value_enum, default_value = "text")]
    value_encoding: Encoding,
}

/// Write the value of a key
#[derive(Args)]
#[command(
    long_about = "Write the value of a key, replacing an earlier one. The value is the argument, or stdin where it is \
                  missing or `-`. Makes the store and the table if they are missing. When the command returns, the \
                  pair is on the device (with --durability sync, the default).",
    after_help = "Examples:\n  aiodb put /data/store apple red\n  aiodb put /data/store photo - < photo.jpg\n  \
                  aiodb put /data/store 00ff /wA= --key-encoding hex --value-encoding base64"
)]
pub struct PutArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// Value; - or nothing reads it from stdin
    value: Option<OsString>,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    index: IndexArgs,
    /// How the value is written on the command line or stdin
    #[arg(long, value_enum, default_value = "text")]
    value_encoding: Encoding,
    /// What the write survives when the command returns: sync, none or interval:MS
    #[arg(long, value_parser = parse_durability, default_value = "sync")]
    durability: Durability,
}

/// Delete a key
#[derive(Args)]
#[command(
    long_about = "Delete a key and its value. Deleting an absent key is no error.",
    after_help = "Example:\n  aiodb del /data/store apple"
)]
pub struct DelArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    table: TableArgs,
    /// What the deletion survives when the command returns: sync, none or interval:MS
    #[arg(long, value_parser = parse_durability, default_value = "sync")]
    durability: Durability,
}

#[derive(Args)]
struct KeyArgs {
    /// Key, 1 byte to 64 KiB
    key: OsString,
    /// How the key is written
    #[arg(long, value_enum, default_value = "text")]
    key_encoding: Encoding,
}

impl KeyArgs {
    fn bytes(&self) -> Result<Vec<u8>, CliError> {
        let mut bytes = Vec::new();
        let decoded = self.key_encoding.decode_to(self.key.as_bytes(), &mut bytes);
        decoded.map_err(|reason| CliError::Usage(format!("the key is {reason}")))?;
        Ok(bytes)
    }

    /// The key as the user wrote it, for reports.
    fn written(&self) -> String {
        self.key.to_string_lossy().into_owned()
    }
}

/// `aiodb get`.
pub fn get(args: GetArgs, output: &Output) -> Result<Exit, CliError> {
    let key = args.key.bytes()?;
    let db = args.store.open()?;
    let value = db.table(&args.table.table)?.get(&key)?;
    db.close()?;
    let Some(value) = value else { return Err(CliError::KeyAbsent { table: args.table.table }) };
    if output.is_json() {
        let (text, encoding) = args.value_encoding.encode(&value);
        output.result(&json!({"key": args.key.written(), "value": text, "encoding": encoding.name()}), "")?;
    } else if args.value_encoding == Encoding::Text {
        output.bytes(&value)?;
    } else {
        let (text, _) = args.value_encoding.encode(&value);
        output.bytes(format!("{text}\n").as_bytes())?;
    }
    Ok(Exit::Success)
}

/// `aiodb put`.
pub fn put(args: PutArgs, output: &Output) -> Result<Exit, CliError> {
    let key = args.key.bytes()?;
    let value = value_bytes(args.value.as_ref(), args.value_encoding)?;
    let db = args.store.open_to_write(true, args.durability)?;
    args.index.table_or_create(&db, &args.table.table)?.put(&key, &value)?;
    db.close()?;
    output.result(&json!({"key": args.key.written(), "value_bytes": value.len()}), "")?;
    Ok(Exit::Success)
}

/// `aiodb del`.
pub fn del(args: DelArgs, output: &Output) -> Result<Exit, CliError> {
    let key = args.key.bytes()?;
    let db = args.store.open_to_write(false, args.durability)?;
    db.table(&args.table.table)?.delete(&key)?;
    db.close()?;
    output.result(&json!({"key": args.key.written()}), "")?;
    Ok(Exit::Success)
}

fn value_bytes(argument: Option<&OsString>, encoding: Encoding) -> Result<Vec<u8>, CliError> {
    let written = match argument {
        Some(argument) if argument != "-" => argument.as_bytes().to_vec(),
        _ => read_value(encoding)?,
    };
    let mut bytes = Vec::new();
    let decoded = encoding.decode_to(&written, &mut bytes);
    decoded.map_err(|reason| CliError::Usage(format!("the value is {reason}")))?;
    Ok(bytes)
}

/// Reads stdin to its end, or a little more than the longest value, which the store then refuses with its own message.
fn read_value(encoding: Encoding) -> Result<Vec<u8>, CliError> {
    let limit = match encoding {
        Encoding::Text => MAX_VALUE_BYTES + 1,
        Encoding::Hex | Encoding::Base64 => 2 * MAX_VALUE_BYTES + 4,
    };
    let mut written = Vec::new();
    let read = io::stdin().lock().take(limit as u64).read_to_end(&mut written);
    read.map_err(|error| CliError::Input { name: "stdin".into(), reason: format!("cannot be read: {error}") })?;
    if encoding != Encoding::Text {
        written.truncate(written.trim_ascii_end().len());
    }
    Ok(written)
}
