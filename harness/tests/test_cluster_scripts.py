"""The scripts that make clusters, as far as that takes no node."""

import subprocess
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def test_each_further_parameter_of_a_memtable_is_one_of_it(tmp_path: Path) -> None:
    (tmp_path / "node1").mkdir()
    (tmp_path / "seed").write_text("1\n")
    plug_in = tmp_path / "aiodb-cassandra.jar"
    plug_in.touch()
    told = {"CLUSTER": str(tmp_path), "PLUGIN": str(plug_in), "PARAMETERS": "index: lmdb\ncache: 64MiB"}
    command = [str(CHECKOUT / "scripts" / "cluster.sh"), "map", "1", "aiodb"]
    subprocess.run(command, env={"PATH": "/usr/bin:/bin", **told}, check=True)
    lines = (tmp_path / "node1" / "cassandra.yaml").read_text(encoding="utf-8").splitlines()
    assert {"        store: aiodb", "        index: lmdb", "        cache: 64MiB"} <= set(lines)


def test_more_memtables_than_one_are_one_for_each_node() -> None:
    command = [str(CHECKOUT / "harness" / "keep-cluster.sh"), "/nowhere", "3", "aiodb", "mysql"]
    refused = subprocess.run(command, env={"CLUSTER": "/nowhere", "PATH": "/usr/bin:/bin"}, capture_output=True,
                             text=True, check=False)  # fmt: skip
    assert refused.returncode == 2
    assert "2 memtables are neither one for all nodes nor one for each of 3" in refused.stderr
