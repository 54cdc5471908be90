"""What one campaign says of one kind of operation on one node: rates by requests in flight, and a law through them."""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.fields import Value
from harness.report.names import levels_name
from harness.scaling import LEAST_POINTS, MOST_ERROR, Law, errors, fit, held_out
from harness.sizing.evidence import Observation
from harness.sizing.fits import HeldOut
from harness.sizing.ways import Way

# What is a smaller part of a mix says what that mix does, and little of the kind.
LEAST_PART = 0.25
# A rate that reaches so much of what the device gave beside it says nothing of the processor.
DEVICE_BOUND = 0.7


@dataclass(frozen=True)
class Asked:
    """One number of requests in flight."""

    clients: float
    per_s: float
    # None where it was not measured.
    p99_us: float | None


@dataclass(frozen=True)
class Curve:
    """One campaign, way, kind and durability."""

    source: str
    way: Way
    kind: str
    durability: str
    points: tuple[Asked, ...]
    cores: int
    record_bytes: float
    rows: float
    # Memory by the bytes of all records.
    memory_part: float
    scan_rows: float
    # Whether other kinds were done beside it, so that their cost is in its rate.
    mixed: bool
    # Whether the device beside it gave hardly more: such rates say nothing of the processor.
    of_device: bool
    # The least of the processor for each operation, where the device was what bounds the rate.
    cpu_us: float | None
    # The variance of the logarithm of a rate over repetitions; None where nothing was repeated.
    repeated: float | None
    marks: int
    # What its campaign varies beside clients and kinds, in words.
    setting: str = ""

    @property
    def shows_processor(self) -> bool:
        """Whether it says how much the processor of a node does."""
        return self.cpu_us is not None or not self.of_device

    @property
    def most_clients(self) -> float:
        """The most requests in flight."""
        return max(of.clients for of in self.points)

    @functools.cached_property
    def held_out(self) -> list[HeldOut]:
        """Each number of clients but the fewest, predicted from all others."""
        if len(self.points) < LEAST_POINTS:
            return []
        return [
            HeldOut(
                self.source, f"{self.kind}, {self.way.name}", f"{of.clients:g} clients", of.law_per_s, of.measured_per_s
            )
            for of in held_out(self._rates())
        ]

    @functools.cached_property
    def law(self) -> Law | None:
        """The law through the points; None where there are too few or it is off by too much."""
        if len(self.points) < LEAST_POINTS or errors(held_out(self._rates())).law > MOST_ERROR:
            return None
        return fit(self._rates())

    def _rates(self) -> dict[float, float]:
        return {of.clients: of.per_s for of in self.points}

    def per_s(self, clients: float) -> float | None:
        """The rate at so many clients, if it was measured there or lies between two that were."""
        if not self.points[0].clients <= clients <= self.most_clients:
            return None
        if law := self.law:
            return law.per_s(clients)
        return next((of.per_s for of in self.points if of.clients == clients), None)

    def within(self, p99_us: float | None) -> tuple[Asked, float] | None:
        """The number of clients that does the most within a latency, and how much; None where none is within it, or
        nobody knows."""
        fit_in = [of for of in self.points if p99_us is None or (of.p99_us is not None and of.p99_us <= p99_us)]
        if not fit_in:
            return None
        if self.cpu_us is not None:
            best = max(fit_in, key=lambda of: of.per_s)
            return best, self.cores * 1e6 / self.cpu_us
        law = self.law
        rates = {of.clients: law.per_s(of.clients) if law else of.per_s for of in fit_in}
        best = max(fit_in, key=lambda of: rates[of.clients])
        return best, rates[best.clients]

    def p99_us(self, per_s: float) -> float | None:
        """The 99th percentile at a rate: that of the fewest clients that reach it, between two of them on logarithmic
        axes."""
        known = [(of.per_s, of.p99_us) for of in self.points if of.p99_us is not None]
        rising = [pair for number, pair in enumerate(known) if all(pair[0] > of[0] for of in known[:number])]
        if not rising:
            return None
        for number, (rate, late) in enumerate(rising):
            if rate >= per_s:
                if number == 0:
                    return late
                below, early = rising[number - 1]
                part = math.log(per_s / below) / math.log(rate / below)
                return math.exp(math.log(early) + part * (math.log(late) - math.log(early)))
        return rising[-1][1]


# What the points of a curve have in common: campaign, way, kind, durability, whether it is of a mix, and all else that
# the campaign varies.
_Together = tuple[str, Way, str, str, bool, tuple[tuple[str, Value], ...]]


def curves(observations: Iterable[Observation]) -> list[Curve]:
    """The curves of one node without limits, by what was measured together."""
    groups: dict[_Together, list[tuple[Observation, Asked]]] = {}
    for of in observations:
        if not of.is_plain:
            continue
        for kind in of.mix:
            if (asked := _asked(of, kind)) is None:
                continue
            key = (
                of.source,
                of.way,
                f"{kind} {of.scan_rows:g}" if kind == "scans" else kind,
                of.durability,
                of.kind is None,
                of.setting,
            )
            groups.setdefault(key, []).append((of, asked))
    return [_curve(key, members) for key, members in groups.items()]


def _asked(of: Observation, kind: str) -> Asked | None:
    """The rate of a kind by itself: in a mix, what so many clients do of it in the time that one takes."""
    late = of.p99_us.get(kind)
    if of.kind == kind:
        return Asked(of.clients, of.per_s, late)
    if of.mix[kind] < LEAST_PART or kind not in of.mean_us:
        return None
    return Asked(of.clients, of.clients * 1e6 / of.mean_us[kind], late)


def _curve(key: _Together, members: Sequence[tuple[Observation, Asked]]) -> Curve:
    source, way, kind, durability, mixed, setting = key
    first = members[0][0]
    several = [of for of, _ in members if len(of.values) > 1]
    return Curve(
        source=source,
        way=way,
        kind=kind.partition(" ")[0],
        durability=durability,
        points=tuple(sorted((asked for _, asked in members), key=lambda of: of.clients)),
        cores=first.cores,
        record_bytes=first.record_bytes,
        rows=first.rows,
        memory_part=first.memory_part,
        scan_rows=first.scan_rows,
        mixed=mixed,
        of_device=any(of.device_per_s and of.per_s > DEVICE_BOUND * of.device_per_s for of, _ in members),
        cpu_us=min((of.cpu_us for of, _ in members if of.cpu_us is not None and of.device_per_s), default=None),
        repeated=max(_variance(of.values) for of in several) if len(several) == len(members) else None,
        marks=sum(1 for of, _ in members if of.marks),
        # Of a workload, its kind is said.
        setting=levels_name(dict(setting), (axis for axis, _ in setting if axis != "workload")),
    )


def _variance(values: Sequence[float]) -> float:
    """Of the mean of the logarithms."""
    logs = [math.log(of) for of in values]
    middle = sum(logs) / len(logs)
    return sum((of - middle) ** 2 for of in logs) / (len(logs) - 1) / len(logs)
