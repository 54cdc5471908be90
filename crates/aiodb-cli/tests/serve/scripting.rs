//! Scripts in Lua.

use std::time::{Duration, Instant};

use crate::client::{Client, PATIENCE, encode, received, until};
use crate::limits::resident_bytes;
use crate::raw::RawPair;
use crate::server::{Both, Server};

#[test]
fn scripts_are_answered_as_redis_does() {
    let both = Both::start();
    for is_new in [false, true] {
        let mut pair = RawPair::connect(&both);
        if is_new {
            pair.speak_resp3();
        }
        pair.agree(&["flushall"]);
        for line in include_str!("scripts.txt").lines().filter(|line| !line.starts_with("# ")) {
            pair.agree(&line.split('|').map(|argument| argument.replace("\\n", "\n")).collect::<Vec<_>>());
        }
        pair.agree(&[&b"eval"[..], b"return ARGV[1]..KEYS[1]", b"1", b"\r\n\0\xff", b"\xfe"]);
        pair.finish();
    }
}

/// Sends a script that does not end, and waits until others are told so.
fn endless(server: &Server, client: &mut Client, script: &str) -> Client {
    let mut running = server.client();
    running.send(&encode(&["eval", script, "1", "written"])).unwrap();
    until(&format!("nobody hears of {script}"), || {
        client.text(&["get", "written"]).starts_with("-BUSY Redis is busy running a script.")
    });
    running
}

#[test]
fn a_script_without_end_is_killed_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--threads", "2"]);
    let mut client = server.client();
    assert_eq!(client.text(&["config", "set", "busy-reply-threshold", "20"]), "OK");
    assert_eq!(client.text(&["script", "kill"]), "-NOTBUSY No scripts in execution right now.");
    for script in [
        "redis.call('set', KEYS[1], 'x') while true do end",
        "redis.call('set', KEYS[1], 'x') while true do pcall(function() while true do end end) end",
        "redis.call('set', KEYS[1], 'x') while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        "redis.call('set', KEYS[1], 'x') while true do xpcall(function() while true do end end, function() while true do end end) end",
        "redis.call('set', KEYS[1], 'x') while true do redis.pcall('get', 'a') end",
        "redis.call('set', KEYS[1], 'x') error(setmetatable({}, {__tostring = function() while true do end end}))",
    ] {
        let mut running = endless(&server, &mut client, script);
        assert!(client.text(&["set", "other", "x"]).starts_with("-BUSY"));
        assert_eq!(client.text(&["script", "kill"]), "OK");
        let answer = received(&mut running);
        assert!(answer.starts_with("-ERR Script killed by user with SCRIPT KILL."), "{answer}");
        assert_eq!(client.text(&["get", "written"]), "nil", "{script}");
        assert_eq!(running.text(&["eval", "return 1", "0"]), "1");
    }
    // One that runs does not keep the server from its end.
    let _running = endless(&server, &mut client, "while true do end");
    client.send(&encode(&["shutdown", "nosave"])).unwrap();
    let begun = Instant::now();
    assert!(server.wait().0.contains("SHUTDOWN"));
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn scripts_cannot_take_all_memory() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    client.call(&[&b"set"[..], b"big", &vec![b'x'; 1 << 20]]);
    for (script, problem) in [
        ("local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end", "not enough memory"),
        ("return string.rep('x', 1e10)", "not enough memory"),
        ("local t = {} for i = 1, 60 do t = {t, t} end return t", "too large"),
        ("local s, t = string.rep('x', 1e6), {} for i = 1, 1000 do t[i] = s end return t", "too large"),
        ("local t = {} for i = 1, 60 do t = {t, t} end return cjson.encode(t)", "JSON of more than"),
        ("for i = 1, 1e6 do redis.call('get', 'big') end", "take and answer more than"),
        ("local t = {} t[1] = t return t", "reached lua stack limit"),
        ("local function f() return f() + 1 end return f()", "stack overflow"),
    ] {
        let answer = client.text(&["eval", script, "0"]);
        assert!(answer.contains(problem), "{} to {script}", &answer[..answer.len().min(300)]);
    }
    assert!(resident_bytes(&server) < 900 << 20, "{}", resident_bytes(&server));
    assert_eq!(client.text(&["eval", "return redis.call('strlen', 'big')", "0"]), (1 << 20).to_string());
    assert!(server.stop().1);
}

#[test]
fn scripts_reach_nothing_but_the_store_and_leave_nothing_to_the_next() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    for name in [
        "os", "io", "debug", "package", "require", "dofile", "loadfile", "getfenv", "setfenv", "newproxy", "print",
        "module",
    ] {
        let answer = client.text(&["eval", &format!("return {name}"), "0"]);
        assert!(answer.contains("Script attempted to access nonexistent global variable"), "{name}: {answer}");
    }
    for script in [
        "string.x = 1",
        "rawset(string, 'x', 1)",
        "rawset(_G, 'x', 1)",
        "_G.x = 1",
        "redis.call = nil",
        "cjson.encode = nil",
        "setmetatable(_G, {})",
        "setmetatable(string, {})",
        "getmetatable('').__index = nil",
        "getmetatable(redis).__index = nil",
        "loadstring('x = 1')()",
        "coroutine.wrap(function() x = 1 end)()",
        "return loadstring('\\27Lua')()",
    ] {
        let answer = client.text(&["eval", script, "0"]);
        assert!(answer.starts_with("-ERR"), "{script}: {answer}");
    }
    // What a script gets of a library is a copy.
    client.call(&[
        "eval",
        "for name, value in pairs(string) do if type(value) == 'table' then value.x = 1 end end",
        "0",
    ]);
    client.call(&["eval", "local _, copy = pairs(string) copy.upper = nil", "0"]);
    assert_eq!(client.text(&["eval", "return {('x'):upper(), string.upper('y'), #redis.sha1hex('')}", "0"]), "X Y 40");
}

/// Lua 5.1 bounds none of these by itself: each would end the process, or worse.
#[test]
fn scripts_that_go_too_deep_or_too_far_get_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    for script in [
        "return unpack({1, 2, 3}, 0, 2147483647)",
        "return unpack({}, 0, -2147483649)",
        "return unpack({}, -2147483648, 2147483647)",
        "return unpack({}, 0/0)",
        "return string.find('', string.rep('a-', 100000))",
        "return (''):find(string.rep('a-', 100000))",
        "return string.match(string.rep('a', 100000), string.rep('a?', 100000))",
        "return (''):gsub(string.rep('a*', 100000), '')",
        "for found in string.gmatch('', string.rep('a+', 100000)) do end",
        "local function deeper() return coroutine.wrap(deeper)() end return deeper()",
        "local function deeper() return assert(coroutine.resume(coroutine.create(deeper))) end return deeper()",
        "local function deeper() return string.gsub('a', 'a', deeper) end return deeper()",
        "local function deeper() return (string.gsub('a', 'a', coroutine.wrap(function() return deeper() end))) end return deeper()",
    ] {
        let answer = client.text(&["eval", script, "0"]);
        assert!(answer.starts_with("-ERR"), "{script}: {answer}");
        assert_eq!(client.text(&["ping"]), "PONG", "{script}");
    }
    for (script, answer) in [
        ("return {unpack({1, 2, 3}, 2)}", "2 3"),
        ("return {unpack({1, 2, 3}, '1', '2')}", "1 2"),
        ("return {'none', unpack({1, 2, 3}, 3, 1)}", "none"),
        ("return select('#', unpack({}, 1, 7000))", "7000"),
        ("return string.find(string.rep('-', 5000), string.rep('-', 4000), 2, true)", "2"),
        ("return {('key=value'):match('(%w+)=(%w+)')}", "key value"),
        ("return {string.gsub('a-b', '%-', '+')}", "a+b 1"),
        ("local sum = 0 for n in string.gmatch('1 2 3', '%d') do sum = sum + n end return sum", "6"),
        (
            "local next = coroutine.wrap(function() for n = 1, 3 do coroutine.yield(n) end end) return {next(), next()}",
            "1 2",
        ),
    ] {
        assert_eq!(client.text(&["eval", script, "0"]), answer, "{script}");
    }
    let position = client.text(&["eval", "\n\nreturn string.find()", "0"]);
    assert!(
        position.contains("user_script:3: bad argument #1 to 'find' (string expected, got no value)"),
        "{position}"
    );
}

#[test]
fn nobody_comes_between_the_commands_of_a_script() {
    const ADDED: usize = 200;
    for durability in ["none", "sync"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&dir.path().join("store"), &["--durability", durability]);
        let added: usize = if durability == "sync" { ADDED / 4 } else { ADDED };
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let mut client = server.client();
                scope.spawn(move || {
                    for _ in 0..added {
                        if writer % 2 == 0 {
                            // The second key is none that the script names.
                            let script = "local n = redis.call('get', KEYS[1]) or 0; redis.call('set', KEYS[1], n + 1); \
                                redis.call('set', 'copy', n + 1); return n + 1";
                            client.call(&["eval", script, "1", "counter"]);
                        } else {
                            client.call(&["incr", "counter"]);
                        }
                        let both = client.text(&["eval", "return {redis.call('get', 'copy'), redis.call('get', 'counter')}", "0"]);
                        let (copy, counter) = both.split_once(' ').unwrap();
                        assert!(copy == "nil" || copy.parse::<usize>().unwrap() <= counter.parse().unwrap(), "{both}");
                    }
                });
            }
        });
        assert_eq!(server.client().text(&["get", "counter"]), (4 * added).to_string());
        assert!(server.stop().1);
    }
}

#[test]
fn a_kill_leaves_no_half_of_a_script() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    for _ in 0..3 {
        let server = Server::start(&store, &["--durability", "none"]);
        let mut client = server.client();
        let both = client.text(&["mget", "a", "b"]);
        let (first, second) = both.split_once(' ').unwrap();
        assert_eq!(first, second);
        std::thread::scope(|scope| {
            let mut writer = server.client();
            scope.spawn(move || {
                let script =
                    "redis.call('incr', 'a'); redis.call('rpush', 'list', 'x'); return redis.call('incr', 'b')";
                while writer.try_call(&["eval", script, "0"]).is_ok() {}
            });
            std::thread::sleep(Duration::from_millis(300));
            server.signal("KILL");
        });
    }
    let server = Server::start(&store, &[]);
    let counts = server.client().text(&[
        "eval",
        "return {redis.call('get', 'a'), redis.call('get', 'b'), redis.call('llen', 'list')}",
        "0",
    ]);
    let counts: Vec<&str> = counts.split(' ').collect();
    assert!(counts.iter().all(|count| *count == counts[0] && *count != "nil"), "{counts:?}");
}

#[test]
fn a_script_that_the_store_refuses_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let (mut client, mut listener) = (server.client(), server.client());
    listener.text(&["subscribe", "news"]);
    let long = "k".repeat((64 << 10) + 1);
    let script = "redis.call('set', 'a', 'x'); redis.call('publish', 'news', 'x'); pcall(redis.call, 'set', KEYS[1], 'x'); return 1";
    assert!(client.text(&["eval", script, "1", &long]).starts_with("-ERR a key of 65537 bytes"));
    assert_eq!(client.text(&["get", "a"]), "nil");
    assert_eq!(client.text(&["eval", "return redis.call('publish', 'news', 'y')", "0"]), "1");
    assert_eq!(received(&mut listener), "message news y");
}

/// More than tokio has threads for calls that wait.
const MANY: usize = 600;

#[test]
fn clients_that_wait_for_a_script_hold_no_threads() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--threads", "2"]);
    let mut client = server.client();
    assert_eq!(client.text(&["config", "set", "busy-reply-threshold", "0"]), "OK");
    let mut running = server.client();
    running.send(&encode(&["eval", "while true do end", "0"])).unwrap();
    until("no script runs", || client.text(&["client", "list"]).contains(" cmd=eval "));
    let mut waiting: Vec<Client> = (0..MANY).map(|_| server.client()).collect();
    for (number, other) in waiting.iter_mut().enumerate() {
        let script = format!("return {number}");
        let command: &[&str] = if number % 2 == 0 { &["script", "load", &script] } else { &["script", "flush"] };
        other.send(&encode(command)).unwrap();
    }
    until("the others do not wait", || client.text(&["client", "list"]).matches(" cmd=script|").count() == MANY);
    until("no script is killed", || client.text(&["script", "kill"]) == "OK");
    assert!(received(&mut running).starts_with("-ERR Script killed by user with SCRIPT KILL."));
    for (number, other) in waiting.iter_mut().enumerate() {
        let answer = received(other);
        assert!(if number % 2 == 0 { answer.len() == 40 } else { answer == "OK" }, "{answer}");
    }
    assert!(server.stop().1);
}
