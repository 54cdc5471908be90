use super::*;

/// Whoever has seen a script run may come to stop it when another one runs.
#[test]
fn a_stop_reaches_no_other_script() {
    let stops = Stops::default();
    assert!(!stops.is_stopped());
    assert_eq!(stops.running(), None);
    stops.turn();
    let first = stops.running().unwrap();
    assert!(!stops.is_stopped());
    stops.turn();
    assert_eq!(stops.running(), None);
    stops.stop(first);
    assert!(!stops.is_stopped(), "none runs");
    stops.turn();
    assert!(!stops.is_stopped(), "another one runs");
    let second = stops.running().unwrap();
    stops.stop(second);
    // One that is late takes nothing back.
    stops.stop(first);
    assert!(stops.is_stopped());
    stops.turn();
    assert!(!stops.is_stopped());
}
