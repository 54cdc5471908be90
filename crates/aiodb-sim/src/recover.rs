//! Crashes and recoveries, and what must be there afterwards.

use aiodb::Error;
use aiodb::io::Device;
use aiodb::io::Phase;

use crate::model::{Cell, Found};
use crate::process::Life;
use crate::script::{Crash, IndexState, key_bytes, table_name};
use crate::state::{Run, Violation};

/// Openings that may fail for reasons that the script has made and that are taken away then.
const MOST_ATTEMPTS: usize = 4;

impl Run<'_> {
    /// The process ends: by the crash that was armed and has happened, or here, between two calls.
    pub(crate) fn crash(&mut self, crash: &Crash) -> Result<(), Violation> {
        let on_time = self.on_time && self.is_on_time() && self.failed.is_none();
        let required = self.model.required(self.device.clock_ms(), on_time);
        self.report.cycles += 1;
        self.report.power_cuts += u64::from(crash.power_cut);
        self.report.crashed(&self.device.phases(), self.operations_since_crash);
        self.operations_since_crash = 0;
        self.armed = None;
        self.end_process(crash.power_cut, crash.index);
        if let Some(bit) = crash.rotten_runs {
            self.rot_manifest_of_runs(bit);
        }
        // A flush that failed may have lost what was acknowledged without one, whatever comes then.
        // The process may have died in the very call that saw it fail.
        let failed = self.failed.is_some() || self.failed_calls() > self.failed_before;
        let mut like_power_cut = crash.power_cut || failed;
        if let Some((call, skip)) = crash.error {
            self.allowed.errors = true;
            self.device.fail(call, skip, 1, |_| true);
        }
        for (steps, power_cut) in &crash.again {
            self.device.crash_after(*steps);
            let opened = self.open(crash.rebuild);
            self.report.crashes_in_recovery += u64::from(self.device.has_crashed());
            self.report.crashed(&self.device.phases(), 0);
            self.life = opened.ok().map(Life::new);
            self.end_process(*power_cut, IndexState::Newest);
            like_power_cut |= power_cut;
        }
        // So may one that fails during a recovery.
        like_power_cut |= self.allowed.errors && (!crash.again.is_empty() || crash.error.is_some());
        self.recover(if like_power_cut { required.power_cut } else { required.death }, crash)
    }

    /// The process will crash in so many steps.
    pub(crate) fn crash_in(&mut self, steps: u64, crash: &Crash) {
        self.device.crash_after(steps);
        self.armed = Some(crash.clone());
    }

    /// The process will crash inside a phase: after so many that pass, in so many steps or at its end.
    pub(crate) fn crash_inside(&mut self, phase: Phase, skip: u64, steps: u64, crash: &Crash) {
        self.device.crash_inside(phase, skip, steps);
        self.armed = Some(crash.clone());
    }

    /// Writes and flushes that were made to fail.
    fn failed_calls(&self) -> u64 {
        let [_, writes, syncs, _] = self.device.counters().failed;
        writes + syncs
    }

    /// Goes to the next process. The old one's handles are dropped after it has died: they can change nothing.
    fn end_process(&mut self, power_cut: bool, index: IndexState) {
        self.device = if power_cut { self.device.power_cut() } else { self.device.process_death() };
        if let Some(files) = &mut self.index {
            self.report.index_states[match index {
                IndexState::Newest => 0,
                IndexState::Earlier(_) => 1,
                IndexState::Missing => 2,
            }] += 1;
            files.crash(&self.device, index);
        }
        self.life = None;
        if let Some(files) = &self.index {
            files.forget_dead();
        }
    }

    /// Closes the store and opens it again in the same process.
    pub(crate) fn reopen(&mut self) -> Result<(), Violation> {
        let outcome = self.db().close();
        if self.device.has_crashed() {
            return Ok(());
        }
        self.notice_published();
        let closed = outcome.is_ok();
        if closed {
            self.model.everything_is_durable();
            self.time_is_written();
        } else {
            let failed = matches!(outcome, Err(Error::Failed { .. } | Error::Io { .. })) && self.allowed.errors;
            if !failed {
                self.unexpected("closing", outcome)?;
            } else {
                self.failed = Some(0);
            }
        }
        let required = self.model.required(self.device.clock_ms(), false);
        self.life = None;
        self.report.reopened += 1;
        let required = if self.failed.is_some() { required.power_cut } else { required.death };
        self.recover(required, &Crash::between_calls(false))
    }

    /// Opens the store and compares what is there with what must be.
    pub(crate) fn recover(&mut self, required: usize, crash: &Crash) -> Result<(), Violation> {
        let mut required = required;
        let mut opened = self.open(crash.rebuild);
        for _ in 0..MOST_ATTEMPTS {
            match &opened {
                _ if self.device.has_crashed() => {
                    // A crash that was armed before the store was closed falls into its opening.
                    let crash = self.armed.take().expect("only an armed crash happens");
                    drop(opened);
                    let power_cut = self.model.required(self.device.clock_ms(), false).power_cut;
                    self.report.crashes_in_recovery += 1;
                    self.report.crashed(&self.device.phases(), self.operations_since_crash);
                    self.operations_since_crash = 0;
                    self.end_process(crash.power_cut, crash.index);
                    required = if crash.power_cut { power_cut.min(required) } else { required };
                }
                Err(Error::Io { .. } | Error::Failed { .. }) if self.allowed.errors => {
                    self.device.clear_faults();
                    drop(opened);
                    required = required.min(self.model.required(self.device.clock_ms(), false).power_cut);
                }
                Err(Error::DiskFull { .. }) if self.allowed.full => self.device.set_capacity(None),
                // A version is looked at before the checksum, which may change with it.
                Err(Error::Corruption { .. } | Error::NewerVersion { .. }) if self.allowed.damage => {
                    self.report.damage_reported += 1;
                    self.ended = true;
                    return Ok(());
                }
                _ => break,
            }
            opened = self.open(crash.rebuild);
        }
        let db = opened.map_err(|error| format!("recovery: {error}"))?;
        self.life = Some(Life::new(db));
        self.time.opened(self.read_clocks());
        self.check_contents(required)?;
        if !self.ended && !self.device.has_crashed() {
            self.check_modes()?;
        }
        self.restart_clock();
        if crash.verify && !self.ended && !self.device.has_crashed() {
            for table in 0..self.script.setup.tables.len() {
                self.scan(table, false)?;
            }
        }
        if crash.verify && !self.ended && !self.device.has_crashed() {
            self.verify()?;
        }
        Ok(())
    }

    fn check_contents(&mut self, required: usize) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let found = self.find_contents()?;
        let moments = self.moments(from);
        if self.device.has_crashed() {
            // What is armed stays required; the caller sees the crash.
            return Ok(());
        }
        for found in found.iter().flatten().flatten() {
            self.see(found.hash());
        }
        let least = if self.allowed.damage { self.floor.min(required) } else { required };
        let Some(survived) = self.model.matching(&found, least, moments) else {
            return Err(format!(
                "after recovery the store holds none of the states {least} to {}; beside the last: {}",
                self.model.len(),
                self.model.differences(&found, moments),
            ));
        };
        if found.iter().flatten().flatten().any(|cell| *cell == Cell::Damaged) {
            self.report.damage_reported += 1;
            self.ended = true;
            return self.damage_is_listed();
        }
        // A clock that was wrong hides what it makes expire, which may be seen again: nothing can be said of it then.
        if self.time.has_jumped() && self.model.is_ambiguous(&found, least, moments) {
            self.ended = true;
            return Ok(());
        }
        self.report.damage_beyond_detection += u64::from(survived < required);
        if self.allowed.damage {
            self.model.recovered_from_damage(survived, self.device.clock_ms());
            self.floor = self.floor.min(survived);
        } else {
            self.model.recovered(survived);
            self.floor = 0;
        }
        (self.mark, self.failed) = (None, None);
        self.failed_before = self.failed_calls();
        Ok(())
    }

    /// Everything that gets find in the store.
    fn find_contents(&mut self) -> Result<Found, Violation> {
        let keys = self.script.setup.keys;
        let mut contents = Found::new();
        for table in 0..self.script.setup.tables.len() {
            let table = match self.db().table(&table_name(table)) {
                Ok(table) => table,
                Err(_) => {
                    contents.push(None);
                    continue;
                }
            };
            let mut cells = Vec::with_capacity(keys);
            for key in 0..keys {
                let mut found = table.get(&key_bytes(key));
                if matches!(found, Err(Error::Io { .. })) && self.allowed.errors {
                    self.device.clear_faults();
                    found = table.get(&key_bytes(key));
                }
                self.report.answers += 1;
                cells.push(match found {
                    Ok(value) => Cell::of(value.as_deref()),
                    Err(_) if self.device.has_crashed() => return Ok(contents),
                    Err(Error::Corruption { .. }) if self.allowed.damage => Cell::Damaged,
                    Err(error) => return Err(format!("a get after recovery: {error}")),
                });
            }
            contents.push(Some(cells));
        }
        Ok(contents)
    }

    /// What a get reports, `verify` must list.
    fn damage_is_listed(&mut self) -> Result<(), Violation> {
        match self.db().verify(&mut |_, _| {}) {
            Ok(report) if report.damage.is_empty() && !self.device.has_crashed() => {
                Err("a get reported damage that verify does not list".into())
            }
            _ => Ok(()),
        }
    }

    /// Reads everything, and counts again what is alive.
    pub(crate) fn verify(&mut self) -> Result<(), Violation> {
        // What a snapshot or a reader sees counts as alive.
        self.life().snapshots.clear();
        self.tell_filter();
        self.life().reading.clear();
        let verified = self.db().verify(&mut |_, _| {});
        let tolerant = self.allowed.damage || self.failed.is_some();
        let counted = match verified {
            Ok(report) if report.damage.is_empty() || tolerant => self.db().recount(),
            Ok(_) if self.device.has_crashed() => return Ok(()),
            Ok(report) if self.allowed.errors && report.damage.iter().all(is_io) => return Ok(()),
            Ok(report) => return Err(format!("verify found damage: {}", report.damage[0])),
            Err(error) => return self.unexpected("verify", Err(error)),
        };
        match counted {
            Ok(differences) if differences.is_empty() || tolerant || self.device.has_crashed() => {
                self.report.verified += 1;
                Ok(())
            }
            // An unreadable list leaves its chunks counted as alive.
            Ok(_) if self.allowed.errors => Ok(()),
            Ok(differences) => Err(format!("live bytes are counted wrong: {}", differences.join("; "))),
            Err(error) => self.unexpected("a recount", Err(error)),
        }
    }

    /// Counters that must fit the model.
    pub(crate) fn check_stats(&mut self) -> Result<(), Violation> {
        let stats = self.db().stats();
        for table in &stats.tables {
            let number = (0..self.script.setup.tables.len()).find(|number| table_name(*number) == table.name);
            let Some((number, held)) = number.and_then(|number| Some((number, self.model.current()[number].as_ref()?)))
            else {
                return Err(format!("stats list a table `{}` that does not exist", table.name));
            };
            let keys = held.iter().filter(|held| held.at(0) != Cell::Absent).count() as u64;
            // A tag whose records cannot be read stays unsettled, and is not counted as such.
            let readable = !self.allowed.errors && !self.allowed.damage;
            if table.keys_exact && readable && !self.estimated[number] && table.keys != keys {
                return Err(format!("stats count {} keys in `{}`, there are {keys}", table.keys, table.name));
            }
        }
        Ok(())
    }
}

fn is_io(error: &Error) -> bool {
    matches!(error, Error::Io { .. })
}
