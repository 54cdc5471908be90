use super::*;

#[test]
fn scores_are_printed_as_c_does() {
    let texts = [
        (0.0, "0"),
        (0.1, "0.10000000000000001"),
        (3e10, "30000000000"),
        (1e21, "1e+21"),
        (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
        (1e-7, "9.9999999999999995e-08"),
        (-1.5, "-1.5"),
        (0.0001, "0.0001"),
        (f64::NEG_INFINITY, "-inf"),
    ];
    for (score, text) in texts {
        assert_eq!(score_text(score), text);
    }
}

#[test]
fn scores_are_read() {
    let texts = [("1", 1.0), ("+.5", 0.5), ("inf", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY), ("-0", 0.0)];
    for (text, score) in texts {
        assert_eq!(parse_score(text.as_bytes()), Some(score), "{text}");
    }
    for text in ["", "x", "nan", "1e400", "1e-400", " 1", "1 "] {
        assert_eq!(parse_score(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_order_of_bytes_is_that_of_scores() {
    let scores = [f64::NEG_INFINITY, -1e300, -1.5, -1.0, -1e-300, 0.0, 1e-300, 1.0, 1.5, 1e300, f64::INFINITY];
    assert!(scores.map(|score| order_of(score).to_be_bytes()).is_sorted());
    assert!(scores.iter().all(|score| score_of(order_of(*score)) == *score));
}
