use super::Batch;

#[test]
fn records_come_back_in_order_and_are_forgotten_together() {
    let mut batch = Batch::default();
    for round in 0..2 {
        batch.clear();
        batch.push(b"key", b"value");
        batch.push(b"k", b"");
        batch.push(b"another", b"v");
        let records: Vec<(&[u8], &[u8])> = batch.records().collect();
        assert_eq!(records, [(&b"key"[..], &b"value"[..]), (b"k", b""), (b"another", b"v")], "round {round}");
        assert_eq!(batch.len(), 3);
    }
}
