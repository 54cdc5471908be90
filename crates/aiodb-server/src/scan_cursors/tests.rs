use super::*;

#[test]
fn cursors_are_doubles_too() {
    for _ in 0..1000 {
        let cursors = ScanCursors::new();
        for name in ["a", "b", "c"] {
            let cursor = cursors.remember(name.into());
            assert_eq!(cursor as f64 as u64, cursor);
            assert!(cursor < 1 << 53, "{cursor}");
            assert_eq!(cursors.find(cursor).unwrap(), name);
        }
    }
}
