//! The limits of a machine: what a user sees when one is reached, and that what had been acknowledged is there when it
//! is gone.

use crate::{INDEXES, Place, Ran, aiodb};
use serde_json::{Value, json};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};

const VALUE_BYTES: usize = 4000;
const SEGMENT_BYTES: u64 = 256 << 10;

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
fn make(store: &Path, index: &str, segment_bytes: u64) {
    let segment_bytes = segment_bytes.to_string();
    let apply = [store.as_os_str(), "--segment-bytes".as_ref(), segment_bytes.as_ref()];
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
    for index in INDEXES {
        let place = Place::new();
        let Some(disk) = Small::mount(&place) else { return };
        let store = disk.directory.join("store");
        make(&store, index, SEGMENT_BYTES);
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

/// Commands as clients send them.
fn commands(lines: impl Iterator<Item = Vec<String>>) -> String {
    let command = |words: Vec<String>| {
        let arguments: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        format!("*{}\r\n{arguments}", words.len())
    };
    lines.map(command).collect()
}

#[test]
fn a_load_of_commands_on_a_full_disk_stops_at_the_first_that_was_not_carried_out() {
    const ROUNDS: usize = 1100;
    const LONG: usize = 10_000;
    let place = Place::new();
    let Some(disk) = Small::mount(&place) else { return };
    let store = disk.directory.join("store");
    make(&store, "lsm", SEGMENT_BYTES);
    std::fs::write(disk.directory.join("other"), vec![1; 12 << 20]).unwrap();
    // Where there is no room for the long values there may be some for the others.
    let value = "v".repeat(LONG);
    let lines = (0..ROUNDS).flat_map(|round| {
        let words = [format!("rpush log {round}"), format!("set key:{round} {value}"), "incr count".to_string()];
        words.map(|line| line.split(' ').map(str::to_string).collect::<Vec<_>>())
    });
    let file = place.file("commands", commands(lines));
    let load = |file: &Path, arguments: &[&str]| {
        let shared = ["--format", "resp", "--databases", "1", "--json"];
        Ran::of(aiodb(["load"]).arg(&store).arg(file).args(shared).args(arguments).stdin(Stdio::null()))
    };
    let stopped = load(&file, &["--bad-lines", "skip"]).exits(3);
    // Commands that took long may be told of before.
    let error: Value = serde_json::from_str(stopped.stderr.lines().last().unwrap()).unwrap();
    assert_eq!((&error["error"]["kind"], &stopped.json()["commands_refused"]), (&json!("disk_full"), &json!(0)));
    let done = stopped.json()["commands_done"].as_u64().unwrap();
    assert!(done > 0 && done < 3 * ROUNDS as u64, "{done}");
    let again = load(&file, &["--skip-lines", &done.to_string()]).exits(3);
    let (before, done) = (done, again.json()["commands_done"].as_u64().unwrap());
    assert!(done >= before && done < 3 * ROUNDS as u64, "{done} after {before}");
    std::fs::remove_file(disk.directory.join("other")).unwrap();
    let whole = load(&file, &["--skip-lines", &done.to_string()]).exits(0).json();
    assert_eq!(whole["commands_done"], 3 * ROUNDS);
    let script = format!(
        "local log = redis.call('lrange', 'log', 0, -1) \
         for round = 0, {ROUNDS} - 1 do \
           if log[round + 1] ~= tostring(round) then return redis.error_reply('the log has ' .. tostring(log[round + 1]) .. ' for ' .. round) end \
           if redis.call('strlen', 'key:' .. round) ~= {LONG} then return redis.error_reply('there is no key:' .. round) end \
         end \
         return redis.error_reply(#log .. ' rounds, count ' .. redis.call('get', 'count'))"
    );
    let asked = place.file("asked", commands(std::iter::once(vec!["eval".into(), script, "0".into()])));
    let told = load(&asked, &["--bad-lines", "skip"]).exits(4).json();
    assert_eq!(told["commands_refused_shown"][0]["reason"], format!("{ROUNDS} rounds, count {ROUNDS}"));
}

/// Few of these segments' files fit into the limits below.
const SMALLEST_SEGMENT_BYTES: u64 = 64 << 10;

#[test]
fn a_store_of_many_segments_works_with_few_open_files() {
    for (index, most) in [("lmdb", 64), ("hash", 64), ("hash", 256), ("lsm", 64)] {
        let place = Place::new();
        let store = place.store();
        make(&store, index, SMALLEST_SEGMENT_BYTES);
        let few = |command: &mut Command| limit(command, libc::RLIMIT_NOFILE, most);
        let ran = apply(&store, &puts(0..6000), few);
        let (acknowledged, refused) = answers(&ran.stdout);
        let message = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!((acknowledged.len(), refused.first()), (6000, None), "{message}");
        assert_eq!(ran.status.code(), Some(0), "{message}");
        let segments = std::fs::read_dir(store.join("log")).unwrap().count();
        assert!(segments as u64 > most, "{segments} segments are more than {most} files");
        let run = |command: &str, arguments: &[&str]| {
            let mut command = place.command(command);
            few(command.args(arguments).stdin(Stdio::null()));
            Ran::of(&mut command).exits(0)
        };
        let stat = run("stat", &["--json"]).json();
        let (open, bound) = (stat["open_files"].as_u64().unwrap(), stat["max_open_files"].as_u64().unwrap());
        assert!(0 < open && open <= bound && bound < most, "{open} of {bound}");
        let fewer = run("stat", &["--json", "--max-open-files", "9"]).json();
        assert_eq!(fewer["max_open_files"], 9);
        let refused = Ran::of(place.command("stat").args(["--max-open-files", "7"]).stdin(Stdio::null())).exits(2);
        assert!(refused.stderr.contains("--max-open-files"), "{}", refused.stderr);
        run("verify", &["--max-open-files", "8"]);
        assert_eq!(run("scan", &["--table", "t", "--keys-only"]).text().lines().count(), 6000);
        let (repository, restored) = (place.dir.path().join("repository"), place.dir.path().join("restored"));
        run("backup", &[repository.to_str().unwrap()]);
        let mut restore = aiodb(["restore".as_ref(), repository.as_os_str(), restored.as_os_str()]);
        few(restore.stdin(Stdio::null()));
        Ran::of(&mut restore).exits(0);
        // Most segments are emptied: reclaim has much to move, and to give back.
        let ran = apply(&store, &puts(0..5000), few);
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
        let all: Vec<_> = (0..6000).collect();
        assert_there(&store, &all);
        assert_there(&restored, &all);
    }
}

#[test]
fn a_process_that_runs_out_of_memory_loses_nothing() {
    let place = Place::new();
    let store = place.store();
    make(&store, "hash", SEGMENT_BYTES);
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
