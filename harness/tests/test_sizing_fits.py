"""The mathematics of a sizing, by hand and by what must always hold."""

import math

import numpy as np
import pytest
from scipy import stats

from harness.sizing.fits import (
    Between,
    Fanout,
    Growing,
    Growth,
    HeldOut,
    Source,
    band,
    between,
    fanout,
    fanout_held_out,
    growth,
    growth_held_out,
    mean,
    narrowest,
    normal,
    pairs_of,
    spread,
)


def source(name: str, rate: float, variance: float = 0.0) -> Source:
    return Source(name, math.log(rate), variance)


def test_an_error_is_a_part_of_what_was_measured() -> None:
    off = HeldOut("load", "reads", "4 clients", 150.0, 100.0)
    assert off.error == pytest.approx(0.5)
    assert off.log_error == pytest.approx(math.log(1.5))


def test_few_errors_make_a_wider_band_than_many() -> None:
    assert spread([]) == 0
    # Student's t with one degree of freedom has its 90 % quantile at 3.078, the normal distribution at 1.2816.
    assert spread([0.1]) == pytest.approx(0.1 * 3.0777 / 1.28155, rel=1e-4)
    assert spread([0.1] * 4) > spread([0.1] * 100) > 0.1


def test_draws_are_the_same_for_a_name_and_have_their_middle_at_zero() -> None:
    assert np.array_equal(normal("cores"), normal("cores"))
    assert not np.array_equal(normal("cores"), normal("mixing"))
    assert abs(float(np.corrcoef(normal("cores"), normal("mixing"))[0, 1])) < 0.1
    assert float(np.median(normal("cores"))) == pytest.approx(0.0, abs=1e-12)
    assert float(np.quantile(normal("cores"), 0.9)) == pytest.approx(1.28, abs=0.1)


def test_what_campaigns_differ_by_is_found_by_hand() -> None:
    # Logarithms -d and d around their middle: squares 2 d^2 with one degree of freedom.
    groups = [[source("a", 100.0), source("b", 121.0)], [source("c", 5.0)]]
    d = math.log(1.1)
    assert between(groups).variance == pytest.approx(2 * d * d)
    assert between(groups).freedom == 1
    assert between([[source("c", 5.0)]]) == Between(0.0, 0)
    noisy = [[source("a", 100.0, 1.0), source("b", 121.0, 1.0)]]
    assert between(noisy).variance == 0, "what each says of itself is more than they differ by"


def test_a_mean_weighs_by_how_sure_a_campaign_is() -> None:
    even = mean([source("a", 100.0, 0.01), source("b", 400.0, 0.01)], Between(0.0, 0))
    assert even.rate == pytest.approx(200.0)
    assert even.spread == pytest.approx(math.sqrt(0.005))
    assert mean([source("a", 100.0, 0.0001), source("b", 400.0, 1.0)], Between(0.0, 0)).rate < 101
    wide = mean([source("a", 100.0, 0.0)], Between(0.04, 3))
    assert wide.rate == pytest.approx(100.0)
    assert wide.spread == pytest.approx(math.sqrt(0.08) * stats.t.ppf(0.9, 3) / stats.norm.ppf(0.9))
    with pytest.raises(ValueError, match="no mean of nothing"):
        mean([], Between(0.0, 0))


def test_nodes_that_were_measured_are_found_again() -> None:
    points = [Growing("grow", nodes, nodes**0.8) for nodes in (2, 3, 4)]
    law = growth(points)
    assert law is not None
    assert law.exponent == pytest.approx(0.8)
    assert law.most_nodes == 4
    assert law.spread == pytest.approx(0.0, abs=1e-9)
    zero = np.zeros(1)
    assert law.nodes(np.array([4**0.8]), zero, zero) == pytest.approx(4.0)
    assert law.nodes(np.array([0.4]), zero, zero) == pytest.approx(0.4), "a part of one node"
    assert growth([]) is None


def test_nodes_and_times_are_each_other_turned_round() -> None:
    law = Growth(0.7, 0.1, 4)
    zero = np.zeros(1)
    for nodes in (1.0, 2.5, 4.0, 9.0, 300.0):
        assert law.nodes(np.array([law.times(nodes)]), zero, zero)[0] == pytest.approx(nodes)


def test_more_work_never_takes_fewer_nodes_in_any_draw() -> None:
    law = Growth(0.74, 0.08, 4)
    within, beyond = normal("a"), normal("b")
    before = np.zeros_like(within)
    for times in np.geomspace(0.1, 1000, 60):
        after = law.nodes(np.full_like(within, times), within, beyond)
        assert np.all(after >= before)
        before = after


def test_nodes_held_out_are_predicted_by_hand() -> None:
    # Exponents 1 and 1/2: each is what the other number of nodes is predicted with.
    points = [Growing("grow", 4, 4.0), Growing("grow", 16, 4.0), Growing("other", 4, 2.0)]
    (other, *rest) = sorted(growth_held_out(points), key=lambda of: (of.source != "other", of.point))
    x4, x16 = math.log(4), math.log(16)
    exponent = (x4 * x4 + x16 * x4) / (x4 * x4 + x16 * x16)
    assert other.predicted == pytest.approx(4**exponent)
    # Beyond the 4 nodes that the law knows its exponent is in the middle between 1/2 and 1.
    sixteen = 4**0.5 * (16 / 4) ** 0.75
    assert [of.predicted for of in rest] == pytest.approx([sixteen, 4**0.5]), "two points are too few to leave one out"
    own = growth_held_out([Growing("grow", 2, 2.0), Growing("grow", 4, 4.0), Growing("grow", 8, 4.0)])
    last = next(of for of in own if of.point == "8 nodes")
    assert [last.predicted, last.error] == pytest.approx([8.0, 1.0])


def test_replicas_cost_what_a_line_through_their_times_says() -> None:
    found = fanout({"a": {1: 100.0, 2: 50.0, 3: 100 / 3}, "b": {1: 100.0, 2: 100.0}})
    assert found is not None
    assert found.replica == pytest.approx(0.5), "between a whole operation and nothing"
    assert fanout({"a": {1: 100.0}}) is None
    (first, second, third) = fanout_held_out("levels", {"a": {1: 100.0, 2: 50.0, 3: 100 / 3}}, {1: "1", 2: "2", 3: "3"})
    assert [of.predicted for of in (first, second, third)] == pytest.approx([100.0, 50.0, 100 / 3])


def test_a_further_replica_costs_nothing_at_least_and_a_whole_operation_at_most() -> None:
    times = Fanout(0.5, 10.0).times(3, normal("replicas"))
    assert (float(times.min()), float(times.max())) == (1.0, 3.0)


def test_a_band_contains_its_middle_and_stays_whole() -> None:
    for seed in range(20):
        draws = np.ceil(np.random.default_rng(seed).lognormal(1.0, 1.0, 999))
        low, middle, high = band(draws)
        assert low <= middle <= high
        assert all(of == int(of) for of in (low, middle, high))
        assert np.mean((draws >= low) & (draws <= high)) >= 0.8


def test_the_measurement_that_narrows_most_is_named_with_its_part() -> None:
    widths = {None: 1.0, "cores": 0.75, "mixing": 0.9}
    best = narrowest(lambda without: widths[without], ["cores", "mixing"])
    assert best is not None
    assert best[0] == "cores"
    assert best[1] == pytest.approx(0.25)
    assert narrowest(lambda without: 1.0, ["cores"]) is None, "nothing narrows it"
    assert narrowest(lambda without: 0.0, ["cores"]) is None, "there is no band"


def test_a_mix_of_halves_is_the_most_mixed() -> None:
    assert pairs_of({"reads": 3.0}) == 0
    assert pairs_of({"reads": 3.0, "updates": 3.0}) == pytest.approx(1.0)
    assert 0 < pairs_of({"reads": 95.0, "updates": 5.0}) < 0.2
