"""Descriptions of parameters, inherited."""

from inspect import getdoc

from cosilo import SCAFFOLD, FedAvg
from cosilo.methods.descriptions import with_inherited_parameters

BASE = """A base.

    Parameters
    ----------
    a : int
        One.
    b : float, default 2.0
        Two, at
        length.

    Examples
    --------
    >>> 1
    1
    """


def test_own_words_come_first_and_win():
    own = """A child.

    Parameters
    ----------
    b : float, default 3.0
        Another two.

    Examples
    --------
    >>> 2
    2
    """
    assert with_inherited_parameters(own, BASE).splitlines() == [
        *["A child.", "", "Parameters", "----------"],
        *["b : float, default 3.0", "    Another two.", "a : int", "    One.", ""],
        *["Examples", "--------", ">>> 2", "2"],
    ]


def test_without_parameters_of_its_own_they_stand_before_the_examples():
    text = with_inherited_parameters("A child.\n\n    Examples\n    --------\n    >>> 2\n    2\n    ", BASE)
    assert text.splitlines()[2:9] == [
        *["Parameters", "----------", "a : int", "    One."],
        *["b : float, default 2.0", "    Two, at", "    length."],
    ]
    assert text.endswith(">>> 2\n2")


def test_a_base_without_parameters_adds_nothing():
    assert with_inherited_parameters("A child.", "A base.") == "A child."


def test_a_method_describes_what_it_takes_over():
    for words in ("server_lr : float", "rounds : int", "weighting : {", "epochs : int"):
        assert words in getdoc(SCAFFOLD)
    assert "server_lr" not in getdoc(FedAvg)
