//! `aiodb apply`: changes from stdin, acknowledged one by one on stdout, so that another program can write to a store and
//! know what is safe. `request` knows the lines in both directions; here they meet the store. An answer never comes before
//! what it answers for is as durable as was asked.

mod request;

use crate::error::CliError;
use crate::exit::Exit;
use crate::options::StoreArgs;
use crate::output::Output;
use aiodb::{Batch, Db};
use clap::Args;
use request::{Request, answer};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Requests that wait for a writer before no more are read.
const QUEUED_PER_WRITER: usize = 64;

/// Apply changes from stdin as they come, and acknowledge each on stdout
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct ApplyArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Threads that write; requests of one `writer` stay in their order
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=1024))]
    writers: u16,
    /// Bytes in a segment if this command makes the store: a power of two from 65536
    #[arg(long, value_name = "BYTES")]
    segment_bytes: Option<u64>,
    /// Make a checkpoint after this many bytes of log
    #[arg(long, value_name = "BYTES")]
    checkpoint_bytes: Option<u64>,
}

const ABOUT: &str = "\
Apply changes from stdin as they come, and acknowledge each on stdout. One JSON object a line:

  {\"id\":7,\"writer\":0,\"durability\":\"sync\",\"changes\":[{\"table\":\"t\",\"key\":\"k\",\"value\":\"v\"},{\"table\":\"t\",\"key\":\"gone\"}]}

The changes of one request are atomic; a change without a value deletes. `durability` is sync (the default), none or \
interval:MS. Requests with the same `writer` (default 0) are applied in their order, those of different writers side by \
side. The tables must be there (`aiodb create-table`).

When a request has been acknowledged by the store, in the class that it asks for, its line is printed: {\"id\":7}, or \
{\"id\":7,\"error\":{\"kind\":..,\"message\":..}} if it was refused. The command ends with its input.";

const EXAMPLES: &str = "\
Examples:
  aiodb create-table /data/store t
  echo '{\"id\":1,\"changes\":[{\"table\":\"t\",\"key\":\"apple\",\"value\":\"red\"}]}' | aiodb apply /data/store";

/// `aiodb apply`.
pub fn run(args: ApplyArgs, output: &Output) -> Result<Exit, CliError> {
    let mut options = aiodb::Options { create: args.segment_bytes.is_some(), ..args.store.options() };
    options.segment_bytes = args.segment_bytes.unwrap_or(options.segment_bytes);
    options.checkpoint_bytes = args.checkpoint_bytes.unwrap_or(options.checkpoint_bytes);
    let db = args.store.open_with(options)?;
    // Relaxed: it is read after the threads have ended.
    let refused = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..args.writers)
            .map(|_| {
                let (sender, receiver) = sync_channel(QUEUED_PER_WRITER);
                let (db, refused) = (&db, &refused);
                (sender, scope.spawn(move || write(db, receiver, refused, output)))
            })
            .collect();
        let (senders, threads): (Vec<_>, Vec<_>) = writers.into_iter().unzip();
        let read = distribute(&senders);
        drop(senders);
        let written = threads.into_iter().map(|thread| thread.join().expect("a writer does not panic"));
        written.chain([read]).collect::<Result<(), CliError>>()
    })?;
    db.close()?;
    Ok(if refused.into_inner() { Exit::Failed } else { Exit::Success })
}

/// Gives each line of stdin to its writer.
fn distribute(writers: &[SyncSender<Request>]) -> Result<(), CliError> {
    let unreadable = |reason: String| CliError::Input { name: "stdin".into(), reason };
    for (number, line) in std::io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| unreadable(error.to_string()))?;
        let request: Request = serde_json::from_str(&line)
            .map_err(|error| unreadable(format!("line {} is no request: {error}", number + 1)))?;
        let writer = &writers[request.writer as usize % writers.len()];
        if writer.send(request).is_err() {
            // The writer could not print its answers and says so itself.
            break;
        }
    }
    Ok(())
}

fn write(db: &Db, requests: Receiver<Request>, refused: &AtomicBool, output: &Output) -> Result<(), CliError> {
    for request in requests {
        let outcome = apply(db, &request);
        if outcome.is_err() {
            refused.store(true, Ordering::Relaxed);
        }
        output.bytes(format!("{}\n", answer(request.id, &outcome)).as_bytes())?;
    }
    Ok(())
}

fn apply(db: &Db, request: &Request) -> Result<(), CliError> {
    let durability = request.durability()?;
    let mut batch = Batch::new();
    for change in &request.changes {
        let table = db.table(&change.table)?;
        match &change.value {
            Some(value) => batch.put(&table, change.key.as_bytes(), value.as_bytes())?,
            None => batch.delete(&table, change.key.as_bytes())?,
        };
    }
    db.write_with(&batch, durability)?;
    Ok(())
}
