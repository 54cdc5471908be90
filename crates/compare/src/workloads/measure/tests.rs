use super::super::child::tests::figures;
use super::void;

#[test]
fn figures_are_void_when_answers_were_wrong_memory_was_swapped_or_nothing_was_done() {
    assert_eq!(void(&figures()), None);
    let wrong = super::Figures { wrong: 2, ..figures() };
    assert_eq!(void(&wrong).as_deref(), Some("2 answers were absent or wrong"));
    let swapped = super::Figures { swapped_bytes: 4096, ..figures() };
    assert!(void(&swapped).unwrap().contains("swap"));
    let idle = super::Figures { operations: 0, gets: 0, ..figures() };
    assert!(void(&idle).unwrap().contains("not one operation"));
}
