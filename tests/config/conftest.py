"""A recipe with two silos, and the federation that it makes."""

import numpy as np
import pytest

from cosilo.config import build, recipe_file

GOOD = """
seed = 3
[method]
use = "cofed"
alpha = 0.4
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
learner = { use = "sklearn.naive_bayes.GaussianNB" }
test = 0.5
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("north", "south"):
        rows = [
            f"{rng.integers(20, 90)},{rng.choice(['cook', 'nurse'])},{'yes' if i % 3 else 'no'}"
            for i in range(40)
        ]
        (tmp_path / f"{name}.csv").write_text("age,job,sick\n" + "\n".join(rows) + "\n")
    (tmp_path / "pool.csv").write_text("age,job\n" + "\n".join(f"{age},cook" for age in range(30, 60)) + "\n")
    return tmp_path


@pytest.fixture
def make():
    """The federation of a recipe that lies in a folder."""

    def federation(folder, text=GOOD, overrides=()):
        path = folder / "recipe.toml"
        path.write_text(text)
        return build.federation(recipe_file.read(path, overrides), build.Source("recipe.toml", folder))

    return federation
