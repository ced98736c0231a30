"""What a method's declarations say before anything runs: what it needs, and who can take part."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from cosilo import Federation, Institution, Silo
from cosilo.errors import RunError
from cosilo.methods import Method, step
from cosilo.protocol.message import Shared


class Normalised(Method):
    """As FedNova does, silos say how many steps they took; nothing says what members took in all."""

    name: ClassVar[str] = "normalised"
    taken: bool = True

    def coordinate(self, silos):
        silos.ask("train")

    def uses(self, step):
        return self.taken or step != "count"

    @step(weights=Shared("weights", merge=lambda values: values[0]))
    def train(self, silo):
        return {"weights": {"w": np.zeros(1)}}

    @step(steps="size")
    def count(self, silo):
        return {"steps": 3}

    @step(voluntary=True, accuracy="metrics")
    def tell(self, silo):
        return {"accuracy": 0.5}


class Summed(Normalised):
    name: ClassVar[str] = "summed"

    @step(steps=Shared("size", merge=sum))
    def count(self, silo):
        return {"steps": 3}

    @step(voluntary=True, accuracy=Shared("metrics", merge=max))
    def tell(self, silo):
        return {"accuracy": 0.5}

    def coordinate(self, silos):
        silos.ask("train")
        counted = silos.ask("count")
        assert {name: reply.integer("steps") for name, reply in counted.items()} == {"a": 6, "c": 3}


def silo(name, shares=("weights", "size", "metrics")):
    return Silo(name, np.eye(8), list("abababab"), DecisionTreeClassifier(), shares=shares)


def institution(**options):
    return Institution("a", [silo("x"), silo("y", **options)], shares=["weights", "size", "metrics"])


def test_steps_are_found_by_their_declaration():
    assert sorted(Normalised().steps()) == ["count", "evaluate", "hello", "tell", "train", "wants"]


def test_what_is_needed_is_what_steps_that_are_used_send_and_not_what_is_voluntary():
    assert Normalised().needs() == {
        "size": "step 'count', field 'steps'",
        "weights": "step 'train', field 'weights'",
    }
    assert list(Normalised(taken=False).needs()) == ["weights"]


def test_a_field_that_nobody_merges_keeps_institutions_out(tmp_path):
    federation = Federation([institution(), silo("c")], method=Normalised())
    line = (
        "silo 'a': is an institution with members, and normalised does not say how their 'steps' "
        "(step 'count') become one; `cosilo methods` shows which methods take institutions"
    )
    assert federation.check() == [line]
    with pytest.raises(RunError) as error:
        federation.run(tmp_path / "run")
    assert str(error.value).splitlines()[0] == line


def test_what_is_merged_is_merged(tmp_path):
    federation = Federation([institution(), silo("c")], method=Summed())
    assert federation.check() == []
    assert federation.run(tmp_path / "run").result["failures"] == []


def test_problems_are_told_of_members_too_and_nothing_is_computed():
    (line,) = Summed().problems(institution(shares=["weights"]))
    assert line.startswith("silo 'a': silo 'y': does not share 'size', which summed needs")
    assert Summed().problems(silo("c")) == []
