//! Redis's own tools.

use std::process::Command;

use crate::server::Server;

fn run(program: &str, server: &Server, arguments: &[&str]) -> String {
    let port = server.address.port().to_string();
    let output = Command::new(program).args(["-p", &port]).args(arguments).output();
    let output = output.expect("redis-tools are installed: scripts/install-packages.sh redis-server");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn redis_cli_and_redis_benchmark_work() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    assert_eq!(run("redis-cli", &server, &["set", "apple", "red"]), "OK\n");
    assert_eq!(run("redis-cli", &server, &["-3", "get", "apple"]), "red\n");
    assert!(run("redis-cli", &server, &["-3", "info", "server"]).contains("redis_version:7.0.15"));
    assert_eq!(run("redis-cli", &server, &["--scan"]), "apple\n");
    let tests = "ping,set,get,incr,mset";
    for arguments in [&["-n", "200", "-t", tests, "--csv"][..], &["-n", "500", "-P", "16", "-t", tests, "--csv"]] {
        let figures = run("redis-benchmark", &server, arguments);
        assert!(figures.contains("\"SET\"") && figures.contains("\"INCR\""), "{figures}");
    }
    let counted: u64 = run("redis-cli", &server, &["get", "counter:__rand_int__"]).trim().parse().unwrap();
    // The last pipeline is not cut short.
    assert!((700..720).contains(&counted), "{counted}");
}
