//! A planted bug that no test hunts shows nothing.

use std::collections::BTreeSet;

use super::Bug;

/// The names between a line of this file's source and the brace that closes what begins there.
fn names_of_enum() -> BTreeSet<String> {
    let (_, body) = include_str!("../planted.rs").split_once("pub enum Bug {").expect("the bugs are an enum");
    let (body, _) = body.split_once("\n}").expect("the enum ends");
    let names = body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    names.map(|line| line.trim_end_matches(',').trim_end_matches(" = 1").to_string()).collect()
}

#[test]
fn every_planted_bug_has_a_finder() {
    let listed: Vec<String> = Bug::ALL.iter().chain(&Bug::OF_THREADS).map(|bug| format!("{bug:?}")).collect();
    let known: BTreeSet<String> = listed.iter().cloned().collect();
    assert_eq!(known, names_of_enum(), "a bug is in `Bug::ALL`, in `Bug::OF_THREADS`, or in both");
    for list in [&Bug::ALL[..], &Bug::OF_THREADS] {
        let once: BTreeSet<String> = list.iter().map(|bug| format!("{bug:?}")).collect();
        assert_eq!(once.len(), list.len(), "and twice in neither");
    }
    let makefile = include_str!("../../../../Makefile");
    for bug in Bug::OF_THREADS {
        assert!(
            makefile.contains(&format!("{bug:?}:interleavings")),
            "`RACES` in the Makefile has no test for {bug:?}"
        );
    }
}
