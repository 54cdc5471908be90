"""Executes one run: starts its servers, then its commands one after the other, samples the machine meanwhile, and
keeps what came of it. However it ends, no process and no store of it stays."""

import contextlib
import dataclasses
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from harness.disk import cannot_go_on, check_room
from harness.disturbance import with_disturbance
from harness.errors import HarnessError
from harness.experiments.base import Experiment
from harness.fields import Value, levels_text
from harness.files import last_lines
from harness.host import utc_now
from harness.leftovers import remove_folder
from harness.limits import KILLED_FOR_MEMORY, MemoryLimit
from harness.outcomes import Failure, Outcome, write_outcome
from harness.parts import HOST_SAMPLES, is_begun, next_part, resume, unite, with_parts
from harness.processes import Command, descendants, read_log, stop_all
from harness.rows import Row
from harness.run import Run
from harness.sampling import Sampler, disk_of, read_host
from harness.steps import BadOutputError, Finished, Place, Service, Step

# Lines of a log that a failed point shows.
TAIL_LINES = 20
# How often servers that have died are started again for the rest of a run.
MOST_RESTARTS = 3


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
    # Called again and again with the step that runs; it raises KeyboardInterrupt where an end is wished for.
    watch: Callable[[str], None]
    _services: list[tuple[Service, Command]] = field(default_factory=list)
    _prepared: list[Service] = field(default_factory=list)
    _rows: list[Row] = field(default_factory=list)
    _failures: list[Failure] = field(default_factory=list)
    _commands: list[tuple[str, ...]] = field(default_factory=list)
    # What the parts before have measured, until its step comes.
    _earlier: list[Row] = field(default_factory=list)
    # Points that a preparation was needed by which failed, or which had a result for them.
    _unprepared: list[Mapping[str, Value]] = field(default_factory=list)
    _failed_steps: set[str] = field(default_factory=set)
    _part: int = 1
    _restarts: int = 0
    # Which server or step it is, from 1, and of how many; None where that depends on what they find.
    _position: int = 0
    _positions: int | None = None
    _began_utc: str = ""
    # The beginning of the run's clock, a value of `time.monotonic()`.
    _began: float = 0.0
    _sampler: Sampler | None = None

    def execute(self) -> Outcome:
        """Measures, and leaves the target folder. Where it is interrupted it leaves nothing, or of a run that can be
        resumed what was measured."""
        try:
            while not self._measure_part():
                self._restarts += 1
            return self._finish_run()
        except OSError as error:
            raise cannot_go_on(error, self.run.title) from error
        finally:
            self._clean()

    def _measure_part(self) -> bool:
        """Measures what is missing, with servers of its own; False where they died and others may measure the rest."""
        self._begin()
        try:
            done = self._measure()
        finally:
            self._end()
        if not done:
            self._keep_rows()
            self._clear()
        return done

    def _begin(self) -> None:
        earlier = resume(self.place.kept) if self.experiment.resumable else None
        for folder in (self.place.scratch, self.place.kept):
            folder.mkdir(parents=True, exist_ok=True)
        self._began_utc, self._began = utc_now(), time.monotonic()
        if earlier is not None:
            self._part = next_part(self.place.kept)
            self._began_utc, self._began = earlier.began_utc, self._began - earlier.seconds
            self._rows, self._earlier, self._commands = [], list(earlier.rows), list(earlier.commands)
        self._sampler = Sampler(self.place.kept, self._began, disk_of(self.place.scratch), descendants)
        self._sampler.start()

    def _end(self) -> None:
        assert self._sampler is not None
        with contextlib.ExitStack() as ending:
            # Each is ended even where another cannot be, the last that was started first.
            for _, command in self._services:
                ending.callback(command.stop)
            ending.callback(self._sampler.stop)

    def _clean(self) -> None:
        """Runs to its end whatever signals arrive: they are asked for elsewhere."""
        with contextlib.ExitStack() as cleaning:
            if not (self.experiment.resumable and is_begun(self.place.kept)):
                cleaning.callback(remove_folder, self.place.kept)
            cleaning.callback(self._clear)

    def _clear(self) -> None:
        """Removes everything but results."""
        with contextlib.ExitStack() as clearing:
            for service in self._prepared:
                clearing.callback(service.tidy)
            clearing.callback(remove_folder, self.place.scratch)
            clearing.callback(stop_all)
        self._prepared, self._services = [], []

    def _finish_run(self) -> Outcome:
        self._check_records()
        unite(self.place.kept)
        host = read_host(self.place.kept / HOST_SAMPLES)
        rows = [
            dataclasses.replace(row, marks=(*row.marks, *self.experiment.marks(self.run, row, host)))
            for row in with_parts(self._rows)
        ]
        outcome = self._outcome(with_disturbance(rows, host))
        write_outcome(self.place.kept, outcome)
        self.place.kept.rename(self.target)
        return outcome

    def _outcome(self, rows: Iterable[Row]) -> Outcome:
        return Outcome(
            self.run.id,
            self.run.store,
            self.run.repetition,
            self._began_utc,
            round(self._now(), 3),
            tuple(self._commands),
            tuple(rows),
            tuple(self._failures),
        )

    def _now(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self._began

    def _measure(self) -> bool:
        """Says whether there is nothing left to measure, or nobody left to ask."""
        services, planned = self.experiment.services(self.run, self.place), self.experiment.steps(self.run, self.place)
        self._position = 0
        self._positions = len(services) + len(planned) if isinstance(planned, Sequence) else None
        steps = iter(planned)
        try:
            for service in services:
                self._position += 1
                self._start(service)
        except _StepFailedError as error:
            self._fail("servers", error, self._lost_points(steps))
            return True
        for step in steps:
            self._position += 1
            if self._take_earlier(step) or self._has_failed(step):
                continue
            # What a server did not live to see is not that step's failure.
            if self._may_restart() and any(_death(*of) for of in self._services):
                return False
            try:
                self._take(self._finish(step))
            except _StepFailedError as error:
                restarts = error.fatal and self._may_restart()
                for_all = not step.points and step.needed_by is None
                if for_all or (error.fatal and not restarts):
                    self._fail(step.name, error, self._lost_points([step, *steps]))
                    return True
                self._fail(step.name, error, step.points or self._not_failed(step.needed_by or ()))
                self._failed_steps.add(step.name)
                self._unprepared += step.needed_by or ()
                if restarts:
                    return False
        return True

    def _may_restart(self) -> bool:
        return self.experiment.resumable and self._restarts < MOST_RESTARTS

    def _take_earlier(self, step: Step) -> bool:
        """Whether a part before has measured this, by the same command; then its rows are the run's."""
        rows = [row for row in self._earlier if row.step == step.name]
        self._earlier = [row for row in self._earlier if row.step != step.name]
        found = [dict(row.levels) for row in rows]
        if not rows or step.command not in self._commands or any(dict(point) not in found for point in step.points):
            return False
        self._rows += rows
        self._settle(step, found)
        return True

    def _has_failed(self, step: Step) -> bool:
        """Whether the step has failed already, or all that it is for."""
        points = step.points or step.needed_by or ()
        lost = bool(points) and all(point in self._unprepared for point in points)
        return lost or step.name in self._failed_steps

    def _lost_points(self, steps: Iterable[Step]) -> list[Mapping[str, Value]]:
        """The points that these steps would have measured, once more or at all, and that have not failed yet."""
        asked = [dict(point) for step in steps if not self._take_earlier(step) for point in step.points]
        done = [dict(row.levels) for row in self._rows]
        return self._not_failed(point for point in self.run.points() if point not in done or point in asked)

    def _not_failed(self, points: Iterable[Mapping[str, Value]]) -> list[Mapping[str, Value]]:
        failed = [dict(point) for failure in self._failures for point in failure.points]
        return [point for point in points if dict(point) not in failed]

    def _start(self, service: Service) -> None:
        log = self.place.kept / f"{service.name}.log"
        # Noted first: what is prepared half is tidied up as well.
        self._prepared.append(service)
        _prepare(service, log)
        command = self._launch(service.name, service.command, log, service.memory_bytes)
        self._services.append((service, command))
        until = time.monotonic() + service.seconds_to_start
        while not service.ready():
            self._check(service.name)
            if time.monotonic() > until:
                raise _StepFailedError(f"{service.name} did not answer within {service.seconds_to_start:g} s", log)
            time.sleep(0.1)

    def _finish(self, step: Step) -> Finished:
        log = self.place.kept / f"{step.name}.log"
        self._check(step.name)
        _prepare(step, log)
        command = self._launch(step.name, step.command, log, step.memory_bytes)
        death = None
        try:
            code = command.wait(step.seconds_at_most, lambda: self._check(step.name, command))
            # A server that has just died is the reason for whatever else went wrong.
            self._check(step.name, command)
            self._check_servers()
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
        return Finished(step, output, read_log(log), command.began_s, self._now(), death)

    def _launch(self, name: str, command: tuple[str, ...], log: Path, memory_bytes: int | None) -> Command:
        self._commands.append(command)
        limit = None
        try:
            limit = MemoryLimit(memory_bytes) if memory_bytes is not None else None
            output = self.place.kept / f"{name}.out"
            return Command(command, output, log, self._began, self.place.checkout, self.environment, limit)
        except (OSError, subprocess.SubprocessError) as error:
            if limit is not None:
                limit.remove()
            raise _StepFailedError(f"{command[0]} cannot be started: {_reason(error)}", log) from error

    def _take(self, finished: Finished) -> None:
        """Keeps the rows of a step; every point that it should have measured and has not is a failure."""
        log = self.place.kept / f"{finished.step.name}.log"
        try:
            rows = self.experiment.rows(self.run, finished, self.place)
        except BadOutputError as error:
            raise _StepFailedError(str(error), log) from error
        found = [dict(row.levels) for row in rows]
        missing = [point for point in finished.step.points if dict(point) not in found]
        of_step = finished.step.points or finished.step.needed_by or ()
        self._rows.extend(
            dataclasses.replace(row, step=finished.step.name, part=self._part) for row in rows if row.levels in of_step
        )
        self._settle(finished.step, found)
        if missing:
            named = "; ".join(levels_text(point) or "the only point" for point in missing)
            self._fail(finished.step.name, _StepFailedError(f"no result for {named}", log), missing)
        if self.experiment.resumable and found:
            self._keep_rows()

    def _settle(self, step: Step, found: Sequence[object]) -> None:
        """Points of which a preparation says what becomes of them, as that their store dies, need no other step."""
        if not step.points:
            self._unprepared += [point for point in step.needed_by or () if dict(point) in found]

    def _keep_rows(self) -> None:
        """Writes what is measured so far: another part begins with it."""
        unfinished = dataclasses.replace(self._outcome([*self._rows, *self._earlier]), failures=())
        write_outcome(self.place.kept, unfinished)

    def _fail(self, step: str, error: _StepFailedError, points: Sequence[object]) -> None:
        # A store that finds no room says so in its own words, or in none.
        check_room(self.place.scratch, self.run.title)
        tail = tuple(last_lines(error.log, TAIL_LINES))
        self._failures.append(Failure(step, str(error), tail, tuple(points)))  # type: ignore[arg-type]

    def _check(self, name: str, command: Command | None = None) -> None:
        """Whether what runs may go on: raises what ends it."""
        of = f" of {self._positions}" if self._positions else ""
        self.watch(f"step {self._position}{of}: {name}")
        check_room(self.place.scratch, self.run.title)
        self._check_records(command)
        if any(server.code() is not None for _, server in self._services):
            self._check_servers()

    def _check_servers(self) -> None:
        for service, server in self._services:
            if reason := _death(service, server):
                log = self.place.kept / f"{service.name}.log"
                raise _StepFailedError(f"{service.name} died: {reason}", log, fatal=True)

    def _check_records(self, command: Command | None = None) -> None:
        """Raises what keeps samples and logs from being written: a row without them would say less than it seems to."""
        assert self._sampler is not None
        commands = [server for _, server in self._services] + ([command] if command else [])
        for failure in (self._sampler.failure, *(of.log_failure for of in commands)):
            if isinstance(failure, OSError):
                raise cannot_go_on(failure, self.run.title)
            if failure is not None:
                raise HarnessError(f"the samples of {self.run.title} have ended: {failure!r}") from failure


def _prepare(what: Service | Step, log: Path) -> None:
    try:
        what.prepare()
    except OSError as error:
        raise _StepFailedError(f"{what.name} cannot be prepared: {_reason(error)}", log) from error


def _reason(error: Exception) -> str:
    """What went wrong, without its number."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _death(service: Service, server: Command) -> str | None:
    """Why a server has died, or one of its processes for its memory; None where all live."""
    code = server.code()
    return service.killed() or (_ending(code, server) if code is not None else None)


def _ending(code: int, command: Command) -> str:
    if command.ran_out_of_memory():
        return f"{KILLED_FOR_MEMORY} its {command.memory_bytes / 2**20:.0f} MiB of memory"
    return f"ended with exit code {code}" if code >= 0 else f"killed by signal {-code}"
