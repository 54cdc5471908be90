//! `aiodb serve`: a store behind the Redis protocol.

use crate::error::CliError;
use crate::exit::Exit;
use crate::output::Output;
use aiodb_server::{Config, ENVIRONMENT_PREFIX, Layer, LogFormat, LogLine, TlsClients};
use clap::Args;
use serde_json::json;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::SystemTime;

/// Serve a store to clients of Redis
///
/// Settings come from flags, then from the environment (AIODB_SERVE_PORT is --port), then from a file. docs/server.md has
/// the commands that are there.
#[derive(Args)]
pub struct ServeArgs {
    /// Directory of the store; made if it is missing [default: data]
    pub dir: Option<PathBuf>,
    /// File of settings in TOML: `port = 6379`, `durability = "sync"`, ... [default: what AIODB_SERVE_CONFIG names]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen at, several times for several [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    bind: Vec<IpAddr>,
    /// Port to listen at; 0 takes a free one, or is none where there is one with TLS [default: 6379]
    #[arg(long)]
    port: Option<u16>,
    /// Port to listen at with TLS; 0 for none [default: 0]
    #[arg(long, value_name = "PORT")]
    tls_port: Option<u16>,
    /// The server's certificate and those that it is signed with, in PEM
    #[arg(long, value_name = "FILE")]
    tls_cert_file: Option<PathBuf>,
    /// The key of the certificate, in PEM and without a password
    #[arg(long, value_name = "FILE")]
    tls_key_file: Option<PathBuf>,
    /// The certificates that those of clients must be signed with, in PEM
    #[arg(long, value_name = "FILE")]
    tls_ca_cert_file: Option<PathBuf>,
    /// Whether clients must have a certificate: yes, no or optional [default: yes]
    #[arg(long, value_name = "WORD")]
    tls_auth_clients: Option<TlsClients>,
    /// Whether other machines are refused while there is no password [default: true]
    #[arg(long, value_name = "BOOL")]
    protected_mode: Option<bool>,
    /// File of users, a line for each: `user NAME RULE...` [default: none]
    #[arg(long, value_name = "FILE")]
    aclfile: Option<PathBuf>,
    /// Connections at a time [default: 10000]
    #[arg(long, value_name = "NUMBER")]
    maxclients: Option<usize>,
    /// Number of databases [default: 16]
    #[arg(long, value_name = "NUMBER")]
    databases: Option<u16>,
    /// What a reply to a write says: sync (it is on the device), interval:MS (it will be so long after) or none
    /// [default: interval:1000]
    #[arg(long, value_name = "CLASS")]
    durability: Option<String>,
    /// Memory for the server, as 512mb: a quarter is for values, an eighth for connections, the rest for the index, memtables and buffers
    /// [default: 0, which leaves all at their own sizes]
    #[arg(long, value_name = "MEMORY")]
    maxmemory: Option<String>,
    /// Memory for values that were read or written lately [default: a quarter of --maxmemory, or an eighth of the memory, at most 1 GiB]
    #[arg(long, value_name = "BYTES")]
    cache_bytes: Option<u64>,
    /// Threads for connections [default: one for each processor]
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Directory of backups, which BGSAVE and SAVE make while the server goes on [default: none]
    #[arg(long, value_name = "DIR")]
    backup_dir: Option<PathBuf>,
    /// Address and port of /metrics, /healthz and /readyz, as 127.0.0.1:9121; port 0 takes a free one [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<String>,
    /// How the lines on standard error are written: text, or json with fields for programs [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// Print the settings as they would be, and do nothing
    #[arg(long)]
    print_config: bool,
}

impl ServeArgs {
    fn layer(self) -> Layer {
        Layer {
            dir: self.dir,
            bind: Some(self.bind).filter(|addresses| !addresses.is_empty()),
            port: self.port,
            tls_port: self.tls_port,
            tls_cert_file: self.tls_cert_file,
            tls_key_file: self.tls_key_file,
            tls_ca_cert_file: self.tls_ca_cert_file,
            tls_auth_clients: self.tls_auth_clients,
            protected_mode: self.protected_mode,
            // A password on the command line can be seen by every user of the machine.
            requirepass: None,
            aclfile: self.aclfile,
            users: None,
            maxclients: self.maxclients,
            databases: self.databases,
            durability: self.durability,
            maxmemory: self.maxmemory,
            cache_bytes: self.cache_bytes,
            threads: self.threads,
            backup_dir: self.backup_dir,
            metrics: self.metrics,
            log_format: self.log_format,
        }
    }
}

/// Serves until the process is told to end.
pub fn run(args: ServeArgs, output: &Output) -> Result<Exit, CliError> {
    let print_only = args.print_config;
    let path = args.config.clone().or_else(|| std::env::var_os("AIODB_SERVE_CONFIG").map(PathBuf::from));
    let file = path.as_deref().map(Layer::from_file).transpose()?;
    let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
    let named = variables.filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX));
    let texts = named.map(|(name, value)| (name, value.to_string_lossy().into_owned()));
    let environment = Layer::from_environment(texts)?;
    let config = Config::of_layers([args.layer(), environment, file.unwrap_or_default()])?;
    if print_only {
        output.bytes(config.print().as_bytes())?;
        return Ok(Exit::Success);
    }
    let format = config.log_format;
    aiodb_server::serve(config, move |line| log(format, line))?;
    Ok(Exit::Success)
}

/// Writes a line of the log to standard error. A server goes on where that cannot be written, on a full disk say.
fn log(format: LogFormat, line: &LogLine) {
    let _ = match format {
        LogFormat::Text => writeln!(io::stderr(), "aiodb: {}", line.message),
        LogFormat::Json => {
            let mut object = json!({
                "time": humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
                "level": line.level.name(),
                "event": line.event,
                "message": line.message,
            });
            if let (Some(object), Some(fields)) = (object.as_object_mut(), line.fields.as_object()) {
                object.extend(fields.clone());
            }
            writeln!(io::stderr(), "{object}")
        }
    };
}
