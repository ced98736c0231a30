"""Every mistake in a recipe is one line that names the file, the key, what it got and what it wants."""

import pytest

from cosilo.errors import ConfigError, CosiloError


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("method.alpha=1.5", "recipe.toml: method.alpha: got 1.5; wants at most 1"),
        ("method.alfa=1", "recipe.toml: method.alfa: there is no such key (did you mean 'alpha'?)"),
        ("method.use=cofd", "recipe.toml: method.use: there is no method 'cofd' (did you mean 'cofed'?)"),
        ("method.use=os.path.join", "recipe.toml: method.use: os.path.join is not a method"),
        ("seed=minus", "recipe.toml: seed: got 'minus'; wants a whole number"),
        ("sede=1", "recipe.toml: sede: there is no such key (did you mean 'seed'?)"),
        ("silo.north.labl=x", "recipe.toml: silo.north.labl: there is no such key (did you mean 'label'?)"),
        ("silo.0.test=7", "recipe.toml: silo.north.test: got 7; wants less than 1 or False"),
        ("silo.0.path=nrth.csv", "nrth.csv"),
        ("silo.0.label=age2", "age2"),
        (
            "silo.0.learner.use=sklearn.tree.DecisionTree",
            "recipe.toml: silo.north.learner.use: 'sklearn.tree' has no",
        ),
        ("silo.0.learner.use=nowhere.Thing", "recipe.toml: silo.north.learner.use: cannot import 'nowhere'"),
        ("silo.0.learner.use=Tree", "recipe.toml: silo.north.learner.use: there is no network 'Tree'"),
        (
            "defaults.learner.deep=3",
            "recipe.toml: silo.north.learner: sklearn.tree.DecisionTreeClassifier does not take",
        ),
        ('silo.0.shares=["label"]', "silo 'north': shares 'label'; wants some of labels"),
        ('silo.0.task=["yes","maybe"]', "silo 'north', data: label 'no' is outside the task"),
        ("pool.rest=true", "recipe.toml: pool: wants one of path, dataset or rest = true"),
        ("pool.path=nothing.csv", "nothing.csv"),
        ("pool.size=1000", "recipe.toml: pool.size: got 1000; there are 30 instances"),
        ("pool.fingerprint=beef", "recipe.toml: pool.fingerprint: got 'beef'; these instances have '"),
        ("quorum=3", "recipe.toml: quorum: got 3; wants at most 1"),
    ],
)
def test_a_mistake_is_one_line(folder, override, line, make):
    with pytest.raises(CosiloError) as error:
        make(folder, overrides=[override])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_several_mistakes_are_several_lines(folder, make):
    with pytest.raises(ConfigError) as error:
        make(folder, overrides=["seed=-1", "workers=no", "silo.0.test=2"])
    lines = str(error.value).splitlines()
    assert len(lines) >= 3
    assert all(line.startswith("recipe.toml: ") for line in lines)
