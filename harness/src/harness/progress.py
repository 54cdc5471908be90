"""What runs and how long is left, for whoever watches; one line per run where nobody does."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from harness.plan import Run
from harness.results import Outcome


class Progress:
    """The progress of one campaign. The time left is what the experiments expect of the runs to come, corrected by how
    long the finished ones really took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._expected: list[float] = []
        self._done = 0
        self._took = 0.0

    def say(self, text: str) -> None:
        """Something that a person should know."""
        self._console.print(escape(text), highlight=False, soft_wrap=True)

    def begin(self, title: str, expected: list[float], kept: int) -> None:
        """So many runs are to be measured, each expected to take so many seconds."""
        self._expected = expected
        kept_text = f", {kept} finished before" if kept else ""
        self.say(f"{title}: {len(expected)} runs to measure{kept_text}, about {duration(sum(expected))}")

    def left_seconds(self) -> float:
        """How long all runs not yet done should take."""
        known = sum(self._expected[: self._done])
        factor = self._took / known if known else 1.0
        return factor * sum(self._expected[self._done :])

    @contextlib.contextmanager
    def running(self, run: Run, expected: float) -> Iterator[None]:
        """Shows one run while it lasts."""
        left = self.left_seconds()
        began = time.monotonic()
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   TextColumn("{task.fields[left]}"))  # fmt: skip
        with RichProgress(
            *columns, console=self._console, transient=True, disable=not self._console.is_terminal
        ) as bar:
            bar.add_task(
                escape(run.title),
                total=len(self._expected),
                completed=self._done,
                left=f"{duration(left)} left",
            )
            yield
        self._took += time.monotonic() - began
        self._done += 1

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
