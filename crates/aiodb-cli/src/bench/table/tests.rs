use super::*;

#[test]
fn words_stand_left_and_numbers_right() {
    let mut table = Table::new(&["index", "gets/s"]);
    table.push(vec!["lmdb".to_owned(), whole(91_234.4)]);
    table.push(vec!["hash table".to_owned(), NONE.to_owned()]);
    assert_eq!(table.to_terminal(), "index       gets/s\nlmdb        91,234\nhash table       –\n");
}

#[test]
fn figures_are_written_for_people() {
    assert_eq!([whole(0.4), whole(999.0), whole(1_000.0), whole(-1_234_567.0)], ["0", "999", "1,000", "-1,234,567"]);
    assert_eq!([decimal(1.005, 1), decimal(None, 2)], ["1.0", NONE]);
    assert_eq!([bytes(0), bytes(512), bytes(1 << 20), bytes(2_900_000_000)], ["0 B", "512 B", "1 MiB", "2.7 GiB"]);
}
