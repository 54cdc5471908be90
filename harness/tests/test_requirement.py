"""Requirements that are read, and what is said of those that cannot be."""

from pathlib import Path

import pytest

from harness.errors import HarnessError, PlanError
from harness.sizing import requirement

GOOD = """\
system = "cassandra"
replication = 3
levels = ["ONE", "QUORUM", "THREE"]

[operations]
reads = 1000
inserts = 10.5

[p99_ms]
reads = 20

[data]
rows = 1_000_000
record_bytes = 1000
rows_per_day = 1000
days = 10

[prices]
memory_usd_per_gb = 2.0
disk_usd_per_gb = 0.5

[node.small]
cores = 4
memory_gb = 32
disk_gb = 100
usd = 1000
"""


def read(tmp_path: Path, text: str) -> requirement.Requirement:
    path = tmp_path / "asked.toml"
    path.write_text(text)
    return requirement.read(path)


def test_a_requirement_says_what_is_asked(tmp_path: Path) -> None:
    asked = read(tmp_path, GOOD)
    assert asked.operations.rates() == {"reads": 1000.0, "inserts": 10.5}
    assert asked.data.rows_then == 1_010_000
    assert asked.node_usd("small") == 1000 + 64 + 50
    assert (asked.p99_us("reads"), asked.p99_us("inserts")) == (20_000, None)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('system = "cassandra"', 'system = "redis"', 1, "`system`: 'redis' is unknown: choose from 'cassandra' or"),
        ("replication = 3", "replication = 0", 2, "`replication`: 0 is out of bounds: at least 1"),
        ("replication = 3", "replicas = 3", 2, "`replicas` is unknown: choose from title, system, replication"),
        ('"QUORUM"', '"MOST"', 3, "'MOST' is unknown: choose from 'ONE', 'TWO'"),
        ("replication = 3", "replication = 2", 3, "level THREE asks for more replicas than `replication`, 2"),
        ('["ONE", "QUORUM", "THREE"]', "[]", 3, "`levels` is empty"),
        ("reads = 1000", 'reads = "many"', 6, "`operations.reads`: 'many' cannot be"),
        ("reads = 1000", "reads = nan", 6, "`operations.reads`: nan cannot be"),
        ("reads = 1000", "gets = 1000", 6, "`operations.gets` is unknown: choose from reads, inserts, updates"),
        ("reads = 1000\ninserts = 10.5", "reads = 0", 5, "asks for nothing"),
        ("rows = 1_000_000", "rows = 0", 13, "`data.rows`: 0 is out of bounds: more than 0"),
        ("record_bytes = 1000", "record_bytes = 10", 12, "record_bytes is key and value together"),
        ("cores = 4\n", "", 22, "`node.small.cores` is missing: its table is one kind of node"),
        ("cores = 4", "cores = 4.5", 23, "`node.small.cores`: 4.5 cannot be"),
        ("[node.small]", "[nodes.small]", 22, "`nodes` is unknown"),
        ("usd = 1000", "usd = -1", 26, "`node.small.usd`: -1 is out of bounds: at least 0"),
        ("cores = 4", "cores = = 4", 23, "not TOML"),
        ('system = "cassandra"', 'system = "embedded"', 2, "`embedded` has no replicas"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, old: str, new: str, line: int, words: str) -> None:
    assert old in GOOD
    with pytest.raises(PlanError) as refused:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert words in str(refused.value)
    assert refused.value.line == line
    assert str(refused.value).startswith(f"{tmp_path / 'asked.toml'}:{line}: ")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"cannot read .*asked.toml: No such file"):
        requirement.read(tmp_path / "asked.toml")
    (tmp_path / "asked.toml").write_bytes(b"\xff")
    with pytest.raises(HarnessError, match="not UTF-8"):
        requirement.read(tmp_path / "asked.toml")


def test_the_examples_can_be_read() -> None:
    examples = sorted((Path(__file__).parents[2] / "requirements").glob("*.toml"))
    assert examples
    for path in examples:
        assert requirement.read(path).node


def test_the_requirement_of_the_document_can_be_read(tmp_path: Path) -> None:
    document = (Path(__file__).parents[2] / "docs" / "sizing.md").read_text()
    asked = read(tmp_path, document.partition("```toml\n")[2].partition("```")[0])
    assert asked.title == "Readings of sensors, a year from now"
    keys = [key for model in (requirement.Data, requirement.Node, requirement.Prices) for key in model.model_fields]
    assert all(f"\n{key} = " in document for key in keys), "the document shows every key"
