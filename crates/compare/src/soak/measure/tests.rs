use super::void;
use crate::soak::child::tests::totals;

#[test]
fn a_run_is_void_when_it_ended_early_was_swapped_or_put_nothing() {
    assert_eq!(void(Some(&totals())), None);
    assert!(void(None).unwrap().contains("early"));
    let swapped = super::Totals { swapped_bytes: 4096, ..totals() };
    assert!(void(Some(&swapped)).unwrap().contains("swap"));
    let idle = super::Totals { puts: 0, ..totals() };
    assert!(void(Some(&idle)).unwrap().contains("not one put"));
}
