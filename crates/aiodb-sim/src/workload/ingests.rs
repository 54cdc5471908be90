//! Tables of kind `lsm` that are made with their contents.

use aiodb::io::Phase;
use aiodb::{IndexKind, Step};
use fastrand::Rng;

use crate::script::{Action, Ingested, Script, Value};

/// One action in so many is followed by the beginning of an ingest, if none is under way.
const BEGINNING: u32 = 25;

/// One action in so many that come during an ingest is followed by records of it, by its end, or by its being given up.
const GOING_ON: u32 = 3;
const FINISHING: u32 = 16;
const ABANDONING: u32 = 80;

/// One crash inside a phase in so many is one at the end of an ingest.
const CRASHES_AT_ENDS: u8 = 4;

/// Values of ingests are told from all others by their seeds.
const FIRST_VALUE: u32 = 1 << 24;

/// What makes the actions of ingests.
struct Maker {
    random: Rng,
    next_value: u32,
}

impl Maker {
    fn records(&mut self) -> Action {
        let count = self.random.usize(1..8);
        Action::IngestOn((0..count).map(|_| self.record()).collect())
    }

    fn record(&mut self) -> Ingested {
        let lengths = match self.random.u8(..12) {
            0 => 1200..6000,
            1 => 14_000..40_000,
            _ => 8..300,
        };
        self.next_value += 1;
        Ingested {
            skipped: self.random.usize(..6).saturating_sub(3),
            value: Value { length: self.random.u32(lengths), seed: self.next_value },
            expires_in_ms: (self.random.u8(..10) == 0).then(|| [10, 1000, 100_000][self.random.usize(..3)]),
        }
    }

    /// The beginning of an ingest of a table, which mostly is dropped before.
    fn begin(&mut self, table: usize, actions: &mut Vec<Action>) {
        if self.random.u8(..8) > 0 {
            actions.push(Action::Drop(table));
        }
        actions.extend([Action::BeginIngest(table), self.records()]);
    }
}

/// The script with ingests among its actions, and crashes at their ends.
pub(super) fn with_ingests(mut script: Script) -> Script {
    let random = Rng::with_seed(script.seed.rotate_left(48));
    let mut maker = Maker { random, next_value: FIRST_VALUE };
    let kinds = script.setup.tables.iter().enumerate();
    let tables: Vec<usize> = kinds.filter(|(_, kind)| **kind == IndexKind::Lsm).map(|(table, _)| table).collect();
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    let mut is_under_way = false;
    for action in script.actions {
        let table = tables[maker.random.usize(..tables.len())];
        match action {
            Action::CrashInside(_, _, _, crash) if maker.random.u8(..CRASHES_AT_ENDS) == 0 => {
                if !is_under_way {
                    maker.begin(table, &mut actions);
                }
                let steps = maker.random.u64(1..40);
                actions.extend([Action::CrashInside(Phase::TableCreate, 0, steps, crash), Action::FinishIngest]);
                is_under_way = false;
                continue;
            }
            Action::CrashNow(_) | Action::CrashIn(..) | Action::CrashInside(..) | Action::Reopen => {
                is_under_way = false;
                actions.push(action);
                continue;
            }
            action => actions.push(action),
        }
        if !is_under_way {
            if maker.random.u32(..BEGINNING) == 0 {
                maker.begin(table, &mut actions);
                is_under_way = true;
            }
            continue;
        }
        if maker.random.u32(..GOING_ON) == 0 {
            actions.push(maker.records());
        }
        if maker.random.u32(..GOING_ON) == 0 {
            actions.push(Action::Step(Step::Reclaim));
        }
        if maker.random.u32(..FINISHING) == 0 {
            actions.push(Action::FinishIngest);
            is_under_way = false;
        } else if maker.random.u32(..ABANDONING) == 0 {
            actions.push(Action::AbandonIngest);
            is_under_way = false;
        }
    }
    script.actions = actions;
    script
}
