"""Every kind of experiment by its name."""

from types import MappingProxyType

from harness.experiments.base import Experiment
from harness.experiments.cassandra import Cassandra
from harness.experiments.copy_size import CopySize
from harness.experiments.cost import Cost
from harness.experiments.direct_access import DirectAccess
from harness.experiments.engines import Engines
from harness.experiments.grow import Grow
from harness.experiments.memory_full import MemoryFull
from harness.experiments.mixed_replicas import MixedReplicas
from harness.experiments.queue_depth import QueueDepth
from harness.experiments.serve import Serve
from harness.experiments.storage_modes import StorageModes
from harness.experiments.ycsb import Ycsb

EXPERIMENTS: MappingProxyType[str, Experiment] = MappingProxyType(
    {
        experiment.name: experiment
        for experiment in (
            QueueDepth(),
            CopySize(),
            Cost(),
            Ycsb(),
            MemoryFull(),
            Cassandra(),
            Engines(),
            Grow(),
            Serve(),
            DirectAccess(),
            MixedReplicas(),
            StorageModes(),
        )
    }
)
