use super::*;

#[test]
fn threads_are_summed() {
    let work = |thread: usize, _start| {
        let mut tally = Tally::untimed(100, 110 + thread as u64, Duration::from_secs(2));
        tally.latency_ns.record(1_000_000).expect("recorded");
        Ok(tally)
    };
    let round = run(3, None, Ok, work).expect("no thread failed");
    assert_eq!(round.operations_per_s, 150.0);
    assert_eq!(round.finished, 110 + 111 + 112);
    assert_eq!(round.latency_ns.len(), 3);
    assert!((latency_us(&round.latency_ns, 0.5) - 1000.0).abs() < 10.0, "within two significant digits");
    assert_eq!(round.disk, None);
}

#[test]
fn a_thread_that_cannot_start_ends_the_round_with_its_error() {
    let prepare = |thread| if thread == 1 { Err(CliError::failed("no ring".to_owned())) } else { Ok(()) };
    let work = |(), _start| Ok(Tally::untimed(1, 1, Duration::from_secs(1)));
    let error = run(2, None, prepare, work).err().expect("one thread failed");
    assert!(error.to_string().contains("no ring"), "{error}");
}
