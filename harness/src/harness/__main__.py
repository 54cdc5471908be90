"""The command: `harness run`, `check`, `report`, `publish`, `list`."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from harness import planfile
from harness.errors import HarnessError
from harness.executor import Setting, execute
from harness.plan import Campaign, Variant, runs
from harness.progress import Progress, duration
from harness.report.index import write_index
from harness.report.page import verdict_of, write_report
from harness.report.publication import publish
from harness.results import Results, read_results

CHECKOUT = Path(__file__).resolve().parents[3]

app = typer.Typer(
    help="Declared experiments on stores: runs them, keeps the raw data, draws reports.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="A campaign of campaigns/, or a path of a campaign's file.")]
Quick = Annotated[bool, typer.Option("--quick", help="The variant of at most ten minutes.")]
ResultsFolder = Annotated[Path, typer.Option("--results", help="Where results go: on the disk to be measured.")]
Aiodb = Annotated[Path, typer.Option("--aiodb", help="The program `aiodb`.")]

DEFAULT_RESULTS = CHECKOUT / "build" / "campaigns"
DEFAULT_AIODB = CHECKOUT / "target" / "release" / "aiodb"


def _campaign(name: str) -> Campaign:
    path = Path(name) if name.endswith(".toml") else CHECKOUT / "campaigns" / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(of.stem for of in (CHECKOUT / "campaigns").glob("*.toml")))
        raise HarnessError(f"there is no campaign {name!r}: choose from {known}, or give a file's path")
    return planfile.read(path)


def _variant(campaign: Campaign, quick: bool) -> Variant:
    return campaign.variants["quick" if quick else "full"]


@app.command()
def run(
    name: Name,
    quick: Quick = False,
    results: ResultsFolder = DEFAULT_RESULTS,
    aiodb: Aiodb = DEFAULT_AIODB,
    retry: Annotated[bool, typer.Option("--retry", help="Measure runs with a failed point again.")] = False,
) -> None:
    """Measure a campaign, or what is missing of it, and draw its report."""
    campaign = _campaign(name)
    variant = _variant(campaign, quick)
    setting = Setting(CHECKOUT, results.resolve(), aiodb.absolute(), shlex.join(["harness", *sys.argv[1:]]))
    progress = Progress(Console(stderr=True))
    try:
        execute(campaign, variant, setting, progress, retry)
    except KeyboardInterrupt:
        progress.say("interrupted: finished runs are kept, and the same command measures the rest")
        raise typer.Exit(130) from None
    _report(campaign, variant, setting.results)


@app.command()
def check(name: Name) -> None:
    """Read a campaign's file and say what it would run, without running anything."""
    campaign = _campaign(name)
    for variant in campaign.variants.values():
        planned = runs(campaign, variant)
        seconds = sum(campaign.experiment.expected_seconds(run) for run in planned)
        print(f"{campaign.name} {variant.name}: {len(planned)} runs, about {duration(seconds)}")


@app.command()
def report(name: Name, quick: Quick = False, results: ResultsFolder = DEFAULT_RESULTS) -> None:
    """Draw a campaign's report again, from what is there."""
    campaign = _campaign(name)
    _report(campaign, _variant(campaign, quick), results.resolve())


@app.command("publish")
def publish_results(
    name: Name,
    quick: Quick = False,
    results: ResultsFolder = DEFAULT_RESULTS,
    target: Annotated[Path, typer.Option("--target", help="Where published results lie.")] = CHECKOUT / "results",
) -> None:
    """Put a campaign's report, figures and values into the folder of published results."""
    campaign = _campaign(name)
    found = _found(campaign, _variant(campaign, quick), results.resolve())
    print(f"Published: {publish(found, target.resolve(), CHECKOUT)}")


@app.command("list")
def list_campaigns() -> None:
    """List the campaigns."""
    for path in sorted((CHECKOUT / "campaigns").glob("*.toml")):
        print(f"{path.stem:16} {planfile.read(path).title}")


def _found(campaign: Campaign, variant: Variant, results: Path) -> Results:
    return read_results(results / campaign.name / variant.name, campaign, variant, runs(campaign, variant))


def _report(campaign: Campaign, variant: Variant, results: Path) -> None:
    found = _found(campaign, variant, results)
    path = write_report(found, CHECKOUT)
    write_index(results)
    print(f"{campaign.name} {variant.name}: {verdict_of(found)[0]}")
    print(f"The report: {path}")


def main() -> None:
    """Runs the command; a failure that a person can mend is one message."""
    try:
        app()
    except HarnessError as error:
        Console(stderr=True).print(f"harness: {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
