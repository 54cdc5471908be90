"""What repeated measurements amount to: a median, an interval, and whether that is enough to say anything."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# An interval wider than this on either side, by the median, is called insufficient.
SUFFICIENT_FRACTION = 0.10

# The 97.5 % quantiles of Student's t for 1 to 30 degrees of freedom.
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """The repetitions of one measured value."""

    values: tuple[float, ...]
    median: float
    # Half the width of the mean's 95 % confidence interval; None below two values, where there is none.
    half_width: float | None

    @property
    def half_width_fraction(self) -> float | None:
        """The half-width by the median; None where either is missing or the median is zero."""
        if self.half_width is None or self.median == 0:
            return None
        return self.half_width / abs(self.median)

    @property
    def sufficient(self) -> bool:
        """Whether the interval is narrow enough for the median to be quoted."""
        fraction = self.half_width_fraction
        return fraction is not None and fraction <= SUFFICIENT_FRACTION


def summarize(values: Sequence[float]) -> Summary:
    """The summary of at least one finite value."""
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"no summary of {list(values)}: at least one value, all of them finite")
    return Summary(tuple(values), statistics.median(values), _half_width(values))


def _half_width(values: Sequence[float]) -> float | None:
    if len(values) < 2:
        return None
    return t_quantile_975(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))


def t_quantile_975(degrees_of_freedom: int) -> float:
    """The 97.5 % quantile of Student's t: tabulated to 30 degrees of freedom, above that within 0.001."""
    if degrees_of_freedom < 1:
        raise ValueError("Student's t needs at least one degree of freedom")
    if degrees_of_freedom <= len(_T_975):
        return _T_975[degrees_of_freedom - 1]
    return 1.95996 + 2.3723 / degrees_of_freedom + 2.8 / degrees_of_freedom**2
