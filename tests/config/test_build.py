"""From a recipe to a federation."""

import pytest

from cosilo.errors import CosiloError


def test_a_recipe_becomes_a_federation(folder, make):
    federation = make(folder)
    assert [silo.name for silo in federation.silos] == ["north", "south"]
    assert federation.method.alpha == 0.4
    assert federation.seed == 3
    encoder, tree = federation.silos[0].learner.model  # columns of words are encoded in front of the tree
    assert tree.max_depth == 3
    assert encoder.transformers[1][2] == ["job"]
    assert federation.check() == []
    run = federation.run(folder / "run")
    assert sorted(run.relative_accuracy()) == ["north", "south"]


def test_every_silo_with_a_problem_is_named(folder, make):
    with pytest.raises(CosiloError) as error:
        make(folder, overrides=["silo.0.path=x.csv", "silo.1.label=nothing"])
    assert ["'north'" in line or "'south'" in line for line in str(error.value).splitlines()] == [True, True]


def test_a_learner_may_lie_beside_the_recipe(folder, make):
    (folder / "beside_the_recipe.py").write_text(
        "import numpy as np\n"
        "class First:\n"
        "    def fit(self, X, y): pass\n"
        "    def predict(self, X): return np.zeros(len(X), int)\n"
    )
    overrides = [
        "silo.0.learner={use='beside_the_recipe.First'}",
        "silo.1.learner={use='beside_the_recipe.First'}",
    ]
    assert sorted(make(folder, overrides=overrides).run(folder / "run").relative_accuracy()) == [
        "north",
        "south",
    ]
