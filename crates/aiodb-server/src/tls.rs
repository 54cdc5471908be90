//! TLS: the certificates of the settings.

use std::path::Path;
use std::sync::{Arc, RwLock};

use rustls::RootCertStore;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use tokio_rustls::TlsAcceptor;

use crate::config::{Config, ConfigError, TlsClients};

/// What the server shows its clients, and wants of them.
pub(crate) struct Tls {
    shown: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files of the settings; `None` without `tls-port`.
    pub(crate) fn new(config: &Config) -> Result<Option<Tls>, ConfigError> {
        if config.tls_port == 0 {
            return Ok(None);
        }
        Ok(Some(Tls { shown: RwLock::new(read(config)?) }))
    }

    /// Reads the files again. Nothing changes before [`Tls::show`].
    pub(crate) fn read(config: &Config) -> Result<Arc<ServerConfig>, ConfigError> {
        read(config)
    }

    /// Shows the connections to come what was read.
    pub(crate) fn show(&self, read: Arc<ServerConfig>) {
        *self.shown.write().expect("no code panics while it holds the certificates") = read;
    }

    /// What makes connections of sockets.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let shown = self.shown.read().expect("no code panics while it holds the certificates");
        TlsAcceptor::from(Arc::clone(&shown))
    }
}

fn read(config: &Config) -> Result<Arc<ServerConfig>, ConfigError> {
    let provider = Arc::new(ring::default_provider());
    let certificates = read_certificates("tls-cert-file", &config.tls_cert_file)?;
    let (setting, path) = ("tls-key-file", &config.tls_key_file);
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        PemError::NoItemsFound => wrong(setting, path, "there is no private key without a password in it"),
        error => wrong(setting, path, error),
    })?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = builder.expect("the provider has what its versions need");
    let builder = match config.tls_auth_clients {
        TlsClients::No => builder.with_no_client_auth(),
        wanted => builder.with_client_cert_verifier(verifier(config, provider, wanted)?),
    };
    let made = builder.with_single_cert(certificates, key).map_err(|error| match error {
        rustls::Error::InvalidCertificate(_) => wrong("tls-cert-file", &config.tls_cert_file, error),
        rustls::Error::InconsistentKeys(_) => wrong(setting, path, "it is not the key of the certificate"),
        error => wrong(setting, path, error),
    })?;
    Ok(Arc::new(made))
}

/// What looks at the certificates of clients.
fn verifier(
    config: &Config,
    provider: Arc<CryptoProvider>,
    wanted: TlsClients,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, ConfigError> {
    let (setting, path) = ("tls-ca-cert-file", &config.tls_ca_cert_file);
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates(setting, path)? {
        roots.add(certificate).map_err(|error| wrong(setting, path, error))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if wanted == TlsClients::Optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| wrong(setting, path, error))
}

fn read_certificates(setting: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error: PemError| wrong(setting, path, error))?;
    if certificates.is_empty() {
        return Err(wrong(setting, path, "there is no certificate in it"));
    }
    Ok(certificates)
}

fn wrong(setting: &'static str, path: &Path, reason: impl ToString) -> ConfigError {
    ConfigError::Tls { setting, path: path.to_path_buf(), reason: reason.to_string() }
}
