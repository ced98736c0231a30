"""A silo's target from files."""

import numpy as np
import pytest

from cosilo.errors import ConfigError, CosiloError

AIMING = """
[method]
use = "local"
[[silo]]
name = "north"
path = "train.csv"
label = "animal"
learner = { use = "sklearn.naive_bayes.GaussianNB" }
"""


@pytest.fixture
def animals(tmp_path):
    """Cats and dogs to train on; a target of wolves and lynxes, as two files and as one."""

    def write(name, rows, head="size,weight,animal,real"):
        (tmp_path / name).write_text("\n".join([head, *rows]) + "\n")

    write("train.csv", [f"{i},{i % 5},{'cat' if i % 2 else 'dog'}" for i in range(20)], "size,weight,animal")
    known = [f"{50 + i},{i},{'wolf' if i % 2 else 'lynx'},x" for i in range(6)]
    write("target.csv", known)
    others = [f"{60 + i},{i},,{'wolf' if i % 2 else 'lynx'}" for i in range(8)]
    write("unlabelled.csv", others)
    write("one.csv", [row for pair in zip(known, others[:6], strict=True) for row in pair])
    write("judged.csv", ["50,1,lynx", "51,2,wolf"], "size,weight,animal")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "points"),
    [
        ('{ path = "target.csv", unlabelled = "unlabelled.csv", truth = "real" }', 8),
        ('{ path = "one.csv", truth = "real" }', 6),
    ],
)
def test_a_target_from_two_files_or_one(animals, target, points, make):
    text = AIMING + f'target = {target}\ntest_path = "judged.csv"'
    (silo,) = make(animals, text).silos
    assert silo.task.classes == ("cat", "dog", "lynx", "wolf")
    assert silo.wanted.classes == ("lynx", "wolf")
    X, y = silo.data.target.labelled
    assert X["size"].tolist() == [50, 51, 52, 53, 54, 55]
    assert silo.task.decode(y).tolist() == ["lynx", "wolf"] * 3
    assert silo.data.target.unlabelled["size"].tolist() == list(range(60, 60 + points))
    assert silo.task.decode(silo.data.target.truth).tolist() == (["lynx", "wolf"] * 4)[:points]
    assert len(silo.data.test[1]) == 2
    (silo,) = make(animals, text.replace(', truth = "real"', "")).silos
    assert silo.data.target.truth is None
    assert len(silo.data.target.unlabelled) == points


def test_without_test_data_a_silo_with_a_target_is_not_judged(animals, make):
    text = AIMING + 'target = { path = "one.csv" }'
    (silo,) = make(animals, text).silos
    assert not silo.data.has_test
    (silo,) = make(animals, text, ["silo.0.test=false"]).silos
    assert not silo.data.has_test


def test_targets_of_text_and_arrays(tmp_path, make):
    (tmp_path / "train.csv").write_text("text,kind\nred apple,fruit\ngreen pear,fruit\nfast car,vehicle\n")
    (tmp_path / "target.csv").write_text("text,kind\nold oak,tree\nwild rose,flower\ntall pine,\n")
    text = """
        [[silo]]
        name = "a"
        path = "train.csv"
        text = "text"
        label = "kind"
        learner = { use = "sklearn.naive_bayes.MultinomialNB" }
        target = { path = "target.csv" }
        """
    (silo,) = make(tmp_path, '[method]\nuse = "local"\n' + text).silos
    assert silo.data.target.unlabelled.tolist() == ["tall pine"]
    x, y = np.eye(6), np.array(["a", "b"] * 3)
    np.savez(tmp_path / "train.npz", x=x, y=y)
    np.savez(tmp_path / "target.npz", x=x, y=np.array(["c", "d", "", "", "c", "d"]), real=np.array(["c"] * 6))
    text = """
        [[silo]]
        name = "a"
        path = "train.npz"
        learner = { use = "sklearn.naive_bayes.GaussianNB" }
        target = { path = "target.npz", truth = "real" }
        """
    (silo,) = make(tmp_path, '[method]\nuse = "local"\n' + text).silos
    assert np.array_equal(silo.data.target.unlabelled, x[2:4])
    assert silo.task.decode(silo.data.target.truth).tolist() == ["c", "c"]


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ('{ pth = "one.csv" }', "recipe.toml: silo.north.target.path: is missing"),
        ('{ path = "none.csv" }', "recipe.toml: silo.north.target.path: "),
        (
            '{ path = "target.csv", unlabeled = "unlabelled.csv" }',
            "recipe.toml: silo.north.target.unlabeled: there is no such key (did you mean 'unlabelled'?)",
        ),
        ('{ path = "target.csv", unlabelled = "none.csv" }', "recipe.toml: silo.north.target.unlabelled: "),
        (
            '{ path = "target.csv", unlabelled = "unlabelled.csv", truth = "reel" }',
            "recipe.toml: silo.north.target.truth: ",
        ),
        ('{ path = "unlabelled.csv" }', "silo 'north': no labelled target point; label some"),
        (
            '{ path = "unlabelled.csv", unlabelled = "unlabelled.csv" }',
            "recipe.toml: silo.north.target.path: ",  # 8 of 8 labels are missing
        ),
        (
            '{ path = "one.csv", truth = "animal" }',
            "recipe.toml: silo.north.target.truth: row 2 of one.csv has neither a label nor a truth",
        ),
        ('{ path = "target.csv" }\ntest = 0.3', "silo 'north': test = 0.3, but it has a target"),
        (
            '{ path = "target.csv" }\ntest_path = "train.csv"',
            "silo 'north', test data: label 'dog' is outside the target classes {lynx, wolf}",
        ),
    ],
)
def test_a_mistake_in_a_target_is_one_line(animals, target, line, make):
    with pytest.raises(CosiloError) as error:
        make(animals, AIMING + f"target = {target}")
    lines = str(error.value).splitlines()
    assert lines[0].startswith(line)
    assert len(lines) == 1 + ("pth" in target)


def test_a_dataset_by_name_has_no_target_file(animals, make):
    text = AIMING.replace('path = "train.csv"\nlabel = "animal"', 'dataset = "digits"')
    with pytest.raises(ConfigError, match=r"recipe\.toml: silo\.north: wants target with a path only"):
        make(animals, text + 'target = { path = "target.csv" }')
