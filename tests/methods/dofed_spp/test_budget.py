import numpy as np
import pytest

from cosilo.methods.dofed_spp.budget import Budget

RNG = np.random.default_rng(0)


def test_a_shared_link_takes_as_often_as_there_are_uploads():
    budget = Budget(total=60, uplink={"rate": 100.0, "latency": 0.5}, training=3, ratios=1, labelling=0.25)
    costs = budget.costs(200)  # two seconds each
    assert costs.seconds(K=3, B=2) == 3 + 1 + 0.5 + 3 * 2 + 2 * 0.25
    assert budget.round_seconds(2, [200] * 3, RNG) == costs.seconds(K=3, B=2)
    assert budget.round_seconds(2, [], RNG) == 4.5  # nothing was uploaded


def test_links_of_their_own_take_as_long_as_the_slowest():
    budget = Budget(total=60, uplink={"rate": 100.0, "latency": 0.5, "shared": False})
    assert budget.costs(200).seconds(K=9, B=1) == 2.5
    assert budget.round_seconds(1, [200] * 9, RNG) == 2.5
    drawn = Budget(total=60, uplink={"rate": (100.0, 400.0), "shared": False})
    assert drawn.costs(200).seconds(K=9, B=1) == 2.0
    assert drawn.round_seconds(1, [200] * 9, RNG) <= 2.0


def test_what_comes_before_the_first_round_is_spent():
    budget = Budget(total=60, uplink={"rate": 100.0}, warm_up=7)
    assert budget.cold_start(200, 5, RNG) == 17


def test_whether_another_round_fits():
    budget = Budget(total=10, uplink={"rate": 100.0}, labelling=1)  # at least three seconds
    assert budget.fits(200, spent=7.0)
    assert not budget.fits(200, spent=7.1)


def test_drawn_rates_cost_what_was_drawn():
    budget = Budget(total=60, uplink={"rate": (100.0, 200.0)})
    spent = budget.round_seconds(1, [200] * 4, np.random.default_rng(3))
    assert spent == pytest.approx((200 / np.random.default_rng(3).uniform(100, 200, 4)).sum())
