//! What operators ask of a server.

use crate::client::{Client, PATIENCE, encode, received, text, until};
use crate::raw::{RawPair, agree_in_both_versions};
use crate::server::{Both, Server, aiodb, output_of};

const SCRIPT: &str = "
    config get
    config get save
    config get no-appendfsync-on-rewrite
    config get nope
    config get maxclients
    config get MAXCLIENT?
    config get slowlog-max-len
    config get appendfsync-nope
    config set maxclients abc
    config set maxclients 0
    config set maxclients 100
    config get maxclients
    config set maxclients 10000 slowlog-max-len 50
    config get slowlog-max-len
    config set slowlog-max-len 128
    config set databases 4
    config set nope 1
    config set slowlog-log-slower-than 0 slowlog-max-len x
    config set slowlog-log-slower-than 0 slowlog-log-slower-than 1
    config set slowlog-log-slower-than
    config set slowlog-log-slower-than 5 slowlog-max-len
    config set slowlog-log-slower-than -2
    config get slowlog-log-slower-than
    config set protected-mode maybe
    config set protected-mode YES
    config get protected-mode
    config resetstat
    config resetstat x
    config nope
    config
    slowlog get -2
    slowlog get x
    slowlog get 1 2
    slowlog nope
    slowlog reset
    slowlog len
    slowlog get
    set s abc
    object encoding s
    object encoding missing
    object freq s
    object freq missing
    object refcount s
    object refcount missing
    object nope s
    object encoding
    object encoding s t
    memory usage missing
    memory usage s samples
    memory usage s samples x
    memory usage s samples -1
    memory usage s nope 1
    memory nope
    client unblock 9999
    client unblock x
    client unblock 1 nope
    client unblock 9998 error
    client unblock 1 error more
    client no-evict on
    client no-evict off
    client no-evict x
    client no-evict
    save x
    bgsave x
    multi
    save
    shutdown
    bgsave
    exec
    shutdown abort
    shutdown nope
    shutdown save nosave
    shutdown abort now
    config set requirepass secret
    config get requirepass
    ping
    reset
    ping
    auth wrong
    auth secret
    ping
    config set requirepass ''
";

#[test]
fn operators_are_answered_as_redis_does() {
    let script_resp3 = "config get save\nslowlog reset\nslowlog get\nobject encoding missing\nmemory usage missing";
    agree_in_both_versions(&Both::start(), SCRIPT, script_resp3);
}

#[test]
fn commands_are_listed_as_redis_does() {
    let both = Both::start();
    let one = "command list filterby pattern GET\ncommand list filterby aclcat nope\ncommand list filterby module nope
        command list filterby pattern config|g?t\ncommand list filterby nope nope\ncommand list filterby pattern
        command list nope\ncommand list filterby aclcat @hash";
    agree_in_both_versions(&both, one, one);
    let lists = both.clients().map(|mut client| {
        ["aclcat hash", "aclcat TRANSACTION", "pattern *scan", "pattern memory|u*"].map(|filter| {
            let words: Vec<_> = "command list filterby".split(' ').chain(filter.split(' ')).collect();
            let mut names: Vec<_> = client.text(&words).split_whitespace().map(String::from).collect();
            names.sort();
            names
        })
    });
    assert_eq!(lists[0], lists[1]);
}

#[test]
fn encodings_are_those_of_redis() {
    let both = Both::start();
    let mut pair = RawPair::connect(&both);
    let long = "x".repeat(65);
    let commands = [
        format!("set s {}", "x".repeat(44)),
        format!("set t {}", "x".repeat(45)),
        "set u 12345678901234567890123".into(),
        "set n -12".into(),
        "set m 012".into(),
        "rpush list a b".into(),
        "hset short a 1 b 2".into(),
        format!("hset long a {long}"),
        format!("hset named {long} a"),
        format!("hset full {}", (0..512).map(|at| format!("{at} x ")).collect::<String>().trim()),
        format!("hset more {}", (0..513).map(|at| format!("{at} x ")).collect::<String>().trim()),
        "sadd numbers 1 -5 0".into(),
        "sadd words 1 x".into(),
        format!("sadd many {}", (0..513).map(|at| format!("{at} ")).collect::<String>().trim()),
        "zadd few 1 a 2 b".into(),
        format!("zadd wide 1 {long}"),
        format!("zadd crowd {}", (0..129).map(|at| format!("{at} {at} ")).collect::<String>().trim()),
        format!("zadd group {}", (0..128).map(|at| format!("{at} {at} ")).collect::<String>().trim()),
    ];
    for command in commands {
        pair.agree_on(&command);
        pair.agree_on(&format!("object encoding {}", command.split(' ').nth(1).unwrap()));
    }
    let mut client = both.server.client();
    let usage = |client: &mut Client, arguments: &[&str]| client.text(arguments).parse::<u64>().unwrap();
    assert_eq!(usage(&mut client, &["memory", "usage", "s"]), 1 + 1 + 44);
    let all = usage(&mut client, &["memory", "usage", "full", "samples", "0"]);
    assert!((512 * 11..512 * 14 + 100).contains(&all), "{all}");
    assert!(usage(&mut client, &["memory", "usage", "group"]) > 128 * 20);
}

/// Redis says under this name how long its file is; of a store it is the log.
#[test]
fn the_size_of_the_log_grows() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let size = |client: &mut Client| info(client, "aof_current_size").parse::<u64>().unwrap();
    let before = size(&mut client);
    assert!(before > 0);
    let value = "v".repeat(1 << 20);
    for number in 0..64 {
        client.text(&["set", &number.to_string(), &value]);
    }
    assert!(size(&mut client) >= before + (32 << 20));
}

#[test]
fn memory_has_a_peak() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let text = client.text(&["info", "memory"]);
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let bytes = |name: &str| value(name).parse::<u64>().unwrap();
    assert!(bytes("used_memory_peak:") >= bytes("used_memory:"));
    assert!(value("used_memory_peak_human:").ends_with('M') && value("used_memory_peak_perc:").ends_with('%'));
}

/// A field of INFO.
pub fn info(client: &mut Client, field: &str) -> String {
    let info = client.text(&["info", "everything"]);
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{field} is not in {info}")).to_string()
}

#[test]
fn commands_and_errors_are_counted_as_redis_does() {
    let both = Both::start();
    let counts = both.clients().map(|mut client| {
        client.call(&["config", "resetstat"]);
        for command in [
            &["set", "a", "b"][..],
            &["incr", "a"],
            &["nope"],
            &["get"],
            &["multi"],
            &["set", "n", "1"],
            &["lpush", "n", "x"],
            &["incr", "n"],
            &["exec"],
            &["exec"],
            &["multi"],
            &["nope"],
            &["exec"],
            &["rpush", "list", "x"],
            &["blpop", "list", "0"],
            &["blpop", "list", "0.01"],
            &["lpop", "list"],
            &["spop", "list"],
            &["zpopmin", "list"],
            &["getset", "n", "5"],
            &["eval", "redis.call('incr', 'n'); return redis.pcall('lpush', 'n', 'x')", "0"],
            &["eval", "return redis.call('nope')", "0"],
            &["get", "missing"],
            &["get", "n"],
        ] {
            client.call(command);
        }
        ["total_commands_processed", "total_error_replies", "keyspace_hits", "keyspace_misses"]
            .map(|field| format!("{field} {}", info(&mut client, field)))
    });
    assert_eq!(counts[0], counts[1]);
}

#[test]
fn slow_commands_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    client.call(&["client", "setname", "me"]);
    client.call(&["config", "set", "slowlog-log-slower-than", "0"]);
    client.call(&["slowlog", "reset"]);
    client.call(&["get", "a"]);
    for command in [&["multi"][..], &["set", "a", "b"], &["exec"]] {
        client.call(command);
    }
    client.call(&["config", "set", "slowlog-log-slower-than", "-1"]);
    let resp_rs::resp2::Frame::Array(Some(entries)) = client.call(&["slowlog", "get", "-1"]) else { panic!() };
    let names: Vec<_> = entries
        .iter()
        .map(|entry| match entry {
            resp_rs::resp2::Frame::Array(Some(parts)) => {
                assert!(parts.len() == 6 && text(&parts[4]).starts_with("127.0.0.1:") && text(&parts[5]) == "me");
                text(&parts[3])
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["set a b", "multi", "get a", "slowlog reset"]);
    assert_eq!(client.text(&["slowlog", "len"]), "4");
    client.call(&["config", "set", "slowlog-max-len", "2", "slowlog-log-slower-than", "0"]);
    client.call(&["ping"]);
    assert_eq!(client.text(&["slowlog", "len"]), "2");
}

#[test]
fn who_waits_can_be_unblocked() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let (mut waiting, mut client) = (server.client(), server.client());
    let id = waiting.text(&["client", "id"]);
    assert_eq!(client.text(&["client", "unblock", &id]), "0");
    for (reason, reply) in [("timeout", "nil"), ("error", "-UNBLOCKED client unblocked via CLIENT UNBLOCK")] {
        waiting.send(&encode(&["blpop", "list", "0"])).unwrap();
        until("it does not wait", || client.text(&["client", "unblock", &id, reason]) == "1");
        assert_eq!(received(&mut waiting), reply);
    }
    waiting.send(&encode(&["blpop", "list", "0"])).unwrap();
    until("nobody sees it wait", || client.text(&["client", "list", "id", &id]).contains(" flags=b "));
    assert_eq!(client.text(&["rpush", "list", "x"]), "1");
    assert_eq!(received(&mut waiting), "list x");
    assert_eq!(client.text(&["client", "unblock", &id]), "0");
}

#[test]
fn a_backup_is_made_while_the_server_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (store, backups, restored) =
        (dir.path().join("store"), dir.path().join("backups"), dir.path().join("restored"));
    let server = Server::start(&store, &["--backup-dir", backups.to_str().unwrap()]);
    let mut client = server.client();
    let started = client.text(&["lastsave"]).parse::<u64>().unwrap();
    client.call(&["set", "a", "first"]);
    client.call(&["rpush", "list", "x", "y"]);
    assert_eq!(client.text(&["save"]), "OK");
    client.call(&["set", "a", "second"]);
    assert_eq!(client.text(&["bgsave"]), "Background saving started");
    until("the backup does not end", || {
        client.call(&["set", "other", "x"]);
        info(&mut client, "rdb_saves") == "2"
    });
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    assert!(client.text(&["lastsave"]).parse::<u64>().unwrap() >= started);
    client.call(&["set", "a", "third"]);
    assert!(server.stop().1);
    for (point, value) in [("1", "first"), ("2", "second")] {
        let target = restored.join(point);
        let mut restore = aiodb();
        restore.arg("restore").args([&backups, &target]).args(["--point", point]);
        let output = output_of(restore);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let server = Server::start(&target, &[]);
        let mut client = server.client();
        assert_eq!(client.text(&["get", "a"]), value);
        assert_eq!(client.text(&["lrange", "list", "0", "-1"]), "x y");
        assert!(client.text(&["save"]).starts_with("-ERR there is no directory for backups"));
        assert!(client.text(&["bgsave"]).starts_with("-ERR there is no directory for backups"));
        assert!(server.stop().1);
    }
    // A directory with something else is refused, and the server goes on.
    std::fs::create_dir(dir.path().join("full")).unwrap();
    std::fs::write(dir.path().join("full/file"), "x").unwrap();
    let server = Server::start(&store, &["--backup-dir", dir.path().join("full").to_str().unwrap()]);
    let mut client = server.client();
    assert!(client.text(&["save"]).starts_with("-ERR the backup failed: "));
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "err");
    assert_eq!(client.text(&["get", "a"]), "third");
}

#[test]
fn shutdown_ends_the_server_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    for (number, words) in
        [&["shutdown"][..], &["shutdown", "nosave"], &["shutdown", "save", "now", "force"]].iter().enumerate()
    {
        let server = Server::start(&store, &[]);
        let mut client = server.client();
        assert_eq!(client.text(&["incr", "starts"]), (number + 1).to_string());
        client.send(&encode(words)).unwrap();
        assert!(client.receive().is_err());
        let (said, went_well) = server.wait();
        assert!(went_well && said.contains("the store is closed"), "{said}");
    }
}

#[test]
fn systemd_is_told_when_the_server_is_ready_and_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("notify");
    let listening = std::os::unix::net::UnixDatagram::bind(&socket).unwrap();
    listening.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = aiodb();
    command.arg("serve").arg(dir.path().join("store")).args(["--port", "0"]).env("NOTIFY_SOCKET", &socket);
    let server = Server::run(command);
    let heard = || {
        let mut buffer = [0; 256];
        let length = listening.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).trim().to_string()
    };
    assert_eq!(heard(), "READY=1");
    assert_eq!(server.client().text(&["ping"]), "PONG");
    assert!(server.stop().1);
    assert_eq!(heard(), "STOPPING=1");
}

#[test]
fn programs_read_the_log_and_find_slow_commands_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    // The first server leaves a value that the second has to read.
    assert!(Server::start(&store, &[]).client().text(&["set", "a", &"x".repeat(1000)]) == "OK");
    let mut command = aiodb();
    command.arg("serve").arg(&store).args(["--port", "0", "--durability", "sync", "--log-format", "json"]);
    let server = Server::run_until(command, "accept connections at ").unwrap_or_else(|said| panic!("{said}"));
    let mut client = server.client();
    assert_eq!(client.text(&["config", "set", "slowlog-log-slower-than", "0"]), "OK");
    assert_eq!(client.text(&["get", "a"]).len(), 1000);
    assert_eq!(client.text(&["set", "b", "secret"]), "OK");
    assert_eq!(client.text(&["config", "set", "slowlog-log-slower-than", "-1"]), "OK");
    let (said, went_well) = server.stop();
    assert!(went_well && !said.contains("secret"), "{said}");
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let slow = |command: &str| lines.iter().find(|line| line["command"] == command).unwrap_or_else(|| panic!("{said}"));
    let (get, set) = (slow("get"), slow("set"));
    assert_eq!((get["event"].as_str(), get["level"].as_str()), (Some("slow_command"), Some("warning")));
    assert_eq!((get["device_reads"].as_u64(), get["arguments"].as_u64()), (Some(1), Some(1)));
    assert!(get["device_wait_us"].as_u64() > Some(0) && get["took_us"].as_u64() >= get["device_wait_us"].as_u64());
    assert!(set["flush_wait_us"].as_u64() > Some(0) && set["took_us"].as_u64() >= set["flush_wait_us"].as_u64());
    assert!(get["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{get}");
    assert_eq!(lines.last().map(|line| &line["message"]), Some(&serde_json::json!("the store is closed")));
}
