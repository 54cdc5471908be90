//! What the tests of experiments' options share.

use clap::{Args, Parser};

#[derive(Parser)]
struct Cli<O: Args> {
    #[command(flatten)]
    options: O,
}

/// An experiment's options as its arguments give them, with a directory.
pub(crate) fn parse<O: Args>(arguments: &[&str]) -> Result<O, clap::Error> {
    let always = ["compare", "--dir", "somewhere"];
    Cli::try_parse_from(always.iter().chain(arguments)).map(|cli: Cli<O>| cli.options)
}
