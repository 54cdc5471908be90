use super::*;

#[derive(Default)]
struct Told {
    looks: u64,
    stretches: Vec<Stretch>,
}

impl Watcher for Told {
    fn look(&mut self) {
        self.looks += 1;
    }

    fn stretch(&mut self, stretch: Stretch) {
        self.stretches.push(stretch);
    }
}

/// A run that no clock ends.
const PLAN: Plan =
    Plan { writers: 3, writes: 1000, longest: Duration::from_secs(3600), stretch: Duration::from_secs(3600) };

#[test]
fn every_number_is_written_once_and_a_short_run_is_one_stretch() {
    let (sum, mut told) = (AtomicU64::new(0), Told::default());
    let writer = || {
        |number| {
            let begin = Instant::now();
            sum.fetch_add(number, Ordering::Relaxed);
            Ok(begin)
        }
    };
    let total = run(PLAN, None, writer, &mut told).expect("no writer fails");
    assert_eq!((total.finished, sum.load(Ordering::Relaxed)), (1000, 999 * 1000 / 2));
    let [stretch] = &told.stretches[..] else { panic!("{} stretches", told.stretches.len()) };
    assert_eq!((stretch.finished, stretch.latencies_ns.len()), (1000, 1000));
    assert!((stretch.writes_per_s * stretch.seconds - 1000.0).abs() < 1e-6);
    assert_eq!(stretch.disk, None);
}

#[test]
fn stretches_follow_each_other_until_the_time_is_up() {
    let mut told = Told::default();
    let writer = || {
        |_| {
            let begin = Instant::now();
            thread::sleep(Duration::from_millis(1));
            Ok(begin)
        }
    };
    let plan =
        Plan { writes: u64::MAX, longest: Duration::from_millis(500), stretch: Duration::from_millis(150), ..PLAN };
    let total = run(plan, None, writer, &mut told).expect("no writer fails");
    // A busy machine may sleep past the end of several.
    assert!((1..=4).contains(&told.stretches.len()), "{} stretches", told.stretches.len());
    assert!(told.looks >= 1, "the watcher has looked");
    assert!(told.stretches.is_sorted_by_key(|stretch| stretch.finished));
    assert!(told.stretches.is_sorted_by(|one, next| (next.at_s - next.seconds - one.at_s).abs() < 1e-9));
    let in_stretches: u64 = told.stretches.iter().map(|stretch| stretch.latencies_ns.len()).sum();
    assert!(in_stretches <= total.finished, "{in_stretches} of {}", total.finished);
}

#[test]
fn a_writer_that_fails_ends_the_run() {
    let mut told = Told::default();
    let writer = || |number| if number < 10 { Ok(Instant::now()) } else { Err(CliError::failed("full".to_owned())) };
    let error = run(Plan { writes: u64::MAX, ..PLAN }, None, writer, &mut told).expect_err("a writer fails");
    assert!(error.to_string().contains("full"), "{error}");
}
