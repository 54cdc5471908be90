use aiodb::{IndexKind, Options, TableOptions};

use super::*;

fn encoded(kind: u8, table: u32, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    for number in [table, key.len() as u32, value.len() as u32] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    [&bytes, key, value].concat()
}

fn with_table(test: impl FnOnce(&Db, &[Arc<Table>])) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { merge_operators: crate::store::merge_operators(), ..Options::default() };
    let db = Db::open(directory.path().join("store"), options).unwrap();
    let table = TableOptions { merge: Some("append".into()), ..IndexKind::Lmdb.into() };
    let table = db.create_table_with("t", table).unwrap();
    test(&db, &[Arc::new(table)]);
    db.close().unwrap();
}

#[test]
fn operations_take_effect_in_their_order() {
    with_table(|db, tables| {
        let bytes = [
            encoded(PUT, 0, b"a", b"1"),
            encoded(PUT, 0, b"b", b"2"),
            encoded(DELETE_RANGE, 0, b"", b"b"),
            encoded(APPEND, 0, b"b", b"3"),
            encoded(PUT, 0, b"c", b"4"),
            encoded(DELETE, 0, b"c", b""),
        ];
        write(db, tables, &bytes.concat(), Durability::None).unwrap();
        let values = tables[0].get_many(&[b"a", b"b", b"c"]).unwrap();
        assert_eq!(values, [None, Some(b"23".to_vec()), None]);
        for lone in bytes {
            write(db, tables, &lone, Durability::None).unwrap();
        }
        assert_eq!(tables[0].get_many(&[b"a", b"b", b"c"]).unwrap(), values, "one by one");
        write(db, tables, &[], Durability::Sync).unwrap();
    });
}

#[test]
fn what_is_no_batch_is_refused_and_changes_nothing() {
    with_table(|db, tables| {
        let good = [encoded(PUT, 0, b"key", b"value"), encoded(PUT, 0, b"key", b"value")].concat();
        let one = good.len() / 2;
        for end in (1..good.len()).filter(|end| *end != one) {
            let refused = write(db, tables, &good[..end], Durability::None);
            assert!(matches!(refused, Err(Failure::Argument(_))), "cut at {end}");
        }
        for bad in [encoded(0, 0, b"k", b"v"), encoded(9, 0, b"k", b"v"), encoded(PUT, 1, b"k", b"v")] {
            let both = [bad.clone(), encoded(PUT, 0, b"k", b"v")].concat();
            for bytes in [bad, both] {
                assert!(matches!(write(db, tables, &bytes, Durability::None), Err(Failure::Argument(_))));
            }
        }
        assert_eq!(tables[0].iterate().unwrap().count(), 0);
    });
}
