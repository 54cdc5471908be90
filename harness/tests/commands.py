"""An experiment whose commands are a few lines of shell, so that the harness itself can be tested in seconds: it
starts real processes and reads what they really print."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from rich.console import Console

from harness.executor import Setting, execute
from harness.experiments.base import Experiment, Notes
from harness.fields import Field, Value
from harness.host import Identity, Origin
from harness.outcomes import Failure, Outcome, write_outcome
from harness.plan import Campaign, Variant, runs
from harness.progress import Progress
from harness.report.answer import Answer, Shown
from harness.report.figure import Figure, point_series
from harness.results import Results, read_results, write_campaign
from harness.rows import Metric, Row
from harness.run import Run
from harness.steps import BadOutputError, Finished, Place, Service, Step

HOST_CSV = (
    "t_s,cpu_user,cpu_system,cpu_iowait,cpu_steal,cpu_idle,memory_used_bytes,memory_available_bytes,disk_reads_per_s,"
    "disk_read_bytes_per_s,disk_writes_per_s,disk_written_bytes_per_s,disk_flushes_per_s,disk_busy,disk_queue,"
    "network_bytes_per_s,loopback_bytes_per_s\n"
    "1.0,0.5,0.1,0.1,0.0,0.3,1000,1000,10,4096,1,512,0,0.5,0.1,0,0\n"
    "2.0,0.5,0.1,0.1,0.0,0.3,1000,1000,20,8192,1,512,1,0.5,0.1,0,0\n"
)
PROCESS_CSV = (
    "t_s,pid,name,cpu_cores,resident_bytes,threads,read_bytes_per_s,written_bytes_per_s\n1.0,7,sh,0.5,1048576,1,0,0\n"
)
PRINT_RATE = "echo reading >&2; echo 1000"


class Commands(Experiment):
    """One command for each size; `commands` has those of single sizes, the others print a rate."""

    name = "commands"
    stores = ("shell",)
    phases = ("measure",)
    axes = MappingProxyType({"size": Field(int, "a size", least=1)})
    swept = frozenset({"size"})
    parameters = MappingProxyType({"limit_s": Field(float, "seconds for a command", default=20.0)})
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("rate_per_s", "rate", "1/s", main=True),)
    notes = Notes(durability="none", latency="none")

    def __init__(self, commands: dict[int, str] | None = None, service: Service | None = None) -> None:
        self.commands = commands or {}
        self.service = service

    def programs(self, run: Run, place: Place) -> Sequence[Path]:
        return (Path("/bin/sh"),)

    def services(self, run: Run, place: Place) -> Sequence[Service]:
        return (self.service,) if self.service else ()

    def expected_seconds(self, run: Run) -> float:
        return 1.0

    def needed_bytes(self, run: Run) -> float:
        return 1e6

    def steps(self, run: Run, place: Place) -> Sequence[Step]:
        limit = float(run.parameters["limit_s"])
        steps = []
        for point in run.points():
            shell = self.commands.get(int(point["size"]), PRINT_RATE).replace("SCRATCH", str(place.scratch))
            steps.append(Step(f"size-{point['size']}", ("/bin/sh", "-c", shell), limit, (point,)))
        return steps

    def rows(self, run: Run, finished: Finished, place: Place) -> Sequence[Row]:
        try:
            rates = [float(line) for line in finished.output.splitlines()]
        except ValueError as error:
            raise BadOutputError(f"no rate: {error}") from error
        (point,) = finished.step.points
        return [Row(point, {"rate_per_s": rate}, (finished.began_s, finished.ended_s)) for rate in rates]


def answer(results: Results) -> Answer:
    """What a report says of `Commands`."""
    points = [point for point in results.points() if point.rows]
    return Answer(f"It is so at {len(points)} points.", [Shown("a size", of, "rate_per_s") for of in points])


def figures(results: Results) -> Sequence[Figure]:
    """What a report draws of `Commands`."""
    series = point_series("shell", results.points(), "size", "rate_per_s")
    return [Figure("Rates", "By size.", "size", "1/s", (series,))]


def campaign(experiment: Experiment, sizes: tuple[int, ...] = (1, 2), repetitions: int = 2) -> Campaign:
    """A campaign of `Commands`."""
    axes: dict[str, tuple[Value, ...]] = {"size": sizes}
    parameters = MappingProxyType({"limit_s": 20.0})
    variant = Variant("quick", ("shell",), ("measure",), repetitions, MappingProxyType(axes), parameters, ())
    return Campaign(
        "demo", Path("demo.toml"), "A <title>", "Is it so?", "nobody", experiment, MappingProxyType({"quick": variant})
    )


def measure(of: Campaign, folder: Path, retry: bool = False) -> Results:
    """Runs a campaign's quick variant to its end."""
    variant = of.variants["quick"]
    setting = Setting(Path(__file__).parents[2], folder, Path("/bin/sh"), "harness run demo", folder / "lock")
    execute(of, variant, setting, Progress(Console(quiet=True)), retry)
    return read_results(folder / of.name / variant.name, of, variant, runs(of, variant))


def results_in(folder: Path, of: Campaign, rates: list[float], failure: Failure | None = None) -> Results:
    """Results as the executor leaves them: so many repetitions with these rates at each size."""
    variant = dataclasses.replace(of.variants["quick"], left_out=("sizes above two",))
    home = folder / of.name / variant.name
    planned = runs(of, variant)
    identity = Identity("a processor", 2, 2**34, "Linux", "vda", "ext4", {"sh": "0123456789ab"})
    origin = Origin(identity, "0123456789ab", "2026-01-31T12:00:00Z", "harness run demo", {"python": "3.11"})
    write_campaign(home, of, variant, origin)
    for run, rate in zip(planned, rates, strict=False):
        kept = home / "runs" / run.id
        kept.mkdir(parents=True)
        (kept / "host.csv").write_text(HOST_CSV)
        (kept / "processes.csv").write_text(PROCESS_CSV)
        rows = tuple(Row(point, {"rate_per_s": rate}, (0.0, 2.0)) for point in run.points())
        failures = (failure,) if failure else ()
        command = ("sh", "-c", "echo <1> & done")
        began = origin.began_utc
        write_outcome(kept, Outcome(run.id, "shell", run.repetition, began, 2.0, (command,), rows, failures))
    return read_results(home, of, variant, planned)
