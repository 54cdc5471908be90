"""What must be there before a campaign can be measured."""

from pathlib import Path

import pytest

from harness import planfile
from harness.needs import packages, targets
from harness.plan import runs
from harness.steps import Place

CHECKOUT = Path(__file__).resolve().parents[2]
PLACE = Place(Path("/scratch"), Path("/kept"), CHECKOUT, CHECKOUT / "target" / "release" / "aiodb")


@pytest.mark.parametrize(
    ("campaign", "variant", "built", "installed"),
    [
        ("queue-depth", "night", ["release"], ["iproute2", "fio"]),
        ("ycsb", "quick", ["ycsb"], ["iproute2", "fio", "redis-server"]),
        ("ycsb", "quick-cassandra", ["java"], ["iproute2"]),
        ("memory-full", "night-cassandra", ["java"], ["iproute2"]),
        ("load", "night", ["java"], ["iproute2"]),
        ("serve", "night", ["release"], ["iproute2", "redis-server", "redis-tools", "util-linux", "fio"]),
        ("grow", "night-rate", ["java"], ["iproute2"]),
        ("storage-modes", "night-switch", ["ycsb"], ["iproute2"]),
        ("storage-modes", "night-cassandra", ["java"], ["iproute2"]),
    ],
)
def test_a_variant_says_what_it_needs(campaign: str, variant: str, built: list[str], installed: list[str]) -> None:
    of = planfile.read(CHECKOUT / "campaigns" / f"{campaign}.toml")
    planned = runs(of, of.variants[variant])
    assert targets(of.experiment, planned, PLACE) == built
    assert packages(of.experiment, planned) == installed
