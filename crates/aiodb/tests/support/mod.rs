//! What the behaviour tests share: stores on real files, values that tell where they belong, and child processes.

// Each test file is a crate of its own and uses a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use aiodb::merge::Append;
use aiodb::{
    Backend, Compression, Db, Durability, Error, IndexKind, MergeOperators, Options, Step, Table, TableOptions,
    WriteOptions,
};
use tempfile::TempDir;

/// Segments that a store keeps whatever it holds: tolerated garbage, the reserve, spare ones, the active one, and those
/// that wait for a checkpoint.
pub const OVERHEAD_SEGMENTS: usize = 16;

/// All kinds of index.
pub const KINDS: [IndexKind; 3] = [IndexKind::Lmdb, IndexKind::Hash, IndexKind::Lsm];

/// The kinds of index of ordered tables.
pub const ORDERED: [IndexKind; 2] = [IndexKind::Lmdb, IndexKind::Lsm];

/// The environment variable that makes a test binary a child process which does what is asked, see [`child`].
const ROLE: &str = "AIODB_TEST_ROLE";

/// A directory on a real disk; the system's temporary directory may be in memory.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory for the test can be made")
}

/// Options for a small store.
pub fn small() -> Options {
    Options { segment_bytes: 1 << 20, ..Options::default() }
}

/// Options for a small store that works only when it is told to.
pub fn quiet() -> Options {
    Options { background: false, ..small() }
}

/// Whether a backend works on this machine; says so if not.
pub fn is_available(backend: Backend, directory: &Path) -> bool {
    match aiodb::io::Disk::open(directory, backend, true) {
        Ok(_) => true,
        Err(error @ Error::Backend { .. }) => {
            println!("skipped: {error}");
            false
        }
        Err(error) => panic!("the backend {backend:?} can be probed: {error}"),
    }
}

/// Directories on a real disk.
pub fn scratches(count: usize) -> Vec<TempDir> {
    (0..count).map(|_| scratch()).collect()
}

/// Options of a table whose index has short values, where that can be.
pub fn with_values(kind: IndexKind) -> TableOptions {
    TableOptions { inline_bytes: if kind == IndexKind::Lsm { 100 } else { 0 }, ..kind.into() }
}

/// Opens a store that has one table, `t`.
pub fn open(path: &Path, kind: IndexKind, options: &Options) -> (Db, Table) {
    open_several(&[path], kind, options)
}

/// Opens a store in several directories that has one table, `t`.
pub fn open_several<P: AsRef<Path>>(paths: &[P], kind: IndexKind, options: &Options) -> (Db, Table) {
    let db = Db::open_several(paths, options.clone())
        .unwrap_or_else(|error| panic!("{} can be opened: {error}", paths[0].as_ref().display()));
    let table = db.table_or_create("t", kind).expect("the table is there or can be made");
    (db, table)
}

/// The error of something that must not work.
pub fn refusal<T>(outcome: aiodb::Result<T>, what: &str) -> Error {
    match outcome {
        Ok(_) => panic!("{what} must be refused"),
        Err(error) => error,
    }
}

/// A value of this many bytes that differs from any with another seed from its first byte on.
pub fn value(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66;
    let mut bytes = Vec::with_capacity(length + 8);
    bytes.extend_from_slice(&seed.to_le_bytes());
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Whether two values are equal, without printing megabytes when they are not.
pub fn assert_value(found: Option<&[u8]>, wanted: Option<&[u8]>, what: &str) {
    if found == wanted {
        return;
    }
    let describe = |value: Option<&[u8]>| match value {
        None => "absent".to_string(),
        Some(value) => format!("{} bytes beginning {:02x?}", value.len(), &value[..value.len().min(16)]),
    };
    let at =
        found.unwrap_or_default().iter().zip(wanted.unwrap_or_default()).position(|(found, wanted)| found != wanted);
    panic!("{what}: expected {}, found {}, first difference at {at:?}", describe(wanted), describe(found));
}

/// Calls `get` and compares.
pub fn assert_get(table: &Table, key: &[u8], wanted: Option<&[u8]>, what: &str) {
    let found = table.get(key).unwrap_or_else(|error| panic!("{what}: {}: {error}", name(key)));
    assert_value(found.as_deref(), wanted, &format!("{what}: {}", name(key)));
}

/// A key for a message.
pub fn name(key: &[u8]) -> String {
    format!("key {:?} of {} bytes", String::from_utf8_lossy(&key[..key.len().min(24)]), key.len())
}

/// Everything that a check of the whole store finds wrong.
pub fn damage(db: &Db) -> Vec<Error> {
    db.verify(&mut |_, _| {}).expect("the check itself goes through").damage
}

/// The segment files of a store that take space.
pub fn segment_files(store: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(store.join("log")).expect("the store has a log");
    let files = entries.map(|entry| entry.expect("the log can be listed")).filter(|entry| {
        entry.file_name().to_string_lossy().ends_with(".seg") && entry.metadata().is_ok_and(|file| file.len() > 0)
    });
    let mut paths: Vec<_> = files.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Copies a directory with everything in it, but not its lock.
pub fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the copy's directory can be made");
    for entry in std::fs::read_dir(from).expect("the directory can be listed") {
        let entry = entry.expect("the directory can be listed");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("the entry has a type").is_dir() {
            copy_tree(&entry.path(), &target);
        } else if entry.file_name() != "LOCK" {
            std::fs::copy(entry.path(), &target).expect("the file can be copied");
        }
    }
}

/// Removes from a copy of a store what a fixture need not have: LMDB's lock, segments that hold nothing, and the zeros at the end of pending batches.
pub fn trim_store(store: &Path) {
    match std::fs::remove_file(store.join("index/lmdb/lock.mdb")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("the lock file can be removed: {error}"),
        _ => {}
    }
    for path in segment_files(store) {
        let free = std::fs::read(&path).expect("the segment can be read")[4096..].iter().all(|byte| *byte == 0);
        if free {
            std::fs::remove_file(path).expect("the segment can be removed");
        }
    }
    for number in 0..2 {
        let path = store.join("pending").join(number.to_string());
        let bytes = std::fs::read(&path).expect("the pending batch can be read");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last + 1).next_multiple_of(4096));
        std::fs::write(&path, &bytes[..used]).expect("the pending batch can be written");
    }
}

/// Whether the tests run as root, who may mount file systems and become somebody else.
pub fn is_root() -> bool {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// A file system mounted for a test, unmounted at its end.
pub struct Mount {
    directory: TempDir,
}

impl Mount {
    /// Mounts with the arguments of mount(8); says why not if that is not possible here.
    pub fn new(arguments: &[&str]) -> Option<Mount> {
        if !is_root() {
            println!("skipped: only root may mount a file system");
            return None;
        }
        let directory = scratch();
        let mount = Command::new("mount").args(arguments).arg(directory.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Mount { directory }),
            Ok(output) => {
                println!("skipped: mount: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("skipped: mount: {error}");
                None
            }
        }
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Mounts it again with other options.
    pub fn remount(&self, options: &str) {
        let mount = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(self.path()).status();
        assert!(mount.expect("mount can be run").success(), "the file system can be remounted with {options}");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Lazily: a store that a failed test left open must not keep it.
        let unmounted = Command::new("umount").arg("-l").arg(self.path()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            println!("{} could not be unmounted", self.path().display());
        }
    }
}

/// The role that this process was started for, if it is a child: its name and arguments.
pub fn role() -> Option<Vec<String>> {
    let role = std::env::var(ROLE).ok()?;
    Some(role.split('\n').map(str::to_string).collect())
}

/// A child process: this test binary again, running the one test `child` with a role. It is killed when dropped.
pub struct Role {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Role {
    /// Starts a child. The test file has a test named `child` that calls [`role`].
    pub fn start(role: &[&str]) -> Role {
        let program = std::env::current_exe().expect("the test knows its own file");
        Role::spawn(Command::new(program).args(["child", "--exact", "--nocapture", "--test-threads=1"]), role)
    }

    /// Starts a child as another user, who must be able to reach the program.
    pub fn start_as(user: u32, program: &Path, role: &[&str]) -> Role {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        command.args(["child", "--exact", "--nocapture", "--test-threads=1"]).uid(user).gid(user);
        Role::spawn(&mut command, role)
    }

    fn spawn(command: &mut Command, role: &[&str]) -> Role {
        let mut child = command
            .env(ROLE, role.join("\n"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("the child process {command:?} can be started: {error}"));
        let lines = BufReader::new(child.stdout.take().expect("the output is piped")).lines();
        Role { child, lines }
    }

    /// The next line that the child says (lines of the test harness do not begin with `> `), `None` when it has ended.
    pub fn line(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.expect("the child's output is text");
            if let Some((_, said)) = line.split_once("> ") {
                return Some(said.to_string());
            }
        }
    }

    /// The child's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the child with SIGKILL and returns what it had said and nobody had read yet.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("the child can be killed");
        self.child.wait().expect("the child can be waited for");
        std::iter::from_fn(|| self.line()).collect()
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says a line to the parent; see [`Role::line`].
pub fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    // One write: a line is there wholly or not at all. The parent may have gone.
    let _ = out.write_all(format!("> {line}\n").as_bytes()).and_then(|()| out.flush());
}

/// Waits until something that happens in the background has happened.
pub fn eventually(what: &str, happened: impl Fn() -> bool) {
    let patience = std::time::Duration::from_secs(120);
    let began = std::time::Instant::now();
    while !happened() {
        assert!(began.elapsed() < patience, "{what}, but not within {patience:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A table and what it must hold.
pub struct Known {
    /// The table.
    pub table: Table,
    /// Its contents.
    pub contents: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Known {
    /// A table that is empty.
    pub fn new(table: Table) -> Known {
        Known { table, contents: BTreeMap::new() }
    }

    /// Puts, without waiting for the device.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        let outcome = self.table.put_with(key, value, Durability::None);
        outcome.unwrap_or_else(|error| panic!("a put of {}: {error}", name(key)));
        self.contents.insert(key.to_vec(), value.to_vec());
    }

    /// Deletes, without waiting for the device.
    pub fn delete(&mut self, key: &[u8]) {
        let outcome = self.table.delete_with(key, Durability::None);
        outcome.unwrap_or_else(|error| panic!("a delete of {}: {error}", name(key)));
        self.contents.remove(key);
    }

    /// Puts and deletes at random: short and long keys, values of all shapes that a small segment knows.
    pub fn change(&mut self, rng: &mut fastrand::Rng, operations: usize) {
        for _ in 0..operations {
            let mut key = format!("key {}", rng.u64(..150)).into_bytes();
            if key.ends_with(b"3") {
                key.resize(600, b'x');
            }
            let length = match rng.u8(..40) {
                0 => 0,
                1 => rng.usize(17_000..60_000),
                2..4 => rng.usize(900..1100),
                4..8 => rng.usize(1280..5000),
                _ => rng.usize(1..400),
            };
            if rng.u8(..5) == 0 { self.delete(&key) } else { self.put(&key, &value(rng.u64(..), length)) }
        }
    }

    /// Compares everything with the table of this name in another opening of the store.
    pub fn check(&self, db: &Db, when: &str) {
        let table = db.table(self.table.name()).unwrap_or_else(|error| panic!("{when}: {error}"));
        for number in 0..150 {
            let short = format!("key {number}").into_bytes();
            if !self.contents.contains_key(&short) {
                assert_get(&table, &short, None, when);
            }
        }
        for (key, value) in &self.contents {
            assert_get(&table, key, Some(value), when);
        }
    }
}

/// Options for a small store whose tables can merge.
pub fn merging() -> Options {
    Options { merge_operators: MergeOperators::default().with(Append), ..quiet() }
}

/// A store with a table `t` whose operands are appended.
pub fn open_appending(directory: &TempDir, kind: IndexKind, options: Options) -> (Db, Table) {
    let options = Options { merge_operators: MergeOperators::default().with(Append), ..options };
    let db = Db::open(directory.path(), options).expect("a store can be made");
    let merge = Some("append".to_owned());
    let table = db.create_table_with("t", TableOptions { merge, ..kind.into() }).expect("a table can be made");
    (db, table)
}

/// A key's put with the time at which it expires, and its operands since.
type Pile = (Option<(Vec<u8>, Option<u64>)>, Vec<u8>);

/// A table that merges, compresses, expires and deletes ranges, and what it must hold.
#[derive(Clone)]
pub struct Varied {
    /// The table.
    pub table: Table,
    piles: BTreeMap<Vec<u8>, Pile>,
}

impl Varied {
    /// A new table.
    pub fn new(db: &Db, name: &str, kind: IndexKind) -> Varied {
        let options = TableOptions { compression: Compression::Lz4, merge: Some("append".into()), ..with_values(kind) };
        let table = db.create_table_with(name, options).expect("a table can be made");
        Varied { table, piles: BTreeMap::new() }
    }

    fn key(number: u64) -> Vec<u8> {
        format!("key {number:02}").into_bytes()
    }

    /// Writes of all kinds at random.
    pub fn change(&mut self, rng: &mut fastrand::Rng, operations: usize) {
        let none = WriteOptions::from(Durability::None);
        for _ in 0..operations {
            let key = Self::key(rng.u64(..60));
            let length = match rng.u8(..60) {
                0 => rng.usize(270_000..400_000),
                1..5 => rng.usize(900..1100),
                5..17 => rng.usize(1280..5000),
                _ => rng.usize(..300),
            };
            let bytes = if rng.bool() { value(rng.u64(..), length) } else { vec![rng.u8(..); length] };
            match rng.u8(..20) {
                0..8 => {
                    // Long ago, or not in this test's time.
                    let expires = [None, None, NonZeroU64::new(1), NonZeroU64::new(u64::MAX)][rng.usize(..4)];
                    let options = WriteOptions { expires_ms: expires, ..none };
                    self.table.put_with(&key, &bytes, options).expect("a put works");
                    self.piles.insert(key, (Some((bytes, expires.map(NonZeroU64::get))), Vec::new()));
                }
                8..16 => {
                    let operand = &[&b"+"[..], &bytes[..length.min(2000)]].concat()[..];
                    self.table.merge_with(&key, operand, none).expect("a merge works");
                    self.piles.entry(key).or_default().1.extend_from_slice(operand);
                }
                16..19 => {
                    self.table.delete_with(&key, Durability::None).expect("a delete works");
                    self.piles.remove(&key);
                }
                _ if self.table.kind().is_ordered() && rng.u8(..4) == 0 => {
                    let from = rng.u64(..60);
                    let (start, end) = (Self::key(from), Self::key(from + rng.u64(1..12)));
                    self.table.delete_range_with(&start, &end, none).expect("a delete of a range works");
                    self.piles.retain(|key, _| *key < start || *key >= end);
                }
                _ => {}
            }
        }
    }

    /// Compares everything with the table of this name in another opening of the store.
    pub fn check(&self, db: &Db, when: &str) {
        let table = db.table(self.table.name()).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(table.options(), self.table.options(), "{when}: what the table was made with");
        for number in 0..72 {
            let key = Self::key(number);
            let (put, operands) = self.piles.get(&key).cloned().unwrap_or_default();
            let base = put.filter(|(_, expires)| *expires != Some(1)).map(|(value, _)| value);
            let there = base.is_some() || !operands.is_empty();
            let value = there.then(|| [base.unwrap_or_default(), operands].concat());
            assert_get(&table, &key, value.as_deref(), when);
        }
    }
}

/// Runs background work until there is nothing left to do, as a thread of the store does.
pub fn upkeep(db: &Db) {
    for _ in 0..100 {
        for step in [Step::Settle, Step::Merge, Step::Prepare, Step::Reclaim] {
            db.step(step).unwrap_or_else(|error| panic!("{step:?} can be done: {error}"));
        }
    }
    // Garbage that sorted runs hide is found when nothing else is to be done.
    let has_runs = db.tables().iter().any(|(_, kind)| *kind == IndexKind::Lsm);
    for _ in 0..if has_runs { 100 } else { 0 } {
        db.step(Step::Upkeep).unwrap_or_else(|error| panic!("upkeep can be done: {error}"));
    }
    db.checkpoint().expect("a checkpoint can be made");
    db.step(Step::Prepare).expect("segments can be freed");
}

/// What a child does that only tries to open a store.
pub fn open_and_say(path: &str) {
    match Db::open(path, quiet()) {
        Ok(_) => say("opened"),
        Err(error) => say(&format!("{error:?} {error}")),
    }
}
