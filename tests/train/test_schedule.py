"""Learning-rate schedules."""

import math

import pytest

from bgrl.errors import BgrlError
from bgrl.train import Schedule


def test_constant():
    assert {Schedule(0.1, 10, "constant")(step) for step in range(20)} == {0.1}


def test_linear_with_warm_up():
    rate = Schedule(1.0, 14, "linear", warmup=4, end=0.5)
    assert [rate(s) for s in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rate(9) == pytest.approx(0.75)
    assert rate(14) == rate(1000) == 0.5


def test_cosine():
    rate = Schedule(1.0, 100, "cosine")
    assert rate(0) == 1.0
    assert rate(25) == pytest.approx((1 + math.sqrt(0.5)) / 2)
    assert rate(50) == pytest.approx(0.5)
    assert rate(100) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 10, "exponential"), "unknown schedule 'exponential'; known are constant"),
        ((0.0, 10), "learning rate 0"),
        ((float("nan"), 10), "learning rate nan"),
        ((1.0, 0), "schedule of 0 steps"),
        ((1.0, 10, "linear", 11), "11 of them warm-up"),
        ((1.0, 10, "linear", 0, 2.0), "to 2"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(BgrlError, match=message):
        Schedule(*arguments)
