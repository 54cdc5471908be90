//! The server as a whole: from the settings to the end of the last connection.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener as StdListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use aiodb::Options;
use aiodb::io::memory::{control_group_bytes, memory_bytes};
use sd_notify::NotifyState;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::acl::Acl;
use crate::channels::Channels;
use crate::client::{Client, Clients};
use crate::command::{Server, Statistics, Table};
use crate::commands;
use crate::config::{Config, ConfigError, Division};
use crate::connection::Connection;
use crate::gets;
use crate::keyspace::Keyspace;
use crate::log::{Log, LogLine};
use crate::monitoring::monitor;
use crate::saves::Saves;
use crate::scan_cursors::ScanCursors;
use crate::scripts::Scripts;
use crate::settings::Settings;
use crate::slow_log::SlowLog;
use crate::stream::Stream;
use crate::sweeper::sweep;
use crate::tls::Tls;

/// Turns of a thread after which it takes one from the common queue.
const COMMON_QUEUE_TURNS: u32 = 3;

/// Of a thread, as far as it is used: functions of Lua's libraries may be 200 calls deep with a buffer of 8 KiB each, in the script and in each of
/// the five coroutines inside each other.
const STACK_BYTES: usize = 16 << 20;

/// Memory that the server gets by with under a hundred writers, without caches that were made larger.
const ENOUGH_MEMORY: u64 = 256 << 20;

/// A control group with less memory than this has none to spare for huge pages: the allocator takes one for each size of what it is asked
/// for, in each thread, and uses little of most of them.
const HUGE_PAGES_FROM: u64 = 2 << 30;

/// Connections that the system keeps until they are accepted.
const BACKLOG_WAIT: Duration = Duration::from_millis(100);

/// How long a client of the port with TLS may take until its commands can be read.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long connections may take to get their last replies when the server ends.
const LAST_REPLIES: Duration = Duration::from_secs(5);

/// What a client is told that comes from another machine while there is no password.
const PROTECTED: &[u8] = b"-DENIED aiodb is running in protected mode because protected mode is enabled and no password is \
set for the default user. In this mode connections are only accepted from the loopback interface. If you want to connect from \
other machines, set a password (requirepass), or set protected-mode to false if nobody but you can reach this server.\r\n";

const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// The sockets with their addresses.
struct Listeners {
    clients: Vec<(StdListener, SocketAddr)>,
    /// Those with TLS.
    tls: Vec<(StdListener, SocketAddr)>,
    monitoring: Option<(StdListener, SocketAddr)>,
}

/// Why a server could not start, or not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A setting cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// An address cannot be listened at.
    #[error("cannot listen at {address}: {cause}; choose another port or address, or end the program that has it")]
    Listen {
        /** The address. */
        address: SocketAddr,
        /** The system's message. */
        cause: io::Error,
    },
    /// The store cannot be opened, or not be closed.
    #[error(transparent)]
    Store(#[from] aiodb::Error),
    /// The system refused something that the server needs.
    #[error("cannot {action}: {cause}")]
    System {
        /** What. */
        action: &'static str,
        /** The system's message. */
        cause: io::Error,
    },
}

/// Serves until the process gets SIGTERM or SIGINT, and closes the store. `log` is told what happens, a line at a time.
pub fn serve(config: Config, log: impl Fn(&LogLine) + Send + Sync + 'static) -> Result<(), ServeError> {
    let log = Log::new(log);
    let table = commands::table();
    let acl = Acl::new(table.catalog(), &config)?;
    let tls = Tls::new(&config)?;
    let listeners = Listeners {
        clients: if config.has_plain_port() { listen(&config.bind, config.port)? } else { Vec::new() },
        tls: if tls.is_some() { listen(&config.bind, config.tls_port)? } else { Vec::new() },
        monitoring: config.metrics_address()?.map(bind).transpose()?,
    };
    let group_bytes = control_group_bytes();
    if group_bytes.is_some_and(|bytes| bytes < HUGE_PAGES_FROM) {
        leave_huge_pages();
    }
    if let Some(bytes) = group_bytes.filter(|bytes| *bytes < ENOUGH_MEMORY) {
        log.say(&format!(
            "the control group allows {} MiB of memory: under many writers the server may need up to {} MiB, and be killed",
            bytes >> 20,
            ENOUGH_MEMORY >> 20
        ));
    }
    let (options, division) = (store_options(&config)?, config.division()?);
    let keyspace = Keyspace::open(&config.dir, config.databases, options, &|line: &str| log.say(line))?;
    division.warning(memory_bytes()).iter().for_each(|warning| log.warn(warning));
    keyspace.stats().warnings.iter().for_each(|warning| log.warn(warning));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // A thread's own queue has 256 places. With more connections that are ready, the others wait in the common queue, and tokio looks there
    // after 61 turns only unless it is told otherwise: they would be late by tens of milliseconds.
    runtime.global_queue_interval(COMMON_QUEUE_TURNS);
    // Scripts run on these threads.
    runtime.thread_stack_size(STACK_BYTES);
    if config.threads > 0 {
        runtime.worker_threads(config.threads);
    }
    let runtime =
        runtime.enable_all().build().map_err(|cause| ServeError::System { action: "start threads", cause })?;
    let port = listeners.clients.first().map_or(0, |(_, address)| address.port());
    let server = Arc::new(Server::new((config, division), keyspace, table, acl, tls, port, log));
    let outcome = runtime.block_on(accept_all(&server, listeners));
    // Connections that still run have had their time.
    runtime.shutdown_timeout(LAST_REPLIES);
    // A backup that still runs ends with the store: the restore points before it stay.
    let closed = server.keyspace.close();
    if server.saves.finish() {
        server.log.say("the backup under way was given up");
    }
    closed?;
    server.log.say("the store is closed");
    outcome
}

/// Lets the kernel give this process pages of the usual size only. A kernel that refuses leaves things as they are.
fn leave_huge_pages() {
    let (on, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, on, unused, unused, unused) };
}

/// How the store is opened with these settings.
pub(crate) fn store_options(config: &Config) -> Result<Options, ConfigError> {
    Ok(Options {
        memory_bytes: config.division()?.engine_bytes,
        durability: config.durability()?,
        cache_bytes: config.cache_bytes,
        cache_writes: config.cache_bytes > 0,
        metrics_file: Some(config.dir.join("metrics.prom")),
        ..Options::default()
    })
}

impl Server {
    pub(crate) fn new(
        (config, division): (Config, Division),
        keyspace: Keyspace,
        table: Table,
        acl: Acl,
        tls: Option<Tls>,
        port: u16,
        log: Log,
    ) -> Server {
        Server {
            keyspace,
            acl,
            tls,
            clients: Clients::default(),
            channels: Channels::default(),
            cursors: ScanCursors::new(),
            statistics: Statistics::default(),
            settings: Settings::new(&config, division),
            slow_log: SlowLog::default(),
            log,
            saves: Saves::new(Some(&*config.backup_dir).filter(|path| !path.as_os_str().is_empty())),
            scripts: Scripts::new(),
            shutdown: Notify::new(),
            table,
            started: Instant::now(),
            run_id: (0..40).map(|_| fastrand::char('0'..='9')).collect(),
            port,
            config,
        }
    }
}

/// The sockets. They are taken before the store is opened, so that a port in use is known at once.
fn listen(addresses: &[IpAddr], mut port: u16) -> Result<Vec<(StdListener, SocketAddr)>, ServeError> {
    let mut listeners = Vec::new();
    for address in addresses {
        let (listener, address) = bind(SocketAddr::from((*address, port)))?;
        // A free port is the same at all addresses.
        port = address.port();
        listeners.push((listener, address));
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> Result<(StdListener, SocketAddr), ServeError> {
    let bound = StdListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|cause| ServeError::Listen { address, cause })
}

async fn accept_all(server: &Arc<Server>, listeners: Listeners) -> Result<(), ServeError> {
    let say = |line: &str| server.log.say(line);
    let system = |action| move |cause| ServeError::System { action, cause };
    let mut terminate = signal(SignalKind::terminate()).map_err(system("wait for signals"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(system("wait for signals"))?;
    let (end, ending) = watch::channel(false);
    if let Some(driver) = server.keyspace.get_driver()? {
        gets::start(driver).map_err(system("wait for reads of the device"))?;
    }
    let mut accepting = JoinSet::new();
    accepting.spawn(sweep(Arc::clone(server), ending.clone()));
    let monitoring = match listeners.monitoring {
        None => None,
        Some((listener, address)) => {
            let listener = TcpListener::from_std(listener).map_err(system("listen"))?;
            say(&format!("figures at http://{address}/metrics"));
            Some(tokio::spawn(monitor(Arc::clone(server), listener, ending.clone())))
        }
    };
    let tls = listeners.tls.into_iter().map(|(listener, address)| (listener, address, true));
    let plain = listeners.clients.into_iter().map(|(listener, address)| (listener, address, false));
    for (listener, address, has_tls) in tls.chain(plain) {
        let listener = TcpListener::from_std(listener).map_err(system("listen"))?;
        say(&format!("ready to accept {}connections at {address}", if has_tls { "TLS " } else { "" }));
        accepting.spawn(accept(Arc::clone(server), listener, has_tls, ending.clone()));
    }
    tell_system(&NotifyState::Ready, &say);
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
        () = server.shutdown.notified() => "SHUTDOWN",
    };
    say(&format!("{name}: taking no more commands"));
    tell_system(&NotifyState::Stopping, &say);
    let _ = end.send(true);
    let last_replies = async { while accepting.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_REPLIES, last_replies).await.is_err() {
        say("some clients did not take their replies, and were cut off");
        // One that runs still is not to keep the store open.
        let _ = server.scripts.stop();
    }
    // Until here it said that the server is ending.
    if let Some(monitoring) = monitoring {
        monitoring.abort();
    }
    Ok(())
}

/// Tells systemd, if it has started the server and wants to know.
fn tell_system(state: &NotifyState<'_>, say: &impl Fn(&str)) {
    if let Err(error) = sd_notify::notify(false, std::slice::from_ref(state)) {
        say(&format!("systemd cannot be told how the server is: {error}"));
    }
}

/// Accepts connections until the server ends, and returns when they have ended.
async fn accept(server: Arc<Server>, listener: TcpListener, has_tls: bool, mut ending: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    while !*ending.borrow() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            _ = ending.changed() => break,
        };
        match accepted {
            Ok((stream, address)) => {
                connections.spawn(serve_one(Arc::clone(&server), stream, address, has_tls, ending.clone()));
            }
            // No file descriptor is left, most likely: others must go first.
            Err(_) => tokio::time::sleep(BACKLOG_WAIT).await,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve_one(
    server: Arc<Server>,
    mut stream: TcpStream,
    address: SocketAddr,
    has_tls: bool,
    mut ending: watch::Receiver<bool>,
) {
    server.statistics.connections.fetch_add(1, Ordering::Relaxed);
    let settings = &server.settings;
    let is_open = settings.protected_mode() && server.acl.needs_no_password();
    let Ok(local_address) = stream.local_addr() else { return };
    // Replies go out as they are made; a client that is gone already is met when it is read from.
    let _ = stream.set_nodelay(true);
    let (client, refusal) = if is_open && !is_loopback(address.ip()) {
        (None, PROTECTED)
    } else {
        let (user, most) = (server.acl.default_user(), settings.maxclients());
        (server.clients.add(address, local_address, stream.as_raw_fd(), user, most), TOO_MANY)
    };
    let Some(client) = client else {
        server.statistics.rejected_connections.fetch_add(1, Ordering::Relaxed);
        if !has_tls {
            // Whether the client hears why makes no difference to the server.
            let _ = stream.write_all(refusal).await;
        }
        return;
    };
    let stream = if has_tls {
        Box::pin(begin_tls(&server, stream, &client, &mut ending)).await
    } else {
        Some(Stream::Plain(stream))
    };
    match stream {
        Some(stream) => Connection::new(Arc::clone(&server), stream, client).serve(ending).await,
        None => server.clients.remove(&client),
    }
}

/// The handshake of TLS: it counts as a connection, and holds up nobody else.
async fn begin_tls(
    server: &Server,
    stream: TcpStream,
    client: &Client,
    ending: &mut watch::Receiver<bool>,
) -> Option<Stream> {
    let acceptor = server.tls.as_ref()?.acceptor();
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)) => outcome,
        () = client.killed() => return None,
        _ = ending.changed() => return None,
    };
    if let Ok(Ok(stream)) = outcome {
        return Some(Stream::Tls(Box::new(stream)));
    }
    server.statistics.failed_handshakes.fetch_add(1, Ordering::Relaxed);
    None
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
