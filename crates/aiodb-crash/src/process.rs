//! `aiodb apply` as a child, and the record of what it acknowledged.

use crate::workload::{Operation, TABLES, WRITERS};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

/// Bytes in a segment of the stores under test: so few that segments are emptied and used again all the time.
const SEGMENT_BYTES: u64 = 256 << 10;

/// Bytes of log between two checkpoints.
const CHECKPOINT_BYTES: u64 = 1 << 20;

/// The variable that names the bug to be planted, for a command that is built for that.
const PLANTED: &str = "AIODB_PLANTED";

/// The `aiodb` command.
#[derive(Clone, Debug)]
pub struct Aiodb {
    path: PathBuf,
    bug: Option<String>,
}

impl Aiodb {
    /// The command at this path, as it is.
    pub fn new(path: impl Into<PathBuf>) -> Aiodb {
        Aiodb { path: path.into(), bug: None }
    }

    /// The same command with this bug in its engine. It must be built with the feature `planted-bugs`.
    pub fn with_bug(&self, name: &str) -> Aiodb {
        Aiodb { path: self.path.clone(), bug: Some(name.into()) }
    }

    fn command(&self, arguments: &[&str], store: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.arg(arguments[0]).arg(store).args(&arguments[1..]);
        command.env_remove(PLANTED).envs(self.bug.iter().map(|bug| (PLANTED, bug)));
        command
    }
}

/// Makes the store that the child works on, with all tables. By processes of its own: the harness may be what the file
/// system waits for.
pub fn create(aiodb: &Aiodb, store: &Path) -> Result<(), String> {
    let run = |arguments: &[&str]| {
        let output = aiodb.command(arguments, store).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", aiodb.path.display()))?;
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(complaint) }
    };
    run(&["apply", "--segment-bytes", &SEGMENT_BYTES.to_string()])?;
    TABLES.iter().try_for_each(|(name, kind)| run(&["create-table", name, "--index", kind.name()]))
}

/// Something that happened to an operation, in the order in which the harness saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was sent to the child.
    Sent,
    /// The child acknowledged it.
    Acknowledged,
}

/// A running `aiodb apply`.
pub struct Applying {
    child: Arc<Mutex<Child>>,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Applying {
    /// Starts the command on a store that is there.
    pub fn start(aiodb: &Aiodb, store: &Path) -> Applying {
        let (writers, checkpoint_bytes) = (WRITERS.to_string(), CHECKPOINT_BYTES.to_string());
        let mut child = aiodb
            .command(&["apply", "--writers", &writers, "--checkpoint-bytes", &checkpoint_bytes], store)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{} can be started: {error}", aiodb.path.display()));
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        Applying { child: Arc::new(Mutex::new(child)), stdin, stdout }
    }

    /// What kills the child with SIGKILL, for another thread.
    pub fn killer(&self) -> impl FnOnce() + Send + 'static {
        let child = Arc::clone(&self.child);
        move || child.lock().expect("nobody panics with the child").kill().expect("the child can be killed")
    }

    /// Keeps one operation of each writer on its way until the child is gone or `next` has no more for a writer.
    /// `seen` is told what happens. Returns whether the child came to its end by itself.
    pub fn run(
        self,
        mut next: impl FnMut(usize) -> Option<Operation>,
        mut seen: impl FnMut(&Operation, Event),
    ) -> bool {
        let Applying { child, stdin, stdout } = self;
        let mut stdin = Some(stdin);
        let mut on_their_way: Vec<Option<Operation>> = vec![None; WRITERS];
        let mut send = |writer: usize, on_their_way: &mut Vec<Option<Operation>>, seen: &mut dyn FnMut(&_, _)| {
            on_their_way[writer] = next(writer);
            if let (Some(operation), Some(pipe)) = (&on_their_way[writer], &mut stdin) {
                // Before the write, since the child may die after it has read.
                seen(operation, Event::Sent);
                // A child that is gone is met again when its answers end.
                let _ = pipe.write_all(operation.request().as_bytes());
            }
            if on_their_way.iter().all(Option::is_none) {
                // The child ends with its input.
                stdin = None;
            }
        };
        (0..WRITERS).for_each(|writer| send(writer, &mut on_their_way, &mut seen));
        for line in stdout.split(b'\n') {
            let line = line.expect("the pipe can be read");
            // A line that the kill has cut off is no acknowledgement.
            let Ok(answer) = serde_json::from_slice::<serde_json::Value>(&line) else { break };
            assert!(answer.get("error").is_none(), "the command refused an operation: {answer}");
            let id = answer["id"].as_u64().expect("an answer has an id");
            let writer = id as usize % WRITERS;
            let operation = on_their_way[writer].take().filter(|operation| operation.id == id);
            seen(&operation.expect("an answer follows its request"), Event::Acknowledged);
            send(writer, &mut on_their_way, &mut seen);
        }
        let status = child.lock().expect("nobody panics with the child").wait().expect("the child can be waited for");
        assert!(status.success() || status.code().is_none(), "the command failed by itself: {status}");
        status.success()
    }
}
