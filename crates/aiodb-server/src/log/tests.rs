use super::*;

#[test]
fn of_many_slow_commands_some_are_told_and_all_are_counted() {
    let begun = Instant::now();
    let mut slow = Slow { begun, told: 0, untold: 0 };
    let told = (0..100).filter_map(|_| slow.next(begun)).collect::<Vec<_>>();
    assert_eq!(told, [0; MOST_SLOW as usize]);
    assert_eq!(slow.next(begun + TOGETHER), Some(100 - u64::from(MOST_SLOW)));
    assert_eq!(slow.next(begun + TOGETHER), Some(0));
}
