use super::{ChurnPoint, ChurnTotals};
use crate::points::tests::points;
use crate::runs::Reply;
use crate::totals::tests::totals;

/// A run in points of ten seconds with these rates.
pub(crate) fn churn_points(rates: &[f64]) -> Vec<ChurnPoint> {
    let space = |point| ChurnPoint { point, directory_bytes: 60_000, most_directory_bytes: 70_000 };
    points(rates).into_iter().map(space).collect()
}

/// A thousand overwrites of 40 records of 1,000 bytes.
pub(crate) fn churn_totals() -> ChurnTotals {
    ChurnTotals {
        totals: totals(),
        load_seconds: 1.0,
        live_bytes: 40_000,
        user_bytes: 1_000_000,
        directory_bytes_before: 50_000,
        most_directory_bytes: 80_000,
        checked_records: 40,
    }
}

#[test]
fn replies_survive_the_pipe() {
    let text = serde_json::to_string(&Reply::<_, ChurnTotals>::Measured(&churn_points(&[3.5])[0])).unwrap();
    let Reply::<ChurnPoint, ChurnTotals>::Measured(read) = serde_json::from_str(&text).unwrap() else {
        panic!("{text}")
    };
    assert_eq!(read, churn_points(&[3.5])[0]);
    let text = serde_json::to_string(&Reply::<ChurnPoint, _>::Finished(churn_totals())).unwrap();
    let Reply::<ChurnPoint, ChurnTotals>::Finished(read) = serde_json::from_str(&text).unwrap() else {
        panic!("{text}")
    };
    assert_eq!(read, churn_totals());
}
