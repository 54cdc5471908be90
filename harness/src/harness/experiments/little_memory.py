"""What the experiments share that limit the memory of the process which holds the data."""

import dataclasses

from harness.run import Run
from harness.steps import Step
from harness.stores.registry import STORES


def memory_bytes(run: Run) -> int:
    """The memory of the process that holds the data; 0 where nothing limits it."""
    return int(run.parameters["memory_mib"]) << 20


def memory_refusal(run: Run) -> str | None:
    """Why a store cannot be measured with so little memory; None if it can."""
    least_mib = STORES[run.store].least_memory_mib
    if 0 < int(run.parameters["memory_mib"]) < least_mib:
        return f"`memory_mib`: {run.store} does not start in less than {least_mib} MiB"
    return None


def with_little_memory(step: Step, run: Run) -> Step:
    """A call of `bin/ycsb` whose virtual machine has the run's heap, and where the data lie in it the run's memory."""
    heap = f"JVM_OPTIONS=-Xmx{run.parameters['heap_mib']}m -XX:+ExitOnOutOfMemoryError"
    limit = memory_bytes(run) if STORES[run.store].in_client else None
    return dataclasses.replace(step, command=("env", heap, *step.command), memory_bytes=limit)
