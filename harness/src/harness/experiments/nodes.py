"""What the experiments over Cassandra nodes share: each may be limited, and a machine has room for so many."""

import psutil

from harness.experiments.base import Experiment
from harness.node_limits import NodeLimits
from harness.run import Run
from harness.stores import cassandra

# Of the host's memory, what nodes may take.
MEMORY_PART = 0.7


class OverNodes(Experiment):
    """An experiment that limits its nodes as those of `node_limits.PARAMETERS` say that it knows."""

    def refusal(self, run: Run) -> str | None:
        if 0 < NodeLimits.of(run.parameters).memory_bytes < cassandra.LEAST_NODE_MIB << 20:
            return f"`node_memory_mib`: a node does not start in less than {cassandra.LEAST_NODE_MIB} MiB"
        return None

    def obstacle(self, run: Run) -> str | None:
        return nodes_obstacle(_most_nodes(run)) or NodeLimits.of(run.parameters).missing()


def nodes_obstacle(nodes: int) -> str | None:
    """Why this machine cannot have so many nodes; None if it can. A campaign's file may ask for more than the machine
    has on which it is only read."""
    needed = nodes * cassandra.NODE_BYTES
    if needed <= MEMORY_PART * psutil.virtual_memory().total:
        return None
    return f"`nodes`: {nodes} need {needed >> 20} MiB, more than this machine has for them"


def _most_nodes(run: Run) -> int:
    return max(map(int, [run.levels.get("nodes", 1), *run.swept.get("nodes", ())]))
