"""Contracts: what makes two of them the same, and what a silo cannot read out of one."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosilo import CoFED, FedAvg
from cosilo.errors import BadMessage
from cosilo.protocol.contract import Contract

NAMES = ["north", "south"]


def contract(**changes):
    settings = {"silos": NAMES, "pool": "4de1", "settings": {"quorum": 0.5}, "salt": "s"}
    return Contract.of(CoFED(), 7, **{**settings, **changes})


def test_it_says_what_a_silo_is_told():
    found = contract(vocabulary=["cat", "dog"])
    assert (found.method, found.seed, found.pool, found.members) == ("cofed", 7, "4de1", 2)
    assert found.parameters["rounds"] == 1
    assert found.vocabulary == ("cat", "dog")
    assert "2 members, pool 4de1, classes cat, dog, protocol 1" in found.in_words()


def test_a_method_without_a_pool_has_none_in_its_contract():
    assert Contract.of(FedAvg(), pool="4de1").pool == ""


def test_weights_by_silo_are_for_the_coordinator_alone():
    weighted = Contract.of(CoFED(weights={"north": 1.0, "south": 3.0}), silos=NAMES)
    assert weighted.parameters["weights"] == "equal"
    assert "north" not in json.dumps(weighted.values())


def test_names_and_settings_are_salted():
    one, other = contract(), contract(salt="other")
    assert one.names != other.names
    assert one.settings != other.settings
    assert contract().hash == one.hash
    assert contract(silos=["south", "north"]).names == one.names


@pytest.mark.parametrize(
    "changes",
    [
        {"silos": ["north", "east"]},
        {"pool": "beef"},
        {"settings": {"quorum": 0.6}},
        {"vocabulary": ["a"]},
        {"salt": "other"},
    ],
)
def test_whatever_changes_makes_another_contract(changes):
    assert contract(**changes).hash != contract().hash
    assert contract().changes(contract(**changes))


@given(st.floats(0, 1), st.integers(0, 2**40))
def test_it_comes_back_from_json(alpha, seed):
    found = Contract.of(CoFED(alpha=alpha), seed, silos=NAMES, pool="4de1", salt="s")
    again = Contract.read(json.loads(json.dumps(found.values())))
    assert again == found
    assert again.hash == found.hash


@pytest.mark.parametrize(
    "change",
    [{"seed": "7"}, {"seed": True}, {"members": -1}, {"method": 3}, {"parameters": []}, {"vocabulary": [1]}],
)
def test_what_is_no_contract_is_named(change):
    with pytest.raises(BadMessage, match="of the wrong type"):
        Contract.read({**contract().values(), **change})
    with pytest.raises(BadMessage, match="got a contract with"):
        Contract.read({"method": "cofed"})


def test_a_release_is_no_part_of_it_and_the_protocol_is():
    assert replace(contract(), protocol=2).hash != contract().hash
    assert "cosilo" not in json.dumps(contract().values())
