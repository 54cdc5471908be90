"""How throughput grows with the number of clients, or of nodes: Gunther's universal scalability law, fitted to measured
points, how far it is off at points that it was not fitted to, and whether that is enough."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# Below this many counts of clients the law would go through the points whatever they are.
LEAST_POINTS = 4

# A law that is off by more than this at points that it was not fitted to is not used.
MOST_ERROR = 0.20
# What one would say without a law must be off by twice as much as the law, for the law to be of use; where it is off by
# no more than this, it is good already, and the law need only be no worse.
GOOD_BASELINE = 0.10


@dataclass(frozen=True)
class Law:
    """Time per operation and client in seconds, by clients n: `alone + queueing (n - 1) + crosstalk n (n - 1)`. Of a
    cluster, nodes take the place of clients."""

    alone: float
    queueing: float
    crosstalk: float

    def per_s(self, clients: float) -> float:
        """The throughput of so many clients."""
        return clients / (self.alone + self.queueing * (clients - 1) + self.crosstalk * clients * (clients - 1))


@dataclass(frozen=True)
class HeldOut:
    """A point that a law was not fitted to, and what was predicted of it."""

    clients: float
    measured_per_s: float
    law_per_s: float
    # The rate at the next smaller count of clients, as it is and scaled by the clients.
    carried_per_s: float
    linear_per_s: float

    def error(self, predicted_per_s: float) -> float:
        """How far a prediction is off, by what was measured."""
        return abs(predicted_per_s - self.measured_per_s) / self.measured_per_s


def fit(per_s: Mapping[float, float]) -> Law:
    """The law nearest to the points, each counted by its relative error; no part of a law is below zero. Needs three
    points."""
    if len(per_s) < 3:
        raise ValueError(f"{len(per_s)} points are no curve: at least three")
    clients = np.array(sorted(per_s))
    rates = np.array([per_s[of] for of in clients])
    weights = rates / clients
    columns = np.stack([np.ones_like(clients), clients - 1, clients * (clients - 1)], axis=1) * weights[:, None]
    best: tuple[float, Law] | None = None
    for with_queueing, with_crosstalk in itertools.product((True, False), repeat=2):
        chosen = [0, *([1] if with_queueing else []), *([2] if with_crosstalk else [])]
        found, *_ = np.linalg.lstsq(columns[:, chosen], np.ones_like(clients), rcond=None)
        if min(found) < 0 or found[0] == 0:
            continue
        parts = dict(zip(chosen, map(float, found), strict=True))
        law = Law(parts[0], parts.get(1, 0.0), parts.get(2, 0.0))
        off = sum((law.per_s(of) / per_s[of] - 1) ** 2 for of in per_s)
        if best is None or off < best[0]:
            best = (off, law)
    assert best is not None, "a law of its first part alone is always above zero"
    return best[1]


def held_out(per_s: Mapping[float, float]) -> list[HeldOut]:
    """Every point but the smallest, predicted by a law that was fitted to all the others. Needs four points."""
    if len(per_s) < LEAST_POINTS:
        raise ValueError(f"{len(per_s)} points leave no point out: at least {LEAST_POINTS}")
    found = []
    for smaller, clients in itertools.pairwise(sorted(per_s)):
        law = fit({of: rate for of, rate in per_s.items() if of != clients})
        carried = per_s[smaller]
        found.append(HeldOut(clients, per_s[clients], law.per_s(clients), carried, carried * clients / smaller))
    return found


@dataclass(frozen=True)
class Errors:
    """Medians and largest of the relative errors at held-out points."""

    law: float
    law_most: float
    carried: float
    linear: float


def errors(points: Sequence[HeldOut]) -> Errors:
    """The errors of a law and of what one would say without it."""
    law = [of.error(of.law_per_s) for of in points]
    return Errors(
        statistics.median(law),
        max(law),
        statistics.median(of.error(of.carried_per_s) for of in points),
        statistics.median(of.error(of.linear_per_s) for of in points),
    )


@dataclass(frozen=True)
class Verdict:
    """Whether held-out points show that a law predicts."""

    supported: bool
    # What it falls short of, or that it does not: the end of a sentence.
    words: str


def verdict(found: Errors) -> Verdict:
    """What the errors of a law come to."""
    missed = [f"over {MOST_ERROR:.0%}"] if found.law > MOST_ERROR else []
    for name, baseline in (("carrying the last point forward", found.carried), ("scaling linearly", found.linear)):
        if baseline > GOOD_BASELINE and found.law > baseline / 2:
            missed.append(f"more than half that of {name}")
        elif baseline <= GOOD_BASELINE and found.law > baseline:
            missed.append(f"more than that of {name}")
    if missed:
        return Verdict(False, f"the data do not support the law: its error is {' and '.join(missed)}")
    return Verdict(True, "the data support the law")
