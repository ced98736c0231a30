"""Seals: what is signed, and what is read as one."""

import pytest

from cosilo.protocol.seal import Seal

SEAL = Seal(3, "a" * 64, "b" * 64, 7, "c" * 64)


def test_the_statement_has_everything_but_the_signatures():
    signed = Seal(**{**vars(SEAL), "silo": "x", "coordinator": "y"})
    assert signed.statement("run", "contract", "north") == SEAL.statement("run", "contract", "north")
    others = [
        SEAL.statement("other", "contract", "north"),
        SEAL.statement("run", "other", "north"),
        SEAL.statement("run", "contract", "other"),
        *(
            Seal(**{**vars(SEAL), name: value}).statement("run", "contract", "north")
            for name, value in (
                ("number", 4),
                ("request", "d" * 64),
                ("reply", "d" * 64),
                ("length", 8),
                ("head", "d" * 64),
                ("failed", 1),
            )
        ),
    ]
    assert SEAL.statement("run", "contract", "north") not in others
    assert len(set(others)) == len(others)


def test_it_comes_back_from_its_values():
    assert Seal.read(SEAL.values()) == SEAL
    assert Seal.read({"number": 3}) == Seal(3)


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {},
        {"length": 3},
        {"number": "3"},
        {"number": True},
        {"number": -1},
        {"number": 1, "more": 2},
        {"number": 1, "head": 5},
        {"number": 1, "silo": "x" * 3000},
    ],
)
def test_anything_else_is_none(values):
    assert Seal.read(values) is None
