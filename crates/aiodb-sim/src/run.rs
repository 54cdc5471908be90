//! One run: the engine on a simulated machine does what a script says, and the model says what must come of it.

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use crate::state::Violation;

use crate::report::Report;
use crate::script::{Action, Crash, Script};
use crate::state::Run;

/// So many operations are tried on a store that refuses writes, before it is opened again.
const OPERATIONS_AFTER_FAILURE: usize = 12;

/// Runs a script. Returns a hash of all that could be seen of the run: the same script gives the same.
pub fn run(script: &Script, report: &mut Report) -> Result<u64, Violation> {
    let mut run = Run::new(script);
    std::mem::swap(report, &mut run.report);
    let outcome = catch_unwind(AssertUnwindSafe(|| run.execute()));
    run.report.add_machine(&run.device.counters());
    run.report.runs += 1;
    std::mem::swap(report, &mut run.report);
    match outcome {
        Ok(outcome) => outcome.map(|()| run.trace).map_err(|what| format!("action {}: {what}", run.at)),
        Err(panic) => {
            // Its locks may be poisoned: closing it would panic again.
            std::mem::forget(run.life.take());
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            Err(format!("action {}: panic: {}", run.at, text.unwrap_or_default()))
        }
    }
}

impl Run<'_> {
    fn execute(&mut self) -> Result<(), Violation> {
        self.recover(0, &Crash::between_calls(false))?;
        let script = self.script;
        for (at, action) in script.actions.iter().enumerate() {
            self.at = at;
            self.perform(action)?;
            if !self.device.has_crashed() && self.life.is_some() {
                self.tick()?;
            }
            self.notice_published();
            self.see(self.device.counters().steps);
            if self.device.has_crashed() {
                let crash = self.armed.take().expect("only an armed crash happens");
                self.crash(&crash)?;
            } else if self.failed.is_some_and(|operations| operations >= OPERATIONS_AFTER_FAILURE) {
                self.crash(&Crash::between_calls(at % 2 == 0))?;
            }
            if self.ended {
                return Ok(());
            }
        }
        self.crash(&Crash { verify: true, ..Crash::between_calls(false) })
    }

    fn perform(&mut self, action: &Action) -> Result<(), Violation> {
        self.before = None;
        self.operations_since_crash += 1;
        self.report.operations += 1;
        if let Some(operations) = &mut self.failed {
            *operations += 1;
        }
        match *action {
            Action::Put(table, key, value, durability) => self.put(table, key, value, durability)?,
            Action::PutFor(table, key, value, durability, ms) => self.put_for(table, key, value, durability, ms)?,
            Action::Merge(table, key, operand, durability) => self.merge(table, key, operand, durability)?,
            Action::Delete(table, key, durability) => self.delete(table, key, durability)?,
            Action::DeleteRange(table, durability, first, second) => {
                self.delete_range(table, durability, first, second)?
            }
            Action::DeleteNothing(table, durability, first, second) => {
                self.delete_nothing(table, durability, first, second)?
            }
            Action::Batch(ref writes, durability) => self.write_batch(&[], writes, durability)?,
            Action::BatchIf(ref requirements, ref writes, durability) => {
                self.write_batch(requirements, writes, durability)?
            }
            Action::SetIf(table, key, require, new, durability) => self.set_if(table, key, require, new, durability)?,
            Action::Append(ref requirements, ref writes) => self.append(requirements, writes)?,
            Action::Await(number) => self.await_write(number)?,
            Action::PutStream(table, key, value, durability) => self.put_stream(table, key, value, durability)?,
            Action::BeginWriting(table, key, value) => self.begin_writing(table, key, value)?,
            Action::WriteOn(number, length) => self.write_on(number, length)?,
            Action::FinishWriting(number, durability) => self.finish_writing(number, durability)?,
            Action::BeginReading(table, key) => self.begin_reading(table, key)?,
            Action::ReadOn(number, length) => self.read_on(number, length)?,
            Action::GetRange(table, key, offset, length) => self.get_range(table, key, offset, length)?,
            Action::Get(table, key) => self.get(table, key)?,
            Action::GetMany(table, ref keys) => self.get_many(table, keys)?,
            Action::Submit(client, table, key) => self.submit(client, table, key)?,
            Action::Poll(client) => self.poll(client)?,
            Action::Scan(table, backward) => self.scan(table, backward)?,
            Action::ScanPart(table, part) => self.scan_part(table, part)?,
            Action::Snapshot => self.take_snapshot()?,
            Action::Look(number, table, key) => self.look(number, table, key)?,
            Action::Release(number) => self.release(number),
            Action::BackUp => self.back_up()?,
            Action::Restore(number) => self.restore(number)?,
            Action::BeginIngest(table) => self.begin_ingest(table)?,
            Action::IngestOn(ref records) => self.ingest_on(records)?,
            Action::FinishIngest => self.finish_ingest()?,
            Action::AbandonIngest => self.abandon_ingest(),
            Action::Create(table) => self.create(table)?,
            Action::Drop(table) => self.drop_table(table)?,
            Action::Truncate(table) => self.truncate(table)?,
            Action::Swap(one, other) => self.swap_tables(one, other)?,
            Action::Sync => self.sync()?,
            Action::Mark => self.mark(),
            Action::WaitDurable => self.wait_durable()?,
            Action::Checkpoint => self.checkpoint()?,
            Action::Memory(above) => self.set_memory(above)?,
            Action::NextMemory(above) => self.set_next_memory(above)?,
            Action::Step(step) => self.step(step)?,
            Action::Steps(step, times) => self.steps(step, times)?,
            Action::Verify => self.verify()?,
            Action::Stats => self.check_stats()?,
            Action::Modes(table, modes) => self.set_modes(table, modes)?,
            Action::Clock(offset_ms) => self.set_clock(offset_ms)?,
            Action::Sleep(ms) => self.sleep(ms)?,
            Action::Wait(ms) => self.wait(ms)?,
            Action::Reopen => self.reopen()?,
            Action::CrashIn(steps, ref crash) => self.crash_in(steps, crash),
            Action::CrashInside(phase, skip, steps, ref crash) => self.crash_inside(phase, skip, steps, crash),
            Action::CrashNow(ref crash) => self.crash(crash)?,
            Action::Fault(call, effect, skip, times, files) => self.disturb(call, effect, skip, times, files),
            Action::Rot(file, offset, mask) => self.rot(file, offset, mask)?,
            Action::RotValue(table, key, byte, mask) => self.rot_value(table, key, byte, mask)?,
            Action::Capacity(segments) => self.limit_room(segments)?,
        }
        Ok(())
    }
}
