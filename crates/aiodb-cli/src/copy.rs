//! `aiodb copy-table`: a table becomes one of another kind, or with other options.

use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{IndexChoice, LsmArgs, StoreArgs};
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb::{Compression, Durability, IndexKind, StorageMode, TableModes, TableOptions};
use clap::Args;
use indicatif::HumanCount;
use serde_json::json;

/// Copy a table into a new one, of any kind
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct CopyTableArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Table to copy
    from: String,
    /// Name of the copy; no table may have it yet
    to: String,
    /// Index of the copy
    #[arg(long, value_enum, default_value = "lsm")]
    index: IndexChoice,
    #[command(flatten)]
    lsm: LsmArgs,
}

const ABOUT: &str = "\
Copy all records of a table into a new table with another kind of index. The times at which records expire are kept, and \
so are the compression and the merge operator of the table; what operands made is copied as a value. The copy is durable \
when this returns.

An ordered table becomes an `lsm` table in sorted runs directly, and the copy is there as a whole or not at all. Other \
copies are filled by puts: if the command is killed, the part that was copied is left, and `aiodb drop` removes it.

`aiodb swap-tables` then gives the copy the name of the table.";

const EXAMPLES: &str = "\
Examples:
  aiodb copy-table /data/store words words2 --index lsm
  aiodb copy-table /data/store words words2 --index lsm --inline-bytes 64
  aiodb copy-table /data/store words words2 --block-compression zstd
  aiodb swap-tables /data/store words words2 && aiodb drop /data/store words2 --yes";

/// Runs the command.
pub fn run(args: CopyTableArgs, output: &Output) -> Result<Exit, CliError> {
    let db = args.store.open_to_write(false, Durability::None)?;
    let from = db.table(&args.from)?;
    let mut progress = Progress::new(output, None);
    let (mut records, mut bytes) = (0, 0);
    let mut tell = |now_records, now_bytes| {
        (records, bytes) = (now_records, now_bytes);
        progress.update(bytes, None, |elapsed| {
            format!("{} records, {}", HumanCount(records), rate(records, "records", elapsed))
        });
    };
    let copy = db.copy_table(&from, &args.to, args.options(&from.options()), &mut tell)?;
    progress.finish();
    let kind = copy.kind().name();
    drop((copy, from));
    db.close()?;
    let json = json!({"from": args.from, "name": args.to, "index": kind, "records": records, "bytes": bytes});
    let text =
        format!("copied {} records of table `{}` into `{}`, index {kind}\n", HumanCount(records), args.from, args.to);
    output.result(&json, &text)?;
    Ok(Exit::Success)
}

impl CopyTableArgs {
    /// The options of the copy: those of the table, but for its index.
    fn options(&self, from: &TableOptions) -> TableOptions {
        let kind = IndexKind::from(self.index);
        let kept = if kind == from.kind { from.inline_bytes } else { 0 };
        let inline_bytes = self.lsm.inline_bytes.unwrap_or(kept);
        let kept = if kind == from.kind { from.block_compression } else { Compression::None };
        let block_compression = self.lsm.block_compression.unwrap_or(kept);
        // Only sorted runs ask filters.
        let compaction_filter = from.compaction_filter.clone().filter(|_| kind == IndexKind::Lsm);
        // And only blocks of these can be kept out of memory.
        let keys = if kind == from.kind { from.modes.keys } else { StorageMode::Auto };
        let modes = TableModes { keys, ..from.modes };
        TableOptions { kind, inline_bytes, block_compression, compaction_filter, modes, ..from.clone() }
    }
}
