"""Limits of single nodes, and when nodes on one machine disturb each other."""

import os
import subprocess
from pathlib import Path

import pytest
from clusters import CELLS
from test_cassandra import ENGINE_AXES, PLACE, cells, run_of

from harness.errors import HarnessError
from harness.experiments.cassandra import SHARED, Cassandra
from harness.experiments.engines import Engines
from harness.experiments.grow import Grow
from harness.limits import PREFIX
from harness.node_limits import PARAMETERS, NodeGroups, NodeLimits
from harness.planfile import read
from harness.rows import Row
from harness.sampling import HostSample, device_number, disk_of
from harness.steps import Place, Service

CAMPAIGNS = Path(__file__).resolve().parents[2] / "campaigns"
SLOW = NodeLimits(writes_per_s=20, memory_bytes=64 << 20)
needs_groups = pytest.mark.skipif(SLOW.missing() is not None, reason=str(SLOW.missing()))


@pytest.fixture
def disk(tmp_path: Path) -> str:
    """The disk of the test's folder, which a folder in memory or in a container's layers has not."""
    if disk_of(tmp_path) is None:
        pytest.skip(f"{tmp_path.parent} is on no disk whose use could be limited: --basetemp names another folder")
    return device_number(tmp_path)


@needs_groups
def test_what_enters_a_nodes_groups_is_limited_with_all_that_it_starts(disk: str) -> None:
    groups = NodeGroups(SLOW, 2, disk)
    groups.make()
    try:
        groups.limit_disks()
        enter = "; ".join(f"echo $$ > {file}" for file in groups.entrances("2"))
        inside = subprocess.run(["sh", "-c", f"{enter}; cat /proc/self/cgroup"], check=True, capture_output=True).stdout
        assert f"{PREFIX}{os.getpid()}-node-2" in inside.decode()
        said = " ".join(file.read_text() for entrance in groups.entrances("2") for file in _limits(entrance.parent))
        assert f"{disk} 20" in said or "wiops=20" in said
        assert str(64 << 20) in said
    finally:
        groups.remove()
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{PREFIX}{os.getpid()}-node-*"))


@needs_groups
def test_disks_are_limited_once_the_tables_are_there(tmp_path: Path, disk: str) -> None:
    axes = {**CELLS, "nodes": (1,), "replication": (1,)}
    run, place = cells(axes, node_writes_per_s=37), Place(tmp_path, tmp_path, tmp_path, tmp_path)
    (service,) = Cassandra().services(run, place)
    service.prepare()
    try:
        (entrance,) = NodeGroups(NodeLimits(writes_per_s=37), 1, disk).entrances("1")
        for step in Cassandra().steps(run, place):
            step.prepare()
            said = " ".join(file.read_text() for file in _limits(entrance.parent))
            assert ("37" in said) == bool(step.points), step.name
    finally:
        service.tidy()
    assert not entrance.parent.exists()


@needs_groups
@pytest.mark.usefixtures("disk")
@pytest.mark.parametrize("store", Engines.stores)
def test_every_engine_has_the_same_memory_in_total(tmp_path: Path, store: str) -> None:
    run, place = run_of(Engines(), ENGINE_AXES, store, node_memory_mib=1500), Place(*[tmp_path] * 4)
    (service,) = Engines().services(run, place)
    service.prepare()
    try:
        (entrance,) = _entrances(service)
        assert [file.read_text().strip() for file in _limits(entrance.parent) if "memory" in file.name] == [
            str(1500 << 20)
        ]
        assert service.killed() is None
    finally:
        service.tidy()
    assert not entrance.parent.exists()


def _entrances(service: Service) -> list[Path]:
    """Those of the first node, as the cluster is told."""
    (enter,) = [word.removeprefix("ENTER=") for word in service.command if word.startswith("ENTER=")]
    return [Path(file.replace("NODE", "1")) for file in enter.split()]


@pytest.mark.parametrize("variant", ["quick", "night"])
def test_the_campaign_over_engines_limits_their_memory(variant: str) -> None:
    campaign = read(CAMPAIGNS / "engines.toml")
    assert NodeLimits.of(campaign.variants[variant].parameters).memory_bytes


def _limits(group: Path) -> list[Path]:
    names = ("blkio.throttle.write_iops_device", "memory.limit_in_bytes", "io.max", "memory.max")
    return [group / name for name in names if (group / name).exists()]


def test_a_folder_on_no_disk_cannot_be_limited() -> None:
    with pytest.raises(HarnessError, match="cannot be limited: /proc is on none"):
        device_number(Path("/proc"))


def test_no_limit_needs_no_group() -> None:
    assert NodeLimits().missing() is None
    assert NodeGroups(NodeLimits(), 2, "254:0").entrances("1") == []


def test_a_node_that_could_not_start_is_refused() -> None:
    assert "`node_memory_mib`" in str(Cassandra().refusal(cells(node_memory_mib=100)))
    assert Cassandra().refusal(cells(node_memory_mib=2000)) is None
    assert "`node_memory_mib`" in str(Engines().refusal(run_of(Engines(), ENGINE_AXES, "lmdb", node_memory_mib=100)))
    assert Engines().refusal(run_of(Engines(), ENGINE_AXES, "lmdb")) is None


def test_limits_are_known_by_the_names_of_their_parameters() -> None:
    assert NodeLimits.of(dict(zip(PARAMETERS, (1, 2, 3, 4), strict=True))) == NodeLimits(1, 2, 3, 4 << 20)
    assert set(PARAMETERS) <= set(Cassandra.parameters)
    assert set(PARAMETERS) & set(Grow.parameters) == {"node_reads_per_s", "node_writes_per_s"}


def test_without_the_controllers_no_experiment_over_nodes_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.node_limits._root", lambda controller: None)
    limited = run_of(Engines(), ENGINE_AXES, "rocksdb", node_memory_mib=1500)
    assert "no memory controller" in str(Engines().obstacle(limited))
    assert Engines().obstacle(run_of(Engines(), ENGINE_AXES, "rocksdb")) is None


def host_sample(idle: float) -> HostSample:
    return HostSample(1.0, 1 - idle, 0.0, 0.0, 0.0, idle, *([0.0] * 11))


@pytest.mark.parametrize(("idle", "marks"), [(0.1, (SHARED,)), (0.5, ())])
def test_nodes_that_wait_for_each_others_processor_show_a_shape_only(idle: float, marks: tuple[str, ...]) -> None:
    row = Row({}, {}, (0.0, 2.0))
    assert tuple(Cassandra().marks(cells(), row, [host_sample(idle)])) == marks


def test_nodes_without_limits_enter_nothing() -> None:
    (service,) = Cassandra().services(cells(), PLACE)
    assert "ENTER=" in service.command
