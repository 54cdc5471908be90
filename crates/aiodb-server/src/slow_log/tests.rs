use super::*;
use crate::acl::{Rules, User};
use crate::client::Clients;

fn kept_of(arguments: &[&str]) -> Vec<String> {
    let name = if arguments[0] == "config" { "config|set" } else { arguments[0] };
    let arguments: Vec<_> = arguments.iter().map(|argument| Bytes::copy_from_slice(argument.as_bytes())).collect();
    let kept = kept(Sent { name, arguments: &arguments });
    kept.iter().map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

#[test]
fn little_is_kept_of_long_commands_and_nothing_of_passwords() {
    let (exact, long) = ("x".repeat(128), "x".repeat(130));
    let kept = kept_of(&["set", &exact, &long]);
    assert_eq!((&*kept[1], &*kept[2]), (&*exact, &*format!("{exact}... (2 more bytes)")));
    let many = vec!["del"; 40];
    let kept = kept_of(&many);
    assert_eq!((kept.len(), &*kept[31]), (32, "... (9 more arguments)"));
    assert_eq!(kept_of(&many[..32]).len(), 32);
    assert_eq!(kept_of(&["auth", "me", "secret"]), ["auth", "(redacted)", "(redacted)"]);
    assert_eq!(kept_of(&["config", "set", "requirepass", "secret"]), ["config", "set", "(redacted)", "(redacted)"]);
}

#[test]
fn the_last_ones_stay() {
    let (clients, log) = (Clients::default(), SlowLog::default());
    let address = "127.0.0.1:1".parse().unwrap();
    let user = User::new("someone".into(), Rules::default());
    let client = clients.add(address, address, 0, &user, 1).unwrap();
    let arguments = [Bytes::from_static(b"ping")];
    let sent = Sent { name: "ping", arguments: &arguments };
    for _ in 0..5 {
        log.add(&client, sent, Duration::from_micros(3), 7, 3);
    }
    let ids = |most| log.latest(most).iter().map(|entry| entry.id).collect::<Vec<_>>();
    assert_eq!((ids(2), ids(9), log.len()), (vec![4, 3], vec![4, 3, 2], 3));
    log.clear();
    log.add(&client, sent, Duration::ZERO, 7, 0);
    assert_eq!(log.len(), 0);
}
