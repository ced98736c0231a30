"""Datasets of Hugging Face on disk, by `load_dataset`, and in recipes; nothing is downloaded."""

import datasets
import numpy as np
import pytest
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from cosilo import Run
from cosilo.cli.main import app
from cosilo.data import load, read
from cosilo.data.huggingface import is_saved, load_named
from cosilo.errors import DataError

X, y = load_digits(return_X_y=True)
NAMES = [f"digit {n}" for n in range(10)]


@pytest.fixture
def saved(tmp_path):
    """Digits as somebody saves them: two splits."""
    pixels = {f"p{i}": datasets.Value("float32") for i in range(64)}
    kinds = datasets.Features({**pixels, "y": datasets.ClassLabel(names=NAMES)})

    def part(rows):
        return datasets.Dataset.from_dict({**{f"p{i}": X[rows, i] for i in range(64)}, "y": y[rows]}, kinds)

    found = datasets.DatasetDict({"train": part(slice(0, 500)), "test": part(slice(500, 700))})
    found.save_to_disk(str(tmp_path / "digits"))
    return tmp_path / "digits"


def test_a_folder_on_disk_is_a_path_and_a_dataset(saved):
    assert is_saved(saved)
    table = read(saved / "train")
    assert table.X.shape == (500, 64)
    assert table.y[0] == NAMES[y[0]]
    found = load(str(saved), "test")
    assert len(found) == 200
    assert found.classes == tuple(NAMES)
    with pytest.raises(DataError, match="has the splits train, test; wants the folder of one of them"):
        read(saved)
    with pytest.raises(DataError, match=r"digits: has no split 'valid'; it has train, test"):
        load_named(str(saved), "valid")


def test_what_judges_is_never_what_is_learnt_from(saved):
    """One split has no other one to judge by."""
    with pytest.raises(DataError, match="train: is one dataset without splits, and 'test' is wanted"):
        load(str(saved / "train"), "test")


def test_names_that_load_dataset_takes(tmp_path, monkeypatch):
    """The hub is out of reach in tests; a folder of csv files is what load_dataset reads offline."""
    folder = tmp_path / "films"
    folder.mkdir()
    for split in ("train", "test"):
        (folder / f"{split}.csv").write_text("text,label\nfine,good\ndull,bad\n")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    found = load(str(folder), "test", label="label")
    assert found.X.tolist() == ["fine", "dull"]
    assert found.classes == ("bad", "good")
    with pytest.raises(DataError, match="which column has the classes"):
        load(str(folder), "test")
    with pytest.raises(DataError, match="dataset 'nobody/nothing': cannot be loaded"):
        load("nobody/nothing", "train")
    with pytest.raises(DataError, match="dataset 'digits': knows its own columns; leave out label"):
        load("digits", label="y")


RECIPE = """
[pool]
path = "digits/test"
label = "y"
size = 100

[simulation]
dataset = "./digits"
split = { use = "iid", silos = 2, size = 100 }
learners = [{ use = "sklearn.naive_bayes.GaussianNB" }]
"""


def test_a_recipe_over_a_saved_dataset(saved):
    (saved.parent / "recipe.toml").write_text(RECIPE)
    ran = CliRunner().invoke(
        app, ["run", f"{saved.parent}/recipe.toml", f"--dir={saved.parent}/out"], catch_exceptions=False
    )
    assert ran.exit_code == 0, ran.output
    run = Run.open(saved.parent / "out")
    assert run.result["tasks"]["silo-1"] == NAMES
    assert np.isfinite(run.to_frame()["federated_accuracy"]).all()


def test_a_folder_beside_the_recipe_where_one_stands(saved, monkeypatch):
    """The folder that is called like a dataset of cosilo, and one without a slash in its name."""
    monkeypatch.chdir(saved.parent)
    saved.rename("scans")
    for name in ("scans", "./scans", "./digits"):
        if name == "./digits":
            (saved.parent / "scans").rename("digits")
        recipe = RECIPE.replace("./digits", name).replace("digits/test", f"{name}/test")
        (saved.parent / "recipe.toml").write_text(recipe)
        ran = CliRunner().invoke(
            app, ["check", "recipe.toml"], catch_exceptions=False, env={"COLUMNS": "300"}
        )
        assert "digit 0, digit 1" in ran.output
