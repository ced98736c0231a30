"""What a silo's own file allows holds against a method and its parameters, whatever their shape."""

import pytest
from pydantic import ValidationError

from cosilo.errors import Refused
from cosilo.protocol.allow import Allow


def check(allow, parameters, cautious=None, method="cofed"):
    allow.check_method("silo 'clinic'", method, parameters, cautious or {})


def test_only_listed_methods_are_allowed():
    check(Allow(), {}, method="anything")
    check(Allow(methods=["cofed"]), {})
    with pytest.raises(Refused, match=r"^silo 'clinic': does not allow fedavg; it allows cofed$"):
        check(Allow(methods=["cofed"]), {}, method="fedavg")
    with pytest.raises(Refused, match=r"does not allow cofed; it allows none$"):
        check(Allow(methods=[]), {})


@pytest.mark.parametrize("value", [5, 5.5, [1, 5], (1, 5), {"a": 5}, {"a": [1, {"b": 5}]}, float("nan")])
def test_a_number_beyond_the_most_is_found_wherever_it_is(value):
    with pytest.raises(Refused, match=r"does not allow alpha = .*; it allows at most 4: its own file"):
        check(Allow(parameters={"alpha": 4}), {"alpha": value})


@pytest.mark.parametrize("value", [4, -(10**6), [], {}, "5", None, True])
def test_what_is_no_number_or_not_beyond_is_allowed(value):
    check(Allow(parameters={"alpha": 4}), {"alpha": value})


def test_a_range_has_two_ends_which_belong_to_it():
    allow = Allow(parameters={"alpha": (0.2, 0.9)})
    check(allow, {"alpha": 0.2})
    check(allow, {"alpha": 0.9})
    for value in (0.19, 0.91):
        with pytest.raises(Refused, match=rf"does not allow alpha = {value}; it allows 0.2 to 0.9: "):
            check(allow, {"alpha": value})


@pytest.mark.parametrize("name", ["rounds", "epochs", "local_epochs"])
def test_nothing_goes_on_for_long_unless_the_silo_says_so(name):
    check(Allow(), {name: 1000, "batch": 10**9})
    with pytest.raises(Refused, match=f"does not allow {name} = 1001; it allows at most 1000"):
        check(Allow(), {name: 1001})
    check(Allow(parameters={name: 2000}), {name: 1001})


def test_what_a_method_calls_risky_stays_below_the_risk_unless_the_silo_says_so():
    with pytest.raises(Refused, match="does not allow rounds = 2; it allows at most 1"):
        check(Allow(), {"rounds": 2}, {"rounds": 1})
    check(Allow(parameters={"rounds": 2}), {"rounds": 2}, {"rounds": 1})


@pytest.mark.parametrize(
    "table",
    [{"asks": 0}, {"seconds": 0}, {"bytes": 0}, {"runs_per_day": 0}, {"approve": "yes"}, {"agreement": 1}],
)
def test_a_table_that_means_nothing_is_not_taken(table):
    with pytest.raises(ValidationError):
        Allow(**table)


def test_a_misspelt_limit_is_not_taken_for_none():
    with pytest.raises(ValidationError, match="Extra inputs"):
        Allow(runs_a_day=1)
