//! The port for Prometheus, and the files that go with it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use crate::client::PATIENCE;
use crate::server::{Server, aiodb, output_of};

/// What the server answers to a request, and the status.
fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // What was not read yet resets the connection.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.lines().next().unwrap_or_default().into(), body.into())
}

fn get(address: SocketAddr, path: &str) -> (String, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
}

#[test]
fn figures_and_health_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--metrics", "127.0.0.1:0"]);
    let address = server.metrics.expect("it says where");
    let mut client = server.client();
    client.call(&["set", "a", "b"]);
    client.call(&["get", "a"]);
    client.call(&["get", "missing"]);
    let (status, figures) = get(address, "/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK");
    for line in [
        "aiodb_server_commands_total 3",
        "aiodb_server_connected_clients 1",
        "aiodb_server_keyspace_hits_total 1",
        "aiodb_server_keyspace_misses_total 1",
        "aiodb_server_writable 1",
        "# TYPE aiodb_server_commands_total counter",
        "# TYPE aiodb_records_written_total counter",
    ] {
        assert!(figures.lines().any(|other| other == line), "{line} is not in {figures}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(address, path), ("HTTP/1.1 200 OK".into(), "ok\n".into()));
    }
    assert_eq!(get(address, "/other").0, "HTTP/1.1 404 Not Found");
    assert_eq!(ask(address, "POST /metrics HTTP/1.0\r\n\r\n").0, "HTTP/1.0 405 Method Not Allowed");
    // What is no request ends its connection, and those who send nothing hold nobody up.
    assert_eq!(ask(address, "nonsense\r\n\r\n").0, "HTTP/1.1 400 Bad Request");
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    assert!(!ask(address, &long).0.contains("200"));
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(get(address, "/healthz").0, "HTTP/1.1 200 OK");
    assert_eq!(client.text(&["ping"]), "PONG");
    drop(silent);
    assert!(server.stop().1);
}

#[test]
fn an_address_of_figures_that_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let refused = |address: &str| {
        let mut command = aiodb();
        command.arg("serve").arg(&store).args(["--port", "0", "--metrics", address]);
        let output = output_of(command);
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for address in ["9121", "localhost:9121", "127.0.0.1:70000"] {
        let (code, said) = refused(address);
        assert!(code == 2 && said.contains("metrics"), "{code} {said}");
    }
    let server = Server::start(&dir.path().join("other"), &[]);
    let (code, said) = refused(&server.address.to_string());
    assert!(code == 3 && said.contains("cannot listen at"), "{code} {said}");
}

/// Names that begin as those of our metrics do.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("aiodb_")).map(str::to_string).collect()
}

#[test]
fn dashboard_and_alerts_name_metrics_that_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--metrics", "127.0.0.1:0"]);
    let there = names(&get(server.metrics.unwrap(), "/metrics").1);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let dashboard = read("grafana-dashboard.json");
    let parsed: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    assert!(parsed["panels"].as_array().is_some_and(|panels| panels.len() >= 8));
    for text in [&dashboard, &read("prometheus-alerts.yml")] {
        let named = names(text);
        assert!(named.len() >= 4, "{named:?}");
        let missing: Vec<_> = named.difference(&there).collect();
        assert!(missing.is_empty(), "there is no {missing:?}");
    }
    let documentation = include_str!("../../../../docs/server.md");
    for name in there.iter().filter(|name| name.starts_with("aiodb_server_")) {
        assert!(documentation.contains(name.as_str()), "docs/server.md does not explain {name}");
    }
}
