"""One campaign at a time, wherever its results go."""

from pathlib import Path

import pytest
from commands import Commands, campaign, measure

from harness.errors import HarnessError
from harness.locks import alone, machine_lock


def test_a_campaign_with_other_results_is_refused_as_well(tmp_path: Path) -> None:
    results = tmp_path / "one"
    with alone(tmp_path / "two" / "lock", results) as killed:
        assert killed is None
        with pytest.raises(HarnessError, match=f"another campaign is running, with results in {results}"):
            measure(campaign(Commands()), tmp_path / "two")
    measure(campaign(Commands()), tmp_path / "two")


def test_what_a_killed_campaign_left_elsewhere_is_swept(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    left = there / "demo" / "quick" / "scratch" / "store"
    left.mkdir(parents=True)
    here.mkdir()
    (here / "lock").write_text(str(there))
    measure(campaign(Commands()), here)
    assert not left.exists()
    assert (here / "lock").read_text() == "", "nothing is left by one that ended by itself"


def test_the_machines_lock_is_no_link_of_others(tmp_path: Path) -> None:
    link = tmp_path / "lock"
    link.symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="symbolic links"), alone(link, tmp_path):
        pass
    assert not (tmp_path / "precious").exists()
    assert machine_lock().name.startswith("aiodb-campaigns-")
