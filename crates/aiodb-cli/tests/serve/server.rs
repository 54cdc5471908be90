//! Processes: the command that is tested, and Redis beside it.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

use crate::client::Client;

/// The command.
pub fn aiodb() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aiodb"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AIODB_SERVE_")) {
        command.env_remove(name);
    }
    command
}

/// `aiodb serve` on a free port.
pub struct Server {
    process: Child,
    pub address: SocketAddr,
    /// Where clients connect with TLS, if they may.
    pub tls: Option<SocketAddr>,
    /// Where its figures are, if it shows any.
    pub metrics: Option<SocketAddr>,
    said: Option<JoinHandle<String>>,
}

impl Server {
    pub fn start(dir: &Path, arguments: &[&str]) -> Server {
        let mut command = aiodb();
        command.arg("serve").arg(dir).args(["--port", "0"]).args(arguments);
        Server::run(command)
    }

    /// Starts a command that serves, and waits until it is ready.
    pub fn run(command: Command) -> Server {
        Server::run_until(command, READY).unwrap_or_else(|said| panic!("the server did not start: {said}"))
    }

    /// [`Server::run`] until it has said where it accepts connections of a kind; else what it said.
    pub fn run_until(mut command: Command, ready: &str) -> Result<Server, String> {
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let Addresses { address, tls, metrics } = match read_addresses(&mut stderr, ready) {
            Ok(addresses) => addresses,
            Err(said) => {
                process.wait().unwrap();
                return Err(said);
            }
        };
        let said = std::thread::spawn(move || {
            let mut said = String::new();
            let _ = stderr.read_to_string(&mut said);
            said
        });
        Ok(Server { process, address, tls, metrics, said: Some(said) })
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends the process as an operator does. What it said, and whether all went well.
    pub fn stop(self) -> (String, bool) {
        self.signal("TERM");
        self.wait()
    }

    /// Waits until the process has ended.
    pub fn wait(mut self) -> (String, bool) {
        let status = self.process.wait().unwrap();
        (self.said.take().unwrap().join().unwrap(), status.success())
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already if the test has ended it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a server says that accepts connections.
pub const READY: &str = "ready to accept connections at ";
pub const READY_WITH_TLS: &str = "ready to accept TLS connections at ";

struct Addresses {
    address: SocketAddr,
    tls: Option<SocketAddr>,
    metrics: Option<SocketAddr>,
}

/// Where a server accepts connections, and where its figures are; what it said if it ends before it is ready.
fn read_addresses(stderr: &mut BufReader<ChildStderr>, ready: &str) -> Result<Addresses, String> {
    let (mut said, mut tls, mut metrics) = (String::new(), None, None);
    loop {
        let begin = said.len();
        if stderr.read_line(&mut said).unwrap() == 0 {
            return Err(said);
        }
        let line = said[begin..].trim_end();
        // A line may be an object of JSON.
        let end = |text: &str| text.split(['"', '/']).next().unwrap_or_default().to_string();
        let after = |words: &str| line.rsplit_once(words).map(|(_, rest)| end(rest));
        let address = |words: &str| after(words).map(|address| address.parse().unwrap());
        metrics = metrics.or(address("figures at http://"));
        tls = tls.or(address(READY_WITH_TLS));
        if let Some(address) = address(ready) {
            return Ok(Addresses { address, tls, metrics });
        }
    }
}

/// A command that ends by itself.
pub fn output_of(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Debian's redis-server on a free port.
pub struct Redis {
    process: Child,
    pub address: SocketAddr,
}

impl Redis {
    pub fn start(dir: &Path) -> Redis {
        Redis::start_with(dir, &[])
    }

    pub fn start_with(dir: &Path, more: &[&str]) -> Redis {
        loop {
            // It cannot take a free port by itself, so another process may take this one first.
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let arguments = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
            let mut process = Command::new("redis-server")
                .args(["--port", &port.to_string()])
                .args(arguments)
                .args(more)
                .current_dir(dir)
                .stdout(Stdio::null())
                .spawn()
                .expect("redis-server is installed: scripts/install-packages.sh redis-server");
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            loop {
                if std::net::TcpStream::connect(address).is_ok() && process.try_wait().unwrap().is_none() {
                    return Redis { process, address };
                }
                if process.try_wait().unwrap().is_some() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A server of each kind, with nothing in it.
pub struct Both {
    pub server: Server,
    pub redis: Redis,
    // Removed after the servers have ended.
    dirs: [TempDir; 2],
}

impl Both {
    pub fn start() -> Both {
        Both::start_with(&[])
    }

    /// With more arguments for ours.
    pub fn start_with(arguments: &[&str]) -> Both {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let server = Server::start(&dirs[0].path().join("store"), arguments);
        Both { server, redis: Redis::start(dirs[1].path()), dirs }
    }

    /// A client of each.
    pub fn clients(&self) -> [Client; 2] {
        [self.server.client(), self.redis.client()]
    }

    /// The store of ours.
    pub fn store(&self) -> PathBuf {
        self.dirs[0].path().join("store")
    }
}
