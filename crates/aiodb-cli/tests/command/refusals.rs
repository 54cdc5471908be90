//! Stores that cannot be opened, and command lines that make no sense: the user is told what, where and what next.

use crate::{Place, Ran, aiodb};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Every command that needs a store, with arguments that would do.
const NEED_A_STORE: [(&str, &[&str]); 7] = [
    ("get", &["k"]),
    ("del", &["k"]),
    ("stat", &[]),
    ("verify", &[]),
    ("tables", &[]),
    ("truncate", &["default", "--yes"]),
    ("drop", &["default", "--yes"]),
];

/// Every command that makes a store where there is none.
const MAKE_A_STORE: [(&str, &[&str]); 3] =
    [("put", &["k", "v"]), ("create-table", &["t"]), ("load", &["/dev/null", "--format", "tsv"])];

#[test]
fn a_missing_store_is_only_made_by_commands_that_write_to_it() {
    for (command, arguments) in NEED_A_STORE {
        let place = Place::new();
        let refused = place.run(command, &[arguments, &["--json"]].concat()).exits(3);
        assert_eq!(refused.error_kind(), "no_store", "{command}");
        let refused = place.run(command, arguments).exits(3);
        assert!(refused.stderr.contains(place.store().to_str().unwrap()), "{}", refused.stderr);
        assert!(refused.stderr.contains("put, load and create-table make a store"), "{}", refused.stderr);
        assert!(!place.store().exists(), "{command}");
    }
    for (command, arguments) in MAKE_A_STORE {
        let place = Place::new();
        place.run(command, arguments).exits(0);
        place.run("stat", &[]).exits(0);
    }
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    for (command, arguments) in NEED_A_STORE.into_iter().chain(MAKE_A_STORE) {
        let place = Place::new();
        fs::create_dir(place.store()).unwrap();
        fs::write(place.store().join("letter.txt"), "dear").unwrap();
        let refused = place.run(command, &[arguments, &["--json"]].concat()).exits(3);
        assert_eq!(refused.error_kind(), "not_a_store", "{command}");
        assert_eq!(fs::read_dir(place.store()).unwrap().count(), 1, "{command} left something");
    }
}

#[test]
fn a_file_is_no_store() {
    for (command, arguments) in NEED_A_STORE.into_iter().chain(MAKE_A_STORE) {
        let place = Place::new();
        fs::write(place.store(), "a file").unwrap();
        let refused = place.run(command, arguments).exits(3);
        assert!(refused.stderr.contains(place.store().to_str().unwrap()), "{command}: {}", refused.stderr);
        assert_eq!(fs::read(place.store()).unwrap(), b"a file", "{command}");
    }
}

#[test]
fn a_store_in_use_says_by_which_process() {
    let place = Place::new();
    let mut holder = place.spawn("load", &["-", "--format", "tsv"]);
    let mut stdin = holder.stdin.take().unwrap();
    // More than the pipe and the reader's buffer hold: the load has opened the store when this returns.
    stdin.write_all("key\tvalue\n".repeat(100_000).as_bytes()).unwrap();
    for (command, arguments) in NEED_A_STORE.into_iter().chain(MAKE_A_STORE) {
        let refused = place.run(command, arguments).exits(3);
        assert!(refused.stderr.contains(&holder.id().to_string()), "{command}: {}", refused.stderr);
        assert_eq!(place.run(command, &[arguments, &["--json"]].concat()).error_kind(), "locked", "{command}");
    }
    drop(stdin);
    Ran::ended(holder).exits(0);
    assert_eq!(place.get("key", &[]), b"value");
}

#[test]
fn a_store_without_permission_is_named() {
    let place = Place::new();
    place.run("put", &["k", "v"]).exits(0);
    fs::set_permissions(place.store(), fs::Permissions::from_mode(0o000)).unwrap();
    for command in ["get", "put"] {
        let refused = Ran::of(as_nobody(&place).arg(command).arg(place.store()).args(["k", "--json"]));
        let refused = refused.exits(3);
        assert_eq!(refused.error_kind(), "io", "{command}");
        assert!(refused.stderr.contains("ermission denied"), "{command}: {}", refused.stderr);
        assert!(refused.stderr.contains(place.store().to_str().unwrap()), "{command}: {}", refused.stderr);
    }
    fs::set_permissions(place.store(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(place.get("k", &[]), b"v");
}

/// The command run by a user whom permissions bind: root, who may everything, starts it as `nobody`.
fn as_nobody(place: &Place) -> Command {
    const NOBODY: u32 = 65_534;
    // SAFETY: geteuid() has no arguments and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let mut command = if is_root {
        // The build's folders may be closed to others, so the program is copied to where `nobody` can start it.
        fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = place.dir.path().join("aiodb");
        // By a process of its own. A copy by this one has the program open for writing, and so has, until its `exec`, each
        // child that another test starts meanwhile: the kernel then refuses to run the program ("text file busy").
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_aiodb")).arg(&program).status().unwrap();
        assert!(copied.success());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(program);
        command.uid(NOBODY).gid(NOBODY);
        command
    } else {
        Command::new(env!("CARGO_BIN_EXE_aiodb"))
    };
    command.stdin(Stdio::null());
    command
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_untouched() {
    let place = Place::new();
    place.run("put", &["k", "v"]).exits(0);
    let file = raise_format_version(&place.store(), 1);
    let written = fs::read(&file).unwrap();
    for (command, arguments) in NEED_A_STORE.into_iter().chain(MAKE_A_STORE) {
        let refused = place.run(command, &[arguments, &["--json"]].concat()).exits(3);
        assert_eq!(refused.error_kind(), "newer_version", "{command}");
        assert!(refused.stderr.contains("use a newer aiodb"), "{command}: {}", refused.stderr);
        assert_eq!(fs::read(&file).unwrap(), written, "{command}");
    }
}

/// Makes the store one of a format version that is `more` than its own. This is the one place in these tests that
/// knows bytes of the format: the file STORE begins with an 8-byte magic and the version as a little-endian u32. An
/// older program cannot know how a newer one checks the rest, so it must look at the version first.
fn raise_format_version(store: &Path, more: u32) -> std::path::PathBuf {
    const VERSION: std::ops::Range<usize> = 8..12;
    let file = store.join("STORE");
    let mut bytes = fs::read(&file).unwrap();
    let version = u32::from_le_bytes(bytes[VERSION].try_into().unwrap());
    bytes[VERSION].copy_from_slice(&(version + more).to_le_bytes());
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let place = Place::new();
    for arguments in [&[][..], &["frobnicate"], &["get"], &["stat", "store", "--backend", "magic"]] {
        let refused = Ran::of(&mut aiodb(arguments)).exits(2);
        assert!(refused.stderr.contains("Usage:") || refused.stderr.contains("possible values"), "{}", refused.stderr);
        assert!(refused.stdout.is_empty());
    }
    let refused = place.run("get", &["--json"]).exits(2);
    assert_eq!(refused.error_kind(), "usage");
}

#[test]
fn help_teaches_by_example() {
    for command in ["load", "get", "put", "del", "stat", "verify", "tables", "create-table", "truncate", "drop"] {
        let help = Ran::of(&mut aiodb([command, "--help"])).exits(0).text();
        let example = format!("aiodb {command} ");
        assert!(help.contains("Example") && help.contains(&example), "{command}: {help}");
    }
    let help = Ran::of(&mut aiodb(["--help"])).exits(0).text();
    assert!(help.contains("Exit codes:"), "{help}");
    assert!(Ran::of(&mut aiodb(["--version"])).exits(0).text().starts_with("aiodb "));
}
