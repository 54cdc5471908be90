//! Stores that cannot be opened where or by whom they are: each is a typed error that names the path and the reason.

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aiodb::{Db, Error, IndexKind, Options};
use support::{Mount, Role, assert_get, open, quiet, refusal, say, scratch};

/// What a process does as a child of a test.
#[test]
fn child() {
    let Some(role) = support::role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["open", path] => support::open_and_say(path),
        ["hold", path] => {
            let _db = Db::open(path, quiet()).expect("the store can be opened");
            say("holding");
            std::thread::sleep(Duration::from_secs(3600));
        }
        _ => panic!("no such role: {role:?}"),
    }
}

/// Makes a store that holds one key, and closes it.
fn make(store: &Path) {
    let (db, table) = open(store, IndexKind::Hash, &quiet());
    table.put(b"k", b"v").expect("a put works");
    db.close().expect("a sound store can be closed");
}

/// Opens the store that [`make`] made.
fn check(store: &Path, when: &str) {
    let (_db, table) = open(store, IndexKind::Hash, &quiet());
    assert_get(&table, b"k", Some(b"v"), when);
}

#[test]
fn directories_that_are_no_store() {
    let directory = scratch();
    let nowhere = directory.path().join("no/where");
    let without_create = Options { create: false, ..quiet() };
    for path in [&nowhere, &directory.path().to_path_buf()] {
        let error = refusal(Db::open(path, without_create.clone()), "a store that is not there");
        assert!(matches!(&error, Error::NoStore { path: said } if said == path), "there is no store, not: {error:?}");
    }
    assert!(!nowhere.exists(), "nothing is made where nothing was to be made");
    let foreign = directory.path().join("notes.txt");
    fs::write(&foreign, b"mine").expect("a file can be written");
    let error = refusal(Db::open(directory.path(), quiet()), "a foreign directory");
    assert!(matches!(&error, Error::NotAStore { path } if path == directory.path()), "it is no store, not: {error:?}");
    let left: Vec<_> = fs::read_dir(directory.path())
        .expect("it can be listed")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["notes.txt"], "nothing is left in a foreign directory");
    let error = refusal(Db::open(&foreign, quiet()), "a file instead of a directory");
    let named = match &error {
        Error::Io { path, .. } | Error::NotAStore { path } => path.starts_with(&foreign),
        _ => false,
    };
    assert!(named, "a file instead of a directory is named: {error:?}");
    assert_eq!(fs::read(&foreign).expect("it is still there"), b"mine", "the file is untouched");
}

#[test]
fn a_store_in_use() {
    let directory = scratch();
    let path = directory.path().to_str().expect("the path is text");
    let mut child = Role::start(&["hold", path]);
    assert_eq!(child.line().as_deref(), Some("holding"), "the child has opened the store");
    let error = refusal(Db::open(path, quiet()), "a store in use");
    let id = child.id().to_string();
    assert!(
        matches!(&error, Error::Locked { path, holder } if path == directory.path() && holder.contains(&id)),
        "the error names process {id}, not: {error:?}"
    );
    child.kill();
    let db = Db::open(path, quiet()).expect("a lock ends with its process");
    let error = refusal(Db::open(path, quiet()), "a second opening in one process");
    assert!(matches!(error, Error::Locked { .. }), "one process opens a store once, not: {error:?}");
    drop(db);
}

#[test]
fn without_permission() {
    const NOBODY: u32 = 65534;
    if !support::is_root() {
        return println!("skipped: only root may become somebody else");
    }
    // In the system's temporary directory, since all directories above must let the other user through.
    let public = tempfile::tempdir().expect("a directory can be made");
    let program = public.path().join("program");
    // By a process of its own. A copy by this one has the program open for writing, and so has, until its `exec`, each child
    // that another test starts meanwhile: the kernel then refuses to run the program ("text file busy").
    let this_program = std::env::current_exe().expect("the test knows its file");
    let copied = Command::new("cp").arg(this_program).arg(&program).status().expect("`cp` can be run");
    assert!(copied.success(), "the program can be copied");
    let store = public.path().join("store");
    make(&store);
    let allow =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("modes can be set");
    allow(public.path(), 0o755);
    allow(&program, 0o755);
    for (mode, what) in [(0o755, "a store that may only be read"), (0o000, "a store that may not even be seen")] {
        allow(&store, mode);
        let mut child = Role::start_as(NOBODY, &program, &["open", store.to_str().expect("the path is text")]);
        let said = child.line().unwrap_or_else(|| panic!("{what}: the child says what it met"));
        assert!(
            said.starts_with("Io") && said.contains("PermissionDenied") && said.contains(store.to_str().expect("text")),
            "{what}: the error names the path and the reason: {said}"
        );
    }
    allow(&store, 0o755);
    check(&store, "after others were refused");
}

#[test]
fn a_read_only_file_system() {
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=16m", "tmpfs"]) else { return };
    let store = mount.path().join("store");
    make(&store);
    mount.remount("ro");
    let error = refusal(Db::open(&store, quiet()), "a store on a read-only file system");
    assert!(
        matches!(&error, Error::Io { path, kind: std::io::ErrorKind::ReadOnlyFilesystem, .. } if path.starts_with(&store)),
        "the error names the path and the reason, not: {error:?}"
    );
    mount.remount("rw");
    check(&store, "after the file system was made writable");
}
