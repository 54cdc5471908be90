"""Medians and bootstrapped intervals."""

import itertools
import math
import statistics

import pytest

from harness.statistics import summarize


def exact_interval(values: list[float]) -> tuple[float, float]:
    """The same from every sample that can be drawn, instead of some."""
    medians = sorted(statistics.median(drawn) for drawn in itertools.product(values, repeat=len(values)))
    return medians[int(0.025 * len(medians))], medians[int(0.975 * len(medians))]


@pytest.mark.parametrize("values", [[9.0, 10.0, 12.0], [1.0, 5.0, 6.0, 7.0], [1.0, 2.0, 4.0, 8.0, 16.0]])
def test_an_interval_is_that_of_all_samples_that_can_be_drawn(values: list[float]) -> None:
    summary = summarize(values)
    assert summary.median == statistics.median(values)
    assert summary.interval == exact_interval(values)


def test_many_values_have_a_narrower_interval_than_their_extremes() -> None:
    summary = summarize([100.0 + step for step in range(30)])
    assert 100 < summary.low < summary.median < summary.high < 129
    assert summarize([100.0 + step for step in range(30)]).interval == summary.interval, "whenever it is asked for"


def test_an_interval_need_not_be_even() -> None:
    summary = summarize([100.0, 100.0, 100.0, 150.0])
    assert (summary.low, summary.median) == (100.0, 100.0)
    assert summary.spread_fraction == pytest.approx((summary.high - 100) / 100)


def test_ten_per_cent_is_sufficient_and_more_is_not() -> None:
    assert summarize([95.0, 100.0, 109.9]).sufficient
    assert not summarize([95.0, 100.0, 110.1]).sufficient


def test_fewer_than_three_values_are_insufficient_however_close() -> None:
    assert not summarize([7.0, 7.0]).sufficient
    assert summarize([7.0, 7.0, 7.0]).sufficient


def test_one_value_has_no_interval_and_is_insufficient() -> None:
    summary = summarize([5.0])
    assert (summary.median, summary.interval, summary.spread_fraction) == (5.0, None, None)
    assert not summary.sufficient


def test_zeros_are_not_sufficient() -> None:
    assert not summarize([0.0, 0.0, 0.0]).sufficient


@pytest.mark.parametrize("values", [[], [math.nan], [1.0, math.inf]])
def test_no_values_and_values_that_are_none_have_no_summary(values: list[float]) -> None:
    with pytest.raises(ValueError, match="no summary"):
        summarize(values)
