use super::Course;
use crate::points::tests::points;

#[test]
fn tenths_are_of_points_and_rates_are_weighed_by_time() {
    let mut run = points(&[100.0; 20]);
    for (point, rate) in run.iter_mut().zip([400.0, 200.0]) {
        point.puts_per_s = rate;
    }
    run[7].puts_per_s = 10.0;
    run[18].puts_per_s = 60.0;
    run[19].puts_per_s = 20.0;
    run[19].seconds = 30.0;
    let course = Course::of(&run).unwrap();
    assert_eq!((course.first_tenth, course.last_tenth), (300.0, (60.0 * 10.0 + 20.0 * 30.0) / 40.0));
    assert_eq!(course.worst, 10.0);
    let puts = 10.0 * (400.0 + 200.0 + 15.0 * 100.0 + 10.0 + 60.0) + 30.0 * 20.0;
    assert!((course.mean - puts / (19.0 * 10.0 + 30.0)).abs() < 1e-9);
}

#[test]
fn a_short_run_has_one_point_for_everything() {
    let course = Course::of(&points(&[7.0])).unwrap();
    assert_eq!(course, Course { mean: 7.0, first_tenth: 7.0, last_tenth: 7.0, worst: 7.0 });
    assert_eq!(Course::of(&[]), None);
}
