//! The limits of a machine: what a user sees when one is reached, and that what had been acknowledged is there when it
//! is gone.

use crate::{Place, Ran, aiodb};
use serde_json::{Value, json};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

const VALUE_BYTES: usize = 4000;

/// Requests that put one value each.
fn puts(ids: std::ops::Range<u64>) -> String {
    let put = |id: u64| {
        let value = format!("{id}:{}", "v".repeat(VALUE_BYTES));
        let changes = json!([{"table": "t", "key": format!("key {id}"), "value": value}]);
        format!("{}\n", json!({"id": id, "writer": id, "durability": "none", "changes": changes}))
    };
    ids.map(put).collect()
}

/// A store of small segments with an empty table.
fn make(store: &Path, index: &str) {
    let apply = [store.as_os_str(), "--segment-bytes".as_ref(), "262144".as_ref()];
    Ran::of(aiodb(["apply"]).args(apply).stdin(Stdio::null())).exits(0);
    Ran::of(aiodb(["create-table"]).arg(store).args(["t", "--index", index]).stdin(Stdio::null())).exits(0);
}

/// Gives `input` to `aiodb apply`, in a process that `limit` has changed.
fn apply(store: &Path, input: &str, limit: impl FnOnce(&mut Command)) -> std::process::Output {
    let mut command = aiodb(["apply"]);
    command.arg(store).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    limit(&mut command);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_string();
    // Beside the answers, since both pipes have their bounds. The command may end before its input does.
    let writer = std::thread::spawn(move || drop(std::io::Write::write_all(&mut stdin, input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// The requests that were acknowledged, and the kinds of the errors of the others.
fn answers(stdout: &[u8]) -> (Vec<u64>, Vec<String>) {
    let lines = String::from_utf8_lossy(stdout).into_owned();
    let answers: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.get("error").is_none());
    let kind = |answer: &Value| answer["error"]["kind"].as_str().unwrap().to_string();
    (done.iter().map(|answer| answer["id"].as_u64().unwrap()).collect(), refused.iter().map(kind).collect())
}

/// Everything acknowledged is in the store, which is sound.
fn assert_there(store: &Path, acknowledged: &[u64]) {
    let db = aiodb::Db::open(store, aiodb::Options { create: false, ..Default::default() }).unwrap();
    let table = db.table("t").unwrap();
    for id in acknowledged {
        let found = table.get(format!("key {id}").as_bytes()).unwrap().unwrap_or_else(|| panic!("key {id} is there"));
        assert!(found.starts_with(format!("{id}:v").as_bytes()) && found.len() > VALUE_BYTES, "key {id}");
    }
    assert!(db.verify(&mut |_, _| {}).unwrap().damage.is_empty());
    db.close().unwrap();
}

/// Bounds a resource of the child.
fn limit(command: &mut Command, resource: libc::__rlimit_resource_t, bound: u64) {
    let limits = libc::rlimit { rlim_cur: bound, rlim_max: bound };
    let set = move || {
        // SAFETY: setrlimit() only reads the structure, which lives until it returns.
        let outcome = unsafe { libc::setrlimit(resource, &limits) };
        if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    };
    // SAFETY: the closure calls nothing but setrlimit(), which may be called between fork() and exec().
    unsafe { command.pre_exec(set) };
}

/// An ext4 file system of its own, as root; says so otherwise.
struct Small {
    directory: std::path::PathBuf,
}

impl Small {
    fn mount(place: &Place) -> Option<Small> {
        let (image, directory) = (place.dir.path().join("disk.img"), place.dir.path().join("disk"));
        std::fs::File::create(&image).unwrap().set_len(24 << 20).unwrap();
        std::fs::create_dir(&directory).unwrap();
        for (program, arguments) in [
            ("mkfs.ext4", vec!["-q".as_ref(), "-F".as_ref(), image.as_os_str()]),
            ("mount", vec!["-o".as_ref(), "loop".as_ref(), image.as_os_str(), directory.as_os_str()]),
        ] {
            let ran = Command::new(program).args(arguments).output();
            if !ran.as_ref().is_ok_and(|output| output.status.success()) {
                println!("skipped: {program} needs root and a loop device: {ran:?}");
                return None;
            }
        }
        Some(Small { directory })
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily, so that a failed test leaves nothing behind.
        let unmounted = Command::new("umount").arg("-l").arg(&self.directory).status();
        assert!(unmounted.unwrap().success() || std::thread::panicking());
    }
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    for index in ["lmdb", "hash"] {
        let place = Place::new();
        let Some(disk) = Small::mount(&place) else { return };
        let store = disk.directory.join("store");
        make(&store, index);
        // Somebody else's file takes what the store will want.
        std::fs::write(disk.directory.join("other"), vec![1; 6 << 20]).unwrap();
        let ran = apply(&store, &puts(0..5000), |_| {});
        assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
        let (acknowledged, refused) = answers(&ran.stdout);
        assert!(!acknowledged.is_empty() && !refused.is_empty(), "{} and {}", acknowledged.len(), refused.len());
        assert!(refused.iter().all(|kind| kind == "disk_full"), "{refused:?}");
        assert_there(&store, &acknowledged);
        std::fs::remove_file(disk.directory.join("other")).unwrap();
        let ran = apply(&store, &puts(10_000..10_500), |_| {});
        let (more, refused) = answers(&ran.stdout);
        assert_eq!((more.len(), refused.len()), (500, 0), "there is room again");
        assert_there(&store, &[acknowledged, more].concat());
    }
}

#[test]
fn too_many_open_files_refuse_and_lose_nothing() {
    for index in ["lmdb", "hash"] {
        let place = Place::new();
        let store = place.store();
        make(&store, index);
        // A segment is an open file; these writes take about eighty.
        let ran = apply(&store, &puts(0..4000), |command| limit(command, libc::RLIMIT_NOFILE, 48));
        assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
        let (acknowledged, refused) = answers(&ran.stdout);
        assert!(!acknowledged.is_empty() && !refused.is_empty(), "{} and {}", acknowledged.len(), refused.len());
        assert!(String::from_utf8_lossy(&ran.stdout).contains("Too many open files"), "the reason is told");
        assert_there(&store, &acknowledged);
        // With more files the same store takes the rest, and then does not open with the few.
        let ran = apply(&store, &puts(0..4000), |_| {});
        assert_eq!(ran.status.code(), Some(0));
        let ran = apply(&store, "", |command| limit(command, libc::RLIMIT_NOFILE, 48));
        let message = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(3), "{message}");
        assert!(message.contains("Too many open files") && message.contains(".seg"), "{message}");
        assert_there(&store, &(0..4000).collect::<Vec<_>>());
    }
}

#[test]
fn a_process_that_runs_out_of_memory_loses_nothing() {
    let place = Place::new();
    let store = place.store();
    make(&store, "hash");
    // The last line alone is more than the process may have.
    let huge =
        format!("{{\"id\":1000,\"changes\":[{{\"table\":\"t\",\"key\":\"k\",\"value\":\"{}\"", "x".repeat(900 << 20));
    let ran = apply(&store, &(puts(0..200) + &huge), |command| limit(command, libc::RLIMIT_AS, 768 << 20));
    assert_eq!(ran.status.signal(), Some(libc::SIGABRT), "{}", String::from_utf8_lossy(&ran.stderr));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("memory allocation"), "the reason is told");
    let (acknowledged, refused) = answers(&ran.stdout);
    assert!(!acknowledged.is_empty() && refused.is_empty());
    assert_there(&store, &acknowledged);
}
