//! Users of a file, and of the settings.

use std::path::Path;

use crate::raw::RawPair;
use crate::server::{Redis, Server, aiodb, output_of};

const FILE: &str = "user alice on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~a:* resetchannels -@all +@read\n\
    \n  user default on >open ~* &* +@all \r\nuser bob off (+get ~b) ( +set ~c )\n";

/// A server of each kind with a file of users of its own.
fn with_files(dir: &Path, file: &str) -> (Server, Redis) {
    let [ours, theirs] = ["ours", "theirs"].map(|name| dir.join(name));
    for folder in [&ours, &theirs] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("users.acl"), file).unwrap();
    }
    let path = ours.join("users.acl");
    let server = Server::start(&ours.join("store"), &["--aclfile", path.to_str().unwrap()]);
    (server, Redis::start_with(&theirs, &["--aclfile", "users.acl"]))
}

#[test]
fn users_stand_in_a_file_as_in_redis() {
    let dir = tempfile::tempdir().unwrap();
    let (server, redis) = with_files(dir.path(), FILE);
    let mut pair = RawPair::of(server.address, redis.address);
    pair.agree_on("ping\nauth open\nacl list\nauth alice secret\nacl whoami\nauth open");
    let mut alice = [server.client(), redis.client()];
    for client in &mut alice {
        assert_eq!(client.text(&["auth", "alice", "secret"]), "OK");
    }
    pair.agree_on(
        "acl setuser carol on >pw ~c:* +get\nacl deluser bob\nacl save\nacl setuser carol reset\nacl load\nacl list",
    );
    // All but those of the default user begin again.
    for client in &mut alice {
        assert!(client.try_call(&["get", "a:1"]).is_err());
    }
    let saved =
        ["ours", "theirs"].map(|name| std::fs::read_to_string(dir.path().join(name).join("users.acl")).unwrap());
    assert_eq!(saved[0], saved[1]);
    // What is wrong changes nothing. The names of the files differ.
    let wrong = "user a on +nope\nuser b ~a ~* ~b >x\nfoo\nuser a\nuser\nuser c (+get\nuser d off\n";
    let mut answers = Vec::new();
    for (name, mut client) in [("ours", server.client()), ("theirs", redis.client())] {
        let path = dir.path().join(name).join("users.acl");
        client.call(&["auth", "open"]);
        std::fs::write(&path, wrong).unwrap();
        answers.push(client.text(&["acl", "load"]).replace(path.to_str().unwrap(), "users.acl"));
        assert_eq!(client.text(&["acl", "users"]), "alice carol default");
        // Without a default user anybody may come in again.
        std::fs::write(&path, "user eve off\n").unwrap();
        assert_eq!(client.text(&["acl", "load"]), "OK");
        answers.push(client.text(&["acl", "list"]));
        std::fs::remove_file(&path).unwrap();
        answers.push(client.text(&["acl", "load"]).replace(path.to_str().unwrap(), "users.acl"));
    }
    assert_eq!(answers[..3], answers[3..]);
    assert!(server.stop().1);
}

#[test]
fn users_stand_among_the_settings() {
    let dir = tempfile::tempdir().unwrap();
    let (store, file) = (dir.path().join("store"), dir.path().join("server.toml"));
    let refused = |text: &str, arguments: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let mut command = aiodb();
        command.arg("serve").arg(&store).args(["--port", "0", "--config"]).arg(&file).args(arguments);
        let output = output_of(command);
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = refused("[users]\nalice = \"on +nope\"\n", &[]);
    assert!(
        code == 2 && said.contains("`alice`") && said.contains("Unknown command or category name"),
        "{code} {said}"
    );
    let (code, said) = refused("[users]\nalice = \"on\"\n", &["--aclfile", "users.acl"]);
    assert!(code == 2 && said.contains("aclfile"), "{code} {said}");
    let (code, said) = refused("aclfile = \"/nowhere/users.acl\"\n", &[]);
    assert!(code == 2 && said.contains("/nowhere/users.acl"), "{code} {said}");
    let wrong = dir.path().join("users.acl");
    std::fs::write(&wrong, "user alice on >topsecret +nope\nuser bob #topsecret\n").unwrap();
    let (code, said) = refused("", &["--aclfile", wrong.to_str().unwrap()]);
    assert!(code == 2 && said.contains("users.acl:1") && said.contains("users.acl:2"), "{code} {said}");
    assert!(!said.contains("topsecret"), "{said}");
    std::fs::write(&file, "requirepass = \"open\"\n[users]\nalice = \"on >topsecret ~a:* +@read (+set ~b:*)\"\n")
        .unwrap();
    let mut command = aiodb();
    command.args(["serve", "--print-config", "--config"]).arg(&file);
    let printed = String::from_utf8_lossy(&output_of(command).stdout).into_owned();
    assert!(
        printed.contains("alice = \"on >(hidden) ~a:* +@read (+set ~b:*)\"") && !printed.contains("topsecret"),
        "{printed}"
    );
    let server = Server::start(&store, &["--config", file.to_str().unwrap()]);
    let mut client = server.client();
    assert_eq!(client.text(&["acl", "users"]), "-NOAUTH Authentication required.");
    assert_eq!(client.text(&["auth", "alice", "topsecret"]), "OK");
    assert_eq!(client.text(&["get", "a:1"]), "nil");
    assert_eq!(client.text(&["set", "b:1", "x"]), "OK");
    assert!(client.text(&["set", "a:1", "x"]).starts_with("-NOPERM"));
    assert_eq!(client.text(&["auth", "open"]), "OK");
    assert_eq!(client.text(&["acl", "users"]), "alice default");
    // No password stands in what is slow.
    client.call(&["config", "set", "slowlog-log-slower-than", "0"]);
    client.call(&["acl", "setuser", "bob", ">topsecret"]);
    client.call(&["auth", "alice", "topsecret"]);
    client.call(&["auth", "open"]);
    assert!(!client.text(&["slowlog", "get", "-1"]).contains("topsecret"));
    assert!(server.stop().1);
}
