use std::path::Path;

use super::*;
use crate::config::Layer;

fn config(path: &Path) -> Config {
    Config::of_layers([Layer { dir: Some(path.into()), databases: Some(3), ..Layer::default() }]).unwrap()
}

/// Loads an input, and says what came of it, what was refused, and why it ended.
fn load_all(path: &Path, input: &[u8], passed_over: u64) -> (Loaded, Vec<(u64, String)>, Option<String>) {
    let mut refused = Vec::new();
    let watch = |event: Event<'_>| {
        if let Event::Refused { number, reason } = event {
            refused.push((number, reason.to_string()));
        }
        true
    };
    let (loaded, ended) = load(config(path), input, passed_over, watch).unwrap();
    (loaded, refused, ended.map(|error| error.to_string()))
}

/// Commands as clients send them.
fn encode(lines: &[&str]) -> Vec<u8> {
    let encode_one = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        let arguments = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
        format!("*{}\r\n{}", words.len(), arguments.collect::<String>())
    };
    lines.iter().map(encode_one).collect::<String>().into_bytes()
}

/// What expressions of scripts say, which a load has no other way to tell than as errors.
fn ask(path: &Path, expressions: &[&str]) -> Vec<String> {
    let script = |expression: &&str| {
        let text = format!("return redis.error_reply(tostring({expression}))");
        format!("*3\r\n$4\r\neval\r\n${}\r\n{text}\r\n$1\r\n0\r\n", text.len())
    };
    let input: String = expressions.iter().map(script).collect();
    load_all(path, input.as_bytes(), 0).1.into_iter().map(|(_, said)| said).collect()
}

#[test]
fn commands_of_all_kinds_are_carried_out_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut input = b"#TS:1700000000\r\n".to_vec();
    input.extend(encode(&["select 1", "set a 1 pxat 99999999999999", "rpush l x y z", "select 0"]));
    input.extend(encode(&["multi", "incr a", "incr a", "exec"]));
    input.extend(b"set inline yes\r\n");
    input.extend((0..1000).flat_map(|number| encode(&[&format!("sadd s {number}")])));
    input.extend(encode(&["del inline", "hset h f v"]));
    let (loaded, refused, ended) = load_all(dir.path(), &input, 0);
    assert_eq!((loaded.commands, loaded.refused, loaded.bytes), (1011, 0, input.len() as u64));
    assert_eq!((refused, ended), (Vec::new(), None));
    let asked =
        ["redis.call('get','a')", "redis.call('scard','s')", "redis.call('dbsize')", "redis.call('hget','h','f')"];
    assert_eq!(ask(dir.path(), &asked), ["2", "1000", "3", "v"].map(|said| format!("ERR {said}")));
}

#[test]
fn what_is_refused_is_told_and_what_was_done_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = vec!["select 1", "rpush l x", "incr l", "xadd s * f v", "blpop q 0", "multi", "incr l", "exec"];
    lines.push("rpush l y");
    let input = encode(&lines);
    let (loaded, refused, ended) = load_all(dir.path(), &input, 0);
    assert_eq!((loaded.commands, loaded.refused, ended), (9, 4, None));
    let numbers: Vec<u64> = refused.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [3, 4, 5, 8]);
    assert!(refused[0].1.starts_with("WRONGTYPE") && refused[1].1.contains("unknown command"), "{refused:?}");
    // The database is that of the commands before.
    let (loaded, refused, _) = load_all(dir.path(), &input, 8);
    assert_eq!((loaded.commands, refused), (9, Vec::new()));
    let in_one = "(function() redis.call('select',1) return redis.call('llen','l') end)()";
    assert_eq!(ask(dir.path(), &[in_one]), ["ERR 3"]);
}

#[test]
fn what_ends_too_early_or_is_no_command_keeps_what_came_before() {
    let dir = tempfile::tempdir().unwrap();
    let good = encode(&["rpush l x"]);
    for (more, reason) in [
        (&b"*2\r\n$3\r\nget\r\n$1\r\n"[..], "within a command after command 1"),
        (b"*2\r\n$3\r\nget", "within a command after command 1"),
        (b"*1\r\n$5\r\nmulti\r\n*2\r\n$4\r\nincr\r\n$1\r\na\r\n", "within a transaction after command 3"),
        (b"*2\r\nGARBAGE\r\n", "after command 1"),
        (b"REDIS0011\xfa\x09redis-ver", "within a command after command 1"),
    ] {
        let (loaded, _, ended) = load_all(dir.path(), &[&good[..], more].concat(), 0);
        assert_eq!(loaded.commands, 1);
        let ended = ended.expect("it is not whole");
        assert!(ended.contains(reason), "{ended}");
    }
    assert_eq!(ask(dir.path(), &["redis.call('llen','l')", "redis.call('exists','a')"]), ["ERR 5", "ERR 0"]);
}

#[test]
fn a_load_ends_when_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let input: Vec<u8> = (0..10_000).flat_map(|number| encode(&[&format!("set {number} x")])).collect();
    let watch = |event: Event<'_>| !matches!(event, Event::Progress { commands, .. } if commands >= 1000);
    let (loaded, ended) = load(config(dir.path()), &input[..], 0, watch).unwrap();
    assert!(ended.is_none() && loaded.commands >= 1000 && loaded.commands < 2000, "{loaded:?}");
    assert_eq!(ask(dir.path(), &["redis.call('dbsize')"]), [format!("ERR {}", loaded.commands)]);
}

#[test]
fn a_load_that_stops_within_a_transaction_goes_on_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let input = encode(&["rpush l a", "multi", "rpush l b", "rpush l c", "exec", "rpush l d"]);
    let within = encode(&["rpush l a", "multi", "rpush l b"]).len();
    // Cut off.
    let (loaded, _, ended) = load_all(dir.path(), &input[..within], 0);
    assert_eq!((loaded.commands, ended.is_some()), (1, true));
    // Told to stop at each command, one after the other.
    let (mut loaded, mut stopped_at) = (loaded.commands, Vec::new());
    for stop in 1..=6 {
        let watch = |event: Event<'_>| !matches!(event, Event::Progress { commands, .. } if commands >= stop);
        let (now, ended) = load(config(dir.path()), &input[..], loaded, watch).unwrap();
        assert!(ended.is_none(), "{ended:?}");
        loaded = now.commands;
        stopped_at.push(loaded);
    }
    assert_eq!(stopped_at, [1, 1, 1, 1, 5, 6]);
    assert_eq!(ask(dir.path(), &["table.concat(redis.call('lrange','l',0,-1))"]), ["ERR abcd"]);
}
