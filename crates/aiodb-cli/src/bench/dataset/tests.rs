use std::collections::HashSet;

use super::*;

const DATA: Dataset = Dataset { pairs: 10_000, value_bytes: 4096 };

#[test]
fn keys_are_distinct_and_in_no_order() {
    let keys: Vec<_> = (0..DATA.pairs).map(|number| DATA.key(number)).collect();
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
    let ascending = keys.windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((4_000..6_000).contains(&ascending), "{ascending} of 10,000 neighbours ascend");
}

#[test]
fn a_value_is_known_by_its_number_alone() {
    let mut value = vec![0; DATA.value_bytes];
    DATA.fill_value(7, &mut value);
    assert!(DATA.is_value(7, &value));
    assert!(!DATA.is_value(8, &value), "another pair's value");
    assert!(!DATA.is_value(7, &value[..4088]), "a value cut short");
    value[4095] ^= 1;
    assert!(!DATA.is_value(7, &value), "a damaged end");
}
