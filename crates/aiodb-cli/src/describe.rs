//! `aiodb completion` and `aiodb man`: what shells and manuals need to know about the command, made from its own
//! description.

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::PathBuf;

/// Print a script that completes this command's arguments in a shell
#[derive(Args)]
#[command(after_help = "Examples:
  aiodb completion bash > ~/.local/share/bash-completion/completions/aiodb
  aiodb completion zsh > ~/.zfunc/_aiodb       (with ~/.zfunc in $fpath)
  aiodb completion fish > ~/.config/fish/completions/aiodb.fish")]
pub struct CompletionArgs {
    /// The shell
    shell: Shell,
}

/// Print the manual page
#[derive(Args)]
#[command(after_help = "Examples:
  aiodb man | man -l -                         read it
  aiodb man --dir /usr/local/share/man/man1    install it, with a page for each subcommand")]
pub struct ManArgs {
    /// Write this page and one for each subcommand into this directory instead
    #[arg(long)]
    dir: Option<PathBuf>,
}

/// Runs `completion`; `command` is the one described.
pub fn completion(args: &CompletionArgs, mut command: Command, output: &Output) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "aiodb", &mut script);
    output.bytes(&script)?;
    Ok(Exit::Success)
}

/// Runs `man`; `command` is the one described.
pub fn man(args: &ManArgs, command: Command, output: &Output) -> Result<Exit, CliError> {
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir).map_err(CliError::Output)?;
        clap_mangen::generate_to(command, dir).map_err(CliError::Output)?;
        return Ok(Exit::Success);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page).map_err(CliError::Output)?;
    output.bytes(&page)?;
    Ok(Exit::Success)
}
