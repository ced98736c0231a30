import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cosilo.data import load
from cosilo.errors import DataError

LOAD = """
import sys
from cosilo.data import load
from cosilo.errors import DataError
try:
    data = load(sys.argv[1])
    print(data, data.y.tolist(), data.X[:, 0, 0].tolist())
except DataError as error:
    print(error)
"""


def kannada(folder: Path, label: int) -> None:
    path = folder / "kannada_mnist" / "kannada_mnist.npz"
    path.parent.mkdir(parents=True)
    image = np.zeros((1, 2, 2), np.uint8)
    np.savez(path, x_test=image, y_test=np.array([label]), x_dig=image, y_dig=np.array([label]))


def run(name: str, **env: str) -> str:
    """In another process, because the hub's client reads its settings when it is imported."""
    full = {key: value for key, value in os.environ.items() if key != "HF_HOME"} | env
    command = [sys.executable, "-c", LOAD, name]
    done = subprocess.run(command, env=full, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_given_folder_comes_before_the_cache(tmp_path, data_folder, monkeypatch):
    kannada(tmp_path / "cache" / "cosilo", 1)
    assert load("kannada_mnist").y.tolist() == [1]
    kannada(data_folder, 2)
    assert load("kannada_mnist").y.tolist() == [2]
    monkeypatch.delenv("COSILO_DATA")
    assert load("kannada_mnist").y.tolist() == [1]


def test_the_cache_is_under_home_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    kannada(tmp_path / "home" / ".cache" / "cosilo", 3)
    assert load("kannada_mnist").y.tolist() == [3]


def test_absent(tmp_path, data_folder, monkeypatch):
    with pytest.raises(DataError) as error:
        load("adult", "test")
    assert str(error.value) == (
        f"dataset 'adult' (test) not found: looked in {data_folder}/adult, {tmp_path}/cache/cosilo/adult; "
        f"put adult.test into {data_folder}/adult"
    )
    monkeypatch.delenv("COSILO_DATA")
    with pytest.raises(DataError, match=r"or set COSILO_DATA to the folder that holds adult/$"):
        load("adult")


def test_absent_and_offline(tmp_path, data_folder):
    (data_folder / "mnist").mkdir(parents=True)
    (data_folder / "mnist" / "train-images-idx3-ubyte.gz").touch()
    line = run("mnist", HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path / "hub"))
    assert line == (
        f"dataset 'mnist' (train) not found: looked in {data_folder}/mnist (which has only "
        f"train-images-idx3-ubyte.gz), {tmp_path}/cache/cosilo/mnist and on the Hugging Face hub "
        f"(ylecun/mnist: offline, and not downloaded before); put "
        f"train-images-idx3-ubyte.gz and train-labels-idx1-ubyte.gz, or train.parquet "
        f"into {data_folder}/mnist"
    )


def test_a_hub_that_does_not_answer_is_given_up_at_once(tmp_path):
    # Nothing listens on port 9 of this machine; left alone, the client would try for half a minute.
    line = run("cifar10", HF_ENDPOINT="http://127.0.0.1:9", HF_HUB_CACHE=str(tmp_path), HF_HUB_OFFLINE="0")
    assert "on the Hugging Face hub (uoft-cs/cifar10: offline, and not downloaded before)" in line


def test_without_the_hubs_client(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        DataError,
        match=r"\(the download of ylecun/mnist needs .*: "
        r"make install EXTRAS=data, or pip install '.*\[data\]'\)",
    ):
        load("mnist")


@pytest.mark.parametrize(
    ("name", "repo", "file"),
    [
        ("mnist", "ylecun--mnist", "mnist/train-00000-of-00001.parquet"),
        ("fashion_mnist", "zalando-datasets--fashion_mnist", "fashion_mnist/train-00000-of-00001.parquet"),
    ],
)
def test_what_the_hub_has_given_before(tmp_path, image_parquet, name, repo, file):
    commit = "0123456789" * 4
    repository = tmp_path / "hub" / f"datasets--{repo}"
    images = [np.full((2, 2), value, np.uint8) for value in (5, 6)]
    image_parquet(repository / "snapshots" / commit / file, "image", images, label=[8, 0])
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    line = run(name, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path / "hub"))
    assert line == f"Dataset('{name}': 2 instances, numbers of shape (2, 2), 10 classes) [8, 0] [5, 6]"
