"""The command: `harness run`, `check`, `needs`, `report`, `publish`, `compare`, `size`, `list`."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from harness import planfile
from harness.agreement import AGREE_FRACTION, pairs, runs_agree, unpaired
from harness.disk import disk_size
from harness.documents.check import write as write_documents
from harness.documents.marks import Sources
from harness.documents.pictures import write_pictures
from harness.errors import HarnessError
from harness.executor import Setting, execute
from harness.files import write_whole
from harness.locks import machine_lock
from harness.needs import packages, targets
from harness.plan import Campaign, Variant, runs, variant_name
from harness.progress import Progress, duration
from harness.report.index import Entry, write_index
from harness.report.numbers import number
from harness.report.page import REPORT, write_report
from harness.report.publication import publish
from harness.report.published_pages import write_reports
from harness.report.verdict import verdict_of
from harness.results import Results, read_results
from harness.sizing import evidence, forms, requirement
from harness.sizing.model import build
from harness.sizing.solve import size
from harness.steps import Place

CHECKOUT = Path(__file__).resolve().parents[3]

app = typer.Typer(
    help="Declared experiments on stores: runs them, keeps the raw data, draws reports.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(help="A campaign of campaigns/, or a path of a campaign's file.")]
Quick = Annotated[bool, typer.Option("--quick", help="The smoke test of at most ten minutes, instead of the night's.")]
Slice = Annotated[str, typer.Option("--slice", help="A slice of the campaign, instead of its own levels.")]
ResultsFolder = Annotated[Path, typer.Option("--results", help="Where results go: on the disk to be measured.")]
Aiodb = Annotated[Path, typer.Option("--aiodb", help="The program `aiodb`.")]

DEFAULT_RESULTS = CHECKOUT / "build" / "campaigns"
MACHINE_LOCK = machine_lock()
DEFAULT_AIODB = CHECKOUT / "target" / "release" / "aiodb"


def _campaign(name: str) -> Campaign:
    path = Path(name) if name.endswith(".toml") else CHECKOUT / "campaigns" / f"{name}.toml"
    if not path.exists():
        known = ", ".join(sorted(of.stem for of in (CHECKOUT / "campaigns").glob("*.toml")))
        raise HarnessError(f"there is no campaign {name!r}: choose from {known}, or give a file's path")
    return planfile.read(path)


def _variant(campaign: Campaign, quick: bool, slice_: str) -> Variant:
    name = variant_name("quick" if quick else "night", slice_)
    if name not in campaign.variants:
        known = ", ".join(campaign.variants)
        raise HarnessError(f"{campaign.path}: there is no `{name}`: it has {known}")
    return campaign.variants[name]


@app.command()
def run(
    name: Name,
    quick: Quick = False,
    slice_: Slice = "",
    results: ResultsFolder = DEFAULT_RESULTS,
    aiodb: Aiodb = DEFAULT_AIODB,
    retry: Annotated[
        bool, typer.Option("--retry", help="Measure runs with a failed or disturbed point again.")
    ] = False,
    lock: Annotated[Path, typer.Option("--lock", help="Who holds this file measures alone.")] = MACHINE_LOCK,
) -> None:
    """Measure a campaign, or what is missing of it, and draw its report."""
    campaign = _campaign(name)
    variant = _variant(campaign, quick, slice_)
    command = shlex.join(["harness", *sys.argv[1:]])
    setting = Setting(CHECKOUT, results.resolve(), aiodb.absolute(), command, lock.absolute())
    progress = Progress(Console(stderr=True))
    try:
        execute(campaign, variant, setting, progress, retry)
    except KeyboardInterrupt:
        progress.say("interrupted: what was measured is kept, and the same command measures the rest")
        raise typer.Exit(130) from None
    _report(campaign, variant, setting.results)


@app.command()
def check(names: Annotated[list[str], typer.Argument(help="Campaigns, or paths of campaigns' files.")]) -> None:
    """Read campaigns' files and say what they would run and how long that takes, without running anything."""
    for campaign in map(_campaign, names):
        for variant in campaign.variants.values():
            planned = runs(campaign, variant)
            seconds = campaign.expected_seconds(variant)
            size = disk_size(max(campaign.experiment.needed_bytes(run) for run in planned))
            print(f"{campaign.name} {variant.name}: {len(planned)} runs, about {duration(seconds)}, {size} on the disk")


@app.command()
def needs(
    name: Name,
    quick: Quick = False,
    slice_: Slice = "",
    installed: Annotated[bool, typer.Option("--packages", help="The system's packages, not what is built.")] = False,
) -> None:
    """Say what a campaign needs: the targets of the Makefile that build it, or the packages to be installed."""
    campaign = _campaign(name)
    planned = runs(campaign, _variant(campaign, quick, slice_))
    nowhere = Path("/nowhere")
    place = Place(nowhere, nowhere, CHECKOUT, DEFAULT_AIODB)
    found = packages(campaign.experiment, planned) if installed else targets(campaign.experiment, planned, place)
    print(" ".join(found))


@app.command()
def report(name: Name, quick: Quick = False, slice_: Slice = "", results: ResultsFolder = DEFAULT_RESULTS) -> None:
    """Draw a campaign's report again, from what is there."""
    campaign = _campaign(name)
    _report(campaign, _variant(campaign, quick, slice_), results.resolve())


@app.command("publish")
def publish_results(
    name: Name,
    quick: Quick = False,
    slice_: Slice = "",
    results: ResultsFolder = DEFAULT_RESULTS,
    target: Annotated[Path, typer.Option("--target", help="Where published results lie.")] = CHECKOUT / "results",
) -> None:
    """Put a campaign's values and thinned curves into the folder of published results."""
    campaign = _campaign(name)
    found = _found(campaign, _variant(campaign, quick, slice_), results.resolve())
    print(f"Published: {publish(found, target.resolve(), CHECKOUT)}")


@app.command("reports")
def draw_published(
    published: Annotated[Path, typer.Option("--published", help="Where published results lie.")] = CHECKOUT / "results",
    target: Annotated[Path, typer.Option("--target", help="Where the pages go.")] = CHECKOUT / "build" / "reports",
) -> None:
    """Draw the reports of all published results, and their index."""
    print(f"The reports: {write_reports(published.resolve(), target.resolve(), CHECKOUT, _campaign)}")


@app.command("figures")
def write_figures() -> None:
    """Put every table and number of the documents as it is published, and the pictures that they show."""
    sources = Sources(CHECKOUT, _campaign)
    for path in [*write_documents(sources), *write_pictures(sources)]:
        print(f"Changed: {path.relative_to(CHECKOUT)}")


@app.command()
def compare(
    name: Name,
    other: Annotated[Path, typer.Option("--with", help="The folder of results of another run, as --results of it.")],
    quick: Quick = False,
    slice_: Slice = "",
    results: ResultsFolder = DEFAULT_RESULTS,
) -> None:
    """Hold two runs of a campaign against each other: ends with 1 where a point lacks, or more than 10 % of the medians
    differ by more than 10 %."""
    campaign = _campaign(name)
    variant = _variant(campaign, quick, slice_)
    first, second = _found(campaign, variant, results.resolve()), _found(campaign, variant, other.resolve())
    found, lacking = list(pairs(first, second)), list(unpaired(first, second))
    for pair in found:
        verdict = "agree" if pair.agree else "DIFFER"
        medians = f"{number(pair.first)} {number(pair.second)}"
        marks = f" ({'; '.join(pair.marks)})" if pair.marks else ""
        print(f"{verdict:6} {pair.difference:+7.1%}  {medians}  {pair.point}, {pair.metric}{marks}")
    for point in lacking:
        print(f"LACKING {point}")
    apart = sum(1 for pair in found if not pair.agree)
    print(f"{len(found) - apart} of {len(found)} medians agree within {AGREE_FRACTION:.0%}")
    raise typer.Exit(0 if runs_agree(found, lacking) else 1)


@app.command("size")
def size_requirement(
    file: Annotated[Path, typer.Argument(help="The requirement: a file as docs/sizing.md describes it.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON value instead of text.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Writes the answer as one page as well.")] = None,
    results: Annotated[Path, typer.Option("--results", help="Where published results lie.")] = CHECKOUT / "results",
) -> None:
    """Say how many nodes a requirement takes, what they cost, and how far off that may be."""
    asked = requirement.read(file)
    model = build(evidence.read(results.resolve(), CHECKOUT / "campaigns", CHECKOUT / "docs"))
    found = size(model, asked)
    if html is not None:
        write_whole(html, forms.page(found))
    print(forms.json_text(found) if as_json else forms.text(found))


@app.command("list")
def list_campaigns() -> None:
    """List the campaigns, and their slices."""
    for path in sorted((CHECKOUT / "campaigns").glob("*.toml")):
        campaign = planfile.read(path)
        print(f"{path.stem:16} {campaign.title}")
        for slice_ in campaign.slices():
            print(f"{'':16} SLICE={slice_}")


def _found(campaign: Campaign, variant: Variant, results: Path) -> Results:
    return read_results(results / campaign.name / variant.name, campaign, variant, runs(campaign, variant))


def _report(campaign: Campaign, variant: Variant, results: Path) -> None:
    found = _found(campaign, variant, results)
    path = write_report(found, CHECKOUT)
    write_index(results, _entries(results, campaign))
    print(f"{campaign.name} {variant.name}: {verdict_of(found)[0]}")
    print(f"The report: {path}")


def _entries(results: Path, measured: Campaign) -> Iterator[Entry]:
    """The campaigns that have a report, with what they found: those that are declared, and of these the variants that
    their files still have."""
    for page in sorted(results.glob(f"*/*/{REPORT}")):
        folder = page.parent.relative_to(results)
        name = folder.parent.name
        declared = (CHECKOUT / "campaigns" / f"{name}.toml").exists()
        campaign = measured if name == measured.name else _campaign(name) if declared else None
        if campaign and (variant := campaign.variants.get(folder.name)):
            yield Entry(folder, _found(campaign, variant, results))


def main() -> None:
    """Runs the command; a failure that a person can mend is one message."""
    try:
        app()
    except HarnessError as error:
        _end_with(str(error))
    except OSError as error:
        # A full disk, or a file that may not be written.
        _end_with(f"{error.filename or 'a file'}: {error.strerror or error}")


def _end_with(message: str) -> NoReturn:
    Console(stderr=True).print(f"harness: {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
