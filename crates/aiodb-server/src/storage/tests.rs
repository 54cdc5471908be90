use StorageMode::{Auto, Disk, Memory};

use super::*;

fn applied(text: &str, databases: &mut [TableModes]) {
    Wish::parse(Side::Keys, text, databases.len() as u16).unwrap().apply(databases);
}

#[test]
fn a_setting_says_modes_of_all_databases_or_of_some() {
    let mut databases = [TableModes { keys: Auto, values: Memory }; 4];
    for (text, keys, shown_as) in [
        ("memory", [Memory; 4], "memory"),
        ("1:disk 3:DISK", [Memory, Disk, Memory, Disk], "memory 1:disk 3:disk"),
        ("auto 0:memory", [Memory, Auto, Auto, Auto], "memory 1:auto 2:auto 3:auto"),
        ("3:disk auto", [Auto; 4], "auto"),
    ] {
        applied(text, &mut databases);
        assert_eq!(databases, keys.map(|keys| TableModes { keys, values: Memory }), "{text}");
        assert_eq!(shown(Side::Keys, &databases), shown_as);
        let mut others = [TableModes::default(); 4];
        applied(shown_as, &mut others);
        assert_eq!(shown(Side::Keys, &others), shown_as, "what is shown can be given");
    }
    assert_eq!(shown(Side::Values, &databases), "memory");
}

#[test]
fn what_is_no_mode_of_a_database_is_refused() {
    for (text, reason) in [
        ("", "auto, memory or disk"),
        ("  ", "auto, memory or disk"),
        ("ram", "auto, memory or disk"),
        ("auto 1:ram", "auto, memory or disk"),
        ("4:disk", "there is no database '4', of 4"),
        ("-1:disk", "there is no database '-1'"),
        (":disk", "there is no database ''"),
        ("1:2:disk", "auto, memory or disk"),
    ] {
        let refused = Wish::parse(Side::Values, text, 4).unwrap_err();
        assert!(refused.contains(reason), "{text}: {refused}");
    }
}
