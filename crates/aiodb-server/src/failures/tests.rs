use std::io::ErrorKind;

use super::*;
use crate::refusal::WRONG_TYPE;

fn full() -> Refusal {
    Refusal::Engine(aiodb::Error::DiskFull { path: "store".into() })
}

fn unread() -> Refusal {
    let (path, reason) = ("segment".into(), "an error of the device".to_string());
    Refusal::Engine(aiodb::Error::Io { action: "read", path, kind: ErrorKind::Other, reason })
}

fn line(refusal: Refusal) -> Vec<u8> {
    refusal.line().to_vec()
}

#[test]
fn the_first_failure_refuses_writes_until_it_was_asked_for() {
    let failures = Failures::default();
    failures.watch();
    assert!(failures.check().is_ok() && failures.take().is_none());
    assert_eq!(failures.note(Ok(1)).unwrap(), 1);
    let first = line(failures.note::<()>(Err(unread())).unwrap_err());
    assert_eq!(first, line(unread()));
    assert_eq!(line(failures.check().unwrap_err()), first);
    assert_eq!(line(failures.note::<()>(Err(full())).unwrap_err()), first);
    assert_eq!(line(Refusal::Engine(failures.take().expect("a failure"))), first);
    assert!(failures.check().is_ok() && failures.take().is_none());
}

#[test]
fn what_is_about_the_command_is_no_failure_and_a_server_notes_none() {
    let failures = Failures::default();
    assert_eq!(line(failures.note::<()>(Err(full())).unwrap_err()), line(full()));
    assert!(failures.check().is_ok() && failures.take().is_none());
    failures.watch();
    let too_long = Refusal::Engine(aiodb::Error::KeyLength { length: 70_000, max: 65_536 });
    for refusal in [WRONG_TYPE, too_long] {
        assert_eq!(line(failures.note::<()>(Err(refusal.clone())).unwrap_err()), line(refusal));
        assert!(failures.check().is_ok() && failures.take().is_none());
    }
}
