//! Connections with TLS.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

use crate::client::{Client, PATIENCE, until};
use crate::server::{READY, READY_WITH_TLS, Server, aiodb, output_of};

/// Who signs certificates.
type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A directory with certificates and keys: `ca.pem`, `server.pem`, `client.pem` and what another authority has made of the same.
struct Certificates {
    dir: TempDir,
}

impl Certificates {
    fn make() -> Certificates {
        let certificates = Certificates { dir: tempfile::tempdir().unwrap() };
        let (own, other) = (authority("own"), authority("other"));
        certificates.write("ca.pem", &own.pem());
        certificates.write("other-ca.pem", &other.pem());
        for (name, authority) in [("server", &own), ("client", &own), ("stranger", &other)] {
            certificates.sign(name, authority);
        }
        certificates
    }

    /// A certificate and its key.
    fn sign(&self, name: &str, authority: &Authority) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost", "127.0.0.1"].map(String::from)).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        self.write(&format!("{name}.pem"), &params.signed_by(&key, &**authority).unwrap().pem());
        self.write(&format!("{name}.key"), &key.serialize_pem());
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().into()
    }

    /// The flags of a server on a port with TLS.
    fn flags(&self, port: u16) -> Vec<String> {
        let (certificate, key) = (self.text("server.pem"), self.text("server.key"));
        [
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &key,
            "--tls-ca-cert-file",
            &self.text("ca.pem"),
        ]
        .map(String::from)
        .to_vec()
    }

    /// A server with TLS, and one that clients need no certificate for unless `more` says so.
    fn start(&self, more: &[&str]) -> Server {
        loop {
            // It cannot take a free port by itself, so another process may take this one first.
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut command = aiodb();
            command.arg("serve").arg(self.path("store")).args(self.flags(port)).args(more);
            let ready = if more.contains(&"--port") { READY_WITH_TLS } else { READY };
            if ready == READY {
                let plain = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
                command.args(["--port", &plain.to_string()]);
            }
            match Server::run_until(command, ready) {
                Ok(server) => return server,
                Err(said) => assert!(said.contains("cannot listen"), "{said}"),
            }
        }
    }

    /// Runs one of Redis's tools with TLS; `authority` is whom it trusts, and `name` whose certificate it has.
    fn run(&self, program: &str, server: &Server, authority: &str, name: Option<&str>, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        let port = server.tls.unwrap().port().to_string();
        command.args(["-h", "127.0.0.1", "-p", &port, "--tls", "--cacert", &self.text(authority)]);
        if let Some(name) = name {
            command.args(["--cert", &self.text(&format!("{name}.pem")), "--key", &self.text(&format!("{name}.key"))]);
        }
        command.args(arguments).output().expect("redis-tools are installed: scripts/install-packages.sh redis-server")
    }

    fn ask(&self, server: &Server, authority: &str, name: Option<&str>, arguments: &[&str]) -> String {
        let output = self.run("redis-cli", server, authority, name, arguments);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

fn failed_handshakes(client: &mut Client) -> String {
    let stats = client.text(&["info", "stats"]);
    stats.lines().find_map(|line| line.strip_prefix("aiodb_failed_handshakes:")).unwrap().to_string()
}

#[test]
fn clients_connect_with_tls() {
    let certificates = Certificates::make();
    let server = certificates.start(&["--tls-auth-clients", "no", "--metrics", "127.0.0.1:0"]);
    let ask = |arguments: &[&str]| certificates.ask(&server, "ca.pem", None, arguments);
    assert_eq!(ask(&["set", "apple", "red"]), "OK\n");
    assert_eq!(ask(&["get", "apple"]), "red\n");
    // The port without TLS is the same server.
    let mut plain = server.client();
    assert_eq!(plain.text(&["get", "apple"]), "red");
    let value = vec![b'x'; 20 << 20];
    assert_eq!(plain.text(&[&b"set"[..], b"film", &value]), "OK");
    assert_eq!(ask(&["get", "film"]).trim_end().len(), value.len());
    let arguments = ["-n", "2000", "-P", "16", "-c", "20", "-d", "2000", "-t", "set,get,mset,lrange_100", "--csv"];
    let output = certificates.run("redis-benchmark", &server, "ca.pem", None, &arguments);
    let figures = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && figures.contains("\"MSET (10 keys)\""), "{figures}");
    for (setting, value) in [("tls-port", server.tls.unwrap().port().to_string()), ("tls-auth-clients", "no".into())] {
        assert_eq!(plain.text(&["config", "get", setting]), format!("{setting} {value}"));
    }
    assert_eq!(failed_handshakes(&mut plain), "0");
    // A client that does not trust the server goes away.
    assert_eq!(ask(&["ping"]), "PONG\n");
    let output = certificates.run("redis-cli", &server, "other-ca.pem", None, &["ping"]);
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("certificate verify failed"));
    assert_eq!(plain.text(&["get", "apple"]), "red");
    assert!(server.stop().1);
}

#[test]
fn clients_show_certificates() {
    let certificates = Certificates::make();
    let ping = |server: &Server, name| certificates.ask(server, "ca.pem", name, &["ping"]);
    // Unless somebody says otherwise, they must.
    let server = certificates.start(&["--port", "0"]);
    assert_eq!(server.address, server.tls.unwrap());
    let answers = [Some("client"), Some("stranger"), None].map(|name| ping(&server, name));
    assert_eq!(answers, ["PONG\n", "", ""]);
    assert!(server.stop().1);
    let server = certificates.start(&["--tls-auth-clients", "optional"]);
    let answers = [Some("client"), Some("stranger"), None].map(|name| ping(&server, name));
    assert_eq!(answers, ["PONG\n", "", "PONG\n"]);
    assert!(server.stop().1);
    // A certificate does not stand for a password.
    let config = certificates.path("server.toml");
    std::fs::write(&config, "requirepass = \"open\"\n").unwrap();
    let server = certificates.start(&["--port", "0", "--config", config.to_str().unwrap()]);
    assert_eq!(ping(&server, Some("client")).trim_end(), "NOAUTH Authentication required.");
    let with_password = ["--no-auth-warning", "-a", "open", "ping"];
    assert_eq!(certificates.ask(&server, "ca.pem", Some("client"), &with_password), "PONG\n");
    assert!(server.stop().1);
}

/// A connection to the port with TLS that speaks none.
fn without_tls(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.tls.unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn who_does_not_speak_tls_holds_nobody_up() {
    let certificates = Certificates::make();
    let server = certificates.start(&["--tls-auth-clients", "no", "--maxclients", "12", "--threads", "1"]);
    let mut plain = server.client();
    let mut talking = without_tls(&server);
    talking.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut heard = Vec::new();
    let _ = talking.read_to_end(&mut heard);
    assert!(!heard.starts_with(b"+PONG") && heard.len() < 100, "{heard:?}");
    until("the failed handshake is not counted", || failed_handshakes(&mut plain) == "1");
    // These say nothing, or the half of a greeting, and count as connections until their time is over.
    let mut silent: Vec<TcpStream> = (0..10).map(|_| without_tls(&server)).collect();
    silent[0].write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    until("they are not counted", || plain.text(&["info", "clients"]).contains("connected_clients:11\r"));
    assert_eq!(certificates.ask(&server, "ca.pem", None, &["ping"]), "PONG\n");
    let _last = without_tls(&server);
    until("they are not counted", || plain.text(&["info", "clients"]).contains("connected_clients:12\r"));
    assert_ne!(certificates.ask(&server, "ca.pem", None, &["ping"]), "PONG\n");
    assert!(!plain.text(&["info", "stats"]).contains("rejected_connections:0\r"));
    for stream in &mut silent {
        // With an alert at the most.
        let mut heard = Vec::new();
        let _ = stream.read_to_end(&mut heard);
        assert!(heard.len() < 100, "{heard:?}");
    }
    until("they stay", || plain.text(&["info", "clients"]).contains("connected_clients:1\r"));
    assert_eq!(failed_handshakes(&mut plain), "12");
    assert_eq!(certificates.ask(&server, "ca.pem", None, &["ping"]), "PONG\n");
    // Nor does one keep the server from its end.
    let _silent = without_tls(&server);
    assert!(server.stop().1);
}

#[test]
fn subscribers_and_those_who_wait_have_tls_too() {
    let certificates = Certificates::make();
    let server = certificates.start(&["--tls-auth-clients", "no"]);
    let mut plain = server.client();
    let port = server.tls.unwrap().port().to_string();
    let start = |arguments: &[&str]| {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &port, "--tls", "--cacert", &certificates.text("ca.pem")]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let waiting = start(&["blpop", "list", "0"]);
    until("it does not wait", || plain.text(&["info", "clients"]).contains("blocked_clients:1\r"));
    plain.call(&["rpush", "list", "x"]);
    let output = waiting.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "list\nx\n");
    let mut listening = start(&["subscribe", "news"]);
    until("nobody listens", || plain.text(&["pubsub", "numsub", "news"]) == "news 1");
    assert_eq!(plain.text(&["publish", "news", "rain"]), "1");
    let mut heard = String::new();
    let mut stdout = listening.stdout.take().unwrap();
    while !heard.contains("rain") {
        let mut buffer = [0; 256];
        let length = stdout.read(&mut buffer).unwrap();
        assert!(length > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
    assert_eq!(plain.text(&["client", "kill", "type", "pubsub"]), "1");
    listening.kill().unwrap();
    listening.wait().unwrap();
    assert!(server.stop().1);
}

#[test]
fn certificates_are_read_again() {
    let certificates = Certificates::make();
    let server = certificates.start(&["--tls-auth-clients", "no"]);
    let mut plain = server.client();
    let ping = |authority| certificates.ask(&server, authority, None, &["ping"]);
    assert_eq!((ping("ca.pem"), ping("new-ca.pem")), ("PONG\n".into(), String::new()));
    let new = authority("new");
    certificates.write("new-ca.pem", &new.pem());
    certificates.sign("server", &new);
    assert_eq!(ping("ca.pem"), "PONG\n");
    let path = certificates.text("server.pem");
    assert_eq!(plain.text(&["config", "set", "tls-cert-file", &path]), "OK");
    assert_eq!((ping("ca.pem"), ping("new-ca.pem")), (String::new(), "PONG\n".into()));
    // Nor are they shown if another setting of the command is refused.
    let old = authority("old");
    certificates.write("old-ca.pem", &old.pem());
    certificates.sign("server", &old);
    let answer = plain.text(&["config", "set", "tls-cert-file", &path, "maxclients", "x"]);
    assert!(answer.starts_with("-ERR CONFIG SET failed"), "{answer}");
    assert_eq!((ping("old-ca.pem"), ping("new-ca.pem")), (String::new(), "PONG\n".into()));
    // A file that is wrong changes nothing.
    certificates.write("server.key", "nothing");
    let answer = plain.text(&["config", "set", "tls-cert-file", &path]);
    assert!(answer.contains("server.key") && answer.contains("no private key"), "{answer}");
    assert!(plain.text(&["config", "set", "tls-cert-file", "/other.pem"]).starts_with("-ERR CONFIG SET failed"));
    assert_eq!(ping("new-ca.pem"), "PONG\n");
    assert!(server.stop().1);
}

/// The code and the words with which a server ends that cannot be.
fn refused(store: &Path, flags: &[String]) -> (i32, String) {
    let mut command = aiodb();
    command.arg("serve").arg(store).args(["--port", "0"]).args(flags);
    let output = output_of(command);
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn files_that_cannot_be_are_refused_at_the_start() {
    let certificates = Certificates::make();
    certificates.write("empty.pem", "nothing\n");
    certificates.write("broken.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let store = certificates.path("store");
    for (flag, file, wanted) in [
        ("--tls-cert-file", "missing.pem", "No such file"),
        ("--tls-cert-file", "empty.pem", "no certificate"),
        ("--tls-cert-file", "broken.pem", "tls-cert-file"),
        ("--tls-cert-file", "client.pem", "not the key of the certificate"),
        ("--tls-key-file", "missing.key", "No such file"),
        ("--tls-key-file", "server.pem", "no private key"),
        ("--tls-key-file", "client.key", "not the key of the certificate"),
        ("--tls-ca-cert-file", "empty.pem", "no certificate"),
        ("--tls-ca-cert-file", "broken.pem", "tls-ca-cert-file"),
    ] {
        let mut flags = certificates.flags(1);
        let at = flags.iter().position(|other| other == flag).unwrap();
        flags[at + 1] = certificates.text(file);
        let (code, said) = refused(&store, &flags);
        assert!(
            code == 2 && said.contains(wanted) && said.contains(".pem") | said.contains(".key"),
            "{file}: {code} {said}"
        );
    }
    for missing in ["--tls-cert-file", "--tls-key-file", "--tls-ca-cert-file"] {
        let mut flags = certificates.flags(1);
        let at = flags.iter().position(|other| other == missing).unwrap();
        flags.drain(at..at + 2);
        let (code, said) = refused(&store, &flags);
        assert!(code == 2 && said.contains(missing.trim_start_matches('-')), "{missing}: {code} {said}");
    }
    let (code, said) = refused(&store, &["--tls-auth-clients".into(), "maybe".into()]);
    assert!(code == 2 && said.contains("yes, no or optional"), "{code} {said}");
    assert!(!store.exists());
}
