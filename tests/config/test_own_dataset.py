"""Simulations over data of one's own, and splits of one's own."""

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits
from typer.testing import CliRunner

from cosilo import Run, data
from cosilo.cli.main import app
from cosilo.errors import CosiloError, DataError

RECIPE = """
[pool]
rest = true

[simulation]
path = "{path}"
label = "diagnosis"
split = {split}
learners = [{{ use = "sklearn.ensemble.HistGradientBoostingClassifier", max_iter = 4 }}]
"""
MINE = """
import numpy as np

def by_radius(dataset, seed, silos):
    order = np.argsort(dataset.X["mean radius"].to_numpy(), kind="stable")
    rng = np.random.default_rng(seed)
    return {f"size-{n}": rng.permutation(part)[:60] for n, part in enumerate(np.array_split(order, silos))}

def broken(dataset, seed):
    return {"a": [0, 1], "b": [1, 2]}

def strange(dataset, seed):
    return 3
"""


@pytest.fixture
def folder(tmp_path):
    cancer = load_breast_cancer(as_frame=True)
    frame = cancer.data.iloc[:, :5].assign(
        diagnosis=np.array(["malignant", "benign"])[cancer.target], ward=np.arange(569) % 3
    )
    frame["ward"] = "ward-" + frame["ward"].astype(str)
    frame.iloc[:10, 1] = np.nan
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame.to_parquet(tmp_path / "all.parquet")
    (tmp_path / "own_splits.py").write_text(MINE)
    return tmp_path


def ran(folder, path, split, *options):
    (folder / "recipe.toml").write_text(RECIPE.format(path=path, split=split))
    return CliRunner().invoke(
        app, ["run", f"{folder}/recipe.toml", f"--dir={folder}/out", *options], env={"COLUMNS": "200"}
    )


@pytest.mark.parametrize("path", ["all.csv", "all.parquet"])
def test_silos_are_cut_out_of_a_file(folder, path):
    result = ran(folder, path, '{ use = "iid", silos = 3, size = 80 }')
    assert result.exit_code == 0, result.output
    run = Run.open(folder / "out")
    frame = run.to_frame()
    assert (frame["federated_accuracy"] > 0.8).all()
    assert (frame["instances"] == 142).all()  # a quarter of 569
    assert run.about["pool_size"] == 427 - 240


def test_by_a_column_which_is_then_no_feature(folder):
    result = ran(
        folder, "all.csv", '{ use = "by_value", column = "ward" }', "--set", "simulation.per_class=100"
    )
    assert result.exit_code == 0, result.output
    run = Run.open(folder / "out")
    assert run.about["silos"] == ["ward-0", "ward-1", "ward-2"]
    assert [name for name, _ in run.model("ward-1").instances["columns"]][-1] == "mean smoothness"


def test_a_split_by_import_path(folder):
    result = ran(folder, "all.csv", '{ use = "own_splits.by_radius", silos = 2 }')
    assert result.exit_code == 0, result.output
    assert Run.open(folder / "out").about["silos"] == ["size-0", "size-1"]


@pytest.mark.parametrize(
    ("split", "words"),
    [
        ('{ use = "own_splits.broken" }', "index 1 is in more than one part"),
        (
            '{ use = "own_splits.strange" }',
            "own_splits.strange returned int; wants a Split, or the indices of each silo",
        ),
        ('{ use = "own_splits.by_radios", silos = 2 }', "has no 'by_radios' (did you mean 'by_radius'?)"),
        ('{ use = "own_splits.by_radius" }', "own_splits.by_radius raised TypeError"),
        ('{ use = "idd", silos = 2 }', "wants by_value, dirichlet, iid"),
    ],
)
def test_mistakes_are_one_line(folder, split, words):
    result = ran(folder, "all.csv", split)
    assert result.exit_code != 0
    said = str(result.exception)  # which the command prints
    assert isinstance(result.exception, CosiloError)
    assert words in said
    assert "\n" not in said


def test_a_folder_of_images(tmp_path):
    X, y = load_digits(return_X_y=True)
    for place in range(120):
        folder = tmp_path / "digits" / str(y[place] % 3)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((X[place].reshape(8, 8) * 15).astype(np.uint8)).save(folder / f"{place}.png")
    recipe = RECIPE.format(path="digits", split='{ use = "iid", silos = 2, size = 40 }')
    (tmp_path / "recipe.toml").write_text(recipe.replace('label = "diagnosis"\n', ""))
    result = CliRunner().invoke(app, ["run", f"{tmp_path}/recipe.toml", f"--dir={tmp_path}/out"])
    assert result.exit_code == 0, result.output
    assert Run.open(tmp_path / "out").result["tasks"]["silo-1"] == ["0", "1", "2"]


def test_own_splits_in_python():
    split = data.own_split({"north": [3, 1], "south": [0]}, y=[0, 1, 2, 1])
    assert split.names == ("north", "south")
    assert split.tasks == ((1,), (0,))
    assert split.parts[0].tolist() == [1, 3]
    for parts, words in (
        ([[0.5]], "the part of silo number 0 is float64"),
        ({"a": [9]}, "the part of silo 'a' holds index 9; wants 0 to 3"),
        ([], "has no parts"),
        ([[0], [0]], "index 0 is in more than one part"),
    ):
        with pytest.raises(DataError, match=words):
            data.own_split(parts, y=[0, 1, 2, 1])


def test_a_memory_mapped_file(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(6))
    np.save(tmp_path / "y.npy", np.arange(6) % 2)
    table = data.read(tmp_path / "x.npy", label="y.npy")
    assert table.y.tolist() == ["0", "1"] * 3
    assert not table.X.flags.writeable
    with pytest.raises(DataError, match=r"no labels in .*z\.npy; wants the name of a \.npy file beside it"):
        data.read(tmp_path / "x.npy", label="z.npy")


def test_test_data_of_its_own(folder):
    frame = pd.read_csv(folder / "all.csv")
    frame[:400].to_csv(folder / "train.csv", index=False)
    frame[400:].to_csv(folder / "test.csv", index=False)
    result = ran(
        folder, "train.csv", '{ use = "iid", silos = 2, size = 80 }', "--set", "simulation.test_path=test.csv"
    )
    assert result.exit_code == 0, result.output
    assert (Run.open(folder / "out").to_frame()["instances"] == 169).all()
