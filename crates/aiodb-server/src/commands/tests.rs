use std::collections::HashSet;

use super::*;
use crate::command::Run;

#[test]
fn each_command_stands_once() {
    let table = table();
    let names: Vec<_> = table.commands().iter().map(|command| command.name).collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    for command in table.commands() {
        assert!(table.find(command.name.to_uppercase().as_bytes()).is_some(), "{}", command.name);
        let has_more = !command.subcommands.is_empty() && command.name != "command";
        assert_eq!(matches!(command.run, Run::Container), has_more, "{}", command.name);
        for subcommand in command.subcommands {
            assert!(subcommand.name.starts_with(&format!("{}|", command.name)), "{}", subcommand.name);
        }
    }
}

#[test]
fn what_writes_says_so() {
    let table = table();
    for command in table.commands().iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands)) {
        assert_eq!(command.is_write, command.has_flag("write"), "{}: `write` is the first flag", command.name);
    }
    for command in table.commands() {
        let flags = [command.is_write, command.has_flag("readonly")];
        let has_keys = command.keys.first > 0 && command.name != "watch";
        assert!(flags.iter().filter(|flag| **flag).count() <= 1, "{}", command.name);
        assert!(!has_keys || flags.contains(&true), "{}", command.name);
    }
}

#[test]
fn the_document_has_every_command() {
    let document = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/server.md")).unwrap();
    let row = |line: &&str| line.starts_with('|') && line.contains("`PING`") || line.matches("` `").count() >= 3;
    let rows: String = document.lines().filter(row).collect();
    let shown: HashSet<_> = rows.split('`').skip(1).step_by(2).map(str::to_lowercase).collect();
    let table = table();
    let every = table.commands().iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands));
    let names: HashSet<_> = every.map(|command| command.name.rsplit('|').next().unwrap().to_string()).collect();
    let missing: Vec<_> = names.difference(&shown).collect();
    let extra: Vec<_> = shown.difference(&names).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, not there {extra:?}");
}
