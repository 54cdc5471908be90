"""Medians and intervals, against values worked out by hand or printed in tables."""

import math

import pytest

from harness.statistics import summarize, t_quantile_975


def test_the_interval_is_students() -> None:
    summary = summarize([9.0, 10.0, 11.0])
    assert summary.median == 10.0
    # The standard deviation is 1, and t for two degrees of freedom 4.303.
    assert summary.half_width == pytest.approx(4.303 / math.sqrt(3))
    assert not summary.sufficient


def test_ten_per_cent_is_sufficient_and_more_is_not() -> None:
    # Two values d apart: half the width is 12.706 d / 2, the median 100.
    just = 0.0999 * 100 * 2 / 12.706
    assert summarize([100 - just / 2, 100 + just / 2]).sufficient
    more = 0.1001 * 100 * 2 / 12.706
    assert not summarize([100 - more / 2, 100 + more / 2]).sufficient


def test_one_value_has_no_interval_and_is_insufficient() -> None:
    summary = summarize([5.0])
    assert (summary.median, summary.half_width, summary.half_width_fraction) == (5.0, None, None)
    assert not summary.sufficient


def test_equal_values_are_sufficient_and_zeros_are_not() -> None:
    assert summarize([7.0, 7.0]).sufficient
    assert not summarize([0.0, 0.0]).sufficient


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_no_values_and_values_that_are_none_have_no_summary(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no summary"):
        summarize(values)


def test_quantiles_are_the_tables() -> None:
    assert t_quantile_975(1) == 12.706
    assert t_quantile_975(30) == 2.042
    assert t_quantile_975(40) == pytest.approx(2.021, abs=0.001)
    assert t_quantile_975(120) == pytest.approx(1.980, abs=0.001)
    with pytest.raises(ValueError, match="at least one degree"):
        t_quantile_975(0)
