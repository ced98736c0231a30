"""`cosilo check` finds what a run would fail of, or what would make it mean nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

RECIPE = """
[pool]
path = "pool.csv"
[defaults]
label = "sick"
learner = { use = "sklearn.tree.DecisionTreeClassifier", max_depth = 3 }
[[silo]]
name = "north"
path = "north.csv"
[[silo]]
name = "south"
path = "south.csv"
"""


def people(seed: int, rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 80, rows)
    job = np.array(["nurse", "cook"])[rng.integers(2, size=rows)]
    return pd.DataFrame({"age": age, "job": job, "sick": np.where(age > 50, "yes", "no")})


@pytest.fixture
def folder(tmp_path) -> Path:
    people(0).to_csv(tmp_path / "north.csv", index=False)
    people(1).to_csv(tmp_path / "south.csv", index=False)
    people(2).drop(columns="sick").to_csv(tmp_path / "pool.csv", index=False)
    (tmp_path / "clinics.toml").write_text(RECIPE)
    return tmp_path


def change(path: Path, **columns: object) -> None:
    pd.read_csv(path).assign(**columns).to_csv(path, index=False)


def test_all_is_well(folder, cosilo):
    code, output, errors = cosilo("check", folder / "clinics.toml")
    assert (code, errors) == (0, "")
    assert output.endswith("ready to run\n")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            'defaults.learner.max_depth="six"',
            "DecisionTreeClassifier.fit raised InvalidParameterError",
        ),
        (
            "defaults.learner.use=sklearn.tree.DecisionTreeRegressor",
            "TreeRegressor is a regressor; wants",
        ),
        ("pool.size=1", "the pool has 1 instance for 2 classes"),
    ],
)
def test_learners_and_pools_that_cannot_do(folder, cosilo, settings, line):
    code, output, errors = cosilo("check", folder / "clinics.toml", "--set", settings)
    assert code == 2
    assert line in errors
    assert "ready" not in output


def test_a_word_in_a_column_of_numbers(folder, cosilo):
    change(folder / "north.csv", age=[*people(0)["age"][:-1], "old"])
    code, _, errors = cosilo("check", folder / "clinics.toml")
    assert code == 2
    assert (
        "silo 'north': column 'age' holds numbers in its pool and words in its data; "
        "1 of 40 values is no number, the first in row 40 in the data; bring both to the same type"
    ) in errors


def test_words_in_the_pool_and_numbers_in_the_data(folder, cosilo):
    change(folder / "pool.csv", age="elderly")
    code, _, errors = cosilo("check", folder / "clinics.toml")
    assert code == 2
    assert "silo 'north': column 'age' holds words in its pool and numbers in its data" in errors


def test_the_test_file_is_compared_too(folder, cosilo):
    people(3).assign(age="elderly").to_csv(folder / "test.csv", index=False)
    code, _, errors = cosilo("check", folder / "clinics.toml", "--set", "silo.south.test_path=test.csv")
    assert code == 2
    assert "silo 'south': column 'age' holds words in test data and numbers in its data" in errors


def test_dates_are_no_features(folder, cosilo):
    for name in ("north", "south", "pool"):
        change(folder / f"{name}.csv", seen="2024-05-01")
    code, _, errors = cosilo("check", folder / "clinics.toml")
    assert code == 2
    assert "silo 'north': column 'seen' holds dates, and one-hot encoded every day would be a word" in errors


def test_what_may_not_be_meant_is_pointed_at(folder, cosilo):
    for name in ("north", "south", "pool"):
        change(folder / f"{name}.csv", patient=[f"p{i}" for i in range(40)])
    code, _, errors = cosilo("check", folder / "clinics.toml")
    assert code == 0
    assert "look at silo 'north': column 'patient': all 40 values are different" in errors


def test_the_file_of_one_silo_is_tried_out_too(folder, cosilo):
    text = 'name = "north"\npath = "north.csv"\nlabel = "sick"\n'
    learner = 'learner = { use = "sklearn.tree.DecisionTreeClassifier", max_depth = '
    (folder / "north.toml").write_text(f"{text}{learner}3 }}\n")
    assert cosilo("check", folder / "north.toml")[1].endswith("ready to join\n")
    (folder / "north.toml").write_text(f'{text}{learner}"six" }}\n')
    code, output, errors = cosilo("check", folder / "north.toml")
    assert code == 2
    assert "silo 'north': DecisionTreeClassifier.fit raised InvalidParameterError" in errors
    assert "ready" not in output
