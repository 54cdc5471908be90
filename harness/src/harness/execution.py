"""Executes one run: starts its servers, then its commands one after the other, samples the machine meanwhile, and
keeps what came of it. However it ends, no process and no store of it stays."""

import dataclasses
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.disturbance import with_disturbance
from harness.experiments.base import BadOutputError, Experiment, Finished, Place, Row, Service, Step
from harness.fields import Value, levels_text
from harness.files import last_lines
from harness.host import utc_now
from harness.limits import MemoryLimit
from harness.plan import Run
from harness.processes import Command, descendants, read_log, stop_all, undisturbed
from harness.results import Failure, Outcome, write_outcome
from harness.sampling import Sampler, disk_of, read_host

# Lines of a log that a failed point shows.
TAIL_LINES = 20


class _StepFailedError(Exception):
    """A step or a server did not do what it should. `log` tells more; `fatal` says that all that follows is in vain."""

    def __init__(self, reason: str, log: Path, fatal: bool = False) -> None:
        super().__init__(reason)
        self.log = log
        self.fatal = fatal


@dataclass
class Execution:
    """One execution of one run."""

    experiment: Experiment
    run: Run
    place: Place
    # Where the whole result goes, under this name only when it is whole.
    target: Path
    # What every process that is started has in its environment.
    environment: Mapping[str, str]
    _services: list[tuple[Service, Command]] = field(default_factory=list)
    _prepared: list[Service] = field(default_factory=list)
    _rows: list[Row] = field(default_factory=list)
    _failures: list[Failure] = field(default_factory=list)
    _commands: list[tuple[str, ...]] = field(default_factory=list)

    def execute(self) -> Outcome:
        """Measures, and leaves the target folder; leaves nothing where it is interrupted."""
        began_utc, began = utc_now(), time.monotonic()
        try:
            for folder in (self.place.scratch, self.place.kept):
                folder.mkdir(parents=True)
            sampler = Sampler(self.place.kept, began, disk_of(self.place.scratch), descendants)
            sampler.start()
            try:
                self._measure(began)
            finally:
                sampler.stop()
                self._stop_services()
            host = read_host(self.place.kept / "host.csv")
            rows = [
                dataclasses.replace(row, marks=(*row.marks, *self.experiment.marks(self.run, row, host)))
                for row in self._rows
            ]
            outcome = Outcome(
                self.run.id,
                self.run.store,
                self.run.repetition,
                began_utc,
                round(time.monotonic() - began, 3),
                tuple(self._commands),
                tuple(with_disturbance(rows, host)),
                tuple(self._failures),
            )
            write_outcome(self.place.kept, outcome)
            self.place.kept.rename(self.target)
            return outcome
        finally:
            with undisturbed():
                stop_all()
                for folder in (self.place.scratch, self.place.kept):
                    shutil.rmtree(folder, ignore_errors=True)
                for service in self._prepared:
                    service.tidy()

    def _measure(self, began: float) -> None:
        try:
            for service in self.experiment.services(self.run, self.place):
                self._start(service, began)
        except _StepFailedError as error:
            self._fail("servers", error, list(self.run.points()))
            return
        steps = iter(self.experiment.steps(self.run, self.place))
        for step in steps:
            try:
                self._take(self._finish(step, began))
            except _StepFailedError as error:
                preparation = error.fatal or not step.points
                self._fail(step.name, error, self._lost_points([step, *steps]) if preparation else step.points)
                if preparation:
                    return

    def _lost_points(self, steps: Sequence[Step]) -> list[Mapping[str, Value]]:
        """The points that these steps would have measured, once more or at all, and that have not failed yet."""
        done = [dict(row.levels) for row in self._rows]
        failed = [dict(point) for failure in self._failures for point in failure.points]
        asked = [dict(point) for step in steps for point in step.points]
        return [
            point for point in self.run.points() if point not in failed and (point not in done or dict(point) in asked)
        ]

    def _start(self, service: Service, began: float) -> None:
        log = self.place.kept / f"{service.name}.log"
        # Noted first: what is prepared half is tidied up as well.
        self._prepared.append(service)
        _prepare(service, log)
        command = self._launch(service.name, service.command, log, began, service.memory_bytes)
        self._services.append((service, command))
        until = time.monotonic() + service.seconds_to_start
        while not service.ready():
            self._check_services()
            if time.monotonic() > until:
                raise _StepFailedError(f"{service.name} did not answer within {service.seconds_to_start:g} s", log)
            time.sleep(0.1)

    def _finish(self, step: Step, began: float) -> Finished:
        log = self.place.kept / f"{step.name}.log"
        _prepare(step, log)
        command = self._launch(step.name, step.command, log, began, step.memory_bytes)
        death = None
        try:
            code = command.wait(step.seconds_at_most, self._check_services)
            if code is None:
                raise _StepFailedError(f"did not end within {step.seconds_at_most:g} s, and was stopped", log)
            if code != 0:
                raise _StepFailedError(_ending(code, command), log)
        except _StepFailedError as error:
            if not step.may_die:
                raise
            death = str(error)
        finally:
            command.stop()
        output = (self.place.kept / f"{step.name}.out").read_text(encoding="utf-8", errors="replace")
        return Finished(step, output, read_log(log), command.began_s, time.monotonic() - began, death)

    def _launch(
        self, name: str, command: tuple[str, ...], log: Path, began: float, memory_bytes: int | None
    ) -> Command:
        self._commands.append(command)
        try:
            output = self.place.kept / f"{name}.out"
            limit = MemoryLimit(memory_bytes) if memory_bytes is not None else None
            return Command(command, output, log, began, self.place.checkout, self.environment, limit)
        except OSError as error:
            raise _StepFailedError(f"{command[0]} cannot be started: {error.strerror}", log) from error

    def _take(self, finished: Finished) -> None:
        """Keeps the rows of a step; every point that it should have measured and has not is a failure."""
        log = self.place.kept / f"{finished.step.name}.log"
        try:
            rows = self.experiment.rows(self.run, finished, self.place)
        except BadOutputError as error:
            raise _StepFailedError(str(error), log) from error
        found = [dict(row.levels) for row in rows]
        missing = [point for point in finished.step.points if dict(point) not in found]
        self._rows.extend(row for row in rows if row.levels in finished.step.points)
        if missing:
            named = "; ".join(levels_text(point) or "the only point" for point in missing)
            self._fail(finished.step.name, _StepFailedError(f"no result for {named}", log), missing)

    def _fail(self, step: str, error: _StepFailedError, points: Sequence[object]) -> None:
        tail = tuple(last_lines(error.log, TAIL_LINES))
        self._failures.append(Failure(step, str(error), tail, tuple(points)))  # type: ignore[arg-type]

    def _check_services(self) -> None:
        for service, command in self._services:
            if (code := command.code()) is not None:
                log = self.place.kept / f"{service.name}.log"
                raise _StepFailedError(f"{service.name} died: {_ending(code, command)}", log, fatal=True)

    def _stop_services(self) -> None:
        for _, command in reversed(self._services):
            command.stop()


def _prepare(what: Service | Step, log: Path) -> None:
    try:
        what.prepare()
    except OSError as error:
        raise _StepFailedError(f"{what.name} cannot be prepared: {error}", log) from error


def _ending(code: int, command: Command) -> str:
    if command.ran_out_of_memory():
        return f"killed by the kernel for using up its {command.memory_bytes / 2**20:.0f} MiB of memory"
    return f"ended with exit code {code}" if code >= 0 else f"killed by signal {-code}"
