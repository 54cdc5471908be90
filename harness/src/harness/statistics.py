"""What repeated measurements amount to: a median, an interval, and whether that is enough to say anything."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.stats import bootstrap

# An interval wider than this on either side, by the median, is called insufficient.
SUFFICIENT_FRACTION = 0.10
# Fewer repetitions than this are never sufficient, however close they are.
LEAST_VALUES = 3
# What an interval is, for readers of a figure.
INTERVAL = (
    "95 % of the medians of samples drawn from the repetitions lie in the interval (bootstrap, percentiles). "
    "With three "
    "or four repetitions that is from the least to the greatest."
)

_RESAMPLES = 4_000
_CONFIDENCE = 0.95
# The same values have the same interval, whenever they are asked for.
_SEED = 1


@dataclass(frozen=True)
class Summary:
    """The repetitions of one measured value."""

    values: tuple[float, ...]
    median: float
    # The bootstrapped 95 % interval of the median; None below two values, where there is none.
    interval: tuple[float, float] | None

    @property
    def low(self) -> float:
        """The lower end of the interval; the median where there is none."""
        return self.interval[0] if self.interval else self.median

    @property
    def high(self) -> float:
        """The upper end likewise."""
        return self.interval[1] if self.interval else self.median

    @property
    def spread_fraction(self) -> float | None:
        """How far the interval reaches to its further side, by the median; None where either is missing or the median
        is zero."""
        if self.interval is None or self.median == 0:
            return None
        return max(self.high - self.median, self.median - self.low) / abs(self.median)

    @property
    def sufficient(self) -> bool:
        """Whether there are enough repetitions, and the interval is narrow enough, for the median to be quoted."""
        fraction = self.spread_fraction
        return len(self.values) >= LEAST_VALUES and fraction is not None and fraction <= SUFFICIENT_FRACTION


def summarize(values: Sequence[float]) -> Summary:
    """The summary of at least one finite value."""
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"no summary of {list(values)}: at least one value, all of them finite")
    return Summary(tuple(values), statistics.median(values), _interval(tuple(sorted(values))))


@lru_cache(maxsize=10_000)
def _interval(values: tuple[float, ...]) -> tuple[float, float] | None:
    if len(values) < 2:
        return None
    if values[0] == values[-1]:
        return values[0], values[0]
    found = bootstrap(
        (np.asarray(values),),
        np.median,
        n_resamples=_RESAMPLES,
        confidence_level=_CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(_SEED),
    ).confidence_interval
    return float(found.low), float(found.high)
