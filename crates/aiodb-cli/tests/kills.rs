//! The command is killed while six writers are at work, and what it had acknowledged is there. `make crash` does this
//! hundreds of times.

use aiodb_crash::process::Aiodb;

const SEED: u64 = 1;
const KILLS: u64 = 12;

#[test]
fn what_was_acknowledged_survives_kills() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let aiodb = Aiodb::new(env!("CARGO_BIN_EXE_aiodb"));
    let report = aiodb_crash::kill::run(&aiodb, directory.path(), SEED, KILLS);
    let report = report.unwrap_or_else(|what| panic!("{what}"));
    println!("{report:?}");
    assert!(report.kills >= KILLS && report.checks > 0);
    assert!(report.acknowledged > 0, "the processes lived long enough to write");
}
