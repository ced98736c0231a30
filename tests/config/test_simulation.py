"""Silos cut out of one dataset, as a recipe says."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from cosilo import data
from cosilo.config.settings import SimulationSettings
from cosilo.config.simulation import simulate
from cosilo.config.source import Source
from cosilo.errors import ConfigError

SIMULATION = """
[method]
use = "local"
[simulation]
dataset = "digits"
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }, { use = "sklearn.tree.DecisionTreeClassifier" }]
"""


@pytest.mark.parametrize(
    "split",
    [
        '{ use = "superclasses", silos = 4, classes = [3, 4], per_class = 10 }',
        '{ use = "dirichlet", silos = 4, concentration = 1.0 }',
        '{ use = "shards", silos = 4, per_silo = 2 }',
        '{ use = "iid", silos = 4, size = 50 }',
    ],
)
def test_simulations_are_cut_from_a_dataset_without_overlap(folder, split, make):
    federation = make(folder, SIMULATION + f"split = {split}")
    assert len(federation.silos) == 4
    assert [silo.learner.name for silo in federation.silos] == ["GaussianNB", "DecisionTreeClassifier"] * 2
    for silo in federation.silos:
        X, y = silo.data.test
        assert len(X) == len(y) > 0
        assert set(np.unique(y)) <= set(range(len(silo.task)))


def _rows(silo) -> list[bytes]:
    return [row.tobytes() for row in np.asarray(silo.data.test[0], dtype=np.float64)]


def test_a_test_set_is_dealt_to_silos_with_the_same_classes(folder, make):
    """Digits has 500 test instances."""
    common = f"""{SIMULATION}tasks = "all"
split = {{ use = "dirichlet", silos = 5, concentration = 0.1, size = 20 }}
"""
    whole = _rows(make(folder, common).silos[0])
    assert len(set(whole)) == 500

    dealt = [_rows(silo) for silo in make(folder, common + "test = 100").silos]
    assert sorted(row for rows in dealt for row in rows) == sorted(whole)  # each once
    assert dealt != [whole[place : place + 100] for place in range(0, 500, 100)]
    assert dealt == [_rows(silo) for silo in make(folder, common + "test = 100").silos]
    assert dealt != [_rows(silo) for silo in make(folder, "seed = 1\n" + common + "test = 100").silos]

    # 200 + 200 + 100, and then from the start; nobody has one twice.
    dealt = [_rows(silo) for silo in make(folder, common + "test = 200").silos]
    assert [len(set(rows)) for rows in dealt] == [200] * 5
    assert len({row for rows in dealt[:3] for row in rows}) == 500
    assert len({row for rows in dealt[:2] for row in rows}) == 400


def test_silos_with_other_classes_are_dealt_their_own(folder, make):
    silos = make(folder, SIMULATION + 'split = { use = "shards", silos = 5, per_silo = 2 }\ntest = 30').silos
    assert [len(silo.data.test[1]) for silo in silos] == [30] * 5
    for silo in silos:
        assert set(silo.data.test[1].tolist()) == set(range(len(silo.task)))  # 30 of about 100, of all


def test_silos_may_tell_all_classes_apart(folder, make):
    split = 'split = { use = "shards", silos = 5, per_silo = 2 }\n'
    own, whole = (make(folder, f'{SIMULATION}{split}tasks = "{tasks}"').silos for tasks in ("own", "all"))
    assert max(len(silo.task) for silo in own) < 10
    assert [silo.task.classes for silo in whole] == [tuple("0123456789")] * 5
    assert [len(silo.data.test[1]) for silo in whole] == [500] * 5


def test_a_misspelt_split(folder, make):
    with pytest.raises(ConfigError, match=r"recipe\.toml: simulation\.split: .*superclasses"):
        make(folder, SIMULATION + 'split = { use = "superclass", silos = 4 }')
    with pytest.raises(
        ConfigError, match=r"simulation\.split\.silo: there is no such key \(did you mean 'silos'"
    ):
        make(folder, SIMULATION + 'split = { use = "iid", silo = 4, silos = 3 }')


@pytest.mark.parametrize(
    ("override", "line"),
    [
        (
            "simulation.dataset=digit",
            "recipe.toml: simulation.dataset: no dataset 'digit' (did you mean 'digits'?)",
        ),
        ("simulation.labels=coarse", "recipe.toml: simulation.labels: dataset 'digits': no group 'coarse'"),
        ("simulation.split.silos=5000", "recipe.toml: simulation.split: "),
        ("simulation.names=['a']", "recipe.toml: simulation.names: got 1 names for 4 silos"),
        ("simulation.test=0", "recipe.toml: simulation.test: got 0; wants at least 1"),
        (
            "simulation.test=501",
            "recipe.toml: simulation.test: got 501; there are 500 test instances of the classes of silo "
            "'silo-1'",
        ),
        ("simulation.tasks=some", "recipe.toml: simulation.tasks: got 'some'; wants 'own' or 'all'"),
        (
            "simulation.split={use='by_value',column='x'}",
            "recipe.toml: simulation.split: column: digits has no 'x'",
        ),
    ],
)
def test_a_mistake_in_a_simulation_is_one_line(folder, override, line, make):
    with pytest.raises(ConfigError) as error:
        make(folder, SIMULATION + 'split = { use = "iid", silos = 4 }', [override])
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_the_rest_is_what_no_silo_got(folder, make):
    text = (
        SIMULATION.replace("local", "cofed")
        + 'split = { use = "iid", silos = 4, size = 50 }\n[pool]\nrest = true\n'
    )
    federation = make(folder, text)
    assert len(federation.pool) == 1297 - 200
    got = {row.tobytes() for silo in federation.silos for row in silo.data.all[0]}
    # A few digits of the dataset are equal to the pixel, so the sets may touch, but no more than that.
    assert len([row for row in federation.pool if row.tobytes() in got]) <= 2


def test_labels_of_a_dataset_and_of_what_a_simulation_left_over(folder, make):
    text = SIMULATION.replace("local", "cofed") + 'split = { use = "iid", silos = 4, size = 50 }\n[pool]\n'
    X, y = load_digits(return_X_y=True)
    known = {row.tobytes(): str(label) for row, label in zip(X, y, strict=True)}
    for pool in ("rest = true\nsize = 100\n", 'dataset = "digits"\nsplit = "test"\n'):
        federation = make(folder, f"{text}{pool}labelled = true\n")
        assert len(federation.pool) >= 100
        assert [known[row.tobytes()] for row in federation.pool] == federation.pool_labels.tolist()
        assert make(folder, text + pool).pool_labels is None


@pytest.mark.parametrize(
    "split",
    [
        '{ use = "subset", silos = 4, clusters = 4, per_class = 30, labelled = 5, unlabelled = 20 }',
        '{ use = "normal", silos = 4, classes = [2, 4], per_class = 30, labelled = 5, unlabelled = 20 }',
    ],
)
def test_simulated_targets(folder, split, make):
    federation = make(folder, f"{SIMULATION}split = {split}\n[pool]\nrest = true\n")
    X, y = load_digits(return_X_y=True)
    known = {row.tobytes(): str(label) for row, label in zip(X, y, strict=True)}
    taken = set()
    for silo in federation.silos:
        target = silo.data.target
        assert set(silo.task.decode(silo.data.test[1])) == set(silo.wanted.classes)
        assert len(silo.data.own[1]) == 30 * len(np.unique(silo.data.own[1]))
        assert len(target.labelled[1]) == 5 * len(silo.wanted)
        assert len(target.truth) == 20 * len(silo.wanted)
        for part, codes in (silo.data.own, target.labelled, (target.unlabelled, target.truth)):
            assert [known[row.tobytes()] for row in part] == silo.task.decode(codes).tolist()
            taken |= {row.tobytes() for row in part}
    assert len([row for row in federation.pool if row.tobytes() in taken]) <= 2
    again = make(folder, f"{SIMULATION}split = {split}").silos
    assert [s.data.fingerprints() for s in again] == [s.data.fingerprints() for s in federation.silos]
    hidden = make(folder, f"{SIMULATION}hidden_targets = true\nsplit = {split}").silos
    assert all(len(s.data.train[1]) == len(s.data.own[1]) and s.among == s.task for s in hidden)


@pytest.mark.parametrize(
    ("split", "line"),
    [
        ('{ use = "subset", silos = 4 }', "recipe.toml: simulation.split.clusters: is missing"),
        (
            '{ use = "subset", silos = 4, clusters = 3 }',
            "recipe.toml: simulation.split: class 0 has 122 instances, a silo wants 500; lower per_class",
        ),
        (
            '{ use = "normal", silos = 4, clas = [2, 3] }',
            "recipe.toml: simulation.split.clas: there is no such key (did you mean 'classes'?)",
        ),
        (
            '{ use = "normal", silos = 4 }\ntasks = "all"',
            'recipe.toml: simulation: wants tasks = "own" with the split normal, which sets what is wanted',
        ),
        (
            '{ use = "iid", silos = 4 }\nhidden_targets = true',
            "recipe.toml: simulation: wants a split with targets, subset or normal, to hide them; got iid",
        ),
    ],
)
def test_a_mistake_in_a_split_with_targets_is_one_line(folder, split, line, make):
    with pytest.raises(ConfigError) as error:
        make(folder, f"{SIMULATION}split = {split}")
    assert str(error.value).startswith(line)
    assert "\n" not in str(error.value)


def test_images_have_no_columns_to_draw(folder, make):
    text = SIMULATION.replace("local", "cofed") + 'split = { use = "iid", silos = 4, size = 50 }\n[pool]\n'
    with pytest.raises(ConfigError, match=r"pool\.independent: wants a pool of columns"):
        make(folder, text + "rest = true\nindependent = true\n")


@pytest.mark.parametrize(
    "split",
    [
        {"use": "superclasses", "silos": 5, "classes": [4, 6], "per_class": 5},
        {"use": "shards", "silos": 5, "per_silo": 6},  # as FML's Non-IID (1): silos share digits
    ],
)
def test_in_the_joint_test_set_every_instance_counts_once(split):
    """Silos with the same classes are judged on the same test instances; together they are one test set."""
    values = {
        "dataset": "digits",
        "split": split,
        "learners": [{"use": "sklearn.naive_bayes.GaussianNB"}],
    }
    silos, _ = simulate(SimulationSettings.model_validate(values), 3, Source("r.toml", Path()))
    held = [silo.data.test for silo in silos]
    classes = {name for silo in silos for name in silo.task.classes}
    _, test = (data.load("digits", split) for split in ("train", "test"))
    there = test.X[np.isin(np.array(test.classes)[test.y], list(classes))]
    assert sum(len(y) for _, y in held) > len(there)  # some are at several silos
    joint = np.concatenate([silo.data.joint_test[0] for silo in silos if silo.data.joint_test is not None])
    assert sorted(map(bytes, joint)) == sorted(map(bytes, there))
