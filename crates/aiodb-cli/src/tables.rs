//! `tables`, `create-table`, `alter-table`, `rename-table`, `swap-tables`, `truncate` and `drop`.

use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{IndexChoice, LsmArgs, ModeArgs, ReadArgs, StoreArgs};
use crate::output::Output;
use aiodb::{Db, Durability, TableModes, TableOptions, TableStats};
use clap::Args;
use indicatif::HumanCount;
use serde_json::{Value, json};

/// List the tables
#[derive(Args)]
#[command(
    long_about = "List the tables of a store, with the index of each and how many keys it holds (~ marks an estimate).",
    after_help = "Example:\n  aiodb tables /data/store"
)]
pub struct TablesArgs {
    #[command(flatten)]
    store: ReadArgs,
}

/// Make an empty table
#[derive(Args)]
#[command(
    long_about = "Make an empty table; it is an error if it exists. Makes the store if there is none. The index of a \
                  table cannot be changed later; what memory keeps of it can (alter-table).",
    after_help = "Example:\n  aiodb create-table /data/store sessions --index hash"
)]
pub struct CreateTableArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the table
    name: String,
    /// Index of the table
    #[arg(long, value_enum, default_value = "lsm")]
    index: IndexChoice,
    #[command(flatten)]
    lsm: LsmArgs,
    #[command(flatten)]
    modes: ModeArgs,
}

/// Change what of a table memory keeps
#[derive(Args)]
#[command(
    long_about = "Change what of a table memory keeps by preference. The disk always has all of it, so nothing is moved. Where memory \
                  does not suffice a table comes closer to the disk by itself. A store that another process has open is changed by \
                  that process.",
    after_help = "Example:\n  aiodb alter-table /data/store sessions --keys memory --values disk"
)]
pub struct AlterTableArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the table
    name: String,
    #[command(flatten)]
    modes: ModeArgs,
}

/// Give a table another name
#[derive(Args)]
#[command(
    long_about = "Give a table another name, which no table has yet. This takes constant time.",
    after_help = "Example:\n  aiodb rename-table /data/store sessions sessions-of-2025"
)]
pub struct RenameTableArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the table
    from: String,
    /// Its new name
    to: String,
}

/// Give each of two tables the name of the other
#[derive(Args)]
#[command(
    long_about = "Give each of two tables the name of the other, in one step: a crash leaves both names as they were, or both changed. \
                  So a copy of another kind takes the place of a table.",
    after_help = "Example:\n  aiodb copy-table /data/store words copy --index lsm\n  aiodb swap-tables /data/store words copy\n  \
                  aiodb drop /data/store copy --yes"
)]
pub struct SwapTablesArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of a table
    one: String,
    /// Name of the other
    other: String,
}

/// Delete everything in a table
#[derive(Args)]
#[command(
    long_about = "Delete all records of a table and keep the table. This takes constant time and cannot be undone.",
    after_help = "Example:\n  aiodb truncate /data/store sessions --yes"
)]
pub struct TruncateArgs {
    #[command(flatten)]
    target: Target,
}

/// Delete a table
#[derive(Args)]
#[command(
    long_about = "Delete a table with all its records. This takes constant time and cannot be undone.",
    after_help = "Example:\n  aiodb drop /data/store sessions --yes"
)]
pub struct DropArgs {
    #[command(flatten)]
    target: Target,
}

#[derive(Args)]
struct Target {
    #[command(flatten)]
    store: StoreArgs,
    /// Name of the table
    name: String,
    /// Really do it; without it the command only says what would be lost
    #[arg(long)]
    yes: bool,
}

/// `aiodb tables`.
pub fn list(args: TablesArgs, output: &Output) -> Result<Exit, CliError> {
    let db = args.store.open()?;
    let tables = db.stats().tables;
    db.close()?;
    let json: Vec<Value> = tables
        .iter()
        .map(|table| {
            let kind = table.kind.name();
            json!({
                "name": table.name,
                "index": kind,
                "inline_bytes": table.inline_bytes,
                "block_compression": table.block_compression.to_string(),
                "keys_mode": table.modes.keys.name(),
                "values_mode": table.modes.values.name(),
                "keys": table.keys,
                "keys_exact": table.keys_exact,
            })
        })
        .collect();
    let width = tables.iter().map(|table| table.name.chars().count()).max().unwrap_or(0);
    let text: String = tables
        .iter()
        .map(|table| format!("{:width$}  {:4}  {:>15} keys\n", table.name, table.kind.name(), keys(table)))
        .collect();
    output.result(&Value::Array(json), &text)?;
    Ok(Exit::Success)
}

/// `aiodb create-table`.
pub fn create(args: CreateTableArgs, output: &Output) -> Result<Exit, CliError> {
    let db = args.store.open_to_write(true, Durability::Sync)?;
    let modes = args.modes.change(TableModes::default());
    let options = TableOptions { modes, ..args.lsm.options(args.index.into()) };
    let table = db.create_table_with(&args.name, options)?;
    let kind = table.kind().name();
    db.close()?;
    output
        .result(&json!({"name": args.name, "index": kind}), &format!("made table `{}`, index {kind}\n", args.name))?;
    Ok(Exit::Success)
}

/// `aiodb alter-table`.
pub fn alter(args: AlterTableArgs, output: &Output) -> Result<Exit, CliError> {
    if args.modes.keys.is_none() && args.modes.values.is_none() {
        return Err(CliError::Usage(
            "nothing would change: say where keys or values are to be, --keys or --values".into(),
        ));
    }
    let db = args.store.open_to_write(false, Durability::Sync)?;
    let modes = args.modes.change(db.table(&args.name)?.modes());
    db.set_table_modes(&args.name, modes)?;
    db.close()?;
    let (name, keys, values) = (&args.name, modes.keys.name(), modes.values.name());
    let text = format!("table `{name}`: keys {keys}, values {values}\n");
    output.result(&json!({"name": name, "keys_mode": keys, "values_mode": values}), &text)?;
    Ok(Exit::Success)
}

/// `aiodb rename-table`.
pub fn rename(args: RenameTableArgs, output: &Output) -> Result<Exit, CliError> {
    let db = args.store.open_to_write(false, Durability::Sync)?;
    db.rename_table(&args.from, &args.to)?;
    db.close()?;
    let text = format!("table `{}` is `{}` now\n", args.from, args.to);
    output.result(&json!({"from": args.from, "name": args.to}), &text)?;
    Ok(Exit::Success)
}

/// `aiodb swap-tables`.
pub fn swap(args: SwapTablesArgs, output: &Output) -> Result<Exit, CliError> {
    let db = args.store.open_to_write(false, Durability::Sync)?;
    let [one, other] = [&args.one, &args.other];
    db.swap_tables(one, other)?;
    let kinds = [one, other].map(|name| db.table(name).map(|table| table.kind().name()));
    let [of_one, of_other] = kinds;
    let (of_one, of_other) = (of_one?, of_other?);
    db.close()?;
    let text = format!("table `{one}` has index {of_one} now, and `{other}` has index {of_other}\n");
    let json = json!([{"name": one, "index": of_one}, {"name": other, "index": of_other}]);
    output.result(&json, &text)?;
    Ok(Exit::Success)
}

/// `aiodb truncate`.
pub fn truncate(args: TruncateArgs, output: &Output) -> Result<Exit, CliError> {
    let (db, lost) = args.target.open_confirmed()?;
    let name = &args.target.name;
    db.truncate_table(name)?;
    db.close()?;
    output.result(&json!({"name": name}), &format!("table `{name}` is empty now (keys before: {lost})\n"))?;
    Ok(Exit::Success)
}

/// `aiodb drop`.
pub fn drop(args: DropArgs, output: &Output) -> Result<Exit, CliError> {
    let (db, lost) = args.target.open_confirmed()?;
    let name = &args.target.name;
    db.drop_table(name)?;
    db.close()?;
    output.result(&json!({"name": name}), &format!("table `{name}` is gone (keys before: {lost})\n"))?;
    Ok(Exit::Success)
}

impl Target {
    /// Opens the store if the user said `--yes`; also says how many keys the table holds.
    fn open_confirmed(&self) -> Result<(Db, String), CliError> {
        let db = self.store.open_to_write(false, Durability::Sync)?;
        let tables = db.stats().tables;
        let table = tables.iter().find(|table| table.name == self.name);
        let lost = keys(table.ok_or_else(|| aiodb::Error::NoSuchTable { name: self.name.clone() })?);
        if self.yes {
            return Ok((db, lost));
        }
        db.close()?;
        let name = &self.name;
        Err(CliError::Usage(format!(
            "this would delete all of table `{name}` for good (keys: {lost}): add --yes to do it"
        )))
    }
}

/// The number of keys in a table, marked where it is an estimate.
pub fn keys(table: &TableStats) -> String {
    format!("{}{}", if table.keys_exact { "" } else { "~" }, HumanCount(table.keys))
}
