"""The mathematics of a sizing: means over campaigns, how nodes add up, what replicas cost; each with how far off it was
at points that it was not fitted to, and how wide a band that makes."""

import functools
import itertools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

# The part of all draws that a band spans: 80 %.
BAND = (0.10, 0.90)
DRAWS = 4000
Draws = NDArray[np.float64]


@dataclass(frozen=True)
class HeldOut:
    """A point that nothing was fitted to, and what was predicted of it."""

    source: str
    # What belongs together, and which point of it this is.
    what: str
    point: str
    predicted: float
    measured: float
    # Whether it is of several nodes or replicas, or of kinds together, and not of one kind on one node.
    of_cluster: bool = False
    of_mix: bool = False
    # Half the width of the band that was given beforehand, of the logarithm; None where there was none.
    half_band: float | None = None

    @property
    def in_band(self) -> bool | None:
        """Whether what was measured lay within the band; None without one."""
        return None if self.half_band is None else abs(self.log_error) <= self.half_band

    @property
    def error(self) -> float:
        """How far the prediction is off, by what was measured."""
        return abs(self.predicted / self.measured - 1)

    @property
    def log_error(self) -> float:
        """The logarithm of the quotient: the same for twice and for half."""
        return math.log(self.predicted / self.measured)


# The normal quantile of a band's end.
END = float(stats.norm.ppf(BAND[1]))


def spread(errors: Sequence[float]) -> float:
    """The standard deviation of a normal distribution whose 80 % are those of Student's t for so few errors around
    zero; zero without any."""
    if not errors:
        return 0.0
    rms = math.sqrt(sum(of * of for of in errors) / len(errors))
    return rms * float(stats.t.ppf(BAND[1], len(errors)) / END)


@functools.cache
def normal(name: str) -> Draws:
    """Draws of a standard normal distribution that are the same for a name each time: so what is asked twice, with a
    little more load, differs by the load alone. Their median is zero exactly."""
    half = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(DRAWS // 2)
    draws = np.random.default_rng(zlib.crc32(name.encode()) + 1).permutation(np.concatenate([half, -half]))
    draws.flags.writeable = False
    return draws


@dataclass(frozen=True)
class Source:
    """What one campaign says of a rate: its logarithm, and the variance of that."""

    name: str
    log_rate: float
    variance: float

    @property
    def rate(self) -> float:
        """Operations/s."""
        return math.exp(self.log_rate)


@dataclass(frozen=True)
class Between:
    """How much campaigns that measured the same differ beyond what each says of itself."""

    variance: float
    # Of how many differences that is known.
    freedom: int


def between(groups: Sequence[Sequence[Source]]) -> Between:
    """The variance between campaigns, over all groups that have several, by the method of moments."""
    several = [group for group in groups if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        return Between(0.0, 0)
    squares = sum(float(np.var([of.log_rate for of in group])) * len(group) for group in several)
    own = float(np.mean([of.variance for group in several for of in group]))
    return Between(max(0.0, squares / freedom - own), freedom)


@dataclass(frozen=True)
class Mean:
    """A rate from several campaigns, and how far off another campaign would find it."""

    log_rate: float
    # The standard deviation of the normal distribution with the band's width.
    spread: float

    @property
    def rate(self) -> float:
        """Operations/s."""
        return math.exp(self.log_rate)


def mean(sources: Sequence[Source], beyond: Between) -> Mean:
    """The mean of what campaigns say, each weighted by how sure it is: a random-effects mean with its prediction
    interval. Needs a source."""
    if not sources:
        raise ValueError("no mean of nothing")
    # Where nobody knows how far anything is off all count alike.
    weights = [1 / max(of.variance + beyond.variance, 1e-12) for of in sources]
    log_rate = sum(w * of.log_rate for w, of in zip(weights, sources, strict=True)) / sum(weights)
    wide = math.sqrt(beyond.variance + 1 / sum(weights)) if beyond.variance or any(of.variance for of in sources) else 0
    if beyond.freedom:
        wide *= float(stats.t.ppf(BAND[1], beyond.freedom) / END)
    return Mean(log_rate, wide)


@dataclass(frozen=True)
class Growing:
    """What several nodes did of what one did, in one campaign."""

    source: str
    nodes: int
    times: float

    @property
    def exponent(self) -> float:
        """Of the nodes, to come to these times."""
        return math.log(self.times) / math.log(self.nodes)


@dataclass(frozen=True)
class Growth:
    """N nodes do N^exponent times what one does, up to the most that were measured. Beyond them nothing is known but
    that a further node brings no more than the first, and is taken to bring no less than those before: the exponent
    there lies between the two."""

    exponent: float
    spread: float
    most_nodes: int

    def nodes(self, times: Draws, within: Draws, beyond: Draws) -> Draws:
        """The nodes, not rounded, that do so many times what one does, where the exponents are off by so many standard
        deviations."""
        exponent = np.clip(self.exponent + self.spread * within, 0.05, 1.0)
        further = exponent + (1 - exponent) * stats.norm.cdf(beyond)
        reached = self.most_nodes**exponent
        small = np.maximum(times, 0.0) ** (1 / exponent)
        large = self.most_nodes * (np.maximum(times, 1e-300) / reached) ** (1 / further)
        found: Draws = np.where(times <= 1, times, np.where(times <= reached, small, large))
        return found

    def times(self, nodes: float) -> float:
        """What so many nodes do by what one does, by the middle of what is known."""
        if nodes <= self.most_nodes:
            return float(nodes**self.exponent)
        further = (1 + self.exponent) / 2
        return float(self.most_nodes**self.exponent * (nodes / self.most_nodes) ** further)


def growth(points: Sequence[Growing]) -> Growth | None:
    """The exponent nearest to the points, and how far single ones are from it; None without points."""
    if not points:
        return None
    x = np.array([math.log(of.nodes) for of in points])
    y = np.array([math.log(of.times) for of in points])
    exponent = min(1.0, float(x @ y / (x @ x)))
    wide = spread([of.exponent - exponent for of in points])
    return Growth(exponent, wide, max(of.nodes for of in points))


def growth_held_out(points: Sequence[Growing]) -> list[HeldOut]:
    """Each number of nodes predicted by a law fitted to the others of the same campaign; and each campaign by all
    others."""
    found = []
    for name, members in _by_source(points).items():
        for left in members if len(members) > 2 else ():
            if law := growth([of for of in members if of is not left]):
                found.append(
                    HeldOut(
                        name,
                        "several nodes, from its others",
                        f"{left.nodes} nodes",
                        law.times(left.nodes),
                        left.times,
                        of_cluster=True,
                    )
                )
        if law := growth([of for of in points if of.source != name]):
            found += [
                HeldOut(
                    name,
                    "several nodes, from other campaigns",
                    f"{of.nodes} nodes",
                    law.times(of.nodes),
                    of.times,
                    True,
                )
                for of in members
            ]
    return found


def _by_source(points: Sequence[Growing]) -> dict[str, list[Growing]]:
    groups: dict[str, list[Growing]] = {}
    for point in points:
        groups.setdefault(point.source, []).append(point)
    return groups


@dataclass(frozen=True)
class Fanout:
    """What an operation takes of all nodes together, by the replicas that must answer: 1 + replica (n - 1) times what
    it takes with one."""

    replica: float
    spread: float

    def times(self, copies: int, off: Draws) -> Draws:
        """For so many replicas. A further one costs something between nothing and a whole operation."""
        found: Draws = 1 + np.clip(self.replica + self.spread * off, 0.0, 1.0) * (copies - 1)
        return found


def fanout(rates: Mapping[str, Mapping[int, float]]) -> Fanout | None:
    """From rates by replicas that answer, of each engine: the mean of its engines' slopes. None where there are none
    with several."""
    slopes = [of for by_copies in rates.values() if len(by_copies) > 1 and (of := slope(by_copies)) is not None]
    if not slopes:
        return None
    middle = float(np.mean(slopes))
    return Fanout(middle, float(np.std(slopes, ddof=1)) if len(slopes) > 1 else 0.5)


def slope(by_copies: Mapping[int, float]) -> float | None:
    """What a further replica costs by what the first does: the line of time per operation over replicas, in between 0
    and 1. None where it starts nowhere above zero."""
    line = _line(by_copies)
    return min(1.0, max(0.0, line[1] / line[0])) if line[0] > 0 else None


def _line(by_copies: Mapping[int, float]) -> tuple[float, float]:
    """Time per operation with one replica, and for each further one."""
    x = np.array([copies - 1 for copies in by_copies], dtype=float)
    y = np.array([1 / rate for rate in by_copies.values()])
    further, first = np.polyfit(x, y, 1)
    return float(first), float(further)


def fanout_held_out(source: str, rates: Mapping[str, Mapping[int, float]], names: Mapping[int, str]) -> list[HeldOut]:
    """Each number of replicas predicted by the line through the others of its engine."""
    found = []
    for engine, by_copies in rates.items():
        for copies, rate in by_copies.items():
            first, further = (
                _line({of: it for of, it in by_copies.items() if of != copies}) if len(by_copies) > 2 else (0, 0)
            )
            if (taken := first + further * (copies - 1)) > 0:
                found.append(
                    HeldOut(source, f"{engine}, by replicas that answer", names[copies], 1 / taken, rate, True)
                )
    return found


def band(draws: Draws) -> tuple[float, float, float]:
    """The lower end, the median and the upper end of a band. The median is one of the draws, so whole numbers stay
    whole."""
    low, middle, high = np.quantile(draws, [BAND[0], 0.5, BAND[1]], method="inverted_cdf")
    return float(low), float(middle), float(high)


def narrowest(width: Callable[[str | None], float], names: Sequence[str]) -> tuple[str, float] | None:
    """The name without whose uncertainty a band would be narrowest, and the part of its width that would go; None where
    there is no band."""
    whole = width(None)
    if whole <= 0 or not names:
        return None
    rest = {name: width(name) for name in names}
    best = min(rest, key=lambda name: rest[name])
    return (best, 1 - rest[best] / whole) if rest[best] < whole * 0.999 else None


def pairs_of(mix: Mapping[str, float]) -> float:
    """How mixed a mix is: zero of one kind alone, 1 of two kinds in halves."""
    parts = [of / sum(mix.values()) for of in mix.values()]
    return min(1.0, 4 * sum(a * b for a, b in itertools.combinations(parts, 2)))
