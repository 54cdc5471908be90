//! Users, and what they may not do.

use resp_rs::resp2::Frame;

use crate::client::{Client, encode, received, text, until};
use crate::raw::{RawPair, agree_in_both_versions};
use crate::server::{Both, Server};

const SCRIPT: &str = "
    acl whoami
    acl users
    acl list
    acl getuser default
    acl getuser nobody
    acl setuser alice
    acl list
    acl setuser alice on >secret ~a:* %R~r:* %W~w:* %rw~b:* &news &n?ws +@read
    acl setuser alice ~a:* %R~w:* &news >secret
    acl list
    acl getuser alice
    acl setuser alice >other <secret
    acl getuser alice
    acl setuser alice <secret
    acl setuser alice !30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4
    acl setuser alice #30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4
    acl setuser alice #30C952FAB122C3F9759F02A6D95C3758B246B4FEE239957B2D4FEE46E26170C4
    acl setuser alice #abc
    acl setuser alice !abc
    acl list
    acl setuser alice resetpass resetkeys resetchannels off
    acl list
    acl setuser alice ON NoPass AllKeys AllChannels AllCommands skip-sanitize-payload
    acl list
    acl setuser alice ~x
    acl setuser alice &x
    acl setuser alice resetkeys ~x resetchannels &x sanitize-payload
    acl list
    acl setuser alice -get
    acl getuser alice
    acl setuser alice +GET -@dangerous
    acl getuser alice
    acl setuser alice nocommands +@hash
    acl getuser alice
    acl setuser alice -@all +config|get
    acl getuser alice
    acl setuser alice -@all +config
    acl getuser alice
    acl setuser alice -config|get
    acl setuser alice -@all +select|0 +select|1 +SELECT|0
    acl getuser alice
    acl setuser alice +select
    acl getuser alice
    acl setuser alice -select
    acl getuser alice
    acl setuser alice +@bitmap -@geo
    acl setuser alice -@all
    acl setuser alice (+get ~x) ( %R~y &z +@hash )
    acl list
    acl getuser alice
    acl setuser alice clearselectors
    acl setuser alice (
    acl setuser alice (+get
    acl setuser alice ~a (+get ~b &c
    acl setuser alice ()
    acl setuser alice (+nope)
    acl setuser alice (on)
    acl list
    acl setuser alice reset
    acl getuser alice
    acl setuser alice +nope
    acl setuser alice -nope
    acl setuser alice +config|nope
    acl setuser alice +config|get|x
    acl setuser alice +select|
    acl setuser alice -select|0
    acl setuser alice +@nope
    acl setuser alice -@nope
    acl setuser alice +
    acl setuser alice %X~a
    acl setuser alice %RR~a
    acl setuser alice nonsense
    acl setuser alice ''
    acl setuser alice on ~a +nope
    acl list
    acl setuser
    acl genpass 0
    acl genpass -1
    acl genpass 4097
    acl genpass x
    acl genpass 1 2
    acl cat
    acl cat nope
    acl cat hash x
    acl deluser default
    acl deluser alice default
    acl deluser nobody
    acl deluser alice alice nobody
    acl users
    acl deluser
    acl save
    acl load
    acl nope
    acl
    acl whoami x
    acl log x
    acl log 1 2
    acl log -1
    acl log 0
    acl log reset
    acl log
    acl dryrun
    acl dryrun nobody get x
    acl dryrun default nope x
    acl dryrun default config nope
    acl dryrun default config
    acl dryrun default get
    acl dryrun default get x
    acl help
    config get aclfile
    config get acl-pubsub-default
    config get acllog-max-len
    config set aclfile x
    config set acllog-max-len -1
    config set acllog-max-len 5
    config get acllog-max-len
    client kill user nobody
    auth x
    auth default x
    auth default x y
    config set requirepass secret
    acl list
    auth default wrong
    auth wrong
    auth secret
    reset
    get a
    hello
    hello 2 auth default wrong
    auth secret
    config set requirepass ''
    acl list
";

const SCRIPT_RESP3: &str = "
    acl setuser alice on >secret ~a:* &news +@read (+get ~x)
    acl getuser alice
    acl getuser nobody
    acl list
    acl log reset
    acl log
    acl dryrun alice get x
    acl dryrun alice get y
    acl deluser alice
";

#[test]
fn users_are_described_and_changed_as_redis_does() {
    let both = Both::start();
    agree_in_both_versions(&both, SCRIPT, SCRIPT_RESP3);
    let mut pair = RawPair::connect(&both);
    pair.agree(&[&b"acl"[..], b"setuser", b"a b"]);
    pair.agree(&[&b"acl"[..], b"setuser", b"b", b"~a\tb"]);
    pair.agree(&[&b"acl"[..], b"setuser", b"\xff\xfe", b">\0\r\n", b"~\xff", b"&\xfe"]);
    pair.agree(&["acl", "list"]);
    pair.finish();
    let mut client = both.server.client();
    let [first, second] = [client.text(&["acl", "genpass"]), client.text(&["acl", "genpass"])];
    assert!(first.len() == 64 && first != second && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    assert_eq!(client.text(&["acl", "genpass", "5"]).len(), 2);
    let transactions = client.text(&["acl", "cat", "transaction"]);
    assert_eq!(transactions, "multi exec discard watch unwatch");
}

/// What a user may do who is only allowed a few commands, keys and channels.
const RESTRICTED: &str = "
    acl setuser bob on >pw ~b:* %R~r:* %W~w:* &news &n?tes resetchannels &news &n?tes +@string +@transaction +@pubsub +eval +config|get
    auth bob wrong
    auth bob pw
    acl whoami
    get b:1
    set b:1 x
    get c
    mget b:1 r:1
    mget b:1 r:1 c
    set r:1 x
    set w:1 x
    set w:1 x get
    set w:1 x nx
    getset w:1 x
    get w:1
    append w:1 x
    flushall
    client list
    client
    config get maxclients
    config set maxclients 1
    config nope
    get
    nope
    hget b:1 x
    watch c
    watch w:1
    multi
    get b:1
    set b:1 y
    exec
    multi
    get c
    get b:1
    exec
    multi
    flushall
    exec
    publish news x
    publish notes x
    publish other x
    eval nope 1 c
    subscribe other
    subscribe news other
    psubscribe news
    psubscribe n*
    psubscribe n?tes
    subscribe news
    unsubscribe other
    punsubscribe n*
    punsubscribe n?tes
    unsubscribe
    punsubscribe
    auth default x
    acl whoami
    auth bob pw
    reset
    acl whoami
    acl deluser bob
";

#[test]
fn what_is_not_allowed_is_refused_as_redis_does() {
    let both = Both::start();
    let mut pair = RawPair::connect(&both);
    pair.agree_on(RESTRICTED);
    pair.agree_on("acl setuser bob on nopass ~b:* +@string +eval +publish\nauth bob x");
    for script in [
        "return redis.call('set', 'b:1', 'x')",
        "return redis.call('get', 'c')",
        "return redis.pcall('get', 'c')",
        "return redis.call('flushall')",
        "return redis.pcall('del', 'b:1')",
        "return redis.pcall('publish', 'news', 'x')",
        "return redis.call('get')",
        "return redis.call('nope')",
        "return redis.pcall('auth', 'x')",
        "return redis.acl_check_cmd('get', 'b:1')",
        "return redis.acl_check_cmd('get', 'c')",
        "return redis.acl_check_cmd('get')",
        "return redis.acl_check_cmd('publish', 'x')",
        "return redis.acl_check_cmd('publish')",
        "return redis.acl_check_cmd('set', KEYS[1], 5)",
        "return redis.acl_check_cmd('nope')",
        "return redis.acl_check_cmd()",
        "return redis.acl_check_cmd({})",
    ] {
        pair.agree(&["eval", script, "1", "b:1"]);
    }
    pair.finish();
}

/// Those of ACL LOG, without times and clients.
fn denials(client: &mut Client) -> Vec<Vec<String>> {
    let Frame::Array(Some(entries)) = client.call(&["acl", "log"]) else { panic!() };
    let parts = entries.iter().map(|entry| match entry {
        Frame::Array(Some(parts)) => parts.iter().map(text).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    });
    parts.map(|parts| [&parts[..11], &parts[12..13]].concat()).collect()
}

#[test]
fn what_was_refused_is_kept_as_redis_does() {
    let both = Both::start();
    let logs = both.clients().map(|mut client| {
        client.call(&["acl", "setuser", "bob", "on", ">pw", "~b:*", "+@string", "+@transaction", "+eval", "+publish"]);
        client.call(&["auth", "nobody", "pw"]);
        client.call(&["HELLO", "2", "auth", "bob", "wrong"]);
        client.call(&["auth", "bob", "pw"]);
        for command in [
            &["flushall"][..],
            &["flushall"],
            &["get", "c"],
            &["mget", "b:1", "c"],
            &["config", "get", "x"],
            &["publish", "news", "x"],
            &["multi"],
            &["flushall"],
            &["get", "d"],
            &["exec"],
            &["eval", "return redis.pcall('get', 'e')", "0"],
            &["eval", "return redis.pcall('del', 'e')", "0"],
        ] {
            client.call(command);
        }
        client.call(&["reset"]);
        let log = denials(&mut client);
        assert!(client.text(&["acl", "log", "1"]).contains(" user=bob "));
        assert_eq!(client.text(&["config", "set", "acllog-max-len", "2"]), "OK");
        client.call(&["auth", "x", "y"]);
        assert_eq!(denials(&mut client).len(), 2);
        assert_eq!(client.text(&["acl", "log", "reset"]), "OK");
        assert_eq!(client.text(&["acl", "log"]), "");
        log
    });
    assert_eq!(logs[0], logs[1]);
}

/// Commands with keys and channels, and some without.
const WITH_KEYS: &str = "
    get k1|set k1 v|set k1 v get|set k1 v nx|set k1 v xx GET|setex k1 1 v|setnx k1 v|mget k1 k2|mset k1 v k2 v|msetnx k1 v k2 v
    getset k1 v|getdel k1|getex k1|append k1 v|strlen k1|getrange k1 0 1|setrange k1 0 v|incr k1|incrbyfloat k1 1
    hset k1 f v|hsetnx k1 f v|hget k1 f|hdel k1 f|hexists k1 f|hlen k1|hgetall k1|hincrby k1 f 1|hscan k1 0|hrandfield k1
    sadd k1 m|srem k1 m|sismember k1 m|smismember k1 m|scard k1|smembers k1|spop k1|smove k1 k2 m|smove k2 k1 m|sscan k1 0
    sinter k1 k2|sinterstore k1 k2 k3|sinterstore k2 k1 k3|sintercard 2 k1 k2|sunionstore k3 k1 k2|sdiffstore k1 k3
    lpush k1 v|lpushx k1 v|lpop k1|lmpop 2 k1 k2 left|lmove k1 k2 left right|lmove k2 k1 left right|rpoplpush k1 k2|llen k1
    lindex k1 0|lrange k1 0 1|lset k1 0 v|ltrim k1 0 1|lpos k1 v|linsert k1 before a b|lrem k1 0 v|blpop k1 k2 0|brpop k1 0
    blmpop 0 2 k1 k2 left|blmove k1 k2 left right 0|brpoplpush k1 k2 0|brpoplpush k2 k1 0
    zadd k1 1 m|zincrby k1 1 m|zrem k1 m|zscore k1 m|zcard k1|zrank k1 m|zpopmin k1|zmpop 1 k1 min|bzpopmin k1 k2 0
    bzmpop 0 1 k1 min|zscan k1 0|zrange k1 0 1|zrangestore k1 k2 0 1|zrangestore k2 k1 0 1|zcount k1 0 1|zremrangebyrank k1 0 1
    zunion 2 k1 k2|zinter 1 k1|zdiff 1 k1|zintercard 1 k1|zunionstore k1 2 k2 k3|zinterstore k2 1 k1|zdiffstore k3 2 k1 k2
    del k1 k2|unlink k1|exists k1 k2|touch k1|type k1|rename k1 k2|rename k2 k1|renamenx k1 k2|renamenx k2 k1|copy k1 k2|copy k2 k1
    object encoding k1|object freq k1|memory usage k1|expire k1 1|persist k1|ttl k1|expiretime k1|watch k1 k2
    eval x 1 k1|eval x 2 k1 k2 k3|eval x 0|evalsha x 1 k2|eval_ro x 1 k1|evalsha_ro x 2 k1 k2|keys *|scan 0|randomkey|dbsize
    publish k1 m|subscribe k1 k2|psubscribe k1 k*|unsubscribe k3|punsubscribe k3|pubsub channels|client id|acl whoami|acl list|hello
";

#[test]
fn rights_on_keys_are_those_of_redis() {
    let both = Both::start();
    let [mut ours, mut theirs] = both.clients();
    for rules in [
        "+@all allchannels %R~*",
        "+@all allchannels %W~*",
        "+@all allchannels %RW~k1",
        "+@all allchannels %R~k1 %W~k2",
        "+@all allchannels %W~k1 %R~k2 ~k3",
        "+@all allkeys &k1",
        "+@all allkeys resetchannels &k*",
        "+@all",
        "allkeys allchannels +@read",
        "+@all -@admin ~k1 &k1 (+get %R~k2) (+@write %W~k2)",
        "allkeys",
    ] {
        for client in [&mut ours, &mut theirs] {
            let change: Vec<&str> = "acl setuser bob reset".split(' ').chain(rules.split(' ')).collect();
            assert_eq!(client.text(&change), "OK", "{rules}");
        }
        for command in WITH_KEYS.split(['|', '\n']).map(str::trim).filter(|command| !command.is_empty()) {
            let question: Vec<&str> = "acl dryrun bob".split(' ').chain(command.split(' ')).collect();
            assert_eq!(ours.text(&question), theirs.text(&question), "{rules}: {command}");
        }
    }
}

#[test]
fn rights_that_are_taken_are_gone_at_once() {
    let both = Both::start();
    let (mut admin, mut user) = (RawPair::connect(&both), RawPair::connect(&both));
    admin.agree_on("acl setuser bob on nopass allkeys +@all");
    user.agree_on("auth bob x\nset k v\nmulti\nget k\nset k w\nacl whoami");
    admin.agree_on("acl setuser bob -get resetkeys ~other");
    user.agree_on("exec\nget k\nset k v\nset other v");
    // One command of a transaction can take the rights of the next.
    user.agree_on("multi\nacl setuser bob -set\nset other v\nexec");
    admin.agree_on("acl setuser bob off");
    // Who is in stays in.
    user.agree_on("acl whoami\nauth bob x");
    // Another password locks nobody out who is in, and lets nobody else in.
    admin.agree_on("config set requirepass secret");
    admin.agree_on("acl whoami");
    RawPair::connect(&both).agree_on("acl whoami\nauth default secret\nacl whoami\nreset\nacl whoami");
    admin.agree_on("config set requirepass ''\nacl setuser default off");
    RawPair::connect(&both).agree_on("ping\nget a\nauth x\nauth default x\nhello 2 auth default x");
    admin.agree_on("ping\nacl setuser default on resetpass >new");
    RawPair::connect(&both).agree_on("ping\nauth new\nping");
    admin.agree_on("acl setuser default nopass -@all +ping");
    RawPair::connect(&both).agree_on("ping\nget a\nauth x\nreset\nhello nope");
}

#[test]
fn connections_end_with_their_users_and_channels() {
    let both = Both::start();
    for [mut admin, mut listener, mut other, mut writer] in
        [[both.server.address; 4], [both.redis.address; 4]].map(|addresses| addresses.map(Client::connect))
    {
        admin.call(&["acl", "setuser", "dave", "on", "nopass", "+@all", "~*", "&news", "&n*"]);
        for client in [&mut listener, &mut other, &mut writer] {
            assert_eq!(client.text(&["auth", "dave", "x"]), "OK");
        }
        assert_eq!(listener.text(&["subscribe", "news"]), "subscribe news 1");
        assert_eq!(other.text(&["psubscribe", "n*"]), "psubscribe n* 1");
        let shown = admin.text(&["client", "list"]);
        assert_eq!(shown.matches(" user=dave ").count(), 3, "{shown}");
        // What goes on may go on.
        assert_eq!(admin.text(&["acl", "setuser", "dave", "&more", "-get"]), "OK");
        assert_eq!(admin.text(&["acl", "setuser", "dave", "resetchannels", "&news"]), "OK");
        assert!(other.receive().is_err());
        assert_eq!(admin.text(&["publish", "news", "x"]), "1");
        assert_eq!(received(&mut listener), "message news x");
        assert_eq!(admin.text(&["acl", "setuser", "dave", "resetchannels"]), "OK");
        assert!(listener.receive().is_err());
        assert!(writer.text(&["get", "k"]).starts_with("-NOPERM"));
        assert_eq!(writer.text(&["set", "k", "v"]), "OK");
        assert_eq!(admin.text(&["client", "kill", "user", "default"]), "0");
        assert_eq!(admin.text(&["acl", "deluser", "dave"]), "1");
        assert!(writer.try_call(&["set", "k", "w"]).is_err());
        assert_eq!(admin.text(&["get", "k"]), "v");
        // A user that ends itself hears so.
        let mut own = Client::connect(admin.address());
        admin.call(&["acl", "setuser", "erin", "on", "nopass", "+@all", "~*"]);
        own.call(&["auth", "erin", "x"]);
        assert_eq!(own.text(&["acl", "deluser", "erin"]), "1");
        assert!(own.receive().is_err());
        until("a connection stays", || admin.text(&["client", "list"]).lines().count() == 1);
    }
}

/// Calls that are carried out together come before one that is not; until their replies are taken it waits.
#[test]
fn a_command_that_waits_has_the_rights_of_when_it_is_carried_out() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let [mut admin, mut client] = [server.client(), server.client()];
    admin.call(&["set", "film", &"x".repeat(8 << 20)]);
    admin.call(&["acl", "setuser", "alice", "on", "nopass", "+@all", "~*"]);
    assert_eq!(client.text(&["auth", "alice", "x"]), "OK");
    let mut pipeline = encode(&["get", "film"]).repeat(5);
    pipeline.extend(encode(&["keys", "*"]));
    client.send(&pipeline).unwrap();
    until("no reply waits to be taken", || {
        let list = admin.text(&["client", "list"]);
        list.lines().any(|line| line.contains(" user=alice ") && !line.contains(" omem=0 "))
    });
    assert_eq!(admin.text(&["acl", "setuser", "alice", "-keys"]), "OK");
    for _ in 0..5 {
        assert_eq!(received(&mut client).len(), 8 << 20);
    }
    assert!(received(&mut client).starts_with("-NOPERM"));
    assert!(server.stop().1);
}
