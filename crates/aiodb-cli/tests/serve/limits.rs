//! Large values, slow clients, clients that vanish.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use resp_rs::resp2::Frame;

use crate::client::{Client, encode, text};
use crate::server::Server;

/// Memory of a process, in bytes.
pub fn resident_bytes(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// Each thread that has once done something keeps memory for what it does next.
#[test]
fn a_server_has_no_more_threads_than_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--threads", "2"]);
    let mut client = server.client();
    for number in 0..2000 {
        client.call(&["hset".to_string(), format!("key{number}"), "field".into(), "value".into()]);
    }
    // Long enough for several rounds of the sweeper, which has nothing to do.
    std::thread::sleep(Duration::from_secs(1));
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap().count();
    assert!(threads <= 16, "{threads} threads");
    assert!(server.stop().1);
}

#[test]
fn a_value_of_many_megabytes_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let value: Vec<u8> = (0..20 << 20).map(|at: u32| (at % 251) as u8).collect();
    assert_eq!(client.text(&[&b"set"[..], b"film", &value]), "OK");
    assert!(client.call(&["get", "film"]).as_bytes().is_some_and(|found| found == &value[..]));
    assert_eq!(client.text(&["strlen", "film"]), (20 << 20).to_string());
    let too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    assert_eq!(client.text(&["setrange", "film", "536870912", "x"]), too_long);
    let key = "k".repeat((64 << 10) + 1);
    assert!(client.text(&["set", &key, "x"]).starts_with("-ERR a key of 65537 bytes"));
    assert!(client.text(&["get", &key]).starts_with("-ERR a key of 65537 bytes"));
    assert_eq!(client.text(&["get", &"k".repeat(64 << 10)]), "nil");
}

#[test]
fn random_elements_are_bounded_in_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let name = "x".repeat(65_000);
    for number in 0..3 {
        client.call(&["sadd".to_string(), "few".into(), format!("{number}{name}")]);
    }
    for number in 0..1100 {
        client.call(&["sadd".to_string(), "many".into(), format!("{number:04}{}", &name[..60_000])]);
    }
    let answer = client.text(&["srandmember", "few", "-1048576"]);
    assert!(answer.starts_with("-ERR value is out of range: so many elements take more than"), "{answer}");
    for key in ["few", "many"] {
        let Frame::Array(Some(some)) = client.call(&["srandmember", key, "-20"]) else { panic!("{key}") };
        assert_eq!(some.len(), 20);
    }
    client.call(&["hset", "hash", "field", &name]);
    let answer = client.text(&["hrandfield", "hash", "-1000000", "withvalues"]);
    assert!(answer.starts_with("-ERR value is out of range: so many elements take more than"), "{answer}");
    assert!(server.stop().1);
}

#[test]
fn clients_that_do_not_read_or_go_away_cost_little() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--cache-bytes", "0"]);
    let mut client = server.client();
    let value = vec![b'x'; 1 << 20];
    assert_eq!(client.text(&[&b"set"[..], b"large", &value]), "OK");
    let pipeline: Vec<u8> = (0..2000).flat_map(|_| encode(&["get", "large"])).collect();
    let before = resident_bytes(&server);
    // Each asks for 2 GB and takes none of it.
    let silent: Vec<TcpStream> = (0..4)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            stream.write_all(&pipeline).unwrap();
            stream
        })
        .collect();
    for number in 0..20 {
        // These announce much, send the half of it, and are gone.
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(&pipeline[..pipeline.len() / 2 - number]).unwrap();
        stream.write_all(b"*2000000000\r\n$536870912\r\nabc").unwrap();
    }
    for _ in 0..100 {
        assert_eq!(client.text(&["ping"]), "PONG");
    }
    let grown = resident_bytes(&server).saturating_sub(before);
    assert!(grown < 400 << 20, "{} MiB more", grown >> 20);
    drop(silent);
    let (said, went_well) = server.stop();
    assert!(went_well, "{said}");
}

/// A command that runs a script in file systems of its own; `None` where the system allows that to nobody here.
fn with_own_mounts(script: &str) -> Option<Command> {
    let options = ["-m", "-rm"];
    let works = |option: &&&str| {
        let mut tried = Command::new("unshare");
        tried.args([**option, "mount", "-t", "tmpfs", "none", "/mnt"]).stderr(Stdio::null());
        tried.status().is_ok_and(|status| status.success())
    };
    let option = options.iter().find(works)?;
    let mut command = Command::new("unshare");
    command.args([*option, "sh", "-c", script, env!("CARGO_BIN_EXE_aiodb")]);
    Some(command)
}

/// Stores `value` under `key:` and a number from `first` on until writes are refused and upkeep has nothing left to give
/// back: what counts the keys becomes garbage, which it takes out a little later. Returns the number that was refused.
fn fill(client: &mut Client, first: usize, value: &str) -> usize {
    let (mut stored, mut refused) = (first, 0);
    while refused < 50 {
        let reply = client.text(&["set".to_string(), format!("key:{stored}"), value.to_string()]);
        if reply == "OK" {
            (stored, refused) = (stored + 1, 0);
            assert!(stored < 20_000, "a disk of 24 MiB never filled up");
        } else {
            assert!(reply.starts_with("-MISCONF no space left for new data"), "{reply}");
            refused += 1;
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    stored
}

#[test]
fn a_full_disk_refuses_writes_alone() {
    let dir = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=24m none . && cd \"$PWD\" && \"$0\" apply store --segment-bytes 262144 < /dev/null && \
        exec \"$0\" serve store --port 0 --databases 2";
    let Some(mut command) = with_own_mounts(script) else {
        println!("no file system can be mounted here, so none was filled");
        return;
    };
    command.current_dir(dir.path());
    let server = Server::run(command);
    let mut client = server.client();
    let value = "v".repeat(4000);
    let mut stored = fill(&mut client, 0, &value);
    for number in 0..stored {
        assert_eq!(client.text(&["strlen".to_string(), format!("key:{number}")]), "4000");
    }
    // A transaction is refused as a whole; of a pipeline what can be done is done. Where upkeep has given something back
    // only now, one goes through: what it gave is taken, and the next must be refused.
    let mut deleted = 0;
    loop {
        let key = format!("key:{deleted}");
        let both = [encode(&["set", "other", &value]), encode(&["del", &key])].concat();
        client.call(&["multi"]);
        client.call(&["del", &key]);
        client.call(&["set", "other", &value]);
        let transaction = client.text(&["exec"]);
        deleted += 1;
        if transaction.starts_with("-MISCONF") {
            assert_eq!(client.text(&["strlen", &key]), "4000");
            client.send(&both).unwrap();
            let set = text(&client.receive().unwrap());
            assert_eq!(text(&client.receive().unwrap()), "1");
            if set.starts_with("-MISCONF") {
                break;
            }
            assert_eq!(set, "OK");
        } else {
            assert_eq!(transaction, "1 OK");
        }
        assert!(deleted < 20, "what needs room goes through on a disk that is full");
        client.call(&["del", "other"]);
        stored = fill(&mut client, stored, &value);
    }
    for number in deleted..stored {
        assert_eq!(client.text(&["del".to_string(), format!("key:{number}")]), "1");
    }
    while client.text(&["set", "other", &value]) != "OK" {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (said, went_well) = server.stop();
    assert!(went_well, "{said}");
}
