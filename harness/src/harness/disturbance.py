"""Whether somebody else used the machine while a point was measured: then it says less than it seems to."""

import dataclasses
import statistics
from collections.abc import Sequence

from harness.rows import Row
from harness.sampling import HostSample

# How every such mark begins.
DISTURBED = "disturbed: "
# More than the system itself takes: interrupts, the kernel's own threads.
OTHERS_CORES = 0.30
# Time that other guests of the host took from this one, of all cores' time.
STEAL_FRACTION = 0.05


def with_disturbance(rows: Sequence[Row], host: Sequence[HostSample]) -> list[Row]:
    """The rows, marked where the processor was not theirs alone."""
    return [dataclasses.replace(row, marks=(*row.marks, *_marks(row, host))) for row in rows]


def _marks(row: Row, host: Sequence[HostSample]) -> list[str]:
    began, ended = row.window_s
    within = [sample for sample in host if began < sample.t_s <= ended + 1]
    if not within:
        return []
    others = statistics.fmean(sample.cpu_others_cores for sample in within)
    steal = statistics.fmean(sample.cpu_steal for sample in within)
    marks = []
    if others > OTHERS_CORES:
        marks.append(f"{DISTURBED}processes of others computed")
    if steal > STEAL_FRACTION:
        marks.append(f"{DISTURBED}other guests of the host computed")
    return marks
