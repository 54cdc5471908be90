use super::*;
use crate::bench::report::axis::compact;

fn chart(points: Vec<Point>) -> Chart {
    Chart {
        title: "Rate <raw> & \"ours\"".to_owned(),
        caption: "made for a test".to_owned(),
        x: Axis::log_at("depth", [1.0, 16.0].into_iter(), compact),
        y: Axis::linear("gets/s", 0.0, 100.0, compact),
        series: vec![Series { name: "uring".to_owned(), look: Look::Ours(0), points }],
        references: vec![Reference { name: "fio".to_owned(), look: Look::Paper, y: 80.0 }],
    }
}

#[test]
fn points_lie_where_the_axes_say() {
    let html = chart(vec![
        Point { x: 1.0, y: 0.0, range: None },
        Point { x: 4.0, y: 50.0, range: Some((40.0, 60.0)) },
        Point { x: 16.0, y: 100.0, range: None },
    ])
    .to_html();
    let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
    let (middle_x, middle_y) = ((left + right) / 2.0, (TOP + bottom) / 2.0);
    let line = format!("M{left:.1} {bottom:.1}L{middle_x:.1} {middle_y:.1}L{right:.1} {TOP:.1}");
    assert!(html.contains(&line), "{line} in {html}");
    assert_eq!(html.matches("class='bar'").count(), 1);
}

#[test]
fn text_is_escaped_and_nothing_is_loaded_from_elsewhere() {
    let html = chart(vec![Point { x: 1.0, y: 1.0, range: None }]).to_html();
    assert!(html.contains("Rate &lt;raw&gt; &amp; &quot;ours&quot;"));
    assert!(!html.contains("http") && !html.contains("<script"));
}

#[test]
fn a_point_outside_the_horizontal_axis_is_left_out() {
    let html = chart(vec![Point { x: 1.0, y: 1.0, range: None }, Point { x: 64.0, y: 1.0, range: None }]).to_html();
    assert_eq!(html.matches("<circle").count(), 1 + 1, "one in the plot, one in the legend");
}
