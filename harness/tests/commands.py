"""An experiment whose commands are a few lines of shell, so that the harness itself can be tested in seconds: it
starts real processes and reads what they really print."""

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

from rich.console import Console

from harness.executor import Setting, execute
from harness.experiments.base import BadOutputError, Experiment, Finished, Metric, Notes, Place, Row, Service, Step
from harness.fields import Field, Value
from harness.plan import Campaign, Run, Variant, runs
from harness.progress import Progress
from harness.report.figures import Figure, point_series
from harness.results import Results, read_results

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

    def figures(self, results: Results) -> Sequence[Figure]:
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
    setting = Setting(Path(__file__).parents[2], folder, Path("/bin/sh"), "harness run demo")
    execute(of, variant, setting, Progress(Console(quiet=True)), retry)
    return read_results(folder / of.name / variant.name, of, variant, runs(of, variant))
