"""What runs measure: the values of a point, and what they are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.fields import Levels, Value

# How the mark of a row begins whose store did not live to the end, where that is a result.
DIED = "died "


@dataclass(frozen=True)
class Row:
    """What one run found at one point."""

    levels: Mapping[str, Value]
    # By name, each with its unit in the name.
    values: Mapping[str, float]
    # When within the run this was measured, in seconds; for the resources beside it.
    window_s: tuple[float, float]
    # The most that the device gave in the same run, operations/s, where that was measured.
    ceiling_per_s: float | None = None
    # What a reader must know: `not flat`, a fallback.
    marks: tuple[str, ...] = ()
    # Throughput over time within the window: seconds since the run began, operations/s.
    series: tuple[tuple[float, float], ...] = ()
    # The mean latency over time, at the same seconds, µs.
    latency_us: tuple[tuple[float, float], ...] = ()
    # Latency by kind of operation: percentile, µs.
    percentiles_us: Mapping[str, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    # The 99th percentile over time, where an experiment is about that.
    p99_us: tuple[tuple[float, float], ...] = ()
    # The step that measured it, whose files beside it are named so. Known once the row is kept.
    step: str = ""
    # In which part of its run, from 1: a run that was interrupted goes on in another part, with everything that it
    # needs prepared again.
    part: int = 1


@dataclass(frozen=True)
class Metric:
    """One value of the rows that the report shows."""

    name: str
    title: str
    unit: str
    # Whether its interval decides if the campaign is sufficient.
    main: bool = False
    # Whether it is what rows hold against the device; without one that is the first main value.
    of_device: bool = False
    # The levels at which it is measured, by axis; empty where it is at all points.
    only: Mapping[str, tuple[Value, ...]] = field(default_factory=dict, hash=False)

    @property
    def heading(self) -> str:
        """The title with the unit, where there is one."""
        return ", ".join(filter(None, (self.title, self.unit)))

    def decides(self, levels: Levels) -> bool:
        """Whether the point with these levels must have it, and with a narrow interval."""
        return self.main and all(levels.get(axis) in of for axis, of in self.only.items())
