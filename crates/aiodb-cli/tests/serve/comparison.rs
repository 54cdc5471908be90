//! The same commands to this server and to a real one: every reply, and what is there in the end.

use std::collections::BTreeSet;
use std::path::Path;

use resp_rs::resp2::Frame;

use crate::client::{Client, encode, text, until};
use crate::generator::{Arguments, Generator, KEYS};
use crate::server::{Both, Redis, Server, aiodb, output_of};

/// Sequences for each memory for entries.
const SEQUENCES: u64 = 10;
const COMMANDS: usize = 400;

/// Times that two servers tell for the same key may differ by so much: how long a machine may be busy in between.
const TIME_DIFFERENCE: i64 = 600_000;

/// Connections of each server: more than one, so that watched keys change.
const CONNECTIONS: usize = 2;

struct Pair {
    ours: Vec<Client>,
    theirs: Vec<Client>,
}

impl Pair {
    fn connect(both: &Both) -> Pair {
        let mut pair = Pair {
            ours: (0..CONNECTIONS).map(|_| both.server.client()).collect(),
            theirs: (0..CONNECTIONS).map(|_| both.redis.client()).collect(),
        };
        pair.both(0, &[b"flushall".to_vec()]);
        pair
    }

    fn both(&mut self, connection: usize, arguments: &[Vec<u8>]) -> (Frame, Frame) {
        (self.ours[connection].call(arguments), self.theirs[connection].call(arguments))
    }
}

/// Whether replies to a question are the same as far as they can be.
fn agree(arguments: &[Vec<u8>], ours: &Frame, theirs: &Frame) -> bool {
    let name = String::from_utf8_lossy(&arguments[0]).to_lowercase();
    match (ours, theirs) {
        (Frame::Integer(ours), Frame::Integer(theirs)) if name.contains("ttl") || name.contains("expiretime") => {
            let is_time = |number: &i64| *number >= 0;
            if is_time(ours) && is_time(theirs) { (ours - theirs).abs() < TIME_DIFFERENCE } else { ours == theirs }
        }
        (Frame::Array(Some(ours)), Frame::Array(Some(theirs))) if name == "keys" => {
            let sorted = |frames: &[Frame]| frames.iter().map(text).collect::<BTreeSet<_>>();
            ours.len() == theirs.len() && sorted(ours) == sorted(theirs)
        }
        (Frame::BulkString(ours), Frame::BulkString(theirs)) if name == "randomkey" => {
            ours.is_some() == theirs.is_some()
        }
        (Frame::Array(Some(ours)), Frame::Array(Some(theirs))) if name.ends_with("scan") => {
            // A cursor, and what was found.
            ours[0] == theirs[0]
                && without_order(&ours[1], parts(arguments)) == without_order(&theirs[1], parts(arguments))
        }
        _ if parts(arguments) > 0 => without_order(ours, parts(arguments)) == without_order(theirs, parts(arguments)),
        _ => ours == theirs,
    }
}

/// How many replies belong together of those that may come in any order; 0 if the order counts.
fn parts(arguments: &[Vec<u8>]) -> usize {
    let is_word = |argument: &Vec<u8>, word: &str| argument.eq_ignore_ascii_case(word.as_bytes());
    let has_more = |word| arguments.last().is_some_and(|last| is_word(last, word));
    match &*String::from_utf8_lossy(&arguments[0]).to_lowercase() {
        "hgetall" | "hscan" | "zscan" => 2,
        "hrandfield" if has_more("withvalues") => 2,
        "zrandmember" if has_more("withscores") => 2,
        "hkeys" | "hvals" | "hrandfield" => 1,
        "smembers" | "sinter" | "sunion" | "sdiff" | "sscan" | "spop" | "srandmember" | "zrandmember" => 1,
        _ => 0,
    }
}

/// A reply in the one order that both servers can be compared in.
fn without_order(frame: &Frame, parts: usize) -> Vec<String> {
    let Frame::Array(Some(frames)) = frame else { return vec![format!("{frame:?}")] };
    let mut groups: Vec<_> = frames.chunks(parts).map(|group| format!("{group:?}")).collect();
    groups.sort();
    groups
}

fn shown(arguments: &[Vec<u8>]) -> String {
    arguments.iter().map(|argument| format!("{:?} ", String::from_utf8_lossy(argument))).collect()
}

fn compare(pair: &mut Pair, connection: usize, arguments: &Arguments, history: &mut Vec<String>) {
    history.push(format!("{connection}: {}", shown(arguments)));
    let (ours, theirs) = pair.both(connection, arguments);
    let last = &history[history.len().saturating_sub(40)..];
    assert!(agree(arguments, &ours, &theirs), "we say {ours:?}\nRedis says {theirs:?}\nafter\n{}", last.join("\n"));
}

/// Keys of every database with their values and times.
fn compare_state(pair: &mut Pair, history: &mut Vec<String>) {
    for connection in 0..CONNECTIONS {
        pair.both(connection, &[b"discard".to_vec()]);
    }
    for database in ["0", "1"] {
        compare(pair, 0, &vec![b"select".to_vec(), database.into()], history);
        let keys = pair.theirs[0].call(&["keys", "*"]);
        compare(pair, 0, &vec![b"keys".to_vec(), b"*".to_vec()], history);
        let Frame::Array(Some(keys)) = keys else { panic!("{keys:?}") };
        for key in keys.iter().filter_map(Frame::as_bytes) {
            let kind = pair.theirs[0].text(&[&b"type"[..], key]);
            compare(pair, 0, &vec![b"type".to_vec(), key.to_vec()], history);
            let (question, rest): (&str, &[&str]) = match &*kind {
                "hash" => ("hgetall", &[]),
                "set" => ("smembers", &[]),
                "zset" => ("zrange", &["0", "-1", "withscores"]),
                "list" => ("lrange", &["0", "-1"]),
                _ => ("get", &[]),
            };
            let rest = rest.iter().map(|word| word.as_bytes().to_vec());
            compare(pair, 0, &[question.as_bytes().to_vec(), key.to_vec()].into_iter().chain(rest).collect(), history);
            compare(pair, 0, &vec![b"pexpiretime".to_vec(), key.to_vec()], history);
        }
    }
}

#[test]
fn random_commands_are_answered_as_redis_does() {
    // All entries are kept; or few, so that they are read again and again; or none.
    for cache_bytes in ["67108864", "4096", "0"] {
        println!("--cache-bytes {cache_bytes}");
        random_commands_are_answered_with(&["--cache-bytes", cache_bytes]);
    }
}

fn random_commands_are_answered_with(arguments: &[&str]) {
    let both = Both::start_with(arguments);
    let first = std::env::var("AIODB_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or_else(|| (0..SEQUENCES).map(|_| fastrand::u64(..)).collect(), |seed| vec![seed]);
    for seed in seeds {
        println!("AIODB_SEED={seed}");
        let mut generator = Generator::new(seed);
        let mut pair = Pair::connect(&both);
        let (mut history, mut open) = (Vec::new(), [false; CONNECTIONS]);
        for _ in 0..COMMANDS {
            let connection = if generator.below(4) == 0 { 1 } else { 0 };
            // Questions are compared one by one, so they stay out of transactions.
            let arguments = match generator.below(10) {
                0 if !open[connection] => generator.question(),
                1 if !open[connection] && generator.below(2) == 0 => generator.watch(),
                _ => generator.command(),
            };
            if arguments[0].eq_ignore_ascii_case(b"dbsize") {
                // Redis counts keys that have expired until somebody comes by them.
                pair.both(
                    connection,
                    &[&["exists"][..], &KEYS].concat().iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>(),
                );
            }
            compare(&mut pair, connection, &arguments, &mut history);
            match arguments[0].to_ascii_lowercase().as_slice() {
                b"multi" if arguments.len() == 1 => open[connection] = true,
                b"exec" | b"discard" if arguments.len() == 1 => open[connection] = false,
                _ => {}
            }
        }
        compare_state(&mut pair, &mut history);
    }
}

/// `aiodb load --format resp` of a file.
fn load_commands(store: &Path, file: &Path, more: &[&str]) -> (String, Option<i32>) {
    let mut command = aiodb();
    command.arg("load").arg(store).arg(file).args(["--format", "resp"]).args(more);
    let output = output_of(command);
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&said).into_owned(), output.status.code())
}

#[test]
fn an_append_only_file_of_redis_is_loaded() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let redis = Redis::start_with(dirs[1].path(), &["--appendonly", "yes", "--aof-use-rdb-preamble", "no"]);
    let store = dirs[0].path().join("store");
    let seed = fastrand::u64(..);
    println!("AIODB_SEED={seed}");
    let mut generator = Generator::new(seed);
    let mut client = redis.client();
    let mut run = |client: &mut Client| (0..1000).for_each(|_| drop(client.call(&generator.command())));
    run(&mut client);
    client.call(&["discard"]);
    assert!(!client.text(&["bgrewriteaof"]).starts_with('-'));
    until("the file is written anew", || client.text(&["info", "persistence"]).contains("aof_rewrite_in_progress:0"));
    // What comes now is in a second file, with transactions.
    run(&mut client);
    client.call(&["discard"]);
    client.call(&["config", "set", "appendfsync", "always"]);
    client.call(&["set", "last", "1"]);
    let files = dirs[1].path().join("appendonlydir");
    let manifest = std::fs::read_to_string(files.join("appendonly.aof.manifest")).unwrap();
    let names: Vec<&str> = manifest.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert!(names.len() >= 2 && names[0].ends_with(".base.aof"), "{manifest}");
    for name in names {
        let (said, code) = load_commands(&store, &files.join(name), &[]);
        assert_eq!(code, Some(0), "{said}");
    }
    let server = Server::start(&store, &[]);
    let mut pair = Pair { ours: Vec::new(), theirs: Vec::new() };
    pair.ours.extend((0..CONNECTIONS).map(|_| server.client()));
    pair.theirs.extend((0..CONNECTIONS).map(|_| redis.client()));
    compare_state(&mut pair, &mut Vec::new());
    assert_eq!(server.client().text(&["dbsize"]), redis.client().text(&["dbsize"]));
}

#[test]
fn a_load_of_commands_says_what_it_could_not_do() {
    let dir = tempfile::tempdir().unwrap();
    let (store, file) = (dir.path().join("store"), dir.path().join("commands"));
    let commands = [&["rpush", "l", "a"][..], &["incr", "l"], &["rpush", "l", "b"]].map(encode).concat();
    std::fs::write(&file, &commands).unwrap();
    let (said, code) = load_commands(&store, &file, &[]);
    assert!(code == Some(3) && said.contains("command 2: WRONGTYPE") && said.contains("--bad-lines skip"), "{said}");
    assert!(said.contains("to go on: the same command and input with --skip-lines 3"), "{said}");
    let (said, code) = load_commands(&store, &file, &["--bad-lines", "skip", "--skip-lines", "2"]);
    assert!(code == Some(0) && said.contains("carried out 3 commands"), "{said}");
    let (said, code) = load_commands(&store, &file, &["--bad-lines", "skip", "--json"]);
    assert!(code == Some(4) && said.contains("\"commands_refused\":1"), "{said}");
    let server = Server::start(&store, &[]);
    assert_eq!(server.client().text(&["lrange", "l", "0", "-1"]), "a b b a b");
    let (said, code) = load_commands(&store, &file, &[]);
    assert!(code == Some(3) && said.contains("in use"), "{said}");
    assert!(server.stop().1);
    std::fs::write(&file, &commands[..commands.len() - 5]).unwrap();
    let (said, code) = load_commands(&store, &file, &["--bad-lines", "skip"]);
    assert!(code == Some(3) && said.contains("the input ends within a command after command 2"), "{said}");
    for more in [&["--key", "1"][..], &["--table", "t"], &["--sorted"], &["--databases", "0"]] {
        let (said, code) = load_commands(&store, &file, more);
        assert_eq!(code, Some(2), "{said}");
    }
}

/// What COMMAND INFO says of a command, as far as both servers must agree.
fn description(client: &mut Client, name: &str) -> Vec<Vec<String>> {
    let Frame::Array(Some(commands)) = client.call(&["command", "info", name]) else { panic!("{name}") };
    let Frame::Array(Some(parts)) = &commands[0] else { return Vec::new() };
    let sorted = |frame: &Frame| {
        let mut words: Vec<_> = match frame {
            Frame::Array(Some(frames)) => frames.iter().map(text).collect(),
            other => vec![text(other)],
        };
        words.sort();
        words
    };
    // A specification of keys may have notes for people.
    let specification = |frame: &Frame| {
        let Frame::Array(Some(pairs)) = frame else { panic!("{name}") };
        let pairs = pairs.chunks(2).filter(|pair| text(&pair[0]) != "notes");
        pairs.flatten().map(text).collect::<Vec<_>>().join(" ")
    };
    let Frame::Array(Some(specifications)) = &parts[8] else { panic!("{name}") };
    let keys = specifications.iter().map(specification).collect();
    parts[..7].iter().map(sorted).chain([keys]).collect()
}

#[test]
fn commands_are_described_as_redis_does() {
    let both = Both::start();
    let [mut ours, mut theirs] = both.clients();
    let names = ours.text(&["command", "list"]);
    // The list has subcommands too, the count has not.
    let names: Vec<_> = names.split(' ').filter(|name| !name.contains('|')).map(str::to_string).collect();
    assert_eq!(ours.text(&["command", "count"]), names.len().to_string());
    let subcommands = "client|id client|list client|kill client|info client|setname client|getname object|encoding memory|usage \
        acl|cat acl|deluser acl|dryrun acl|genpass acl|getuser acl|help acl|list acl|load acl|log acl|save acl|setuser acl|users \
        acl|whoami";
    for name in names.iter().map(String::as_str).chain(subcommands.split(' ')) {
        assert_eq!(description(&mut ours, name), description(&mut theirs, name), "{name}");
    }
    assert_eq!(text(&ours.call(&["command", "info", "nope"])), text(&theirs.call(&["command", "info", "nope"])));
    let documented = ours.text(&["command", "docs", "get"]);
    assert!(documented.contains("Get the value of a key"), "{documented}");
}

#[test]
fn a_scan_gives_every_key_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    for number in 0..137 {
        client.call(&["set".to_string(), format!("key:{number}"), "x".to_string()]);
    }
    let (mut cursor, mut seen) = ("0".to_string(), Vec::new());
    loop {
        let Frame::Array(Some(reply)) = client.call(&["scan", &cursor, "match", "key:*", "count", "7"]) else {
            panic!()
        };
        let Frame::Array(Some(keys)) = &reply[1] else { panic!("{reply:?}") };
        seen.extend(keys.iter().map(text));
        cursor = text(&reply[0]);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!((seen.len(), seen.iter().collect::<BTreeSet<_>>().len()), (137, 137));
    assert!(client.text(&["scan", "1"]).starts_with("-ERR this cursor is not known"));
    assert_eq!(client.text(&["scan", "x"]), "-ERR invalid cursor");
    assert_eq!(client.text(&["scan", "0", "count", "0"]), "-ERR syntax error");
    assert_eq!(client.text(&["scan", "0", "type", "hash", "count", "500"]).trim(), "0");
    client.call(&["hset", "h", "a", "b"]);
    assert_eq!(client.text(&["scan", "0", "type", "hash", "count", "500"]).trim(), "0 h");
}
