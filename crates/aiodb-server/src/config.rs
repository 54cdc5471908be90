//! What a user can choose: flags before environment before file before what is built in.

mod memory;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aiodb::Durability;
use memory::MOST_USUAL_CACHE_BYTES;
use serde::{Deserialize, Serialize};

pub(crate) use memory::{Division, parts_of_cache};

/// The greatest number of databases: each is a table that is made at once.
const MAX_DATABASES: u16 = 1024;

/// The longest interval that the engine allows.
const MAX_INTERVAL_MS: u64 = 3_600_000;

/// What stands before the names of settings in the environment.
pub const ENVIRONMENT_PREFIX: &str = "AIODB_SERVE_";

/// The settings of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Config {
    /// Directory of the store; made if it is missing.
    pub dir: PathBuf,
    /// Addresses to listen at.
    pub bind: Vec<IpAddr>,
    /// Port to listen at; 0 takes a free one, or is none where there is one with TLS.
    pub port: u16,
    /// Port to listen at with TLS; 0 for none.
    pub tls_port: u16,
    /// File of the server's certificate and those that it is signed with, in PEM.
    pub tls_cert_file: PathBuf,
    /// File of the key of the certificate, in PEM and without a password.
    pub tls_key_file: PathBuf,
    /// File of the certificates that those of clients must be signed with, in PEM; empty for none.
    pub tls_ca_cert_file: PathBuf,
    /// Whether clients must have a certificate.
    pub tls_auth_clients: TlsClients,
    /// Whether clients from other machines are refused while there is no password.
    pub protected_mode: bool,
    /// The password that clients must give; empty for none.
    pub requirepass: String,
    /// File of users; empty for none.
    pub aclfile: PathBuf,
    /// Connections at a time.
    pub maxclients: usize,
    /// Number of databases.
    pub databases: u16,
    /// What a reply to a write says: `sync`, `interval:MS` or `none`.
    pub durability: String,
    /// Memory for the server, as `512mb` or in bytes; `0` where it does not matter. A quarter is for values and an eighth for connections; the
    /// engine has the rest: blocks of the index, memtables, filters and buffers.
    pub maxmemory: String,
    /// Bytes of memory for values that were read or written lately. Default: a quarter of `maxmemory`, or an eighth of what the machine or the
    /// control group has, at most 1 GiB.
    pub cache_bytes: u64,
    /// Whether nobody has chosen them: then they change with `maxmemory`.
    #[serde(skip)]
    pub(crate) cache_follows: bool,
    /// Threads for connections; 0 takes one for each processor.
    pub threads: usize,
    /// Directory of backups; empty for none.
    pub backup_dir: PathBuf,
    /// Address and port where figures are shown to Prometheus, `127.0.0.1:9121`; port 0 takes a free one, empty is none.
    pub metrics: String,
    /// How the lines of the log are written: `text`, or `json` with fields for programs.
    pub log_format: LogFormat,
    /// Users without a file of their own: the rules of each by its name.
    pub users: BTreeMap<String, String>,
}

/// How the lines of the log are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// An object of JSON a line.
    Json,
}

impl std::str::FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<LogFormat, &'static str> {
        match word {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err("it must be text or json"),
        }
    }
}

/// Whether clients must have a certificate to connect with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TlsClients {
    /// They must.
    #[default]
    Yes,
    /// They are not asked for one.
    No,
    /// They may have one, which must be right then.
    Optional,
}

impl TlsClients {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            TlsClients::Yes => "yes",
            TlsClients::No => "no",
            TlsClients::Optional => "optional",
        }
    }
}

impl std::str::FromStr for TlsClients {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<TlsClients, &'static str> {
        let all = [TlsClients::Yes, TlsClients::No, TlsClients::Optional];
        all.into_iter().find(|wanted| wanted.name() == word).ok_or("it must be yes, no or optional")
    }
}

/// Some settings, from one of the places where they can be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Layer {
    /// See [`Config::dir`].
    pub dir: Option<PathBuf>,
    /// See [`Config::bind`].
    pub bind: Option<Vec<IpAddr>>,
    /// See [`Config::port`].
    pub port: Option<u16>,
    /// See [`Config::tls_port`].
    pub tls_port: Option<u16>,
    /// See [`Config::tls_cert_file`].
    pub tls_cert_file: Option<PathBuf>,
    /// See [`Config::tls_key_file`].
    pub tls_key_file: Option<PathBuf>,
    /// See [`Config::tls_ca_cert_file`].
    pub tls_ca_cert_file: Option<PathBuf>,
    /// See [`Config::tls_auth_clients`].
    pub tls_auth_clients: Option<TlsClients>,
    /// See [`Config::protected_mode`].
    pub protected_mode: Option<bool>,
    /// See [`Config::requirepass`].
    pub requirepass: Option<String>,
    /// See [`Config::aclfile`].
    pub aclfile: Option<PathBuf>,
    /// See [`Config::maxclients`].
    pub maxclients: Option<usize>,
    /// See [`Config::databases`].
    pub databases: Option<u16>,
    /// See [`Config::durability`].
    pub durability: Option<String>,
    /// See [`Config::maxmemory`].
    pub maxmemory: Option<String>,
    /// See [`Config::cache_bytes`].
    pub cache_bytes: Option<u64>,
    /// See [`Config::threads`].
    pub threads: Option<usize>,
    /// See [`Config::backup_dir`].
    pub backup_dir: Option<PathBuf>,
    /// See [`Config::metrics`].
    pub metrics: Option<String>,
    /// See [`Config::log_format`].
    pub log_format: Option<LogFormat>,
    /// See [`Config::users`].
    pub users: Option<BTreeMap<String, String>>,
}

/// A setting that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {path}: {cause}")]
    Unreadable {
        /** The file. */
        path: PathBuf,
        /** The system's message. */
        cause: std::io::Error,
    },
    /// The file is not as it should be.
    #[error("the configuration {path} is wrong: {reason}")]
    File {
        /** The file. */
        path: PathBuf,
        /** What is wrong, and where. */
        reason: String,
    },
    /// A variable of the environment is not as it should be.
    #[error("the environment variable {name} is wrong: {reason}")]
    Variable {
        /** The variable. */
        name: String,
        /** What is wrong. */
        reason: String,
    },
    /// A setting is outside of what it may be.
    #[error("the setting {setting} cannot be `{value}`: {allowed}")]
    Setting {
        /** The setting. */
        setting: &'static str,
        /** What was given. */
        value: String,
        /** What may be given. */
        allowed: String,
    },
    /// A user of the settings cannot be.
    #[error("the user `{name}` of the configuration is wrong: {reason}")]
    User {
        /** Its name. */
        name: String,
        /** What is wrong. */
        reason: String,
    },
    /// A file for TLS cannot be read, or is not as it should be.
    #[error("the file {path} of the setting {setting} is wrong: {reason}")]
    Tls {
        /** The setting that names it. */
        setting: &'static str,
        /** The file. */
        path: PathBuf,
        /** What is wrong. */
        reason: String,
    },
    /// The file of users cannot be read, or is not as it should be.
    #[error("{0}")]
    AclFile(String),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            dir: "data".into(),
            bind: vec![IpAddr::from([127, 0, 0, 1])],
            port: 6379,
            tls_port: 0,
            tls_cert_file: PathBuf::new(),
            tls_key_file: PathBuf::new(),
            tls_ca_cert_file: PathBuf::new(),
            tls_auth_clients: TlsClients::Yes,
            protected_mode: true,
            requirepass: String::new(),
            aclfile: PathBuf::new(),
            maxclients: 10_000,
            databases: 16,
            durability: "interval:1000".into(),
            maxmemory: "0".into(),
            cache_bytes: MOST_USUAL_CACHE_BYTES,
            cache_follows: false,
            threads: 0,
            backup_dir: PathBuf::new(),
            metrics: String::new(),
            log_format: LogFormat::Text,
            users: BTreeMap::new(),
        }
    }
}

impl Layer {
    /// Reads a file.
    pub fn from_file(path: &Path) -> Result<Layer, ConfigError> {
        let unreadable = |cause| ConfigError::Unreadable { path: path.to_path_buf(), cause };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        toml::from_str(&text).map_err(|error| ConfigError::File { path: path.to_path_buf(), reason: error.to_string() })
    }

    /// Takes what variables like `AIODB_SERVE_PORT` say; `AIODB_SERVE_CONFIG` is the caller's.
    pub fn from_environment(variables: impl Iterator<Item = (String, String)>) -> Result<Layer, ConfigError> {
        let mut layer = Layer::default();
        for (name, value) in variables {
            let Some(setting) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
            layer.take(setting, &value).map_err(|reason| ConfigError::Variable { name: name.clone(), reason })?;
        }
        Ok(layer)
    }

    fn take(&mut self, setting: &str, value: &str) -> Result<(), String> {
        fn read<T: std::str::FromStr<Err: ToString>>(value: &str) -> Result<Option<T>, String> {
            value.parse().map(Some).map_err(|error: T::Err| format!("`{value}`: {}", error.to_string()))
        }
        match setting {
            "CONFIG" => {}
            "DIR" => self.dir = Some(value.into()),
            "BIND" => {
                let addresses = value.split([' ', ',']).filter(|address| !address.is_empty());
                let read_one = |address: &str| address.parse().map_err(|error| format!("`{address}`: {error}"));
                self.bind = Some(addresses.map(read_one).collect::<Result<_, _>>()?);
            }
            "PORT" => self.port = read(value)?,
            "TLS_PORT" => self.tls_port = read(value)?,
            "TLS_CERT_FILE" => self.tls_cert_file = Some(value.into()),
            "TLS_KEY_FILE" => self.tls_key_file = Some(value.into()),
            "TLS_CA_CERT_FILE" => self.tls_ca_cert_file = Some(value.into()),
            "TLS_AUTH_CLIENTS" => self.tls_auth_clients = read(value)?,
            "PROTECTED_MODE" => self.protected_mode = read(value)?,
            "REQUIREPASS" => self.requirepass = Some(value.into()),
            "ACLFILE" => self.aclfile = Some(value.into()),
            "MAXCLIENTS" => self.maxclients = read(value)?,
            "DATABASES" => self.databases = read(value)?,
            "DURABILITY" => self.durability = Some(value.into()),
            "MAXMEMORY" => self.maxmemory = Some(value.into()),
            "CACHE_BYTES" => self.cache_bytes = read(value)?,
            "THREADS" => self.threads = read(value)?,
            "BACKUP_DIR" => self.backup_dir = Some(value.into()),
            "METRICS" => self.metrics = Some(value.into()),
            "LOG_FORMAT" => self.log_format = read(value)?,
            _ => return Err("there is no such setting".into()),
        }
        Ok(())
    }
}

impl Config {
    /// The settings of layers, of which earlier ones count before later ones.
    pub fn of_layers(layers: impl IntoIterator<Item = Layer>) -> Result<Config, ConfigError> {
        let layers: Vec<_> = layers.into_iter().collect();
        let cache_follows = layers.iter().all(|layer| layer.cache_bytes.is_none());
        let mut config = Config { cache_follows, ..Config::default() };
        for layer in layers.into_iter().rev() {
            let Layer { dir, bind, port, protected_mode, requirepass, aclfile, users, .. } = layer;
            let Layer { tls_port, tls_cert_file, tls_key_file, tls_ca_cert_file, tls_auth_clients, .. } = layer;
            let Layer { maxclients, databases, durability, threads, backup_dir, metrics, .. } = layer;
            let Layer { maxmemory, cache_bytes, log_format, .. } = layer;
            config = Config {
                dir: dir.unwrap_or(config.dir),
                bind: bind.unwrap_or(config.bind),
                port: port.unwrap_or(config.port),
                tls_port: tls_port.unwrap_or(config.tls_port),
                tls_cert_file: tls_cert_file.unwrap_or(config.tls_cert_file),
                tls_key_file: tls_key_file.unwrap_or(config.tls_key_file),
                tls_ca_cert_file: tls_ca_cert_file.unwrap_or(config.tls_ca_cert_file),
                tls_auth_clients: tls_auth_clients.unwrap_or(config.tls_auth_clients),
                protected_mode: protected_mode.unwrap_or(config.protected_mode),
                requirepass: requirepass.unwrap_or(config.requirepass),
                aclfile: aclfile.unwrap_or(config.aclfile),
                maxclients: maxclients.unwrap_or(config.maxclients),
                databases: databases.unwrap_or(config.databases),
                durability: durability.unwrap_or(config.durability),
                maxmemory: maxmemory.unwrap_or(config.maxmemory),
                cache_bytes: cache_bytes.unwrap_or(config.cache_bytes),
                cache_follows,
                threads: threads.unwrap_or(config.threads),
                backup_dir: backup_dir.unwrap_or(config.backup_dir),
                metrics: metrics.unwrap_or(config.metrics),
                log_format: log_format.unwrap_or(config.log_format),
                users: users.unwrap_or(config.users),
            };
        }
        config.cache_bytes = config.division()?.cache_bytes;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = |setting, value: String, allowed: String| ConfigError::Setting { setting, value, allowed };
        if self.bind.is_empty() {
            return Err(wrong("bind", String::new(), "give at least one address".into()));
        }
        if !(1..=MAX_DATABASES).contains(&self.databases) {
            return Err(wrong("databases", self.databases.to_string(), format!("1 to {MAX_DATABASES}")));
        }
        if self.maxclients == 0 {
            return Err(wrong("maxclients", "0".into(), "at least 1".into()));
        }
        if !self.aclfile.as_os_str().is_empty() && !self.users.is_empty() {
            let path = self.aclfile.display().to_string();
            return Err(wrong("aclfile", path, "there are `users` too: users stand in one place or the other".into()));
        }
        self.check_tls()?;
        self.metrics_address()?;
        self.durability().map(drop)
    }

    /// Whether there is what TLS needs.
    fn check_tls(&self) -> Result<(), ConfigError> {
        let missing = |setting, path: &Path, why: &str| {
            let allowed = format!("{why} needs the file's name");
            let is_missing = self.tls_port != 0 && path.as_os_str().is_empty();
            if is_missing { Err(ConfigError::Setting { setting, value: String::new(), allowed }) } else { Ok(()) }
        };
        missing("tls-cert-file", &self.tls_cert_file, "tls-port")?;
        missing("tls-key-file", &self.tls_key_file, "tls-port")?;
        match self.tls_auth_clients {
            TlsClients::No => Ok(()),
            wanted => {
                let why = format!("tls-auth-clients = \"{}\"", wanted.name());
                missing("tls-ca-cert-file", &self.tls_ca_cert_file, &why)
            }
        }
    }

    /// Whether there is a port without TLS.
    pub fn has_plain_port(&self) -> bool {
        self.port != 0 || self.tls_port == 0
    }

    /// Where figures are shown, if anywhere.
    pub fn metrics_address(&self) -> Result<Option<SocketAddr>, ConfigError> {
        if self.metrics.is_empty() {
            return Ok(None);
        }
        self.metrics.parse().map(Some).map_err(|_| ConfigError::Setting {
            setting: "metrics",
            value: self.metrics.clone(),
            allowed: "an address and a port, 127.0.0.1:9121".into(),
        })
    }

    /// How memory is divided.
    pub(crate) fn division(&self) -> Result<Division, ConfigError> {
        let wrong = |allowed| ConfigError::Setting { setting: "maxmemory", value: self.maxmemory.clone(), allowed };
        self.division_of(&self.maxmemory).map_err(wrong)
    }

    /// How it is divided with another `maxmemory`; an error says what is allowed.
    pub(crate) fn division_of(&self, maxmemory: &str) -> Result<Division, String> {
        let chosen = (!self.cache_follows).then_some(self.cache_bytes);
        Ok(Division::of(memory::server_bytes(maxmemory)?, chosen))
    }

    /// The class of the writes.
    pub fn durability(&self) -> Result<Durability, ConfigError> {
        let interval = self.durability.strip_prefix("interval:").and_then(|ms| ms.parse().ok());
        match (&*self.durability, interval.filter(|ms| (1..=MAX_INTERVAL_MS).contains(ms))) {
            ("sync", _) => Ok(Durability::Sync),
            ("none", _) => Ok(Durability::None),
            (_, Some(ms)) => Ok(Durability::Interval(Duration::from_millis(ms))),
            _ => Err(ConfigError::Setting {
                setting: "durability",
                value: self.durability.clone(),
                allowed: format!("sync, none or interval:MS with 1 to {MAX_INTERVAL_MS} milliseconds"),
            }),
        }
    }

    /// The settings as the file would have them, passwords left out.
    pub fn print(&self) -> String {
        let password = if self.requirepass.is_empty() { "" } else { "(hidden)" };
        let mut shown = Config { requirepass: password.into(), ..self.clone() };
        for rules in shown.users.values_mut() {
            let hidden = rules.split_ascii_whitespace().map(|rule| match rule.chars().next() {
                Some(sign @ ('>' | '<')) => format!("{sign}(hidden)"),
                _ => rule.into(),
            });
            *rules = hidden.collect::<Vec<_>>().join(" ");
        }
        toml::to_string(&shown).expect("the settings are a table of TOML")
    }
}

#[cfg(test)]
mod tests;
