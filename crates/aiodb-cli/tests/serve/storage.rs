//! Memory and storage modes of a store that is being served.

use std::path::Path;

use crate::client::{Client, until};
use crate::operations::info;
use crate::server::{Server, aiodb, output_of};

const MIB: u64 = 1 << 20;

/// Memory of the machine.
fn machine_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() << 10
}

/// What CONFIG GET says of a setting.
fn setting(client: &mut Client, name: &str) -> String {
    let text = client.text(&["config", "get", name]);
    text.strip_prefix(name).unwrap_or_else(|| panic!("{name} is not in {text}")).trim().into()
}

fn number(client: &mut Client, field: &str) -> u64 {
    info(client, field).parse().unwrap()
}

/// A part of what INFO says of a database.
fn of_database(client: &mut Client, database: u16, part: &str) -> String {
    let text = info(client, &format!("aiodb_db{database}"));
    let value = text.split(',').find_map(|each| each.strip_prefix(part)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("{part} is not in {text}")).into()
}

#[test]
fn memory_is_changed_while_the_server_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    assert_eq!(client.text(&["set", "a", "b"]), "OK");
    assert_eq!(setting(&mut client, "maxmemory"), "0");
    let usual = number(&mut client, "aiodb_memory_budget_bytes");
    assert_eq!(client.text(&["config", "set", "maxmemory", "512mb"]), "OK");
    assert_eq!(setting(&mut client, "maxmemory"), (512 * MIB).to_string());
    assert_eq!(number(&mut client, "maxmemory"), 512 * MIB);
    let parts = [number(&mut client, "aiodb_cache_bytes"), number(&mut client, "aiodb_memory_budget_bytes")];
    assert_eq!(parts, [128 * MIB, (512 - 96 - 64) * MIB], "as a start with it divides memory");
    for wrong in ["100mb", "x", "-1", ""] {
        let refused = client.text(&["config", "set", "maxmemory", wrong]);
        let reason =
            "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be 0, or at least 256mb";
        assert!(refused.starts_with(reason), "{wrong}: {refused}");
    }
    assert_eq!(setting(&mut client, "maxmemory"), (512 * MIB).to_string());
    assert_eq!(client.text(&["config", "set", "maxmemory", &(3 * machine_bytes()).to_string()]), "OK");
    assert!(info(&mut client, "aiodb_warning_0").contains("this process may have"));
    assert!(number(&mut client, "aiodb_memory_budget_bytes") <= machine_bytes(), "no more than there is");
    assert_eq!(client.text(&["config", "set", "maxmemory", "0"]), "OK");
    assert_eq!(number(&mut client, "aiodb_memory_budget_bytes"), usual);
    assert!(!client.text(&["info", "storage"]).contains("aiodb_warning"));
    assert_eq!(client.text(&["get", "a"]), "b");
    let (said, went_well) = server.stop();
    let warnings = said.lines().filter(|line| line.contains("maxmemory is ") && line.contains("may be killed")).count();
    assert!(went_well && warnings == 1, "{said}");
}

#[test]
fn more_memory_than_there_is_is_a_warning_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = aiodb();
    let memory = (3 * machine_bytes()).to_string();
    command.arg("serve").arg(dir.path().join("store")).args([
        "--port",
        "0",
        "--cache-bytes",
        "0",
        "--maxmemory",
        &memory,
    ]);
    let server = Server::run(command);
    assert!(info(&mut server.client(), "aiodb_warning_0").contains("this process may have"));
    assert!(server.stop().1);
}

#[test]
fn a_cache_of_a_chosen_size_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--cache-bytes", "4194304"]);
    let mut client = server.client();
    assert_eq!(client.text(&["config", "set", "maxmemory", "256mb"]), "OK");
    let parts = [number(&mut client, "aiodb_cache_bytes"), number(&mut client, "aiodb_memory_budget_bytes")];
    assert_eq!(parts, [4 * MIB, (256 - 3 - 32) * MIB]);
    assert!(server.stop().1);
}

/// What the settings of modes say, those of keys first.
fn modes(client: &mut Client) -> [String; 2] {
    ["keys-mode", "values-mode"].map(|name| setting(client, name))
}

#[test]
fn modes_of_databases_are_changed_while_the_server_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = Server::start(&store, &["--databases", "4"]);
    let mut client = server.client();
    assert_eq!(modes(&mut client), ["auto", "auto"]);
    assert_eq!(client.text(&["config", "set", "keys-mode", "memory", "values-mode", "MEMORY"]), "OK");
    assert_eq!(modes(&mut client), ["memory", "memory"]);
    for key in 0..100 {
        assert_eq!(client.text(&["set".to_string(), format!("key:{key}"), "value".repeat(100)]), "OK");
    }
    assert_eq!(of_database(&mut client, 0, "keys_mode"), "memory");
    until("values do not come to memory", || {
        of_database(&mut client, 0, "values_in_memory").parse().is_ok_and(|share: f64| share > 0.9)
    });
    let shares = ["aiodb_keys_in_memory", "aiodb_values_in_memory"].map(|name| info(&mut client, name));
    // Of all databases: each table counts the records of all that no run has yet.
    let is_share = |share: &String| share.parse().is_ok_and(|share: f64| share > 0.0 && share <= 1.0);
    assert!(shares.iter().all(is_share), "{shares:?}");
    // Both at once, in either order, for there is no way from one to the other.
    let refused = client.text(&["config", "set", "keys-mode", "disk"]);
    let reason = "-ERR CONFIG SET failed (possibly related to argument 'keys-mode') - keys = disk: ";
    assert!(refused.starts_with(reason) && refused.contains("before it knows of a value in memory"), "{refused}");
    assert_eq!(modes(&mut client), ["memory", "memory"]);
    assert_eq!(client.text(&["config", "set", "keys-mode", "disk", "values-mode", "auto"]), "OK");
    assert_eq!(
        client.text(&["config", "set", "values-mode", "auto 2:memory", "keys-mode", "auto 1:disk 3:memory"]),
        "OK"
    );
    assert_eq!(modes(&mut client), ["auto 1:disk 3:memory", "auto 2:memory"]);
    assert_eq!(of_database(&mut client, 1, "keys_mode"), "disk");
    for (wrong, reason) in
        [("ram", "auto, memory or disk"), ("4:disk", "there is no database '4'"), ("", "auto, memory or disk")]
    {
        let refused = client.text(&["config", "set", "values-mode", wrong]);
        assert!(refused.starts_with("-ERR CONFIG SET failed") && refused.contains(reason), "{wrong}: {refused}");
    }
    // All of them or none.
    for words in [
        &["maxmemory", "512mb", "keys-mode", "disk", "slowlog-max-len", "7"][..],
        &["keys-mode", "memory", "maxmemory", "1mb"],
        &["values-mode", "disk", "maxclients", "x"],
    ] {
        let refused = client.text(&[&["config", "set"][..], words].concat());
        assert!(refused.starts_with("-ERR CONFIG SET failed"), "{words:?}: {refused}");
        assert_eq!(modes(&mut client), ["auto 1:disk 3:memory", "auto 2:memory"], "{words:?}");
        assert_eq!(
            (setting(&mut client, "maxmemory"), setting(&mut client, "slowlog-max-len")),
            ("0".into(), "128".into())
        );
    }
    assert_eq!(client.text(&["strlen", "key:7"]), "500");
    server.signal("KILL");
    server.wait();
    let server = Server::start(&store, &["--databases", "4"]);
    let mut client = server.client();
    assert_eq!(modes(&mut client), ["auto 1:disk 3:memory", "auto 2:memory"], "the store keeps them");
    // The tables of their collections are made now.
    for database in ["2", "3"] {
        assert_eq!(client.text(&["select", database]), "OK");
        assert_eq!(client.text(&["rpush", "list", "x"]), "1");
    }
    assert_eq!(client.text(&["config", "set", "keys-mode", "2:memory"]), "OK");
    assert!(server.stop().1);
    let wanted = [
        ("db1", "disk", "auto"),
        ("db2", "memory", "memory"),
        ("db2.elements", "memory", "memory"),
        ("db3.elements", "memory", "auto"),
    ];
    wanted.iter().for_each(|(name, keys, values)| assert_eq!(modes_of_table(&store, name), [*keys, *values], "{name}"));
}

/// Modes of a table of a store that nobody has open, those of keys first.
fn modes_of_table(store: &Path, name: &str) -> [String; 2] {
    let mut command = aiodb();
    command.arg("tables").arg(store).arg("--json");
    let tables: serde_json::Value = serde_json::from_slice(&output_of(command).stdout).unwrap();
    let table = tables.as_array().unwrap().iter().find(|table| table["name"] == name);
    let table = table.unwrap_or_else(|| panic!("{name} is not in {tables}"));
    ["keys_mode", "values_mode"].map(|part| table[part].as_str().unwrap().into())
}

/// What nobody can know yet is said as Redis says such things.
#[test]
fn info_says_how_full_memory_and_disk_are() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    assert_eq!(info(&mut client, "aiodb_memory_full_seconds"), "-1");
    assert_eq!(info(&mut client, "aiodb_disk_full_seconds"), "-1");
    let fields = ["aiodb_memory_budget_bytes", "aiodb_memory_used_bytes"].map(|field| number(&mut client, field));
    assert!(fields[0] >= 64 * MIB && fields[1] > 0, "{fields:?}");
    assert_eq!(["aiodb_runs_above_bound", "aiodb_merge_debt_bytes"].map(|field| number(&mut client, field)), [0, 0]);
    assert_eq!(client.text(&["set", "a", "b"]), "OK");
    assert_eq!(of_database(&mut client, 0, "keys_in_memory"), "1.0000");
    assert!(server.stop().1);
}
