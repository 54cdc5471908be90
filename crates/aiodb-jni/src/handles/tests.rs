use super::*;

#[test]
fn a_closed_handle_is_an_error_and_its_number_never_comes_back() {
    let handles = Handles::new("thing");
    let first = handles.insert("first").unwrap();
    let in_use = handles.get(first).unwrap();
    assert!(handles.remove(first).is_some());
    assert!(handles.remove(first).is_none(), "closing twice does nothing");
    assert!(matches!(handles.get(first), Err(Failure::Closed { kind: "thing" })));
    assert_eq!(*in_use, "first", "who uses it keeps it");
    assert_ne!(handles.insert("second").unwrap(), first);
    for never_given in [0, -1, i64::MAX] {
        assert!(handles.get(never_given).is_err());
    }
}

#[test]
fn forgotten_objects_are_bounded() {
    let handles = Handles::new("thing");
    for _ in 0..MAX_OPEN {
        handles.insert(()).unwrap();
    }
    assert!(matches!(handles.insert(()), Err(Failure::TooManyOpen { .. })));
    handles.remove(1);
    handles.insert(()).unwrap();
}
