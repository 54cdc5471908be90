//! The `aiodb` command from outside: what it prints, what it leaves in the store and how it exits.

mod apply;
mod backup;
mod bench;
mod describe;
mod directories;
mod ingest;
mod inspect;
mod interrupt;
mod keys;
mod limits;
mod load;
mod refusals;
mod sample;
mod scan;
mod tables;

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// All kinds of index.
const INDEXES: [&str; 3] = ["lmdb", "hash", "lsm"];

/// A directory for one test, with a place for a store in it.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: TempDir::new().unwrap() }
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Writes a file beside the store.
    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Runs `aiodb COMMAND STORE ARGUMENTS` to its end, with nothing on stdin.
    fn run(&self, command: &str, arguments: &[&str]) -> Ran {
        Ran::of(self.command(command).args(arguments).stdin(Stdio::null()))
    }

    /// The same with a file to load.
    fn load(&self, file: &Path, arguments: &[&str]) -> Ran {
        Ran::of(self.command("load").arg(file).args(arguments).stdin(Stdio::null()))
    }

    /// The same with `input` on stdin.
    fn run_with_input(&self, command: &str, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = self.spawn(command, arguments);
        // The command may refuse before it has read everything: then the pipe is broken, and the test looks at why.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran::ended(child)
    }

    /// Starts the command and leaves its stdin open.
    fn spawn(&self, command: &str, arguments: &[&str]) -> Child {
        let mut command = self.command(command);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    fn command(&self, command: &str) -> Command {
        aiodb([OsStr::new(command), self.store().as_os_str()])
    }

    /// The value of a key that must be there.
    fn get(&self, key: &str, arguments: &[&str]) -> Vec<u8> {
        self.run("get", &[&[key], arguments].concat()).exits(0).stdout
    }
}

fn aiodb<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aiodb"));
    command.args(arguments);
    command
}

/// A command that has ended.
struct Ran {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ran {
    fn of(command: &mut Command) -> Ran {
        Ran::ended(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn ended(child: Child) -> Ran {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        Ran { code: output.status.code(), stdout: output.stdout, stderr }
    }

    fn exits(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// The one JSON value on stdout.
    fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The kind of the one JSON error on stderr.
    fn error_kind(&self) -> String {
        let error: Value = serde_json::from_str(&self.stderr).unwrap_or_else(|why| panic!("{why} in {}", self.stderr));
        assert!(!error["error"]["message"].as_str().unwrap().is_empty());
        error["error"]["kind"].as_str().unwrap().to_string()
    }
}
