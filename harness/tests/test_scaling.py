"""The law of scaling, and what it is worth."""

import pytest

from harness.scaling import Errors, Law, errors, fit, held_out, verdict

COUNTS = (1, 2, 4, 8, 16, 32)
LAW = Law(0.001, 0.0002, 0.000001)


def test_a_law_is_found_again() -> None:
    found = fit({float(of): LAW.per_s(of) for of in COUNTS})
    assert (found.alone, found.queueing, found.crosstalk) == pytest.approx((LAW.alone, LAW.queueing, LAW.crosstalk))


def test_a_law_grows_at_most_by_its_clients_whatever_was_measured() -> None:
    found = fit({1.0: 100.0, 2.0: 300.0, 4.0: 900.0})
    assert found.per_s(8) <= 8 * found.per_s(1) * (1 + 1e-9)


def test_a_point_is_predicted_without_itself() -> None:
    points = {float(of): LAW.per_s(of) for of in COUNTS}
    wrong = {**points, 32.0: 1.0}
    (last,) = [of for of in held_out(wrong) if of.clients == 32]
    assert last.law_per_s == pytest.approx(points[32.0], rel=1e-6)
    assert last.error(last.law_per_s) == pytest.approx(points[32.0] - 1, rel=1e-3)
    assert last.carried_per_s == points[16.0]
    assert last.linear_per_s == 2 * points[16.0]


def test_a_law_beats_carrying_forward_and_scaling_where_it_holds() -> None:
    found = errors(held_out({float(of): LAW.per_s(of) for of in COUNTS}))
    assert found.law < 1e-6
    assert found.carried > 0.05
    assert found.linear > 0.05


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_points_are_no_curve(count: int) -> None:
    with pytest.raises(ValueError, match="at least three"):
        fit({float(of): 1.0 for of in range(1, count + 1)})


@pytest.mark.parametrize(
    ("law", "carried", "linear", "missed"),
    [
        (0.05, 0.11, 0.9, ""),
        (0.08, 0.08, 2.7, ""),
        (0.09, 0.13, 0.7, "more than half that of carrying the last point forward"),
        (0.09, 0.08, 0.7, "more than that of carrying the last point forward"),
        (0.10, 0.40, 0.18, "more than half that of scaling linearly"),
        (0.21, 0.90, 0.9, "over 20%"),
        (0.23, 0.28, 1.4, "over 20% and more than half that of carrying the last point forward"),
    ],
)
def test_a_law_must_be_worth_more_than_to_say_the_same_again(
    law: float, carried: float, linear: float, missed: str
) -> None:
    found = verdict(Errors(law, law, carried, linear))
    assert found.supported == (not missed)
    assert found.words == (
        f"the data do not support the law: its error is {missed}" if missed else "the data support the law"
    )
