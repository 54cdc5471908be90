//! Tests of what an export says of itself.

use super::*;
use aiodb::{Db, Options};
use clap::FromArgMatches;

/// The arguments of a command line.
fn arguments(words: &[&str]) -> ExportArgs {
    let command = ExportArgs::augment_args(clap::Command::new("export"));
    let matches = command.try_get_matches_from([&["export"], words].concat()).expect("the words are right");
    ExportArgs::from_arg_matches(&matches).expect("the words are right")
}

#[test]
fn a_line_that_is_longer_than_a_load_allows_is_allowed_by_the_command_that_is_shown() {
    let args = arguments(&["store", "long.tsv", "--value-encoding", "base64"]);
    let mut export = Export { args: &args, format: Format::Tsv, records: 0, bytes: 0, longest_line: 0 };
    let dir = tempfile::tempdir().expect("a directory");
    let db = Db::open(dir.path(), Options::default()).expect("a store");
    let table = db.create_table("t", aiodb::IndexKind::Lsm).expect("a table");
    for (key, length) in [("a", 3), ("b", 3000), ("c", 30)] {
        table.put(key.as_bytes(), &vec![b'x'; length]).expect("a put works");
    }
    let mut written = Vec::new();
    export.write_all(&table, &mut written, None).expect("all is written");
    let longest = written.split_inclusive(|byte| *byte == b'\n').map(|line| line.len() as u64).max();
    assert_eq!(Some(export.longest_line), longest);
    let usual = "aiodb load STORE long.tsv --value-encoding base64";
    assert_eq!(export.load_command(), usual);
    export.longest_line = DEFAULT_MAX_LINE_BYTES;
    assert_eq!(export.load_command(), usual);
    export.longest_line += 1;
    assert_eq!(export.load_command(), format!("{usual} --max-line-bytes {}", DEFAULT_MAX_LINE_BYTES + 1));
}
