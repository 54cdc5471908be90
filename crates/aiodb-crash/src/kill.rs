//! SIGKILL at random moments, also while the store is being recovered.

use crate::model::{self, Model};
use crate::process::{Aiodb, Applying, Event, create};
use crate::workload::{Operation, WRITERS};
use aiodb::{Db, Options};
use fastrand::Rng;
use std::path::Path;
use std::time::Duration;

/// The longest life of a process.
const LONGEST_MS: f64 = 600.0;

/// What was done and held.
#[derive(Debug, Default)]
pub struct Report {
    /// Processes killed.
    pub kills: u64,
    /// Processes among them that had not acknowledged anything yet: mostly killed while opening the store.
    pub kills_while_opening: u64,
    /// Acknowledged operations that were there afterwards.
    pub acknowledged: u64,
    /// Times that the whole store was compared.
    pub checks: u64,
}

/// Kills `aiodb apply` this many times, and compares the store with the acknowledgements after every kill or few.
pub fn run(aiodb: &Aiodb, directory: &Path, seed: u64, kills: u64) -> Result<Report, String> {
    let store = directory.join("store");
    create(aiodb, &store)?;
    let mut rng = Rng::with_seed(seed);
    let (mut model, mut report, mut numbers) = (Model::new(), Report::default(), [0; WRITERS]);
    while report.kills < kills {
        // Now and then the next process finds what two or three have left.
        for _ in 0..[1, 1, 2, 3][rng.usize(..4)] {
            live(aiodb, &store, seed, &mut rng, &mut model, &mut report, &mut numbers);
        }
        report.checks += 1;
        check(&store, &mut model).map_err(|what| format!("seed {seed}, after kill {}: {what}", report.kills))?;
    }
    Ok(report)
}

/// A process from its start to its death.
fn live(
    aiodb: &Aiodb,
    store: &Path,
    seed: u64,
    rng: &mut Rng,
    model: &mut Model,
    report: &mut Report,
    numbers: &mut [u64; WRITERS],
) {
    let applying = Applying::start(aiodb, store);
    let kill = applying.killer();
    // Short lives are the more likely ones: a store is opened in a few milliseconds.
    let life = Duration::from_micros((1000.0 * LONGEST_MS.powf(rng.f64())) as u64);
    let killer = std::thread::spawn(move || {
        std::thread::sleep(life);
        kill();
    });
    let before = report.acknowledged;
    let next = |writer: usize| {
        numbers[writer] += 1;
        Some(Operation::new(seed, writer, numbers[writer]))
    };
    applying.run(next, |operation, event| match event {
        Event::Sent => model.sent(operation),
        Event::Acknowledged => {
            model.acknowledged(operation);
            report.acknowledged += 1;
        }
    });
    killer.join().expect("the killer does not panic");
    model.died();
    report.kills += 1;
    report.kills_while_opening += u64::from(report.acknowledged == before);
}

fn check(store: &Path, model: &mut Model) -> Result<(), String> {
    let options = Options { create: false, ..Options::default() };
    let db = Db::open(store, options).map_err(|error| format!("the store cannot be opened: {error}"))?;
    model.check(&db)?;
    model::verify(&db)?;
    db.close().map_err(|error| format!("the store cannot be closed: {error}"))
}
