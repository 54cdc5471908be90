//! How a server is started, and why it does not start.

use crate::server::{Server, aiodb, output_of};

/// Its exit code and what it said.
fn refused(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = aiodb();
    command.arg("serve").args(arguments).envs(variables.iter().copied());
    let output = output_of(command);
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn what_prevents_a_start_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (store, other) = (dir.path().join("store"), dir.path().join("other"));
    let server = Server::start(&store, &[]);
    let (store, other) = (store.to_str().unwrap(), other.to_str().unwrap());
    let port = server.address.port().to_string();
    let (code, said) = refused(&[other, "--port", &port], &[]);
    assert!(code == 3 && said.contains("cannot listen at 127.0.0.1"), "{code} {said}");
    let (code, said) = refused(&[store, "--port", "0"], &[]);
    assert!(code == 3 && said.contains("in use by"), "{code} {said}");
    let (code, said) = refused(&[other, "--durability", "always"], &[]);
    assert!(code == 2 && said.contains("durability") && said.contains("interval:MS"), "{code} {said}");
    let (code, said) = refused(&[other], &[("AIODB_SERVE_PORT", "x")]);
    assert!(code == 2 && said.contains("AIODB_SERVE_PORT"), "{code} {said}");
    let file = dir.path().join("server.toml");
    std::fs::write(&file, "port = 1\nprot = 2\n").unwrap();
    let (code, said) = refused(&[other, "--config", file.to_str().unwrap()], &[]);
    assert!(code == 2 && said.contains("prot") && said.contains("server.toml"), "{code} {said}");
    let (code, said) = refused(&[other, "--config", "/nowhere"], &[]);
    assert!(code == 2 && said.contains("/nowhere"), "{code} {said}");
    std::fs::create_dir(other).unwrap();
    std::fs::write(dir.path().join("other/file"), "x").unwrap();
    let (code, said) = refused(&[other, "--port", "0"], &[]);
    assert!(code == 3 && said.contains("is not a store"), "{code} {said}");
}

#[test]
fn settings_are_printed() {
    let mut command = aiodb();
    command.args(["serve", "--print-config", "--port", "7000"]).env("AIODB_SERVE_DATABASES", "3");
    let output = output_of(command);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for line in
        ["dir = \"data\"", "port = 7000", "databases = 3", "bind = [\"127.0.0.1\"]", "durability = \"interval:1000\""]
    {
        assert!(output.status.success() && printed.contains(line), "{printed}");
    }
}

#[test]
fn without_arguments_it_serves_a_store_in_data() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = aiodb();
    command.args(["serve", "--port", "0"]).current_dir(dir.path());
    let server = Server::run(command);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.client().text(&["set", "apple", "red"]), "OK");
    let (said, went_well) = server.stop();
    assert!(went_well, "{said}");
    assert!(dir.path().join("data").is_dir());
}

#[test]
fn too_many_clients_are_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--maxclients", "2"]);
    let (mut first, mut second) = (server.client(), server.client());
    assert_eq!((first.text(&["ping"]), second.text(&["ping"])), ("PONG".into(), "PONG".into()));
    let third = server.client().receive();
    assert_eq!(crate::client::text(&third.unwrap()), "-ERR max number of clients reached");
}
