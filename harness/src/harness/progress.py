"""What runs and how long is left, on a terminal; elsewhere one line per run."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from harness.outcomes import Outcome
from harness.run import Run

# Of a run that takes longer than expected, as much is shown as done at most.
MOST_OF_A_RUN = 0.99
# How often what is shown changes: drawing takes processor time from what is measured.
DRAWN_PER_S = 1.0


class Progress:
    """The progress of one campaign. The time left is what the experiments expect of the runs to come, corrected by how
    long the finished ones really took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._expected: list[float] = []
        self._done = 0
        self._took = 0.0
        self._began = 0.0
        self._bar: tuple[RichProgress, TaskID] | None = None
        self._title, self._step = "", ""
        self._drawn = 0.0

    def say(self, text: str) -> None:
        """Something that a person should know."""
        self._console.print(escape(text), highlight=False, soft_wrap=True)

    def begin(self, title: str, expected: list[float], kept: int) -> None:
        """So many runs are to be measured, each expected to take so many seconds."""
        self._expected = expected
        kept_text = f", {kept} finished before" if kept else ""
        self.say(f"{title}: {len(expected)} runs to measure{kept_text}, about {duration(sum(expected))}")

    def left_seconds(self, of_this_run: float = 0.0) -> float:
        """How long all runs not yet done should take, after so many seconds of the one that runs."""
        known = sum(self._expected[: self._done])
        factor = self._took / known if known else 1.0
        left = [factor * seconds for seconds in self._expected[self._done :]]
        if left:
            left[0] = max(left[0] - of_this_run, (1 - MOST_OF_A_RUN) * left[0])
        return sum(left)

    def part_done(self, of_this_run: float = 0.0) -> float:
        """How much of the campaign is done, from 0 to 1, after so many seconds of the run that runs."""
        left = self.left_seconds(of_this_run)
        done = self._took + of_this_run
        return done / (done + left) if left else 1.0

    @contextlib.contextmanager
    def running(self, run: Run) -> Iterator[None]:
        """Shows one run while it lasts."""
        self._began = time.monotonic()
        self._title, self._step = f"[{self._done + 1}/{len(self._expected)}] {run.title}", ""
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
                   TextColumn("{task.fields[left]}"))  # fmt: skip
        with RichProgress(
            *columns,
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
            refresh_per_second=DRAWN_PER_S,
        ) as bar:
            left = f"{duration(self.left_seconds())} left"
            task = bar.add_task(escape(self._title), total=1.0, left=left)
            self._bar = (bar, task) if self._console.is_terminal else None
            yield
        self._bar = None
        self._took += time.monotonic() - self._began
        self._done += 1

    def at(self, step: str) -> None:
        """Says what runs now; called as often as one likes."""
        now = time.monotonic()
        if step == self._step and now - self._drawn < 1 / DRAWN_PER_S:
            return
        self._step, self._drawn = step, now
        if self._bar is not None:
            bar, task = self._bar
            elapsed = now - self._began
            bar.update(
                task,
                description=escape(f"{self._title}, {step}"),
                completed=self.part_done(elapsed),
                left=f"{duration(self.left_seconds(elapsed))} left",
            )

    def done(self, run: Run, outcome: Outcome) -> None:
        """Says how a run ended."""
        failed = sum(len(failure.points) for failure in outcome.failures)
        verdict = f"{len(outcome.rows)} points" + (f", {failed} FAILED" if failed else "")
        number = f"[{self._done}/{len(self._expected)}]"
        self.say(f"{number} {run.title}: {verdict}, {outcome.seconds:.0f} s; {duration(self.left_seconds())} left")
        for failure in outcome.failures:
            self.say(f"  {failure.step}: {failure.reason}")
            for line in failure.log[-3:]:
                self.say(f"    {line}")


def duration(seconds: float) -> str:
    """A time span as people say it: `45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
