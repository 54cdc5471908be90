use super::{Place, Reply, in_turn, serve, void};
use crate::engine::{EngineSpec, Resources};
use crate::soak;
use serde_json::json;
use std::path::PathBuf;

#[test]
fn replies_survive_the_pipe() {
    let replies: [Reply<f64, u64>; 4] = [
        Reply::Opened { settings: json!({ "version": "1" }), memory_limit_bytes: Some(1 << 20) },
        Reply::Measured(3.5),
        Reply::Finished(7),
        Reply::Failed("no room".to_owned()),
    ];
    for reply in replies {
        let text = serde_json::to_string(&reply).unwrap();
        let read: Reply<f64, u64> = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{reply:?}"));
    }
}

#[test]
fn an_unknown_engine_is_a_reply_and_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let store: PathBuf = directory.path().join("store");
    let place = Place { engine: "nobody".to_owned(), directory: store.clone(), memory_bytes: 1 << 20, group: None };
    serve(&place, None, Resources::default(), |_, _| -> crate::error::Result<()> { panic!("nothing was opened") })
        .unwrap();
    assert!(!store.exists());
}

#[test]
fn each_round_has_all_engines_and_begins_with_another_one() {
    let engines: Vec<EngineSpec> = soak::settings::all().into_iter().take(3).collect();
    let names = |round| in_turn(&engines, round).map(EngineSpec::to_string).collect::<Vec<_>>();
    assert_eq!(names(1), ["aiodb-lsm", "aiodb-lmdb", "aiodb-hash"]);
    assert_eq!(names(2), ["aiodb-lmdb", "aiodb-hash", "aiodb-lsm"]);
    assert_eq!(names(4), names(1));
}

#[test]
fn a_process_without_totals_is_void() {
    assert!(void(None::<&u64>, |_| None).unwrap().contains("early"));
    assert_eq!(void(Some(&7), |_| None), None);
    assert_eq!(void(Some(&7), |totals| Some(format!("{totals} is wrong"))).unwrap(), "7 is wrong");
}
