use aiodb::Options;

use super::*;

#[test]
fn both_tables_of_a_database_have_the_modes_of_its_keys() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Options::default()).unwrap();
    let tables = DatabaseTables::open(&db, 0).unwrap();
    assert_eq!(tables.elements_or_made().unwrap().modes(), TableModes::default());
    let modes = TableModes { keys: StorageMode::Disk, values: StorageMode::Disk };
    // As a user may with the command, while no server has the store.
    db.set_table_modes("db0", modes).unwrap();
    let tables = DatabaseTables::open(&db, 0).unwrap();
    assert_eq!(tables.elements().unwrap().modes(), modes);
    db.close().unwrap();
}
