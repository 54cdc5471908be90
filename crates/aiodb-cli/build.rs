//! Bakes the commit into the program, so that every measurement can name it.

use std::process::Command;

fn main() {
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    println!("cargo::rustc-env=AIODB_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../aiodb/src");
    for file in ["HEAD", "logs/HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// What git answers, or nothing where the sources are not in a repository or there is no git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let answer = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !answer.is_empty()).then_some(answer)
}
