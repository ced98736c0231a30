"""What a silo's own file allows holds against a method and its parameters, whatever their shape."""

import pytest
from pydantic import ValidationError

from cosilo import CoFED
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


BETTER = Allow(parameters={"accept": ["better"]})


@pytest.mark.parametrize("allow", [BETTER, Allow(parameters={"accept": ["never", "better"]})])
def test_a_text_has_to_be_one_of_those_that_are_allowed(allow):
    check(allow, {"accept": "better", "rule": "paper"})
    with pytest.raises(Refused, match=r'does not allow accept = "always"; it allows .*"better"'):
        check(allow, {"accept": "always"})


def test_the_error_says_how_to_allow_a_text_and_what_may_imply_it():
    with pytest.raises(Refused) as refused:
        check(Allow(), {"rule": "paper", "accept": "always"}, {"accept": ["better"]})
    assert str(refused.value) == (
        'silo \'clinic\': does not allow accept = "always" (which rule = "paper" implies); it allows '
        '"better": its own file says more in [allow] parameters = { accept = ["better", "always"] }'
    )


@pytest.mark.parametrize("value", [3, None, True, {"a": "better"}, ["better", "always"], 10**400])
def test_where_texts_are_listed_nothing_else_is_allowed(value):
    with pytest.raises(Refused, match="does not allow accept = ") as refused:
        check(BETTER, {"accept": value})
    assert len(str(refused.value)) < 300


def test_texts_of_a_list_are_all_looked_at():
    check(BETTER, {"accept": ["better"]})
    check(BETTER, {"accept": []})


def test_a_list_for_a_parameter_that_a_method_does_not_have_is_ignored():
    check(BETTER, {"rounds": 3})
    check(Allow(), {"rounds": 3}, {"accept": ["better"]})


def test_a_silos_own_list_replaces_that_of_the_method():
    cautious = {"accept": ["better"]}
    check(Allow(parameters={"accept": ["better", "always"]}), {"accept": "always"}, cautious)
    with pytest.raises(Refused, match="it allows none: "):
        check(Allow(parameters={"accept": []}), {"accept": "better"}, cautious)


def test_a_list_of_texts_and_a_range_are_told_apart():
    allow = Allow.model_validate({"parameters": {"alpha": [0.2, 0.9], "accept": ["better", "always"]}})
    assert allow.parameters == {"alpha": (0.2, 0.9), "accept": ["better", "always"]}


def test_between_organisations_cofed_holds_offers_against_own_data_unless_a_silo_says_otherwise():
    for method, why in ((CoFED(accept="always"), "; it"), (CoFED(rule="paper"), r" \(which rule = ")):
        with pytest.raises(Refused, match=f'does not allow accept = "always"{why}'):
            check(Allow(), method.parameters(), method.cautious)
        check(Allow(parameters={"accept": ["always"]}), method.parameters(), method.cautious)
    for method in (CoFED(), CoFED(rule="paper", accept="better")):
        check(Allow(), method.parameters(), method.cautious)


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
