"""How far a campaign is, and how long is left."""

from types import MappingProxyType

import pytest
from rich.console import Console

from harness.progress import Progress
from harness.run import Run

RUN = Run("shell", MappingProxyType({"size": 1}), MappingProxyType({}), ("measure",), MappingProxyType({}), 1)


def test_what_is_left_shrinks_within_a_run_and_never_to_nothing() -> None:
    shown = Progress(Console(quiet=True))
    shown.begin("demo", [100.0, 300.0], 0)
    assert shown.left_seconds() == 400
    assert (shown.left_seconds(60), shown.part_done(60)) == (340, 0.15)
    assert shown.left_seconds(5000) == pytest.approx(301), "a run that takes longer is nearly done"
    assert 0.9 < shown.part_done(5000) < 1


def test_the_bar_moves_and_says_which_step_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("harness.progress.time.monotonic", lambda: now[0])
    shown = Progress(Console(force_terminal=True, quiet=True))
    shown.begin("demo", [100.0], 0)
    with shown.running(RUN):
        assert shown._bar is not None
        bar, task = shown._bar
        for step, second in (
            ("step 1 of 9: cluster", 0.0),
            ("step 1 of 9: cluster", 10.0),
            ("step 2 of 9: load", 50.0),
        ):
            now[0] = 1000.0 + second
            shown.at(step)
        of = bar.tasks[task]
        assert of.description == "[1/1] shell size=1 repetition 1, step 2 of 9: load"
        assert of.completed == pytest.approx(0.5)
        assert of.fields["left"] == "50 s left"
    assert shown.left_seconds() == 0
