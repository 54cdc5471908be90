"""Runs a campaign: what is finished already is kept, what is missing is measured, and a run that fails does not keep
the others from being measured."""

import contextlib
import fcntl
import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from harness.disturbance import DISTURBED
from harness.errors import HarnessError
from harness.execution import Execution
from harness.experiments.base import Place
from harness.host import Identity, identity, origin
from harness.leftovers import MARK, PARTIAL, SCRATCH, sweep
from harness.plan import Campaign, Run, Variant, runs
from harness.processes import adopt_orphans
from harness.progress import Progress
from harness.results import is_finished, read_origin, read_outcome, write_campaign

# Each is a wish to end, SIGINT too where a script that runs this in the background has it ignored.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Setting:
    """Where campaigns are run, and with what."""

    checkout: Path
    # The folder of all campaigns' results, on the disk to be measured.
    results: Path
    aiodb: Path
    # The harness's own command line, for the record.
    command: str


def execute(campaign: Campaign, variant: Variant, setting: Setting, progress: Progress, retry: bool = False) -> Path:
    """Measures what is missing of a campaign and returns its folder. With `retry`, runs with a failed or disturbed
    point count as missing. Raises KeyboardInterrupt when interrupted, and leaves then only finished runs."""
    planned = runs(campaign, variant)
    folder = setting.results / campaign.name / variant.name
    with _alone(setting.results), _terminable():
        adopt_orphans()
        for what in sweep(setting.results):
            progress.say(f"removed what an earlier run left: {what}")
        here = identity(setting.results, _programs(campaign, planned, setting))
        _begin(folder, campaign, variant, here, setting, progress)
        missing = [run for run in planned if not is_finished(folder, run) or (retry and _forget_spoilt(folder, run))]
        progress.begin(f"{campaign.name} {variant.name}", _expected(campaign, missing), len(planned) - len(missing))
        for run in missing:
            with progress.running(run, campaign.experiment.expected_seconds(run)):
                target = folder / "runs" / run.id
                mark = {MARK: str(setting.results)}
                outcome = Execution(campaign.experiment, run, _place(folder, run, setting), target, mark).execute()
            progress.done(run, outcome)
    return folder


def _expected(campaign: Campaign, missing: Sequence[Run]) -> list[float]:
    return [campaign.experiment.expected_seconds(run) for run in missing]


def _place(folder: Path, run: Run, setting: Setting) -> Place:
    return Place(
        scratch=folder / SCRATCH / run.id,
        kept=folder / PARTIAL / run.id,
        checkout=setting.checkout,
        aiodb=setting.aiodb,
    )


def _programs(campaign: Campaign, planned: Sequence[Run], setting: Setting) -> list[Path]:
    """The programs that the campaign calls; each must be there, and the machine able, before anything is started."""
    for run in planned:
        if reason := campaign.experiment.obstacle(run):
            raise HarnessError(f"{campaign.name} cannot be measured here: {reason}")
    places = [_place(setting.results, run, setting) for run in planned]
    needed = [campaign.experiment.programs(run, place) for run, place in zip(planned, places, strict=True)]
    programs = sorted({program for of in needed for program in of})
    for program in programs:
        if not program.is_file():
            raise HarnessError(f"{program} is missing: `make campaign NAME={campaign.name}` builds what it needs")
    return programs


def _begin(
    folder: Path, campaign: Campaign, variant: Variant, here: Identity, setting: Setting, progress: Progress
) -> None:
    """Takes over a folder whose results are from these programs on this machine; moves others aside."""
    earlier = read_origin(folder)
    if earlier is not None and earlier.identity != here:
        aside = folder.with_name(f"{folder.name}-until-{earlier.began_utc.replace(':', '')}-{earlier.commit}")
        if aside.exists():
            raise HarnessError(f"{folder} has results of another program or machine, and {aside} exists: move one away")
        folder.rename(aside)
        progress.say(f"results of another program or machine were moved to {aside}")
        earlier = None
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    # Where results are continued, they keep their origin, and the plan is written as it is now.
    write_campaign(folder, campaign, variant, earlier or origin(here, setting.checkout, setting.command))


def _forget_spoilt(folder: Path, run: Run) -> bool:
    """Removes a run with a point that failed or was disturbed, and says whether there was one."""
    target = folder / "runs" / run.id
    outcome = read_outcome(target)
    disturbed = any(mark.startswith(DISTURBED) for row in outcome.rows for mark in row.marks)
    if not outcome.failures and not disturbed:
        return False
    shutil.rmtree(target)
    return True


@contextlib.contextmanager
def _alone(results: Path) -> Iterator[None]:
    """Holds the lock of all campaigns: two that measure at once measure each other."""
    results.mkdir(parents=True, exist_ok=True)
    with (results / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise HarnessError(f"another campaign is running below {results}: wait for its end") from error
        yield


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Makes each of them clean up like Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
