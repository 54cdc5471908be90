"""Runs a campaign: what is finished already is kept, what is missing is measured, and a run that fails does not keep
the others from being measured."""

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.disk import KEPT_BYTES_PER_S, require_room
from harness.disturbance import DISTURBED
from harness.errors import HarnessError
from harness.execution import Execution
from harness.host import Origin, identity, origin
from harness.interruption import Interruption
from harness.leftovers import MARK, PARTIAL, SCRATCH, remove_folder, sweep
from harness.locks import alone
from harness.measuring import measuring_files
from harness.outcomes import read_outcome
from harness.plan import Campaign, Variant, runs
from harness.processes import adopt_orphans
from harness.progress import Progress
from harness.results import is_finished, read_origin, write_campaign
from harness.run import Run
from harness.steps import Place

# Keeps others from writing the same results.
LOCK = ".lock"


@dataclass(frozen=True)
class Setting:
    """Where campaigns are run, and with what."""

    checkout: Path
    # The folder of all campaigns' results, on the disk to be measured.
    results: Path
    aiodb: Path
    # The harness's own command line, for the record.
    command: str
    # Who holds this file is the only one to measure.
    lock: Path


def execute(campaign: Campaign, variant: Variant, setting: Setting, progress: Progress, retry: bool = False) -> Path:
    """Measures what is missing of a campaign and returns its folder. With `retry`, runs with a failed or disturbed
    point count as missing. Raises KeyboardInterrupt when interrupted, and leaves then only finished runs, and of a run
    that can be resumed what it has measured."""
    planned = runs(campaign, variant)
    folder = setting.results / campaign.name / variant.name
    interruption = Interruption()
    with _alone(setting, progress), interruption.noted():
        adopt_orphans()
        own_code = measuring_files(Path(inspect.getfile(type(campaign.experiment))))
        here = identity(setting.results, _programs(campaign, planned, setting), own_code)
        earlier = read_origin(folder)
        others = earlier is not None and earlier.identity != here
        missing = [run for run in planned if others or not _is_kept(folder, run, retry)]
        _require_room(campaign, missing, setting)
        start = earlier if earlier and not others else origin(here, setting.checkout, setting.command)
        interruption.check()
        if earlier and others:
            _move_aside(folder, earlier, progress)
        _begin(folder, campaign, missing, progress)
        # Where results are continued, they keep their origin, and the plan is written as it is now.
        write_campaign(folder, campaign, variant, start)
        progress.begin(f"{campaign.name} {variant.name}", _expected(campaign, missing), len(planned) - len(missing))

        def watch(step: str) -> None:
            interruption.check()
            progress.at(step)

        for run in missing:
            interruption.check()
            with progress.running(run):
                target = folder / "runs" / run.id
                mark = {MARK: str(setting.lock)}
                place = _place(folder, run, setting)
                outcome = Execution(campaign.experiment, run, place, target, mark, watch).execute()
            progress.done(run, outcome)
        interruption.check()
    return folder


@contextlib.contextmanager
def _alone(setting: Setting, progress: Progress) -> Iterator[None]:
    """Keeps other campaigns from running, on this machine and over these results, and sweeps up after earlier ones."""
    with alone(setting.lock, setting.results) as killed, alone(setting.results / LOCK, setting.results):
        left = sweep(setting.results, str(setting.lock))
        if killed is not None and killed != setting.results and killed.exists():
            with alone(killed / LOCK, killed):
                left += sweep(killed, str(setting.lock))
        for what in left:
            progress.say(f"removed what an earlier run left: {what}")
        yield


def _expected(campaign: Campaign, missing: Sequence[Run]) -> list[float]:
    return [campaign.experiment.expected_seconds(run) for run in missing]


def _place(folder: Path, run: Run, setting: Setting) -> Place:
    return Place(
        scratch=folder / SCRATCH / run.id,
        kept=folder / PARTIAL / run.id,
        checkout=setting.checkout,
        aiodb=setting.aiodb,
    )


def _require_room(campaign: Campaign, missing: Sequence[Run], setting: Setting) -> None:
    """Each run has the disk for itself, but for what is kept of those before it."""
    if missing:
        kept = KEPT_BYTES_PER_S * sum(_expected(campaign, missing))
        needed = max(campaign.experiment.needed_bytes(run) for run in missing)
        require_room(setting.results, campaign.name, needed + kept)


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


def _is_kept(folder: Path, run: Run, retry: bool) -> bool:
    """Whether a run need not be measured: it is finished, and where spoilt ones are to be measured again it is none."""
    if not is_finished(folder, run):
        return False
    if not retry:
        return True
    outcome = read_outcome(folder / "runs" / run.id)
    disturbed = any(mark.startswith(DISTURBED) for row in outcome.rows for mark in row.marks)
    return not outcome.failures and not disturbed


def _move_aside(folder: Path, earlier: Origin, progress: Progress) -> None:
    """Keeps what other programs have measured, or another machine, apart."""
    aside = folder.with_name(f"{folder.name}-until-{earlier.began_utc.replace(':', '')}-{earlier.commit}")
    if aside.exists():
        raise HarnessError(f"{folder} has results of another program or machine, and {aside} exists: move one away")
    remove_folder(folder / PARTIAL)
    folder.rename(aside)
    progress.say(f"results of another program or machine were moved to {aside}")


def _begin(folder: Path, campaign: Campaign, missing: Sequence[Run], progress: Progress) -> None:
    """Makes the folder ready for the runs that are missing."""
    (folder / "runs").mkdir(parents=True, exist_ok=True)
    for run in missing:
        remove_folder(folder / "runs" / run.id)
    # What an interrupted run has measured is worth something as long as that run is planned.
    names = {run.id for run in missing if campaign.experiment.resumable}
    for begun in sorted((folder / PARTIAL).glob("*")):
        if begun.name in names:
            progress.say(f"goes on with {begun.name}, which was interrupted")
        else:
            remove_folder(begun)
