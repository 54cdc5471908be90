"""What the experiments over Cassandra nodes share: parameters may limit each node."""

from harness.experiments.base import Experiment
from harness.node_limits import NodeLimits
from harness.run import Run

# Below this a node does not start.
LEAST_NODE_MIB = 900


class OverNodes(Experiment):
    """An experiment that limits its nodes as those of `node_limits.PARAMETERS` say that it knows."""

    def refusal(self, run: Run) -> str | None:
        if 0 < NodeLimits.of(run.parameters).memory_bytes < LEAST_NODE_MIB << 20:
            return f"`node_memory_mib`: a node does not start in less than {LEAST_NODE_MIB} MiB"
        return None

    def obstacle(self, run: Run) -> str | None:
        return NodeLimits.of(run.parameters).missing()
